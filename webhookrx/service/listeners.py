"""
All open endpoints, and how a reload changes them without losing a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.internet.interfaces import IPushProducer, IReactorFromThreads, IStreamServerEndpoint
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.resource import IResource, Resource
from zope.interface import implementer

from webhookrx.errors import BAD_REQUEST, TOO_MANY_CONNECTIONS, WebhookrxError
from webhookrx.http.connections import Connections
from webhookrx.http.site import Site
from webhookrx.interfaces import IMessageConsumer
from webhookrx.pipeline.queue_limit import StandingQueue
from webhookrx.settings import TLS, FileContents, Limits, Listener
from webhookrx.transport.accept import AcceptFailures
from webhookrx.transport.endpoints import build_endpoint, socket_endpoint
from webhookrx.transport.listener_service import ListenerService
from webhookrx.transport.nested_epoll import NestedEpoll
from webhookrx.transport.overload import Overload
from webhookrx.transport.server_context import ServerConnectionCreator
from webhookrx.transport.swappable_endpoint import SwappableEndpoint
from webhookrx.transport.turn_end import TurnEnd
from webhookrx.wire_interfaces import ITraffic

_log = Logger()

#: Requests that are unread for this many seconds, during this many seconds, are a standing queue: overload.
LONG_UNREAD = 0.5

#: Makes the endpoint of a listener's socket alone, as L{socket_endpoint} does.
OpenSocket: TypeAlias = Callable[[Listener], IStreamServerEndpoint]


@dataclass(frozen=True)
class OpenListener:
    """
    An endpoint as one set of settings has it. A reload makes another of the same socket and service.

    @ivar listener: its settings.
    @ivar creator: makes the TLS of its connections; None for plain HTTP.
    @ivar socket: its socket, under all that changes.
    @ivar endpoint: the socket with the PROXY header and TLS.
    @ivar site: its connections.
    @ivar service: opens and closes it.
    """

    listener: Listener
    creator: ServerConnectionCreator | None
    socket: SwappableEndpoint
    endpoint: IStreamServerEndpoint
    site: Site
    service: ListenerService


@dataclass(frozen=True)
class ListenersChange:
    """
    A planned change of the endpoints. Nothing is opened or different yet.

    @ivar listeners: all endpoints after the change, in the order of the settings.
    @ivar added: the endpoints to open.
    @ivar removed: the endpoints to close.
    @ivar roots: the root of each endpoint, by C{Listener.socket}.
    @ivar limits: the limits of all endpoints.
    @ivar certificates: each certificate file, and when its certificate expires, seconds since the epoch.
    """

    listeners: list[OpenListener]
    added: list[OpenListener]
    removed: list[OpenListener]
    roots: Mapping[str, IResource]
    limits: Limits
    certificates: Mapping[str, float]

    def open(self) -> None:
        """
        Open the added endpoints.

        @raise webhookrx.transport.listener_service.CannotListen: one can't be opened; then none of them is.
        """
        try:
            for each in self.added:
                each.service.startService()
        except WebhookrxError:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Close the added endpoints again, with their connections."""
        for each in self.added:
            close_port(each.service)
            each.site.abort()


