"""
A connection of the C{http} observer: that of C{twisted.web}, with bounds for what a server may send, and an end that
no server can put off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from OpenSSL import SSL
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IHandshakeListener, IPullProducer
from twisted.internet.protocol import connectionDone
from twisted.logger import ILogObserver, LogEvent, Logger
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from twisted.web._newclient import HEADER, STATUS, HTTP11ClientProtocol
from twisted.web.client import _HTTP11ClientFactory
from twisted.web.http import _IdentityTransferDecoder
from zope.interface import directlyProvides, implementer, providedBy, provider

from webhookrx.observers.sockets import unacknowledged

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred
    from twisted.internet.interfaces import IAddress, IDelayedCall, IReactorTime
    from twisted.web._newclient import Request
    from twisted.web.iweb import IResponse

HEAD = 65536
"""Bytes that the head of an answer may have, with all 1xx answers before it, up to one read more."""
FAREWELL = 5.0
"""Seconds that the other end has to agree to the end of a connection on which all is said."""


class BadAnswer(Exception):
    """What a server sent is not taken for an answer. The text says why, in one line, and quotes nothing of it."""


@provider(ILogObserver)
def _ignore(event: LogEvent) -> None:
    """Do nothing: the parser writes a line for each 1xx, of which a server can send any number."""


_SILENT = Logger(observer=_ignore)


@implementer(IHandshakeListener)
class Connection(HTTP11ClientProtocol):
    """
    C{twisted.web} ends a connection by C{loseConnection}, which waits until everything is written, and over TLS until
    the other end agrees, and goes on reading by then. One whose exchange is not over is aborted instead.

    It takes any end of a connection for the end of a body without a length. Here it is one only if the connection ended
    in order; else the body fails with C{ResponseFailed}, as one with a length does.

    @param keep: takes the connection when it can be used again.
    @param clock: for the time of a farewell.
    """

    def __init__(self, keep: Callable[[HTTP11ClientProtocol], object], clock: IReactorTime) -> None:
        super().__init__(self._rest)
        self._keep = keep
        self._clock = clock
        self._wire: Any = None
        self._socket_transport: Any = None
        self._farewell: IDelayedCall | None = None
        self._is_established = False
        self._is_sent = True
        self._is_credible = True
        self._head = 0

    def makeConnection(self, transport: Any) -> None:
        """Begin; the request may be made before the handshake of TLS is over."""
        self._is_established = not isinstance(transport, TLSMemoryBIOProtocol)
        self._wire = transport
        self._socket_transport = transport if self._is_established else transport.transport
        super().makeConnection(_Transport(transport, self._end))

    def handshakeCompleted(self) -> None:
        """Take note: what is written from now on goes to the other end."""
        self._is_established = True
        if not self._is_sent:
            self._watch()

    def request(self, request: Request) -> Deferred[IResponse]:
        """
        Make a request.

        @return: fails with L{BadAnswer}, too.
        """
        self._head, self._is_sent = 0, False
        answer: Deferred[IResponse] = super().request(request)
        if self._parser is not None:
            self._parser._log = _SILENT
        if self._is_established:
            self._watch()
        return answer.addCallback(self._judge)

    def dataReceived(self, data: bytes) -> None:
        """Take a piece of an answer."""
        parser = self._parser
        if parser is None:
            # An answer that nobody asked for must not become that of the next request.
            self._wire.abortConnection()
            return
        super().dataReceived(data)
        if self._parser is parser and parser.state in (STATUS, HEADER):
            self._head += len(data)
            if self._head > HEAD:
                self._giveUp(Failure(BadAnswer(f"the head of its answer is longer than {HEAD // 1024} KiB")))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Be over."""
        if self._farewell is not None and self._farewell.active():
            self._farewell.cancel()
        super().connectionLost(reason)

    def _finishResponse(self, rest: bytes) -> None:
        """
        Be done with an answer.

        @param rest: what came behind it.
        """
        if rest and self._currentRequest is not None:
            # It is out of step: what comes next might be taken for the answer to the next request.
            self._currentRequest.persistent = False
        super()._finishResponse(rest)

    def _disconnectParser(self, reason: Failure) -> None:
        """Tell the parser of the end, as C{twisted.web} does."""
        decoder = None if self._parser is None else self._parser.bodyDecoder
        if (
            isinstance(decoder, _IdentityTransferDecoder)
            and decoder.contentLength is None
            and not self._is_orderly(reason)
        ):
            # RFC 9112, section 8: the body is incomplete. Something is missing, however much.
            decoder.contentLength = 1
        super()._disconnectParser(reason)

    def _is_orderly(self, reason: Failure) -> bool:
        """Tell whether the other end has said that it has nothing more to say."""
        if self._wire is self._socket_transport:
            return reason.check(ConnectionDone) is not None
        # By close_notify (RFC 9112, section 9.8); anybody on the way can end the TCP connection. OpenSSL sets the flag
        # on a fatal alert, too, and then that is the reason.
        said = self._wire.getHandle().get_shutdown() & SSL.RECEIVED_SHUTDOWN
        return bool(said) and reason.check(ConnectionDone, ConnectionLost) is not None

    def _watch(self) -> None:
        """Learn when what has been written is in the hands of the kernel."""
        transport = self._socket_transport
        transport.registerProducer(_Drain(transport, self._drained), False)

    def _drained(self) -> None:
        self._is_sent = True

    def _judge(self, response: IResponse) -> IResponse:
        problem = None
        if not 200 <= response.code < 1000:
            problem = "what it answers is not HTTP"
        elif response.code < 300 and not self._can_have_arrived():
            # It can't have what it says that it has. A refusal may come early: that of a body which is too large.
            problem = "it answered before it had the request"
        if problem is not None:
            self._is_credible = False
            self._wire.abortConnection()
            raise BadAnswer(problem)
        return response

    def _can_have_arrived(self) -> bool:
        """
        Tell whether the other end can have the whole request. Its kernel acknowledges all that it has, with each
        segment (RFC 9293, section 3.1), so what is read there is acknowledged here with the answer at the latest.
        """
        return self._is_sent and not unacknowledged(self._socket_transport.getHandle())

    def _rest(self, connection: HTTP11ClientProtocol) -> None:
        """Be used again, but not in the middle of a request that is answered early."""
        if self._is_credible and self._can_have_arrived():
            self._keep(connection)
        else:
            self._wire.abortConnection()

    def _end(self) -> None:
        """Do what C{twisted.web} means by C{loseConnection}."""
        if self._state != "QUIESCENT" or not self._is_sent:
            self._wire.abortConnection()
        elif self._farewell is None:
            self._farewell = self._clock.callLater(FAREWELL, self._wire.abortConnection)
            self._wire.loseConnection()


