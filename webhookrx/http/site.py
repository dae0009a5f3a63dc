"""
The connections of an endpoint: their counts, their deadlines, and the policy that they go by.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IPushProducer
from twisted.python.failure import Failure
from twisted.web.resource import IResource
from twisted.web.server import Site as TwistedSite
from zope.interface import implementer

from webhookrx.errors import TOO_MANY_CONNECTIONS
from webhookrx.http.answers import AnswerWriter
from webhookrx.http.connections import Connections
from webhookrx.http.head import RequestHead, names_with
from webhookrx.http.interfaces import IEarlyResource, ISite, Policy, Verdict
from webhookrx.http.protocol import HTTPProtocol
from webhookrx.http.twisted_request import Request
from webhookrx.intake.client_address import sender_of
from webhookrx.intake.head import Head
from webhookrx.interfaces import IMessageConsumer
from webhookrx.settings import Limits
from webhookrx.wire_interfaces import IOverload, ITraffic


@implementer(IOverload)
class _NoOverload:
    """No overload, ever."""

    refusing = False
    behind = False

    def has_unread(self, fd: int) -> bool:
        """See L{IOverload.has_unread}."""
        return False


@implementer(IPushProducer, ISite)
class Site(TwistedSite):
    """
    Makes the protocols of connections, and is the producer of messages that the chain pauses when it is nearly full.

    @param resource: the root; when it provides L{IEarlyResource} it judges requests at the end of their heads.
    @param consumer: where bodies are counted.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: seconds since the epoch, for C{Date} alone.
    @param knows_peers_at_once: False behind the PROXY protocol: the peer is known with the first data.
    @param later: calls a function in the next turn of the reactor. None: no sender waits for others, however much it
        has pipelined.
    @param overload: says when to refuse requests unjudged; None for never.
    @ivar policy: what connections go by from their next request on.
    @ivar paused: the chain pauses all senders.
    """

    noisy = False

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
        self.policy = Policy(_dispatch_of(resource), limits, _names_of(resource))
        self.paused = False
        self.clock = clock
        self.became_idle = connections.became_idle
        self._consumer = consumer
        self._traffic = traffic
        self._peers_known_at_once = knows_peers_at_once
        self._later = later
        self._overload: IOverload = overload or _NoOverload()
        self._answers = AnswerWriter()
        self._answers.at(wall_clock())
        self._wall_clock = wall_clock
        self._connections = connections
        self._protocols: dict[HTTPProtocol, None] = {}  # in the order in which they came
        self._paused_at = 0.0
        self._drained: list[Deferred[None]] = []

    # -- C{twisted.web}'s part -----------------------------------------------------------------------------------

    def buildProtocol(self, addr: IAddress) -> HTTPProtocol:  # type: ignore[override]
        """See L{twisted.internet.interfaces.IProtocolFactory.buildProtocol}."""
        return HTTPProtocol(
            self,
            self._consumer,
            self._traffic,
            self._answers,
            self.clock,
            self._overload,
            self._later,
            peer_known=self._peers_known_at_once,
        )

    def make_request(self, connection: HTTPProtocol, head: RequestHead, body: bytes) -> Request:
        """See L{webhookrx.http.interfaces.ISite.make_request}."""
        return Request.from_parts(connection, self, head, body)

    def startFactory(self) -> None:
        """Take requests. The timer of C{twisted.web} for its access log is not started: we have our own log."""
        self.policy = replace(self.policy, closing=False, draining=False)

    def stopFactory(self) -> None:
        """There is no timer to stop, see L{startFactory}."""

    # -- requests ------------------------------------------------------------------------------------------------

    def use(self, resource: IResource, limits: Limits) -> None:
        """
        Set the root and the limits for all requests to come, on open connections too.

        A request whose head was judged by the old root ends there.
        """
        self.resource = resource
        self.policy = replace(self.policy, dispatch=_dispatch_of(resource), limits=limits, names=_names_of(resource))

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._protocols)

    @property
    def requests(self) -> int:
        """Number of requests under way: begun, and not yet answered in full."""
        return sum(connection.busy for connection in self._protocols)

    # -- connections ---------------------------------------------------------------------------------------------

    def opened(self, connection: HTTPProtocol) -> bool:
        """See L{ISite.opened}."""
        self._protocols[connection] = None
        return self._connections.add(connection, _sender_of(connection) if self._peers_known_at_once else None)

    def admits_peer(self, connection: HTTPProtocol) -> bool:
        """See L{ISite.admits_peer}."""
        sender = _sender_of(connection)
        return sender is None or self._connections.identify(connection, sender)

    def give_way(self, connection: HTTPProtocol) -> None:
        """See L{ISite.give_way}. It is counted no more, though its end is yet to come."""
        self._connections.remove(connection)
        detail = "It waited, and made room for another."
        self._traffic.refused(TOO_MANY_CONNECTIONS, detail, str(connection.peer), b"", b"")
        connection.abort()

    def closed(self, connection: HTTPProtocol) -> None:
        """See L{ISite.closed}."""
        self._connections.remove(connection)
        del self._protocols[connection]
        self._settle_drain()

    def sweep(self) -> None:
        """Check all deadlines; called about every half second, by the monotonic clock."""
        self._answers.at(self._wall_clock())
        now = self.clock()
        if self.paused and now - self._paused_at >= self.policy.limits.pause_time:
            self.resumeProducing()
        if not self.paused:
            for connection in [connection for connection in self._protocols if connection.deadline <= now]:
                try:
                    connection.expired()
                except Exception:
                    # One that is broken must not keep the others alive.
                    self._traffic.failed("A connection could not be ended.", Failure())
                    connection.abort()
        # A connection may turn idle without an answer now: the body of a request that was refused has ended.
        self._settle_drain()

    # -- the chain pauses us -------------------------------------------------------------------------------------

    def pauseProducing(self) -> None:
        """Stop reading from all senders."""
        if not self.paused:
            self.paused = True
            self._paused_at = self.clock()
            for connection in self._protocols:
                connection.paused_for(0.0)

    def resumeProducing(self) -> None:
        """Read again; deadlines are extended by the pause."""
        if self.paused:
            self.paused = False
            seconds = self.clock() - self._paused_at
            for connection in list(self._protocols):
                connection.paused_for(seconds)

    def stopProducing(self) -> None:
        """Refuse all requests from now on: the chain takes no more."""
        self._close_after_these(draining=True)
        self.resumeProducing()

    # -- the end -------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """
        Answer each request from now on as the last on its connection: a sender that reads so sends no further one, and
        sees none fail.
        """
        self._close_after_these()
        self.resumeProducing()

    def drain(self) -> Deferred[None]:
        """
        Close idle connections, answer requests under way, refuse new ones.

        @return: fires when no request is under way.
        """
        self._close_after_these(draining=True)
        for connection in list(self._protocols):
            connection.drain()
        done: Deferred[None] = Deferred()
        self._drained.append(done)
        self._settle_drain()
        return done

    def _close_after_these(self, **changes: bool) -> None:
        """Close each connection after its next answer."""
        self.policy = replace(self.policy, closing=True, **changes)
        for connection in self._protocols:
            connection.finish()

    def abort(self) -> None:
        """Close all connections now."""
        for connection in list(self._protocols):
            connection.abort()

    def _settle_drain(self) -> None:
        if self._drained and not any(connection.busy for connection in self._protocols):
            drained, self._drained = self._drained, []
            for done in drained:
                done.callback(None)


def _sender_of(connection: HTTPProtocol) -> str | None:
    """Return the sender that a connection counts for; None for UNIX sockets, which have no address."""
    peer = connection.peer
    return None if peer.port is None else sender_of(peer.ip)


def _dispatch_of(resource: IResource) -> Callable[[Head], Verdict]:
    early: IEarlyResource | None = IEarlyResource(resource, None)
    return _judges_nothing if early is None else early.dispatch


def _names_of(resource: IResource) -> tuple[bytes, ...]:
    early: IEarlyResource | None = IEarlyResource(resource, None)
    return names_with(() if early is None else early.wanted)


def _judges_nothing(head: Head) -> None:
    """Leave all to the tree of resources."""
