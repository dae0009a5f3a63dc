"""
A request of the console and its answer, at the resources of C{twisted.web}: for its API and for its pages.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from twisted.python.failure import Failure

from webhookrx.intake.client_address import normal_ip
from webhookrx.intake.head import Head, Peer

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)

#: Beside HSTS, which each answer over TLS has.
HEADERS: Final = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)

SAFE_METHODS: Final = ("GET", "HEAD")


class ConsoleAddress(NamedTuple):
    """
    Where people reach the console.

    @ivar host: as C{Host} has it.
    @ivar origin: as C{Origin} has it.
    """

    host: str
    origin: str

    @classmethod
    def of(cls, url: str) -> ConsoleAddress:
        """Return that of a URL, such as C{https://console.example:8443}."""
        parts = urlsplit(url)
        # Browsers leave the port of their scheme out (URL standard, section 4.2).
        host = parts.netloc.lower().removesuffix({"https": ":443", "http": ":80"}.get(parts.scheme, "?"))
        return cls(host, f"{parts.scheme}://{host}")


def head_of(request: Any) -> Head:
    """Return the head of a request of C{twisted.web}."""
    uri: bytes = request.uri
    path, question, query = uri.partition(b"?")
    headers = [(name.lower(), value) for name, values in request.requestHeaders.getAllRawHeaders() for value in values]
    peer = request.getClientAddress()
    host = getattr(peer, "host", None)
    # An IPv4 address in IPv6 clothes would be of one network with all others.
    ip = None if host is None else normal_ip(host) or host
    return Head(
        request.method,
        path,
        query if question else None,
        headers,
        Peer(ip or "127.0.0.1", None if ip is None else peer.port, request.isSecure()),
    )


def write_answer(request: Any, status: int, content_type: str, headers: list[tuple[str, str]], body: bytes) -> None:
    """
    Answer a request.

    @param content_type: empty for none.
    @param headers: all others but the length.
    """
    request.setResponseCode(status)
    request.responseHeaders.removeHeader(b"content-type")
    request.defaultContentType = None
    if content_type:
        request.setHeader(b"Content-Type", content_type.encode())
    for name, value in headers:
        request.responseHeaders.addRawHeader(name.encode(), value.encode())
    if status != 204:
        request.setHeader(b"Content-Length", b"%d" % len(body))
    if request.method != b"HEAD":
        request.write(body)
    request.finish()


def place_of(failure: Failure) -> str:
    """Return file and line of what failed."""
    frames = failure.frames or failure.stack
    return f"{frames[-1][1]}:{frames[-1][2]}" if frames else "unknown"
