"""
Fuzz targets on plain values: the decision, client addresses, content encodings, templates and path patterns.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from contextlib import suppress
from ipaddress import ip_address

import atheris
import brotli
import zstandard

from webhookrx.errors import RequestRefused
from webhookrx.intake.client_address import from_proxy_header
from webhookrx.intake.encodings import unpack
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.json_body import MAX_DEPTH
from webhookrx.intake.judge import Accepted, Receipt, Refused, SourceRules, admit, judge
from webhookrx.intake.path_patterns import PathPatterns, decode_groups
from webhookrx.message.encoders import encode_line
from webhookrx.message.message import Message
from webhookrx.message.template import Template

LIMIT = 64 * 1024
RECEIPT = Receipt(1_767_323_045_678_901_234, "id-1")
SEEN = {"SOURCEIP": "192.0.2.7", "SOURCEPORT": 40000, "TRANSPORT": "http", "TAGS": ".source.fuzz", "RCPTID": "id-1"}
RULES = [
    SourceRules(
        "fuzz", parse_json=True, prefix=prefix, include_request_headers=True, body_limit=LIMIT, unpack_ratio=10**6
    )
    for prefix in ("", "webhook.", "p.")
]


def the_judge(data: bytes) -> None:
    """
    Each body becomes a message that is one line of JSON and tells what the receiver saw; an object that strict JSON
    knows is taken apart, and every number in it keeps its value.
    """
    provider = atheris.FuzzedDataProvider(data)
    rules = RULES[provider.ConsumeIntInRange(0, 2)]
    query = provider.ConsumeBytes(provider.ConsumeIntInRange(0, 12))
    body = provider.ConsumeBytes(len(data))
    head = Head(b"POST", b"/", query, [(b"x", body[:20]), (b"cookie", b"hush-hush")], Peer("192.0.2.7", 40000, False))
    admission = admit(head, rules, {})
    if isinstance(admission, Refused):
        assert admission.reason.word == "bad_encoding", admission
        return
    verdict = judge(head, admission, body, RECEIPT)
    assert isinstance(verdict, Accepted), verdict
    line = encode_line(verdict.message)
    text = line.decode()
    assert text.endswith("\n") and len(text.splitlines()) == 1, "not one line"
    written = json.loads(text, parse_float=str, parse_int=str)
    assert {name: written.get(name) for name in SEEN} == {name: str(value) for name, value in SEEN.items()}
    assert written["RAWMSG_SIZE"] == str(len(body))
    assert "hush-hush" not in json.dumps(written["webhook.headers"])
    strict = _strict_object(body)
    if strict is not None:
        assert "webhook.parse_error" not in written, written["webhook.parse_error"]
        for name, value in strict.items():
            key = rules.prefix + name
            if isinstance(value, _Number) and name.islower() and key in written and not key.startswith("webhook."):
                # An integer is one to Python, and there is one zero among them.
                text = "0" if value.text == "-0" else value.text
                assert written[key] == text, (name, value.text, written[key])


class _Number:
    def __init__(self, text: str) -> None:
        self.text = text


def _strict_object(body: bytes) -> dict[str, object] | None:
    """Return what the standard library takes for a JSON object, if it does and the object is not too deep."""
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        return None
    try:
        value = json.loads(body.decode(), parse_float=_Number, parse_int=_Number, parse_constant=_no)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _no(name: str) -> None:
    raise ValueError(name)


def address(data: bytes) -> None:
    """What comes out of a proxy header is an address in its normal form and a port, or nothing."""
    # A header value has no control characters but tabs.
    found = from_proxy_header([re.sub(rb"[\x00-\x08\x0a-\x1f\x7f]", b"", line) for line in data.split(b"\n")])
    if found is not None:
        ip = ip_address(found.ip)
        assert str(ip) == found.ip and "%" not in found.ip, found
        assert ip.version == 4 or ip.ipv4_mapped is None, found
        assert found.port is None or 0 <= found.port <= 65535, found


_CODINGS = [b"gzip", b"deflate", b"zstd", b"br"]


def encoding(data: bytes) -> None:
    """A body unpacks to no more than the limit, or is refused; gzip to what the standard library makes of it."""
    if not data:
        return
    coding, body = _CODINGS[data[0] % 4], data[1:]
    try:
        unpacked = unpack(body, [coding], LIMIT)
    except RequestRefused as refused:
        assert refused.reason.word in ("bad_compression", "body_too_large"), refused
        return
    assert len(unpacked) <= LIMIT
    if coding == b"gzip":
        assert unpacked == gzip.decompress(body)


MESSAGE = Message(
    {"MESSAGE": "a\nb\u2028c", "HOST": "h", "l": ["x", "y,z"], "n": None, "o": {"k": [1, True]}}, RECEIPT.received
)


def template(data: bytes) -> None:
    """A text is no template, or renders as one line."""
    try:
        parsed = Template.parse(data.decode("utf-8", "surrogateescape"))
    except ValueError as error:
        assert str(error).startswith("column "), error
        return
    line = parsed.render_line(MESSAGE).decode()
    assert line.endswith("\n") and len(line.splitlines()) == 1, line
    parsed.render(MESSAGE)


def paths(data: bytes) -> None:
    """A pattern matches what C{re} says it matches, and takes the same text into its groups."""
    provider = atheris.FuzzedDataProvider(data)
    patterns = [
        "".join(provider.PickValueInList(_ATOMS) for _ in range(provider.ConsumeIntInRange(0, 6)))
        for _ in range(provider.ConsumeIntInRange(1, 4))
    ]
    path = b"/" + bytes(byte % 0x5E + 0x21 for byte in provider.ConsumeBytes(12))
    expected = None
    try:
        compiled = [re.compile(pattern.encode()) for pattern in patterns]
        matcher = PathPatterns(patterns)
    except (re.error, ValueError, OverflowError):
        return
    for index, pattern in enumerate(compiled):
        match = pattern.fullmatch(path)
        if match:
            expected = index, {name: text for name, text in match.groupdict().items() if text is not None}
            break
    found = matcher.match(path)
    assert found == expected, (patterns, path, found, expected)
    if found:
        with suppress(RequestRefused):
            decode_groups(found[1])


# Pieces of which nearly every row is a pattern. Nested repetition is left out: it would hang the oracle, not us.
_ATOMS = [
    *"/ab.-_%~",
    "/",
    "/.*",
    "[^/]+",
    "(?P<HOST>[^/]+)",
    "(?P<a>.*)",
    "(?P<b>[a-z]?)",
    "(?:a|ab)",
    "(a|/)",
    r"\d+",
    r"\w{1,3}",
    "b{,2}",
    "(?i:AB)",
    "^",
    "$",
    r"\Z",
    "(?=/)",
    "(?!a)",
    r"\.",
    "[]a]",
    "[^]a]",
    "x*?",
]

TARGETS = {
    "judge": (
        the_judge,
        [
            text.encode() + b"\x00\x00"
            for text in (
                '{"MESSAGE":"hi","HOST":"h","a":{"b":[1,2.50,"x"],"c":null},"SOURCEIP":"6.6.6.6"}',
                '{"n":12345678901234567890123456789,"f":1e400,"g":-0.0,"dup":1,"dup":2}',
                "{'MESSAGE':'single', unquoted: .5, hex: 0x1F, /* c */ t: NaN,}",
                '["a",["b"],{"c":1},null,1.0]',
                '{"s":"\\ud800","u":"\\u2028\u2028\u202e","":"","webhook.query.a":"x","webhook.headers":1}',
                "\ufeff{}",
                "[" * 140 + "]" * 140,
                "plain \x00 text",
            )
        ]
        + [b'{"a":"\xff"}'],
    ),
    "address": (
        address,
        [
            b"192.0.2.1, 198.51.100.7",
            b"[2001:db8::1]:443",
            b"::ffff:1.2.3.4",
            b'for="[2001:db8::1]:80";proto=https;by=_x, for=192.0.2.60:90',
            b'a, "b\\",c", 10.0.0.1:70000',
            b"fe80::1%eth0\nunknown",
        ],
    ),
    "encoding": (
        encoding,
        [
            bytes([number]) + packed
            for number, packed in enumerate(
                [
                    gzip.compress(b"hello" * 9, mtime=0) * 2,
                    zlib.compress(b"hello" * 9),
                    zstandard.compress(b"hello" * 9) * 2,
                    brotli.compress(b"hello" * 9),
                ]
            )
        ]
        + [b"\x01" + zlib.compress(b"hello" * 9)[2:-4], b"\x02" + zstandard.compress(bytes(10**6))],
    ),
    "template": (
        template,
        [b"${ISODATE} $HOST ${MESSAGE:-none} $$ $(format-json)", b"${l}${n:-x}${o}$R_DATE", b"${", b"$("],
    ),
    "paths": (paths, [bytes(range(40)), b"\x03\x05\x0a\x01\x0c/a/b"]),
}
