"""
All connections of an endpoint: what they share, and what is counted over all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IPushProducer
from twisted.python.failure import Failure
from twisted.web.resource import IResource
from twisted.web.server import Site as TwistedSite
from zope.interface import implementer

from webhookrx.errors import TOO_MANY_CONNECTIONS
from webhookrx.http.answers import Answer, AnswerWriter
from webhookrx.http.connection import Connection
from webhookrx.http.connections import Connections
from webhookrx.http.interfaces import IEarlyResource, IReceiver
from webhookrx.http.protocol import HTTPProtocol
from webhookrx.intake.client_address import sender_of
from webhookrx.intake.head import Head
from webhookrx.intake.judge import Admission, Refused
from webhookrx.interfaces import IMessageConsumer, IOverload, ITraffic
from webhookrx.settings import Limits


@implementer(IOverload)
class _NoOverload:
    """There is never too much to do."""

    refusing = False
    behind = False

    def has_unread(self, fd: int) -> bool:
        """See L{IOverload.has_unread}."""
        return False


@implementer(IPushProducer)
class Site(TwistedSite):
    """
    Makes channels, and is the producer of messages that the chain pauses when it is nearly full.

    @param resource: the root; when it provides L{IEarlyResource} it judges requests at the end of their heads.
    @param consumer: where bodies are counted.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: seconds since the epoch, for C{Date} alone.
    @param knows_peers_at_once: False behind the PROXY protocol: the peer is known with the first data.
    @param later: calls what it is given once all others who wait for the reactor had their turn. None: no sender is
        made to wait for the others, however much it has pipelined.
    @param overload: tells what is to be refused rather than judged; None for nothing.
    """

    noisy = False

    #: See L{IEarlyResource.dispatch}.
    dispatch: Callable[[Head], tuple[IReceiver, Admission] | Answer | Refused | None]

    def __init__(
        self,
        resource: IResource,
        consumer: IMessageConsumer,
        traffic: ITraffic,
        *,
        limits: Limits,
        connections: Connections,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        knows_peers_at_once: bool = True,
        later: Callable[[Callable[[], None]], object] | None = None,
        overload: IOverload | None = None,
    ) -> None:
        super().__init__(resource)
        self.consumer = consumer
        self.traffic = traffic
        self.limits = limits
        self.clock = clock
        self.knows_peers_at_once = knows_peers_at_once
        self.later = later
        self.overload: IOverload = overload or _NoOverload()
        self.answers = AnswerWriter()
        self.answers.at(wall_clock())
        self.paused = False
        self.draining = False
        self.finishing = False
        self.dispatch = _dispatch_of(resource)
        self._wall_clock = wall_clock
        self._connections = connections
        self._channels: dict[Connection, bool] = {}  # whether it is counted
        self._senders: dict[Connection, str] = {}  # of those that are counted by sender
        self._paused_at = 0.0
        self._drained: list[Deferred[None]] = []

    # -- C{twisted.web}'s part -----------------------------------------------------------------------------------

    def buildProtocol(self, addr: IAddress) -> HTTPProtocol:  # type: ignore[override]
        """See L{twisted.internet.interfaces.IProtocolFactory.buildProtocol}."""
        return HTTPProtocol(self)

    def startFactory(self) -> None:
        """Take requests. C{twisted.web}'s timer for its logs is not started: our logs are not its."""
        self.draining = False
        self.finishing = False

    def stopFactory(self) -> None:
        """There is no timer to stop, see L{startFactory}."""

    # -- requests ------------------------------------------------------------------------------------------------

    def use(self, resource: IResource, limits: Limits) -> None:
        """
        Go by this root and these limits for all requests to come, on connections that are open too.

        A request whose head was judged by the old root ends there.
        """
        self.resource = resource
        self.limits = limits
        self.dispatch = _dispatch_of(resource)

    @property
    def connections(self) -> int:
        """How many connections this endpoint has."""
        return len(self._channels)

    @property
    def requests(self) -> int:
        """How many requests are under way: begun, and not yet answered in full."""
        return sum(channel.busy for channel in self._channels)

    # -- connections ---------------------------------------------------------------------------------------------

    def opened(self, channel: Connection) -> bool:
        """Take in a connection; False when it is one too many."""
        self._channels[channel] = False
        # By sender first: one who has too many does not take the place of others.
        if self.knows_peers_at_once and not self._count_by_sender(channel):
            return False
        self._channels[channel] = self._connections.add(channel)
        if not self._channels[channel]:
            self._forget_sender(channel)
        return self._channels[channel]

    def admits_peer(self, channel: Connection) -> bool:
        """
        Count a connection by its sender, who is known only now.

        @return: False when that one has too many. It is counted no more, so that it takes no room from others.
        """
        admitted = self._count_by_sender(channel)
        if not admitted:
            self._uncount(channel)
        return admitted

    def idles(self, channel: Connection) -> None:
        """A connection has its answer and waits for its next request."""
        self._connections.idles(channel)

    def give_way(self, channel: Connection) -> None:
        """End a connection, whose place another one takes. It is counted no more, though its end is yet to come."""
        self._uncount(channel)
        self.traffic.refused(TOO_MANY_CONNECTIONS, "It waited, and made room for another.", str(channel.peer), b"", b"")
        channel.abort()

    def closed(self, channel: Connection) -> None:
        """Let a connection go."""
        self._uncount(channel)
        del self._channels[channel]
        self._settle_drain()

    def _count_by_sender(self, channel: Connection) -> bool:
        """Those of UNIX sockets have no address, and are not counted."""
        if channel.peer.port is None:
            return True
        sender = sender_of(channel.peer.ip)
        admitted = self._connections.add_sender(sender)
        if admitted:
            self._senders[channel] = sender
        return admitted

    def _forget_sender(self, channel: Connection) -> None:
        sender = self._senders.pop(channel, None)
        if sender is not None:
            self._connections.remove_sender(sender)

    def _uncount(self, channel: Connection) -> None:
        if self._channels[channel]:
            self._channels[channel] = False
            self._connections.remove(channel)
            self._forget_sender(channel)

    def sweep(self) -> None:
        """
        Look at all deadlines; called every half second or so, by a clock that nobody sets back.
        """
        self.answers.at(self._wall_clock())
        now = self.clock()
        if self.paused and now - self._paused_at >= self.limits.pause_time:
            self.resumeProducing()
        if not self.paused:
            for channel in [channel for channel in self._channels if channel.deadline <= now]:
                try:
                    channel.expired()
                except Exception:
                    # One that is broken must not keep the others alive.
                    self.traffic.failed("A connection could not be ended.", Failure())
                    channel.abort()
        # A connection may be done without its end: of a request that was refused, the body has come and gone.
        self._settle_drain()

    # -- the chain pauses us -------------------------------------------------------------------------------------

    def pauseProducing(self) -> None:
        """Stop reading from all senders."""
        if not self.paused:
            self.paused = True
            self._paused_at = self.clock()
            for channel in self._channels:
                channel.paused_for(0.0)

    def resumeProducing(self) -> None:
        """Read on."""
        if self.paused:
            self.paused = False
            seconds = self.clock() - self._paused_at
            for channel in list(self._channels):
                channel.paused_for(seconds)

    def stopProducing(self) -> None:
        """The chain takes no more: say so to everyone who still asks."""
        self.draining = True
        self.resumeProducing()

    # -- the end -------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """
        Answer each request that comes from now on as the last on its connection. A sender who is told so sends no
        further one, and sees none fail.
        """
        self.finishing = True
        self.resumeProducing()

    def drain(self) -> Deferred[None]:
        """
        Finish what is under way, take nothing new.

        @return: fires when no request is under way any more.
        """
        self.draining = True
        for channel in list(self._channels):
            channel.drain()
        done: Deferred[None] = Deferred()
        self._drained.append(done)
        self._settle_drain()
        return done

    def abort(self) -> None:
        """Close all connections now."""
        for channel in list(self._channels):
            channel.abort()

    def _settle_drain(self) -> None:
        if self._drained and not any(channel.busy for channel in self._channels):
            drained, self._drained = self._drained, []
            for done in drained:
                done.callback(None)


def _dispatch_of(resource: IResource) -> Callable[[Head], tuple[IReceiver, Admission] | Answer | Refused | None]:
    early: IEarlyResource | None = IEarlyResource(resource, None)
    return _judges_nothing if early is None else early.dispatch


def _judges_nothing(head: Head) -> None:
    """Leave all to the tree of resources."""
