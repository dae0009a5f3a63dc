"""
Recorded requests in files (C{*.http}): head, blank line, body.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final
from urllib.parse import unquote_plus

from webhookrx.errors import RequestRefused, WebhookrxError
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.header_masking import MASK, is_credential
from webhookrx.intake.urlencoded import parse_query

_REQUEST_LINE: Final = re.compile(rb"([A-Z]+) ([\x21-\x7e]+)(?: HTTP/[0-9.]+)?")
_HEADER_LINE: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)")
_BOM: Final = b"\xef\xbb\xbf"

#: What a recording says of how its body came, while it holds the body itself.
_OF_THE_WIRE: Final = frozenset((b"content-encoding", b"transfer-encoding", b"content-length"))


#: What else people call credentials in a query.
_IN_QUERIES: Final = frozenset(("auth", "code", "key", "pass", "pwd", "sig"))

RECORDED: Final = ".http"
"""How the names of files with recorded requests end."""


class HttpFileError(WebhookrxError, ValueError):
    """A file holds no recorded request; the text is one sentence."""


def read_http_file(data: bytes) -> tuple[Head, dict[str, str | list[str]], bytes]:
    """
    Read a recorded request: a request line, which may be missing, header lines, a blank line, and the body to the end
    of the file. Lines of the head end with LF or CRLF. What begins with C{{} or C{[} is a body alone.

    The body is taken as it is: headers about its transfer coding are left out.

    @return: head, query and body.
    @raise HttpFileError: it holds no request.
    """
    if data.removeprefix(_BOM).lstrip()[:1] in (b"{", b"["):
        return _head(b"POST", b"/", []), {}, data
    data = data.removeprefix(_BOM)
    method, target = b"POST", b"/"
    headers: list[tuple[bytes, bytes]] = []
    position = number = 0
    while True:
        end = data.find(b"\n", position)
        line = data[position : end if end >= 0 else None].removesuffix(b"\r")
        position = end + 1 if end >= 0 else len(data)
        number += 1
        if not line:
            break
        if number == 1 and (request := _REQUEST_LINE.fullmatch(line)):
            method, target = request.groups()
        elif header := _HEADER_LINE.fullmatch(line):
            headers.append((header[1].lower(), header[2].strip()))
        else:
            raise HttpFileError(
                f"Line {number} is no header such as 'Content-Type: application/json'. A recorded request is a request "
                "line, headers, a blank line and the body; or a JSON body alone."
            )
    path, _, raw_query = target.partition(b"?")
    try:
        query = parse_query(raw_query)
    except RequestRefused as refused:
        raise HttpFileError(f"The query in line 1 can't be read: {refused.detail}") from None
    kept = [header for header in headers if header[0] not in _OF_THE_WIRE]
    return _head(method, path, kept, raw_query), query, data[position:]


def recorded(head: Head, signatures: Collection[bytes] = ()) -> bytes:
    """
    Return what a recording holds before the body, as L{read_http_file} reads it. The values of headers and query
    parameters that are credentials are masked; signatures and their times in headers are as they came. Headers
    about transfer coding are left out, since the body is written decoded.

    @param signatures: headers with signatures, in lower case, that look like credentials.
    """
    query = b"?" + _masked_query(head.query) if head.query else b""
    lines = [head.method + b" " + head.path + query + b" HTTP/1.1"]
    for name, value in head.headers:
        if name not in _OF_THE_WIRE:
            spelled = b"-".join(part.capitalize() for part in name.split(b"-"))
            masked = is_credential(name.decode("latin-1")) and name not in signatures
            lines.append(spelled + b": " + (MASK.encode() if masked else value))
    return b"\r\n".join([*lines, b"", b""])


def _masked_query(query: bytes) -> bytes:
    parts = []
    for part in query.split(b"&"):
        name, equals, _ = part.partition(b"=")
        word = unquote_plus(name.decode("latin-1")).lower().replace("_", "-")
        parts.append(name + equals + MASK.encode() if equals and (word in _IN_QUERIES or is_credential(word)) else part)
    return b"&".join(parts)


def _head(method: bytes, path: bytes, headers: list[tuple[bytes, bytes]], query: bytes = b"") -> Head:
    return Head(method, path, query, headers, Peer("127.0.0.1", None, False))
