"""Calls of each function of L{webhookrx.speedups.Compiled}: what it takes, what it leaves to Python, and mistakes."""

from __future__ import annotations

from typing import NamedTuple

from webhookrx.http.head import _NAMES, _NOTHING, RequestHead
from webhookrx.intake.head import HeaderLines, Peer


class Call(NamedTuple):
    """A function, by its name, and its arguments."""

    name: str
    arguments: tuple[object, ...]


_PEER = Peer("192.0.2.7", 40000, False)
_HEAD = (
    b"PUT /a/b?c=d HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\nauthorization: x\r\nX-Forwarded-For: 192.0.2.1\r\n"
    b"Content-Length: 70000\r\n\r\n"
)


def _parse_head(data: object, *limits: object, names: object = _NAMES) -> Call:
    target, block, count = limits or (8192, 65536, 100)
    constants = (_PEER, 1000, 2000, b"POST", names, _NOTHING, HeaderLines, RequestHead)
    return Call("parse_head", (data, target, block, count, *constants))


_LARGE_TEXT = b"x" * 70_000
_JSON = b'{"a": [1, 2.50, {"b": "c\\n\\u00e9"}], "d": null}'
_MANY_NAMES = b"{" + b",".join(b'"name %d":%d' % (number, number) for number in range(300)) + b"}"

_TEXTS = (b"a\n\x01b", "é€\u2028😀".encode(), "é".encode(), b"", b"\xff", b"\x7f", _LARGE_TEXT, _LARGE_TEXT + b"\xff")

_HOSTS = b'{"HOST":"","x":{"y":[1],"z":{}},"MESSAGE":{},"MESSAGE":""}'


def _line(
    body: object,
    special: object = bytes(4096),
    prefix: object = b"p.",
    identifier: object = b"id",
    received: object = 1_767_323_045_678_901_234,
    groups: object = b"",
) -> Call:
    parts = b'{"ISODATE":"', b'","HOST":', b'"h"', b',"SOURCE":"s"', b',"SOURCEIP":"i","RAWMSG_SIZE":', b',"RCPTID":"'
    return Call("line", (body, prefix, *parts, identifier, groups, special, received, True))


CALLS = [
    _parse_head(_HEAD),
    _parse_head(_HEAD.replace(b"PUT", b"POST").replace(b"?c=d", b"")),
    _parse_head(_HEAD[:-1]),
    _parse_head(_HEAD.replace(b"Content-Length", b"Expect")),
    _parse_head(_HEAD, 3, 65536, 100),
    _parse_head(_HEAD, 8192, 100, 100),
    _parse_head(_HEAD, 8192, 65536, 2),
    _parse_head(b""),
    *(
        Call("compact_object", (body,))
        for body in (
            _JSON,
            _MANY_NAMES,
            b"[" + b",".join([_MANY_NAMES] * 20) + b"]",
            b'["' + _LARGE_TEXT + b'"]',
            _MANY_NAMES[:-1] + b',"name 1":2}',
            b'{"a":1,"a":2}',
            b"[" * 100,
            _JSON[:-1],
            b"",
        )
    ),
    *(Call("name_table", (names,)) for names in (b"", b"HOST\0\xff\0x", b"".join(b"%d\0" % n for n in range(2000)))),
    *(_line(body, special) for body in (_JSON, _HOSTS, _MANY_NAMES, *_TEXTS) for special in (b"", bytes(4096))),
    _line(_JSON, groups=b"a.b\0PROGRAM\0"),
    _line(_JSON, bytes(4095)),
    _line(b'[1,{"a":2},"' + _LARGE_TEXT + b'"]'),
    _line(b'{"a":{"b":[{}],"c":' + _MANY_NAMES + b"}}", prefix=b"p" * 1000),
    _line(_JSON, prefix=b"p" * 2000),
    _line(_JSON, identifier=b'"'),
    _line(_JSON, received=-1),
    *(
        Call("escape_text", (body, b"before", b"after", for_json, for_people))
        for body in _TEXTS
        for for_json, for_people in ((True, True), (True, False), (False, True))
    ),
]

MISTAKES = [
    _parse_head("text"),
    _parse_head(bytearray(_HEAD)),
    _parse_head(_HEAD, "8192", 65536, 100),
    _parse_head(_HEAD, 8192, None, 100),
    _parse_head(_HEAD, 8192, 65536, 1.0),
    _parse_head(_HEAD, names=["host"]),
    _parse_head(_HEAD, names=("host",)),
    Call("parse_head", (_HEAD,)),
    Call("parse_head", ()),
    Call("compact_object", ("[]",)),
    Call("compact_object", ()),
    Call("name_table", (None,)),
    _line("text"),
    _line(_JSON, prefix="p"),
    _line(_JSON, (1, 2)),
    _line(_JSON, identifier="id"),
    _line(_JSON, received=1.0),
    _line(_JSON, groups=None),
    Call("line", (_JSON,)),
    Call("line", ()),
    Call("escape_text", (b"a", b"", "", True, True)),
    Call("escape_text", ("a", b"", b"", True, True)),
    Call("escape_text", (b"a", b"", b"")),
]