@implementer(IPushProducer)
class Listeners:
    """
    The endpoints, in the order of the settings; and all their sites as the one producer that the chain pauses.

    @param consumer: where messages go.
    @param limits: the limits on all endpoints together.
    @param open_socket: makes the sockets; by default they are bound as their strings say.
    @param turn_end: told of each turn in which connections are served, where the reactor allows.
    @ivar certificates: each certificate file in use, and when its certificate expires, seconds since the epoch.
    @ivar overload: decides whether more is sent than can be read.
    """

    def __init__(
        self,
        reactor: Any,
        consumer: IMessageConsumer,
        traffic: ITraffic,
        limits: Limits,
        open_socket: OpenSocket | None = None,
        turn_end: TurnEnd | None = None,
    ) -> None:
        self.connections = Connections(limits)
        self.certificates: Mapping[str, float] = {}
        self._reactor = reactor
        self.overload = Overload(StandingQueue(LONG_UNREAD, LONG_UNREAD, 0.0), traffic.dropped_unread)
        self._poll = NestedEpoll(reactor, self.overload, turn_end=turn_end) if NestedEpoll.serves(reactor) else None
        # Not callLater, which goes by the wall clock.
        self._later = reactor.callFromThread if IReactorFromThreads.providedBy(reactor) else None
        self._consumer = consumer
        self._traffic = traffic
        self._accept_failures = AcceptFailures(self._no_file_for, traffic.accept_failed)
        self._open_socket = open_socket or partial(socket_endpoint, reactor)
        self._open: dict[str, OpenListener] = {}
        self._leaving: list[Site] = []
        self._finishing: list[Site] = []  # since the last sweep
        self._finished: list[Site] = []  # since the one before it
        self._paused = False

    def __iter__(self) -> Iterator[OpenListener]:
        return iter(self._open.values())

    @property
    def sites(self) -> list[Site]:
        """All sites with connections, those of closed endpoints included."""
        return [*(each.site for each in self._open.values()), *self._finishing, *self._finished, *self._leaving]

    @property
    def requests(self) -> int:
        return sum(site.requests for site in self.sites)

    @property
    def paused(self) -> bool:
        """Whether reading is off anywhere."""
        return any(site.paused for site in self.sites)

    # -- changing ------------------------------------------------------------------------------------------------

    def plan(
        self,
        listeners: Iterable[Listener],
        roots: Mapping[str, IResource],
        limits: Limits,
        tls_files: Mapping[str, FileContents] | None = None,
    ) -> ListenersChange:
        """
        Plan the change to these endpoints.

        @param roots: the root of each endpoint, by C{Listener.socket}; without one it answers 404.
        @param tls_files: the contents of TLS files when they were checked, by C{Listener.socket}; others are read.
        @raise webhookrx.errors.ConfigError: a file can't be used, or there is no such endpoint.
        """
        wanted = {listener.socket: listener for listener in listeners}
        creators = _creators(wanted.values(), tls_files or {})
        planned = [
            self._plan_one(listener, creators.get(key), roots.get(key) or Resource(), limits)
            for key, listener in wanted.items()
        ]
        added = [each for each in planned if each.listener.socket not in self._open]
        removed = [each for each in self if each.listener.socket not in wanted]
        return ListenersChange(planned, added, removed, roots, limits, _expiries(planned))

    def _plan_one(
        self, listener: Listener, creator: ServerConnectionCreator | None, root: IResource, limits: Limits
    ) -> OpenListener:
        known = self._open.get(listener.socket)
        if known is None:
            socket = SwappableEndpoint(self._open_socket(listener), self._poll, self._accept_failures)
        else:
            socket = known.socket
        endpoint = build_endpoint(self._reactor, listener, creator, self._bad_proxy_header, socket)
        if known is not None and _same_terms(known.listener, listener):
            site = known.site
        else:
            site = self._make_site(listener, root, limits)
        service = ListenerService(endpoint, site, listener.text) if known is None else known.service
        return OpenListener(listener, creator, socket, endpoint, site, service)

    def commit(self, change: ListenersChange) -> list[Deferred[None]]:
        """
        Apply a change. It can't fail.

        @return: for each removed endpoint, what fires when it is closed, so that the system refuses connections to it.
        """
        before, self._open = self._open, {each.listener.socket: each for each in change.listeners}
        for key, each in self._open.items():
            if key in before:
                if each.site is not before[key].site:
                    self._let_go(before[key].site)
                each.service.use(each.endpoint, each.site)
        closed = [close_port(each.service) for each in change.removed]
        for each in change.removed:
            each.site.finish()
            if self._paused:
                each.site.pauseProducing()
            self._finishing.append(each.site)
        self.certificates = change.certificates
        self.use(change.roots, change.limits)
        return closed

    def use(self, roots: Mapping[str, IResource], limits: Limits) -> None:
        """Use these roots and limits from now on, on open connections too."""
        self.connections.use(limits)
        for key, each in self._open.items():
            if key in roots:
                each.site.use(roots[key], limits)
                if self._paused:
                    each.site.pauseProducing()

    def _make_site(self, listener: Listener, root: IResource, limits: Limits) -> Site:
        return Site(
            root,
            self._consumer,
            self._traffic,
            limits=limits,
            connections=self.connections,
            knows_peers_at_once=not listener.proxy_protocol,
            later=self._later,
            overload=self.overload,
        )

    def _let_go(self, site: Site) -> None:
        """Drain a site; it is swept until its last connection has ended."""
        self._leaving.append(site)
        site.drain().addCallback(lambda _: self._leaving.remove(site))

    def _bad_proxy_header(self, peer: str) -> None:
        detail = "The connection began without a good PROXY header."
        self._traffic.refused(BAD_REQUEST, detail, peer, b"", b"")

    def _no_file_for(self, peer: str) -> None:
        detail = "The process may open no more files."
        self._traffic.refused(TOO_MANY_CONNECTIONS, detail, peer, b"", b"")

    # -- their life ----------------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """
        Check all deadlines.

        The connections of a removed endpoint stay for a sweep or two: requests that come by then are answered, each as
        the last on its connection.
        """
        self._accept_failures.try_again()
        self.overload.sweep()
        if self._poll is not None:
            self._poll.wake_up()
        for site in self.sites:
            site.sweep()
        finished, self._finished, self._finishing = self._finished, self._finishing, []
        for site in finished:
            self._let_go(site)

    def close(self) -> list[Deferred[None]]:
        """Close all ports; connections stay. Each result fires when a port is closed."""
        return [close_port(each.service) for each in self]

    def finish(self) -> None:
        """Close each connection after the answer to its next request."""
        for site in self.sites:
            site.finish()

    def drain(self) -> list[Deferred[None]]:
        """Finish requests under way, and take no new ones. Each result fires when a site has no connections left."""
        return [site.drain() for site in self.sites]

    def abort(self) -> None:
        for site in self.sites:
            site.abort()

    # -- the chain pauses us -------------------------------------------------------------------------------------

    def pauseProducing(self) -> None:
        self._paused = True
        for site in self.sites:
            site.pauseProducing()

    def resumeProducing(self) -> None:
        self._paused = False
        for site in self.sites:
            site.resumeProducing()

    def stopProducing(self) -> None:
        self._paused = False
        for site in self.sites:
            site.stopProducing()


def _creators(
    listeners: Iterable[Listener], tls_files: Mapping[str, FileContents]
) -> dict[str, ServerConnectionCreator]:
    """Return the TLS of listeners with TLS, by C{Listener.socket}; those with the same files share one."""
    creators: dict[str, ServerConnectionCreator] = {}
    read: dict[tuple[TLS, int], ServerConnectionCreator] = {}
    for listener in listeners:
        if listener.tls is not None:
            files = tls_files.get(listener.socket)
            key = (listener.tls, id(files))
            if key not in read:
                read[key] = ServerConnectionCreator(listener.tls, files)
            creators[listener.socket] = read[key]
    return creators


def _expiries(listeners: Iterable[OpenListener]) -> dict[str, float]:
    """Return each certificate file, and when the first certificate of it expires, seconds since the epoch."""
    expiries: dict[str, float] = {}
    for each in listeners:
        if each.listener.tls is not None and each.creator is not None:
            file, ends = each.listener.tls.cert_file, each.creator.ends
            expiries[file] = min(ends, expiries.get(file, ends))
    return expiries


def _same_terms(old: Listener, new: Listener) -> bool:
    """
    Return whether clients connected by the old settings may stay with the new ones. A renewed certificate changes
    nothing for a connection; another policy for clients does.
    """
    return old.proxy_protocol == new.proxy_protocol and _asked_of_clients(old.tls) == _asked_of_clients(new.tls)


def _asked_of_clients(tls: TLS | None) -> object:
    return tls and (tls.peer_verify, tls.ca_file, tls.ca_dir, tls.system_store, tls.asks_clients)


def close_port(service: ListenerService) -> Deferred[None]:
    """Close a port; its connections stay. The result fires when it is closed, and fails only when it is cancelled."""
    closed: Deferred[None] = maybeDeferred(service.stopService)
    return closed.addErrback(_not_closed)


def _not_closed(failure: Failure) -> None:
    if failure.check(CancelledError):
        failure.raiseException()
    _log.failure("An endpoint could not be closed", failure)
