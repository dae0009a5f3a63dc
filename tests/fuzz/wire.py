"""
Fuzz targets on the wire: heads, chunked bodies, and whole connections cut into reads anywhere.
"""

from __future__ import annotations

import re
from itertools import accumulate

import atheris

from tests.http.wire import Wire, post
from tests.pieces import pieces, pieces_of
from webhookrx.errors import RequestRefused
from webhookrx.http.body import ChunkedBody
from webhookrx.http.head import RequestHead, parse_head
from webhookrx.intake.head import Peer
from webhookrx.settings import Limits

LIMITS = Limits(target=512, header_block=4096, headers=20)

_SIZE = re.compile(rb"([0-9A-Fa-f]+)[ \t]*(?:;[^\r\n]*)?")
_STATUS = re.compile(rb"HTTP/1\.1 ([0-9]{3}) ")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

CHUNKED = b"POST /in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

SEEDS = [
    post(b"hello"),
    post(b"a") + post(b"b", b"/other?x=1&y=%20") + post(),
    CHUNKED + b"5\r\nhello\r\n0\r\n\r\n" + post(b"next"),
    CHUNKED + b"5;name=value\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: x\r\n\r\n" + post(b"next"),
    CHUNKED + b"0;\r\n\r\n\r\n\r\n",
    b"POST http://receiver/in HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
    b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    b"GET /secret HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\n\r\n",
    b"POST /secret HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\nContent-Length: 300\r\n\r\n" + b"x" * 300,
    b"HEAD /in HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nX: 1\r\n folded\r\nContent-Length : 1\r\n\r\n",
    b"\r\nPOST / HTTP/1.1\nHost: a\n\n",
]


def heads(data: bytes) -> None:
    """
    A head is refused, or means what the grammar says; a chunked body does not depend on where reads end, and what is
    taken from it is what the grammar says.
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    # Whoever calls it cuts at the first empty line.
    head = head if end else head.rstrip(b"\r\n")
    try:
        parsed = parse_head(head + b"\r\n\r\n", Peer("192.0.2.7", 40000, False), LIMITS)
    except RequestRefused:
        pass
    else:
        assert parsed is not None, "a head that is complete is told not to be"
        _check_head(head, parsed)
    rest = rest if end else data
    whole = _fed([rest])
    assert whole == _fed(pieces(rest, [len(rest) // 2])), "a body depends on where a read ends"
    assert whole == _fed(pieces_of(1, rest)), "a body depends on where reads end"
    if isinstance(whole, tuple):
        assert whole == _dechunked(rest), (whole, _dechunked(rest))


def _check_head(head: bytes, parsed: RequestHead) -> None:
    line, *lines = head.split(b"\r\n")
    assert not re.search(rb"[\r\n\x00]", line.join(lines)), "a bare CR or LF, or a NUL, got through"
    method, _, version = line.split(b" ")
    assert (method, version) == (parsed.method, b"HTTP/1.0" if parsed.http_1_0 else b"HTTP/1.1")
    assert re.fullmatch(rb"[\x21-\x7e]+", parsed.target) and parsed.target[:1] in (b"/", b"*"), parsed.target
    expected = []
    for text in lines:
        name, colon, value = text.partition(b":")
        assert colon and _NAME.fullmatch(name), text
        expected.append((name.lower(), value.strip(b" \t")))
    assert expected == list(parsed.headers), (expected, list(parsed.headers))
    assert parsed.http_1_0 or sum(name == b"host" for name, _ in expected) == 1
    lengths = [value for name, value in expected if name in (b"content-length", b"transfer-encoding")]
    assert len(lengths) <= 1, lengths


def _fed(reads: list[bytes]) -> tuple[bytes, bytes] | str:
    """Return data and rest; or a word for a body that is refused or not complete."""
    body = ChunkedBody()
    for number, piece in enumerate(reads, 1):
        try:
            rest = body.feed(piece)
        except RequestRefused:
            return "refused"
        if rest is not None:
            return body.take(), rest + b"".join(reads[number:])
    return "incomplete"


def _dechunked(data: bytes) -> tuple[bytes, bytes]:
    """Read a chunked body by RFC 9112 §7.1, with the grammar's own leniency and no other."""
    out = b""
    while True:
        line, end, data = data.partition(b"\r\n")
        match = _SIZE.fullmatch(line)
        assert end and match, f"not a chunk size: {line!r}"
        size = int(match[1], 16)
        if not size:
            break
        out += data[:size]
        assert data[size : size + 2] == b"\r\n", "a chunk does not end with CRLF"
        data = data[size + 2 :]
    while True:
        line, end, data = data.partition(b"\r\n")
        assert end, "the trailers do not end"
        if not line:
            return out, data
        assert _NAME.match(line) and b":" in line and b"\n" not in line and b"\r" not in line, line


def channel(data: bytes) -> None:
    """Answers and messages do not depend on where reads end, nothing fails, and every connection comes to an end."""
    provider = atheris.FuzzedDataProvider(data)
    lengths = [provider.ConsumeIntInRange(0, 255) for _ in range(provider.ConsumeIntInRange(0, 4))]
    stream = provider.ConsumeBytes(len(data))
    whole = _talk([stream])
    assert whole == _talk(pieces(stream, accumulate(lengths))), "what is answered depends on where reads end"
    if len(stream) <= 400:
        assert whole == _talk(pieces_of(1, stream)), "bytes one by one differ"


_LIMITS = Limits(body=256, header_block=1024, headers=10, target=128)


def _talk(reads: list[bytes]) -> tuple[list[int], list[object]]:
    wire = Wire({"/secret": {"auth_tokens": (b"t",)}, "/.*": {"parse_json": True}}, _LIMITS)
    sender = wire.connect()
    for piece in reads:
        if sender.transport.end not in ("closed", "aborted"):
            sender.send(piece)
            wire.settle()
    for _ in range(4):
        wire.clock.advance(80)
        wire.site.sweep()
    statuses = [int(status) for status in _STATUS.findall(sender.transport.written)]
    assert sender.transport.end in ("closed", "aborted"), "the connection stays for ever"
    assert not wire.traffic.failures, wire.traffic.failures
    assert statuses.count(200) == len(wire.messages)
    # What is wrong in two ways may be refused for either, by what was read first; what is cut short, at the deadline.
    told = [400 if status in (408, 414, 431) else status for status in statuses if status != 100]
    return told, [values["MESSAGE"] for values in wire.messages]


TARGETS = {
    "heads": (heads, SEEDS),
    "channel": (channel, [seed + bytes([3, 7, 40, 2]) for seed in SEEDS]),
}
