"""
One connection below HTTP: its peer, its deadline, when it is read from, and how it ends.
"""

from __future__ import annotations

import fcntl
import sys
import termios
from enum import IntEnum
from typing import TYPE_CHECKING, cast

from twisted.internet.error import TimeoutError
from twisted.internet.interfaces import (
    IConsumer,
    IHalfCloseableProtocol,
    IHandshakeListener,
    IPushProducer,
    ISSLTransport,
    ITCPTransport,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.errors import TOO_MANY_CONNECTIONS
from webhookrx.intake.client_address import normal_ip
from webhookrx.intake.head import Peer

if TYPE_CHECKING:
    from webhookrx.http.site import Site

#: Seconds without a byte, and in all, that we listen on after the last answer (as nginx does).
LINGER_IDLE = 2.0
LINGER_IN_ALL = 30.0


class State(IntEnum):
    """What comes next on a connection."""

    HEAD = 0
    BODY = 1
    ANSWER = 2
    """The request is in other hands, or it is the turn of others; what the sender pipelines waits."""
    LINGER = 3
    """The last answer is out; what still comes is thrown away."""
    CLOSING = 4


_NO_PEER = Peer("", None, False)

# Looked up several times a request.
HEAD, BODY, ANSWER, LINGER, CLOSING = State


@implementer(IHalfCloseableProtocol, IHandshakeListener, IPushProducer)
class Connection(Protocol):
    """
    The server's end of one connection.

    It is registered with its transport as a producer, so that a sender who doesn't take its answers is no longer read
    from. Its deadline is on the monotonic clock and looked at by L{webhookrx.http.site.Site.sweep}.

    @ivar deadline: when L{expired} is called.
    @ivar peer: the other end; behind the PROXY protocol it is known with the first data.
    """

    transport: ITCPTransport

    def __init__(self, site: Site) -> None:
        self.site = site
        self.deadline = float("inf")
        self.peer = _NO_PEER
        self._state = HEAD
        self._peer_known = site.knows_peers_at_once  # whether the peer is known and counted
        self._first = True  # whether its first request is still to be answered
        self._begun = False  # whether a byte of the next request is here
        self._pending = b""
        self._blocked = False
        self._reading = True
        self._ended = False  # whether the sender has said that no more comes
        self._handshaken = False
        self._linger_end = 0.0
        self._idle_since = float("-inf")

    # -- beginning -----------------------------------------------------------------------------------------------

    def connectionMade(self) -> None:
        """See L{twisted.internet.interfaces.IProtocol.connectionMade}."""
        transport = self.transport
        self._allow(self.site.limits.header_time)
        self._learn_peer()
        if self.peer.port is not None and ITCPTransport.providedBy(transport):
            transport.setTcpNoDelay(True)
        cast(IConsumer, transport).registerProducer(self, True)
        if self.site.opened(self):
            self._update_reading()
        elif self.peer.secure:
            detail = TOO_MANY_CONNECTIONS.detail
            self.site.traffic.refused(TOO_MANY_CONNECTIONS, detail, str(self.peer), b"", b"")
            self.abort()  # an answer would cost the handshake that we want to be spared
        else:
            self.reject_connection()

    def handshakeCompleted(self) -> None:
        """See L{IHandshakeListener.handshakeCompleted}."""
        self._handshaken = True

    def _learn_peer(self) -> None:
        # A PROXY header tells the address only with the first data; its text is the proxy's word, so it is checked.
        peer = self.transport.getPeer()
        host = getattr(peer, "host", None)
        if isinstance(host, bytes):
            host = host.decode("ascii", "replace")
        ip = (normal_ip(host) if host else None) or "127.0.0.1"
        self.peer = Peer(ip, getattr(peer, "port", None), ISSLTransport.providedBy(self.transport))

    def meet_peer(self) -> bool:
        """The first byte is here, and with it whose connection it is; False when it is one too many."""
        self._peer_known = True
        self._learn_peer()
        if self.site.admits_peer(self):
            return True
        self.reject_connection()
        return False

    # -- flow control --------------------------------------------------------------------------------------------

    def pauseProducing(self) -> None:
        """Our answers fill the transport's buffer: no further request until the sender has taken them."""
        self._allow(self.site.limits.answer_time)
        self._blocked = True
        self._update_reading()

    def resumeProducing(self) -> None:
        """The sender has taken its answers."""
        self._blocked = False
        limits = self.site.limits
        if self._state is HEAD:
            self._allow(limits.header_time if self._begun else limits.idle_time)
        else:
            self._allow(limits.answer_time)
        self.resume()

    def resume(self) -> None:
        """Take up what was left while the sender did not take its answers."""
        raise NotImplementedError

    def next_turn(self) -> None:
        """The others had their turn."""
        if self._state is ANSWER:  # else the connection has ended
            self._state = HEAD
            self.resume()

    def producer_replaced(self) -> None:
        """A resource writes at its own pace now, and is paused and resumed in our place."""
        self._blocked = False
        self._update_reading()

    def stopProducing(self) -> None:
        """The transport is gone; C{connectionLost} follows."""

    def paused_for(self, seconds: float) -> None:
        """Reading was off for all connections for so long; senders don't pay for it."""
        if self._state is HEAD or self._state is BODY:
            self.deadline += seconds
        self._update_reading()

    def _allow(self, seconds: float) -> None:
        """Begin a new deadline, unless the one for a sender that does not take its answers runs."""
        if not self._blocked:
            self.deadline = self.site.clock() + seconds

    def _idled(self) -> None:
        """The deadline has passed between two requests: that for the last answer to be taken, or that for the next."""
        end = self._idle_since + self.site.limits.idle_time
        if self._untaken():
            self.abort()
        elif self.site.clock() < end:
            self.deadline = end
        else:
            self._close()

    def _is_unread(self) -> bool:
        """Return whether we are behind with reading what has come."""
        try:
            descriptor = self.transport.fileno()  # type: ignore[attr-defined]  # by TLS it is what is below
        except AttributeError:
            return False  # not everything that is a transport has a descriptor
        overload = self.site.overload
        if overload.has_unread(descriptor):
            return True
        return overload.behind and self._reading and self._in_kernel(termios.FIONREAD) > 0

    def _untaken(self) -> int:
        """
        Return how many bytes of our answers wait in the kernel. Small ones find room there whether they are taken or
        not, so that nothing else tells of a sender that takes none.
        """
        return self._in_kernel(termios.TIOCOUTQ)

    def _in_kernel(self, which: int) -> int:
        """Return how many bytes wait in the kernel: C{TIOCOUTQ}, C{FIONREAD}."""
        try:
            descriptor = self.transport.fileno()  # type: ignore[attr-defined]  # by TLS it is what is below
            waiting = fcntl.ioctl(descriptor, which, bytes(4))
        except (AttributeError, OSError, ValueError):
            return 0  # not everything that is a transport has a queue that could be asked for
        return int.from_bytes(waiting, sys.byteorder)

    def _update_reading(self) -> None:
        reading = not (self._ended or self._blocked or self.site.paused or (self._state is ANSWER and self._pending))
        if reading != self._reading and self._state is not CLOSING:
            self._reading = reading
            producer = cast(IPushProducer, self.transport)
            if reading:
                producer.resumeProducing()
            else:
                producer.pauseProducing()

    # -- end -----------------------------------------------------------------------------------------------------

    def expired(self) -> None:
        """The deadline has passed."""
        if self._state is CLOSING or self._blocked:
            self.abort()
        elif (self._state is HEAD or self._state is BODY) and self._is_unread():
            self.deadline = self.site.clock() + self.site.limits.header_time  # it is not the sender who is late
        elif self.peer.secure and not self._handshaken:
            self._handshake_failed(Failure(TimeoutError()))
            self.abort()
        elif self._state is LINGER:
            self._close()
        else:
            self.too_slow()

    def drain(self) -> None:
        """Finish what is under way and close; an idle connection closes now."""
        if self._state is HEAD and not self._begun:
            self._close()

    @property
    def busy(self) -> bool:
        """Whether a request is under way, or its answer not yet taken."""
        return self._state is not HEAD or self._begun

    @property
    def in_first_head(self) -> bool:
        """Whether it has not sent its first head in full, or shaken hands for it."""
        return self._first and self._state is HEAD

    def give_way(self) -> None:
        """End without an answer: another connection takes its place."""
        self.site.give_way(self)

    def readConnectionLost(self) -> None:
        """
        The sender sends no more, and may still wait for its answer (RFC 9112 §9.6).

        See L{IHalfCloseableProtocol.readConnectionLost}.
        """
        self._ended = True
        if self._state is LINGER:
            self._close()
        elif self._state is not CLOSING:
            self.sender_ended()

    def writeConnectionLost(self) -> None:
        """We send no more, as we wanted."""

    def sender_ended(self) -> None:
        """No more comes from the sender."""
        raise NotImplementedError

    def too_slow(self) -> None:
        """A request, or the answer to it, did not come in time."""
        raise NotImplementedError

    def reject_connection(self) -> None:
        """There is no room for this connection."""
        raise NotImplementedError

    def abort(self) -> None:
        """Close without another word."""
        self._state = CLOSING
        self.deadline = float("inf")
        self.transport.abortConnection()

    def _heard_after_the_end(self) -> None:
        self.deadline = min(self._linger_end, self.site.clock() + LINGER_IDLE)

    def _close(self, *, linger: bool = False) -> None:
        """
        Close once what was written is taken.

        @param linger: the sender is still talking. To close now would reset the connection, and it might never see
            its answer; so what it says is thrown away for a moment first.
        """
        now = self.site.clock()
        lingered = self._state is LINGER
        unread = not self._ended and (linger or bool(self._pending))
        self._pending = b""
        if not lingered:
            cast(IConsumer, self.transport).unregisterProducer()
        if unread and not lingered:
            self._state = LINGER
            self._linger_end = now + LINGER_IN_ALL
            self.deadline = now + LINGER_IDLE
            self._blocked = False
            self._update_reading()
            if not self.peer.secure:
                self.transport.loseWriteConnection()
        else:
            self._state = CLOSING
            self.deadline = now + self.site.limits.answer_time
            self.transport.loseConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """See L{twisted.internet.interfaces.IProtocol.connectionLost}."""
        was_ours, self._state = self._state is CLOSING, CLOSING
        self._pending = b""
        self.site.closed(self)
        if self.peer.secure and not self._handshaken and not was_ours:
            self._handshake_failed(reason)

    def _handshake_failed(self, reason: Failure) -> None:
        self._learn_peer()  # a PROXY header may have come since the connection was made
        self.site.traffic.handshake_failed(str(self.peer), reason)
