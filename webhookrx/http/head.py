"""
The head of a request, from its bytes to checked values.

llhttp reads the grammar (RFC 9112) in its strict mode. What it lets through and we don't is checked here, so that
nobody in front of us can see another request than we do: one C{Host}, one C{Transfer-Encoding: chunked} and only on
HTTP/1.1, one blank between the parts of the request line, a target without fragment, and no version but 1.0 and 1.1.
"""

from __future__ import annotations

import re

import httptools
import msgspec

from webhookrx.errors import (
    BAD_REQUEST,
    HEADERS_TOO_LARGE,
    TARGET_TOO_LONG,
    RequestRefused,
)

#: RFC 9110 §5.6.2. Longer methods than 32 bytes are nobody's.
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}"
_METHOD = re.compile(_TOKEN + rb"(?= )")
_METHOD_BEGIN = re.compile(_TOKEN + rb"(?: |\Z)")
#: RFC 3986 without the fragment; the few visible characters that it leaves out are common and harmless.
_TARGET = re.compile(rb"[\x21\x22\x24-\x7e]+")
_AUTHORITY = rb"(?:[A-Za-z0-9._~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?"
_HOST = re.compile(_AUTHORITY)
_ABSOLUTE = re.compile(rb"(https?)://(" + _AUTHORITY + rb")(/.*|\?.*)?", re.IGNORECASE)

_FRAMING = frozenset([b"host", b"content-length", b"transfer-encoding", b"connection", b"expect"])


class RequestHead(msgspec.Struct):
    """
    What the channel needs to know of a request.

    @ivar target: origin-form or C{*}; an absolute-form is brought to it.
    @ivar headers: lower-case name, value without white space around it; in the order of the wire.
    @ivar content_length: bytes of the body; None when it is chunked.
    @ivar keep_alive: whether the connection may serve another request.
    @ivar http_1_0: whether the sender speaks HTTP/1.0.
    @ivar expects_continue: whether the sender waits for C{100 Continue}.
    @ivar expects_other: whether it expects anything else.
    """

    method: bytes
    target: bytes
    headers: list[tuple[bytes, bytes]]
    content_length: int | None
    keep_alive: bool
    http_1_0: bool
    expects_continue: bool
    expects_other: bool

    @property
    def has_body(self) -> bool:
        """Whether bytes of a body follow the head."""
        return self.content_length != 0

    def size_to_come(self, here: int) -> int:
        """
        Return how large a body is that has yet to come; 0 when it needs no more than the bytes that are here.

        One that nobody knows the size of counts as 1 where the sender waits to be told to send it, else as it comes.
        """
        length = self.content_length
        if length is None:
            return int(self.expects_continue)
        return length if here < length else 0


class _Collector:
    """Takes llhttp's callbacks for one head."""

    __slots__ = ("headers", "target")

    def __init__(self) -> None:
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        # llhttp strips white space in front of a value and keeps what follows it.
        self.headers.append((name.lower(), value.rstrip(b" \t")))


def check_beginning(data: bytes, target_limit: int, block_limit: int) -> None:
    """
    Look at a head that is not complete yet, so that what can't become a request is answered now, not at the deadline.

    @raise RequestRefused: it can't become a request, or not one within the limits.
    """
    if not _METHOD_BEGIN.match(data):
        raise RequestRefused(BAD_REQUEST)
    if data.count(b"\n") != data.count(b"\r\n"):
        raise RequestRefused(BAD_REQUEST, "A line ends with LF alone.")
    end = data.find(b"\r\n")
    if (len(data) if end < 0 else end) > target_limit + 64:
        raise RequestRefused(TARGET_TOO_LONG)
    if len(data) > block_limit:
        raise RequestRefused(HEADERS_TOO_LARGE)


