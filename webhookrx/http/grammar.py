"""
The grammar of a head, and the problem of bytes that don't match it.

It is RFC 9112 without its tolerance, so that no proxy in front of us sees another request than we do: CRLF ends a line,
one blank separates the parts of the request line, none precedes a colon, no line is folded, no target has a fragment,
and the version is 1.0 or 1.1. Everything that it accepts, llhttp accepts in its strict mode.

Repetitions are possessive: the match never backtracks, so that it takes linear time on any bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from webhookrx.errors import (
    BAD_REQUEST,
    HEADERS_TOO_LARGE,
    TARGET_TOO_LONG,
    RequestRefused,
)

#: RFC 9110 §5.6.2.
_TCHAR = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]"
#: No method in use is longer than 32 bytes.
_METHOD = _TCHAR + rb"{1,32}+"
#: RFC 3986 without the fragment; the few visible characters that it leaves out are common and harmless.
_VISIBLE = rb"[\x21\x22\x24-\x7e]"
_VISIBLE_BUT_QUESTION_MARK = rb"[\x21\x22\x24-\x3e\x40-\x7e]"
#: Origin-form with its path and its query, or any other form (RFC 9112 §3.2).
_TARGET = rb"(/%b*+)(?:\?(%b*+))?|(%b++)" % (_VISIBLE_BUT_QUESTION_MARK, _VISIBLE, _VISIBLE)
_REQUEST_LINE = rb"(?!CONNECT )(%b) (?:%b) HTTP/1\.([01])\r\n" % (_METHOD, _TARGET)
#: RFC 9112 §5, with obs-text (RFC 9110 §5.5).
_FIELD_LINE = rb"%b++:[\t\x20-\x7e\x80-\xff]*+\r\n" % _TCHAR

#: More bytes than the method, the blanks and the version of a request line can have.
_BESIDE_TARGET = 64

#: A record of a handshake, of any version (RFC 8446 §5.1).
_TLS = b"\x16\x03"
_METHOD_BEGIN = re.compile(_METHOD + rb"(?: |\Z)")


@lru_cache(maxsize=16)
def grammar(count_limit: int) -> Callable[[bytes], re.Match[bytes] | None]:
    """
    Return a function that matches a head of at most C{count_limit} header lines at the beginning of data.

    The groups are the method; path and query of a target in origin-form; a target in another form; and the minor
    version.
    """
    return re.compile(rb"%b(?:%b){0,%d}+\r\n" % (_REQUEST_LINE, _FIELD_LINE, count_limit)).match


def check_beginning(data: bytes, target_limit: int, block_limit: int, seen: int = 0) -> None:
    """
    Check a head that is not complete yet, so that bytes that can't become a request are answered now, not at the
    deadline.

    @param seen: bytes of it that were checked before. A head may come in as many reads as it has bytes.
    @raise RequestRefused: it can't become a request, or not one within the limits.
    """
    if not _METHOD_BEGIN.match(data):
        raise RequestRefused(BAD_REQUEST, _no_method(data))
    if data.count(b"\n", seen) != data.count(b"\r\n", max(0, seen - 1)):
        raise RequestRefused(BAD_REQUEST, "A line ends with LF alone.")
    end = data.find(b"\r\n")
    if (len(data) if end < 0 else end) > target_limit + _BESIDE_TARGET:
        raise RequestRefused(TARGET_TOO_LONG)
    if len(data) > block_limit:
        raise RequestRefused(HEADERS_TOO_LARGE)


def refusal_of(block: bytes, target_limit: int, block_limit: int, count_limit: int) -> RequestRefused:
    """
    Return the problem of a head that doesn't match the grammar.

    @param block: all of it, with the empty line that ends it.
    """
    line, _, rest = block.partition(b"\r\n")
    if len(line) > target_limit + _BESIDE_TARGET:
        return RequestRefused(TARGET_TOO_LONG)
    if len(block) > block_limit:
        return RequestRefused(HEADERS_TOO_LARGE)
    if not re.fullmatch(_REQUEST_LINE, line + b"\r\n"):
        return RequestRefused(BAD_REQUEST, _request_line_problem(line))
    lines = rest.split(b"\r\n")[:-2]
    for number, text in enumerate(lines, 1):
        if not re.fullmatch(_FIELD_LINE, text + b"\r\n"):
            return RequestRefused(BAD_REQUEST, f"Header line {number} is not well-formed.")
    return RequestRefused(HEADERS_TOO_LARGE, f"There are more than {count_limit} headers.")


def _no_method(data: bytes) -> str:
    """Return the problem of data that does not begin with a method."""
    return "This is TLS, and the port speaks plain HTTP." if data.startswith(_TLS) else BAD_REQUEST.detail


def _request_line_problem(line: bytes) -> str:
    if not _METHOD_BEGIN.match(line):
        return _no_method(line)
    if line.startswith(b"CONNECT "):
        return "This receiver is not a proxy."
    if not line.endswith((b" HTTP/1.1", b" HTTP/1.0")):
        return "Only HTTP/1.1 and HTTP/1.0 are spoken here."
    if line.count(b" ") > 2:
        return "The request line has more than two blanks."
    return "The request target holds a character that must be percent-encoded."
