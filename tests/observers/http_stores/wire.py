"""A client of the http observer, on transports in memory whose server is the test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ConnectionAborted
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator, IStreamClientEndpoint
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from webhookrx.observers.http_stores import connection
from webhookrx.observers.http_stores.client import Client, _PendingAnswer
from webhookrx.observers.http_stores.exchange import Header, HTTPAnswer, NoAnswer, StoreRequest

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class OneThread(Clock):
    """
    A reactor whose thread is that of the caller.

    @ivar is_stopped: it calls nobody.
    """

    is_stopped = False

    def callFromThread(self, callable: Callable[..., object], *args: object) -> None:
        """Call it, and all that is due."""
        if not self.is_stopped:
            callable(*args)
            self.advance(0)


class Wire(StringTransport):
    """
    A transport whose bytes leave it when the test says so.

    @ivar connection: what receives its bytes.
    @ivar aborted: the connection was ended without waiting for anything.
    @ivar in_flight: bytes that have left it, and that the other end has not acknowledged.
    """

    in_flight = 0

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.connection: Any = None
        self.aborted = False
        self.is_lost = False
        self._clock = clock

    def getHandle(self) -> Wire:
        """Return its socket."""
        return self

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Ask a producer for its first bytes, as a real one does."""
        super().registerProducer(producer, streaming)
        if not streaming:
            producer.resumeProducing()

    def drain(self) -> bytes:
        """Let everything leave, and return it."""
        written = self.value()
        self.clear()
        if written and self.producer is not None:
            self.producer.resumeProducing()
        return written

    def abortConnection(self) -> None:
        """Lose the connection in the next turn of the reactor."""
        if not self.aborted:
            self.aborted = True
            self._clock.callLater(0, self.lose, ConnectionAborted())

    def lose(self, reason: Exception) -> None:
        """Lose the connection, once."""
        if not self.is_lost:
            self.is_lost = True
            self.connection.connectionLost(Failure(reason))

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Do nothing: there is nothing to delay."""


@implementer(IStreamClientEndpoint)
class WireEndpoint:
    """
    Connects at once.

    @ivar wires: all that were made.
    @ivar failures: the errors of the next connections.
    @ivar creator: TLS of the connections; None for none.
    """

    def __init__(self, clock: Clock) -> None:
        self.wires: list[Wire] = []
        self.failures: list[Exception] = []
        self.creator: IOpenSSLClientConnectionCreator | None = None
        self._clock = clock

    def connect(self, protocolFactory: Any) -> Deferred[Any]:
        """Make a wire."""
        if self.failures:
            connecting: Deferred[Any] = Deferred()
            connecting.errback(self.failures.pop(0))
            return connecting
        wire = Wire(self._clock)
        self.wires.append(wire)
        if self.creator is None:
            protocol = wire.connection = protocolFactory.buildProtocol(None)
        else:
            factory = TLSMemoryBIOFactory(self.creator, True, protocolFactory, self._clock)
            wire.connection = factory.buildProtocol(None)
            protocol = wire.connection.wrappedProtocol
        wire.connection.makeConnection(wire)
        return succeed(protocol)


class WireCase(SynchronousTestCase):
    """A client, and the wires that it makes."""

    url = "http://h/in?x=1"

    def setUp(self) -> None:
        """Make a client that is not connected."""
        self.patch(connection, "unacknowledged", lambda wire: wire.in_flight)
        self.clock = OneThread()
        self.endpoint = WireEndpoint(self.clock)
        self.client = self.make_client(lambda: 0.0)

    def make_client(self, clock: Callable[[], float], **how: Any) -> Client:
        """Make a client on a monotonic clock."""
        headers = [(b"X-Key", b"1"), (b"X-Key", b"2")]
        return Client(self.clock, self.endpoint, "PUT", self.url, headers, 10.0, clock=clock, **how)

    @property
    def wire(self) -> Wire:
        """The newest wire."""
        return self.endpoint.wires[-1]

    def ask(self, headers: Sequence[Header] = (), *, drain: bool = True) -> _PendingAnswer:
        """Begin a request, which has left unless said otherwise."""
        pending = _PendingAnswer()
        self.client._begin(pending, StoreRequest(b"hello", headers))
        if drain and self.endpoint.wires:
            self.wire.drain()
        return pending

    def receive(self, data: bytes) -> None:
        """Take bytes from the other end."""
        self.wire.connection.dataReceived(data)

    def lose(self, reason: Exception) -> None:
        """End the connection."""
        self.wire.lose(reason)

    def outcome(self, pending: _PendingAnswer) -> HTTPAnswer | str:
        """Return the answer, or the reason of its lack."""
        self.clock.advance(0)
        self.assertTrue(pending.answer.done())
        try:
            return pending.answer.result()
        except NoAnswer as error:
            return str(error)

    def is_kept(self) -> bool:
        """Make another request, and tell whether it goes over the same connection."""
        before = len(self.endpoint.wires)
        self.clock.advance(0)
        self.ask()
        return len(self.endpoint.wires) == before
