"""
All connections of an endpoint: what they share, and what is counted over all of them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IPushProducer
from twisted.python.failure import Failure
from twisted.web.resource import IResource
from twisted.web.server import Site as TwistedSite
from zope.interface import implementer

from webhookrx.config.settings import Limits
from webhookrx.http.answers import AnswerWriter
from webhookrx.http.channel import HTTPChannel
from webhookrx.http.connection import Connection
from webhookrx.http.interfaces import IEarlyResource, IReceiver
from webhookrx.intake import Admission, Refused
from webhookrx.interfaces import IMessageConsumer, IOverload, ITraffic
from webhookrx.request.received import Head


class Connections:
    """
    Open connections on all endpoints together, and by peer.

    @param limits: C{connections} and C{connections_per_peer} of it.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._total = 0
        self._by_peer: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """How many are open."""
        return self._total

    @property
    def most(self) -> int:
        """How many there may be."""
        return self._limits.connections

    def use(self, limits: Limits) -> None:
        """Go by these limits from now on. Connections that are open stay, also where they are too many now."""
        self._limits = limits

    def add(self) -> bool:
        """Count a connection; False, and nothing counted, when it is one too many."""
        if self._total >= self._limits.connections:
            return False
        self._total += 1
        return True

    def add_peer(self, peer: str) -> bool:
        """Count a connection of that address; False, and nothing counted, when it is one too many."""
        if self._by_peer[peer] >= self._limits.connections_per_peer:
            return False
        self._by_peer[peer] += 1
        return True

    def remove(self, peer: str | None) -> None:
        """Forget a connection; C{peer} as it was given to L{add_peer}, if it was."""
        self._total -= 1
        if peer is not None:
            self._by_peer[peer] -= 1
            if not self._by_peer[peer]:
                del self._by_peer[peer]


@implementer(IOverload)
class _NoOverload:
    """There is never too much to do."""

    refusing = False

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
    dispatch: Callable[[Head], tuple[IReceiver, Admission] | Refused | None]

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
        self._peers: dict[Connection, str] = {}  # those that are counted by peer
        self._paused_at = 0.0
        self._drained: list[Deferred[None]] = []

    # -- C{twisted.web}'s part -----------------------------------------------------------------------------------

    def buildProtocol(self, addr: IAddress) -> HTTPChannel:  # type: ignore[override]
        """See L{twisted.internet.interfaces.IProtocolFactory.buildProtocol}."""
        return HTTPChannel(self)

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
        admitted = self._channels[channel] = self._connections.add()
        return admitted and (not self.knows_peers_at_once or self.admits_peer(channel))

    def admits_peer(self, channel: Connection) -> bool:
        """
        Count a connection by its peer. UNIX sockets have no peers.

        @return: False when that peer has one too many. It is counted no more, so that it takes no room from others.
        """
        if channel.peer_port is None:
            return True
        admitted = self._connections.add_peer(channel.peer_ip)
        if admitted:
            self._peers[channel] = channel.peer_ip
        else:
            self._channels[channel] = False
            self._connections.remove(None)
        return admitted

    def closed(self, channel: Connection) -> None:
        """Let a connection go."""
        if self._channels.pop(channel):
            self._connections.remove(self._peers.pop(channel, None))
        self._settle_drain()

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


def _dispatch_of(resource: IResource) -> Callable[[Head], tuple[IReceiver, Admission] | Refused | None]:
    early: IEarlyResource | None = IEarlyResource(resource, None)
    return _judges_nothing if early is None else early.dispatch


def _judges_nothing(head: Head) -> None:
    """Leave all to the tree of resources."""
