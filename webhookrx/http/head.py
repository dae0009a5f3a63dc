"""
Parses the head of a request: from its bytes to checked values.

A usual head is read by the compiled path, where there is one. Any other is read by two regular expressions. The first
is the grammar: what doesn't match is refused. The second picks out the few lines that frame the request or that the
decision asks for most; the others are split when asked for.

What the grammar lets through and we don't is checked here: there is one C{Host}, and at most one C{Content-Length} or
one C{Transfer-Encoding: chunked}, that only on HTTP/1.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from webhookrx.errors import (
    BAD_REQUEST,
    HEADERS_TOO_LARGE,
    TARGET_TOO_LONG,
    RequestRefused,
)
from webhookrx.http.answers import CLOSE, KEEP, KEEP_1_0, OVER_TLS
from webhookrx.http.grammar import grammar, refusal_of
from webhookrx.intake.head import PREFETCHED, Head, HeaderLines, Peer
from webhookrx.settings import Limits
from webhookrx.speedups import compiled, in_order

#: Name, and value with the white space around it, of lines that match the grammar.
FRAMING_HEADERS = re.compile(
    rb"\n(host|con(?:tent-length|nection)|transfer-encoding|expect|%b):(.*+)" % b"|".join(sorted(PREFETCHED)),
    re.IGNORECASE,
)

_AUTHORITY = rb"(?:[A-Za-z0-9._~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?"
_HOST = re.compile(_AUTHORITY)
_ABSOLUTE = re.compile(rb"(https?)://(" + _AUTHORITY + rb")(/[^?]*)?(?:\?(.*))?", re.IGNORECASE)

#: Names of headers whose values are collected at any endpoint.
_NAMES: Final = in_order(PREFETCHED)

MOST_NAMES: Final = 16
"""Names of headers whose values are collected: each line is compared with some of them."""

_NOTHING: dict[bytes, list[bytes]] = {}


class RequestHead(Head, frozen=True, gc=False):
    """
    A L{Head} from the wire, with what says where its request ends and what becomes of the connection.

    @ivar prefetched: always collected.
    @ivar size: bytes of the head.
    @ivar content_length: bytes of the body; None when it is chunked.
    @ivar connection: what the answer is to say of the connection, see L{webhookrx.http.answers.CONNECTION_LINES}.
    @ivar http_1_0: whether the sender speaks HTTP/1.0.
    @ivar expects_continue: whether the sender waits for C{100 Continue}.
    @ivar expects_other: whether it expects anything else.
    """

    prefetched: Mapping[bytes, list[bytes]]
    size: int
    content_length: int | None
    connection: int
    http_1_0: bool = False
    expects_continue: bool = False
    expects_other: bool = False

    @property
    def target(self) -> bytes:
        """Origin-form or C{*}; an absolute-form is brought to it."""
        return self.path if self.query is None else self.path + b"?" + self.query

    @property
    def has_body(self) -> bool:
        """Whether bytes of a body follow the head."""
        return self.content_length != 0

    @property
    def bytes_expected(self) -> int:
        """
        Size of the body, to ask for room before it is read. A chunked body, whose size is unknown, counts as 1 if the
        sender waits for C{100 Continue}, else as 0.
        """
        return int(self.expects_continue) if self.content_length is None else self.content_length


def names_with(wanted: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return the names that are collected at any endpoint, and further ones, as many as are collected."""
    return in_order(tuple(dict.fromkeys((*_NAMES, *wanted)))[:MOST_NAMES])


