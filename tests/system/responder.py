"""
The least of HTTP: an answer that names the peer, for tests of what lies below HTTP.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IHandshakeListener
from twisted.internet.protocol import Factory, Protocol
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.transport.handshake import describe_failure


class ResponderFactory(Factory):
    """
    @ivar failures: what C{describe_failure} said of each lost connection that had no handshake.
    @ivar handshakes: how many handshakes were completed.
    """

    noisy = False

    def __init__(self) -> None:
        self.failures: list[str | None] = []
        self.handshakes = 0
        self._open = 0
        self._waiting: list[Deferred[None]] = []

    def buildProtocol(self, addr: object) -> Protocol:
        self._open += 1
        responder = Responder()
        responder.factory = self
        return responder

    def all_closed(self) -> Deferred[None]:
        """Return a Deferred that fires when no connection is open."""
        if not self._open:
            return succeed(None)
        self._waiting.append(Deferred())
        return self._waiting[-1]

    def closed(self) -> None:
        """A connection is gone."""
        self._open -= 1
        if not self._open:
            for waiting in self._waiting:
                waiting.callback(None)


@implementer(IHandshakeListener)
class Responder(Protocol):
    """Answers each request that has no body."""

    factory: ResponderFactory
    _received = b""
    _secure = False

    def handshakeCompleted(self) -> None:
        self._secure = True
        self.factory.handshakes += 1

    def dataReceived(self, data: bytes) -> None:
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, self._received = self._received.split(b"\r\n\r\n", 1)
            closing = b"Connection: close" in head
            peer = str(getattr(self.transport.getPeer(), "host", "nobody")).encode()
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(peer), peer))
            if closing:
                self.transport.loseConnection()

    def connectionLost(self, reason: Failure) -> None:
        if not self._secure:
            self.factory.failures.append(describe_failure(reason))
        self.factory.closed()