class _Transport:
    """
    The transport of a connection, as C{twisted.web} sees it.

    @param wire: the real one.
    @ivar loseConnection: what ends it.
    """

    def __init__(self, wire: Any, end: Callable[[], None]) -> None:
        self._wire = wire
        self.loseConnection = end
        directlyProvides(self, providedBy(wire))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)


@implementer(IPullProducer)
class _Drain:
    """Tells when a transport has written all that was given to it before."""

    def __init__(self, transport: Any, drained: Callable[[], None]) -> None:
        self._transport = transport
        self._drained = drained
        self._is_registered = False

    def resumeProducing(self) -> None:
        """Be called once while it is registered, and once more when nothing is left to write."""
        if not self._is_registered:
            self._is_registered = True
            return
        self._transport.unregisterProducer()
        self._drained()

    def stopProducing(self) -> None:
        """Do nothing: the connection is lost."""


class ConnectionFactory(_HTTP11ClientFactory):
    """
    Makes the connections of a pool.

    @param clock: as for L{Connection}.
    """

    # Two lines in the log for each connection are not worth it.
    noisy = False

    def __init__(self, clock: IReactorTime, keep: Callable[[HTTP11ClientProtocol], object], metadata: str) -> None:
        super().__init__(keep, metadata)
        self._clock = clock

    def buildProtocol(self, addr: IAddress | None) -> Connection:
        """Make one."""
        return Connection(self._quiescentCallback, self._clock)