def parse_head(data: bytes, peer: Peer, limits: Limits, names: tuple[bytes, ...] = _NAMES) -> RequestHead | None:
    """
    Parse a head.

    @param data: begins with it; what follows is left alone.
    @param peer: the sender; whether it speaks TLS must agree with an absolute-form target.
    @param limits: C{target}, C{header_block} and C{headers} of it.
    @param names: see L{names_with}. It may be that only those for any endpoint are collected.
    @return: None when the head is not complete.
    @raise RequestRefused: it is not well-formed, ambiguous, or beyond a limit.
    """
    if compiled is not None:
        secure = peer.secure
        head = compiled.parse_head(
            data,
            limits.target,
            limits.header_block,
            limits.headers,
            peer,
            KEEP + OVER_TLS if secure else KEEP,
            CLOSE + OVER_TLS if secure else CLOSE,
            b"POST",
            names,
            _NOTHING,
            HeaderLines,
            RequestHead,
        )
        if head is not None:
            return head
    match = grammar(limits.headers)(data)
    if match is None:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return None
        raise refusal_of(data[: end + 4], limits.target, limits.header_block, limits.headers)
    size = match.end()
    # The target is what stands between the two blanks of the request line.
    if size > limits.target and match.start(5) - match.end(1) - len("  HTTP/1.") > limits.target:
        raise RequestRefused(TARGET_TOO_LONG)
    if size > limits.header_block:
        raise RequestRefused(HEADERS_TOO_LARGE)
    method, path, query, other_form, version = match.groups()
    if path is None:
        path, query = _origin_form(method, other_form, peer.secure)
    return _framed(data[:size], method, path, query, peer, version == b"0")


def _origin_form(method: bytes, target: bytes, secure: bool) -> tuple[bytes, bytes | None]:
    """Bring a target of another form to origin-form (RFC 9112 §3.2); return path and query."""
    if target == b"*" and method == b"OPTIONS":
        return target, None
    match = _ABSOLUTE.fullmatch(target)
    # A URI of HTTP names a host (RFC 9110 §4.2.1).
    if match is None or match[2][:1] in b":" or match[1].lower() != (b"https" if secure else b"http"):
        raise RequestRefused(BAD_REQUEST, "The request target is not one of this receiver.")
    return match[3] or b"/", match[4]


def _framed(block: bytes, method: bytes, path: bytes, query: bytes | None, peer: Peer, http_1_0: bool) -> RequestHead:
    """Work out where the request ends and what becomes of the connection (RFC 9112 §6, §9)."""
    host: bytes | None = None
    length: int | None = None
    chunked = False
    keep_alive = not http_1_0
    closes = False
    expects_continue = False
    expects_other = False
    prefetched = _NOTHING
    for written, spaced in FRAMING_HEADERS.findall(block):
        name = written.lower()
        value = spaced.strip()
        if name == b"host":
            if host is not None or not _HOST.fullmatch(value):
                raise RequestRefused(BAD_REQUEST, "There must be one well-formed Host header.")
            host = value
        elif name == b"content-length":
            if length is not None or not (value.isdigit() and len(value) <= 19):
                raise RequestRefused(BAD_REQUEST, "There must be one well-formed Content-Length header.")
            length = int(value)
        elif name == b"connection":
            if value != b"keep-alive" or http_1_0:
                options = [option.strip() for option in value.lower().split(b",")]
                closes = closes or b"close" in options
                keep_alive = keep_alive or b"keep-alive" in options
        elif name == b"transfer-encoding":
            # A tab behind the coding would be white space too; but not every reader of HTTP takes it for that.
            if chunked or http_1_0 or spaced.lstrip().rstrip(b" \r").lower() != b"chunked":
                raise RequestRefused(BAD_REQUEST, "Transfer-Encoding may be a single chunked, on HTTP/1.1 only.")
            chunked = True
        elif name == b"expect":
            if not http_1_0:
                if value.lower() == b"100-continue":
                    expects_continue = True
                else:
                    expects_other = True
        else:
            if prefetched is _NOTHING:
                prefetched = {}
            prefetched.setdefault(name, []).append(value)
    if host is None and not http_1_0:
        raise RequestRefused(BAD_REQUEST, "There must be one well-formed Host header.")
    if not chunked:
        length = length or 0
    elif length is not None:
        raise RequestRefused(BAD_REQUEST, "Content-Length and Transfer-Encoding exclude each other.")
    connection = CLOSE if closes or not keep_alive else KEEP_1_0 if http_1_0 else KEEP
    return RequestHead(
        method,
        path,
        query,
        HeaderLines(block),
        peer,
        prefetched,
        len(block),
        length,
        connection + OVER_TLS if peer.secure else connection,
        http_1_0,
        expects_continue,
        expects_other,
    )
