"""
A genuine C{twisted.web} request over our protocol, for resources that are not ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from typing import Any, cast

from twisted.internet.interfaces import IAddress, IConsumer
from twisted.python.failure import Failure
from twisted.web import server
from twisted.web.http_headers import Headers

from webhookrx.errors import BAD_REQUEST
from webhookrx.http.answers import CONNECTION_LINES, FAILED, SERVER, refusal
from webhookrx.http.head import RequestHead
from webhookrx.http.protocol import HTTPProtocol


class RequestChannel:
    """
    What C{twisted.web.http.Request} calls of its channel, on top of our protocol.
    """

    def __init__(self, protocol: HTTPProtocol, site: server.Site) -> None:
        self._protocol = protocol
        self.site = site
        self.transport = protocol.transport

    def getPeer(self) -> IAddress:
        """Return the other end's address."""
        return self.transport.getPeer()

    def getHost(self) -> IAddress:
        """Return our end's address."""
        return self.transport.getHost()

    def isSecure(self) -> bool:
        """Whether the request came by TLS."""
        return self._protocol.peer.secure

    def writeHeaders(self, version: bytes, code: bytes, reason: bytes, headers: Headers) -> None:
        """Write status line and headers; we are an HTTP/1.1 server to everyone (RFC 9110 §6.2)."""
        protocol = self._protocol
        if version == b"HTTP/1.0" and not headers.hasHeader(b"content-length"):
            protocol.close_after_this()
        headers.setRawHeaders(b"server", [SERVER])
        lines = [b"HTTP/1.1 %s %s\r\n" % (code, reason)]
        lines += [b"%s: %s\r\n" % (name, value) for name, values in headers.getAllRawHeaders() for value in values]
        lines += [CONNECTION_LINES[protocol.connection_header], b"\r\n"]
        self.writeSequence(lines)

    def write(self, data: bytes) -> None:
        """Write a part of the answer."""
        self._protocol.answer_goes_on()
        self.transport.write(data)

    def writeSequence(self, parts: Iterable[bytes]) -> None:
        """Write parts of the answer."""
        self.write(b"".join(parts))

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Let a resource write at the sender's pace, in our place at the transport."""
        transport = cast(IConsumer, self.transport)
        transport.unregisterProducer()
        self._protocol.producer_replaced()
        transport.registerProducer(producer, streaming)

    def unregisterProducer(self) -> None:
        """Take our place at the transport again: the resource has written everything."""
        transport = cast(IConsumer, self.transport)
        transport.unregisterProducer()
        transport.registerProducer(self._protocol, True)
        self._protocol.answer_goes_on()

    def requestDone(self, request: Request) -> None:
        """Note that the answer is complete."""
        self._protocol.request_done(request)

    def loseConnection(self) -> None:
        """Close the connection: a resource asks for it."""
        self._protocol.abort()

    def _respondToBadRequestAndDisconnect(self) -> None:
        """Called by C{twisted.web} when a form can't be read."""
        self._protocol.replace_answer(refusal(BAD_REQUEST, "The form can't be read."))

    def failed(self, what: str, failure: Failure) -> None:
        """Report that a resource raised."""
        self._protocol.failed(what, failure)


class Request(server.Request):
    """
    All that a stock resource expects, with forms, sessions and producers. It is made when the body is complete.
    """

    defaultContentType = b"application/octet-stream"

    @classmethod
    def from_parts(cls, protocol: HTTPProtocol, site: server.Site, head: RequestHead, body: bytes) -> Request:
        """Return a request that is ready for C{requestReceived}."""
        request = cls(RequestChannel(protocol, site))
        for name, value in head.headers:
            request.requestHeaders.addRawHeader(name, value)
        request.parseCookies()
        request.content = BytesIO(body)
        if not getattr(site.resource, "reads_forms", False):
            request.content.seek(0, 2)  # requestReceived takes the position for the length, and reads a form then
        return request

    def processingFailed(self, reason: Failure) -> Failure:
        """Report that a resource raised, and answer as our own resources do."""
        channel = cast(RequestChannel, self.channel)
        channel.failed("A resource raised.", reason)
        if self.startedWriting:
            channel.loseConnection()
            return reason
        self.setResponseCode(FAILED.status)
        self.setHeader(b"Content-Type", b"application/json")
        self.setHeader(b"Content-Length", b"%d" % len(FAILED.body))
        self.write(FAILED.body)
        self.finish()
        return reason