def parse_head(block: bytes, *, secure: bool, target_limit: int, block_limit: int, count_limit: int) -> RequestHead:
    """
    Read a head.

    @param block: request line and headers with the empty line that ends them.
    @param secure: whether it came by TLS; an absolute-form target must agree.
    @raise RequestRefused: it is not well-formed, doubtful, or beyond a limit.
    """
    line = block[: block.find(b"\r\n")]
    if len(line) > target_limit + 64:
        raise RequestRefused(TARGET_TOO_LONG)
    if len(block) > block_limit:
        raise RequestRefused(HEADERS_TOO_LARGE)
    method, collector = _feed(block)
    target = collector.target
    if len(target) > target_limit:
        raise RequestRefused(TARGET_TOO_LONG)
    headers = collector.headers
    if len(headers) > count_limit:
        raise RequestRefused(HEADERS_TOO_LARGE, f"There are more than {count_limit} headers.")
    version = line[-9:]
    if version not in (b" HTTP/1.1", b" HTTP/1.0"):
        raise RequestRefused(BAD_REQUEST, "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
    if len(line) != len(method) + 1 + len(target) + 9:
        raise RequestRefused(BAD_REQUEST, "The request line has more than one blank between its parts.")
    return _framed(method, _origin_form(method, target, secure), headers, version == b" HTTP/1.0")


def _feed(block: bytes) -> tuple[bytes, _Collector]:
    """
    Let llhttp read the block.

    It knows a list of methods and treats some in their own way; to us a method is any token (RFC 9110 §9.1), to be
    refused for what it is. So llhttp is shown C{POST} always.
    """
    method = b"POST"
    if not block.startswith(b"POST "):
        match = _METHOD.match(block)
        if match is None:
            raise RequestRefused(BAD_REQUEST)
        method = match.group()
        block = b"POST" + block[match.end() :]
    collector = _Collector()
    try:
        httptools.HttpRequestParser(collector).feed_data(block)
    except httptools.HttpParserUpgrade:
        pass  # We never switch protocols; RFC 9110 §7.8 lets us go on as if nobody had asked.
    except httptools.HttpParserError as error:
        raise RequestRefused(BAD_REQUEST, f"This is not well-formed HTTP/1.1: {error}.") from None
    return method, collector


def _origin_form(method: bytes, target: bytes, secure: bool) -> bytes:
    """Bring a target to origin-form (RFC 9112 §3.2)."""
    if not _TARGET.fullmatch(target):
        raise RequestRefused(BAD_REQUEST, "The request target holds a character that must be percent-encoded.")
    if method == b"CONNECT":
        raise RequestRefused(BAD_REQUEST, "This receiver is not a proxy.")
    if target.startswith(b"/") or (target == b"*" and method == b"OPTIONS"):
        return target
    match = _ABSOLUTE.fullmatch(target)
    if match is None or not match[2] or match[1].lower() != (b"https" if secure else b"http"):
        raise RequestRefused(BAD_REQUEST, "The request target is not one of this receiver.")
    rest = match[3] or b"/"
    return rest if rest.startswith(b"/") else b"/" + rest


def _framed(method: bytes, target: bytes, headers: list[tuple[bytes, bytes]], http_1_0: bool) -> RequestHead:
    """Work out where the request ends and what becomes of the connection (RFC 9112 §6, §9)."""
    hosts = 0
    length: int | None = None
    chunked = False
    keep_alive = not http_1_0
    expects_continue = False
    expects_other = False
    for name, value in headers:
        if name not in _FRAMING:
            continue
        if name == b"host":
            hosts += 1
            if hosts > 1 or not _HOST.fullmatch(value):
                raise RequestRefused(BAD_REQUEST, "There must be one well-formed Host header.")
        elif name == b"content-length":
            if length is not None or not (value.isdigit() and len(value) <= 19):
                raise RequestRefused(BAD_REQUEST, "There must be one well-formed Content-Length header.")
            length = int(value)
        elif name == b"transfer-encoding":
            if chunked or http_1_0 or value.lower() != b"chunked":
                raise RequestRefused(BAD_REQUEST, "Transfer-Encoding may be a single chunked, on HTTP/1.1 only.")
            chunked = True
        elif name == b"connection":
            options = [option.strip().lower() for option in value.split(b",")]
            if b"close" in options:
                keep_alive = False
            elif http_1_0 and b"keep-alive" in options:
                keep_alive = True
        elif not http_1_0:
            if value.lower() == b"100-continue":
                expects_continue = True
            else:
                expects_other = True
    if not hosts and not http_1_0:
        raise RequestRefused(BAD_REQUEST, "There must be one well-formed Host header.")
    if chunked and length is not None:
        raise RequestRefused(BAD_REQUEST, "Content-Length and Transfer-Encoding exclude each other.")
    body = None if chunked else length or 0
    return RequestHead(method, target, headers, body, keep_alive, http_1_0, expects_continue, expects_other)
