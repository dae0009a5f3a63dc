"""Words that libFuzzer puts into the data of a target: it rarely finds the names of headers or escapes by itself."""

from __future__ import annotations

from typing import Final

_HEAD: Final = rb"""
    POST PUT CONNECT HTTP/1.1 HTTP/1.0 Host: Content-Length: Transfer-Encoding: Connection: Expect: chunked close
    keep-alive Authorization: Content-Encoding: X-Forwarded-For: [::1]:80 ? # %41
""".split()
_JSON: Final = rb"""
    { } [ ] : , true false null 0 -0 1.5 1e5 E+ \" \\ \/ \b \n \u0041 \u00e9 \u2028 \uD83D\uDE00 {"a": ,"b":
""".split()
_NAMES: Final = b"HOST MESSAGE SOURCE PROGRAM RCPTID webhook. webhook.query. .source. a.b OST 1".split()
_CHARACTERS: Final = [each.encode() for each in "\x7f\x85é\u061c\u200e\u2028\u2069\uffff😀\U0010ffff"]

WORDS: Final = {
    "head": [*_HEAD, b" HTTP/1.1\r\n", b"\r\n\r\n", b"\t", b"\x00"],
    "json": [*_JSON, *_CHARACTERS],
    "line": [*_JSON, *_CHARACTERS, *_NAMES],
    "recorded": [*_HEAD, *_CHARACTERS, b"\r\n", b"Cookie: x\r\n", b"X-A: b\r\n"],
    "text": _CHARACTERS,
}


def dictionary(name: str) -> str:
    """Return the words for a target as libFuzzer reads them from a file."""
    return "".join('"{}"\n'.format("".join(f"\\x{byte:02x}" for byte in word)) for word in WORDS.get(name, []))
