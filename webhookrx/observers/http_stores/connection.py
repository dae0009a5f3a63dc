"""
A connection to an HTTP store: bounds on what a server can send, and an end that no server can delay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from OpenSSL import SSL
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IHandshakeListener, IPullProducer
from twisted.internet.protocol import connectionDone
from twisted.logger import ILogObserver, LogEvent, Logger
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.protocols.tls import TLSMemoryBIOProtocol
from zope.interface import implementer, provider

from webhookrx.observers.http_stores.exchange import HTTPAnswer, NoAnswer
from webhookrx.observers.sockets import unacknowledged

if TYPE_CHECKING:
    from twisted.internet.interfaces import IDelayedCall, IProtocol, IReactorTime
    from twisted.python.failure import Failure
    from twisted.web.iweb import IResponse

HEAD_LIMIT = 65536
"""Bytes of the head of an answer, with all 1xx answers before it, up to one read more."""
FAREWELL = 5.0
"""Seconds that the server has to agree to the end of an idle connection."""


@provider(ILogObserver)
def _ignore(event: LogEvent) -> None:
    """Drop a log event."""


_SILENT = Logger(observer=_ignore)


@implementer(IHandshakeListener)
class BoundedConnection(ProtocolWrapper):
    """
    Stands between a socket and the connection of C{twisted.web}, which by itself

      - reads a head of any length, with any number of 1xx answers, and logs each of these;
      - takes an answer that comes before the request has left, or to no request;
      - drops bytes behind an answer, and uses the connection again;
      - takes any end of a connection for the end of a body without a length;
      - ends a connection by C{loseConnection}, which waits until everything is written, and with TLS for the server.

    It uses two names of private classes: C{state} of that connection, without which each one ends by an abort, and the
    log of its parser, without which each 1xx is a line in the log.

    @param request_begins: called when a request begins to be written to it.
    @ivar requests: the number of requests that were written to it.
    @ivar problem: why an answer was not believed.
    @ivar was_cut: it is lost, and the server had not ended it in order.
    """

    def __init__(
        self,
        clock: IReactorTime,
        request_begins: Callable[[BoundedConnection], object],
        factory: WrappingFactory[Any],
        wrapped: IProtocol,
    ) -> None:
        super().__init__(factory, wrapped)
        self.requests = 0
        self.problem: str | None = None
        self.was_cut = False
        self._clock = clock
        self._request_begins = request_begins
        self._wire: Any = None
        self._socket: Any = None
        self._is_established = False
        self._is_lost = False
        self._is_sent = True
        self._in_exchange = False
        self._awaits_head = False
        self._head_size = 0
        self._farewell: IDelayedCall | None = None

    def makeConnection(self, transport: Any) -> None:
        """Begin; over TLS, before the handshake."""
        self._is_established = not isinstance(transport, TLSMemoryBIOProtocol)
        self._socket = transport if self._is_established else transport.transport
        self._wire = transport
        super().makeConnection(transport)

    def handshakeCompleted(self) -> None:
        """TLS is established: from now on written bytes go to the server."""
        self._is_established = True
        if not self._is_sent:
            self._watch()

    def write(self, data: bytes) -> None:
        """Write a part of a request."""
        self._begin_exchange()
        self._wire.write(data)

    def writeSequence(self, data: Any) -> None:
        """Write parts of a request."""
        self._begin_exchange()
        self._wire.writeSequence(data)

    def unregisterProducer(self) -> None:
        """The body of a request is written."""
        super().unregisterProducer()
        if self._is_established:
            self._watch()

    def dataReceived(self, data: bytes) -> None:
        """Pass on a part of an answer."""
        if not self._in_exchange or self._is_quiescent():
            # An answer to no request must not become that of the next one.
            self.abort()
            return
        parser = getattr(self.wrappedProtocol, "_parser", None)
        if parser is not None:
            parser._log = _SILENT
        super().dataReceived(data[:-1])
        if self._is_quiescent():
            # The answer has ended before the last byte: the rest might be taken for the next answer.
            self.abort()
            return
        super().dataReceived(data[-1:])
        if self._awaits_head:
            self._head_size += len(data)
            if self._head_size > HEAD_LIMIT:
                self._reject(f"the head of its answer is longer than {HEAD_LIMIT // 1024} KiB")

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Note how the connection ended."""
        if self._farewell is not None and self._farewell.active():
            self._farewell.cancel()
        # RFC 9112, section 8: then a body without a length is incomplete.
        self.was_cut = not self._is_in_order(reason)
        self._is_lost = True
        super().connectionLost(reason)

    def loseConnection(self) -> None:
        """End an idle connection in order, and any other one at once."""
        if not self._is_quiescent() or not self._is_sent:
            self.abort()
        elif self._farewell is None:
            self._farewell = self._clock.callLater(FAREWELL, self.abort)
            self._wire.loseConnection()

    def abort(self) -> None:
        """End the connection without waiting for the server."""
        if not self._is_lost:
            self._wire.abortConnection()

    def accept_head(self, response: IResponse) -> HTTPAnswer:
        """
        Return the head of an answer.

        @raise NoAnswer: the server can't mean it.
        """
        self._awaits_head = False
        if not 200 <= response.code < 1000:
            raise self._reject("what it answers is not HTTP")
        retry_after = response.headers.getRawHeaders(b"Retry-After") or ()
        answer = HTTPAnswer(response.code)
        if answer.is_success and not self._request_has_arrived():
            # The server can't have stored it. A refusal may come early: that of a body which is too large.
            raise self._reject("it answered before it had the request")
        if retry_after and not answer.is_success:
            return replace(answer, retry_after=retry_after[0].decode("latin-1"))
        return answer

    def finish(self) -> None:
        """The answer is whole: keep the connection for the next request, but not in the middle of this one."""
        self._in_exchange = False
        if not self._is_lost and not self._request_has_arrived():
            self.abort()

    def _begin_exchange(self) -> None:
        if self._in_exchange:
            return
        self._in_exchange = self._awaits_head = True
        self._is_sent = False
        self._head_size = 0
        self.requests += 1
        self._request_begins(self)

    def _watch(self) -> None:
        """Learn when everything that was written is in the hands of the kernel."""
        self._socket.registerProducer(_DrainProducer(self._socket, self._drained), False)

    def _drained(self) -> None:
        self._is_sent = True

    def _request_has_arrived(self) -> bool:
        """
        Tell whether the server can have the whole request. Its kernel acknowledges received bytes with each segment
        (RFC 9293, section 3.1), so those that the server has read are acknowledged with its answer at the latest.
        """
        return self._is_sent and not unacknowledged(self._socket.getHandle())

    def _reject(self, problem: str) -> NoAnswer:
        self.problem = problem
        self.abort()
        return NoAnswer(problem)

    def _is_quiescent(self) -> bool:
        """Tell whether C{twisted.web} has no request on this connection."""
        return getattr(self.wrappedProtocol, "state", None) == "QUIESCENT"

    def _is_in_order(self, reason: Failure) -> bool:
        """Tell whether the server has ended the connection, and nobody else."""
        if self._wire is self._socket:
            return reason.check(ConnectionDone) is not None
        # By close_notify (RFC 9112, section 9.8); anybody on the way can end the TCP connection. OpenSSL sets the flag
        # on a fatal alert, too, but then that is the reason.
        closed = self._wire.getHandle().get_shutdown() & SSL.RECEIVED_SHUTDOWN
        return bool(closed) and reason.check(ConnectionDone, ConnectionLost) is not None


@implementer(IPullProducer)
class _DrainProducer:
    """Calls back when a transport has written all bytes that it was given before."""

    def __init__(self, transport: Any, drained: Callable[[], None]) -> None:
        self._transport = transport
        self._drained = drained
        self._is_registered = False

    def resumeProducing(self) -> None:
        """Called once on registration, and again when nothing is left to write."""
        if not self._is_registered:
            self._is_registered = True
            return
        self._transport.unregisterProducer()
        self._drained()

    def stopProducing(self) -> None:
        """Do nothing: the connection is lost."""
