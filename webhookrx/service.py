"""
The one place that knows all: settings to a tree of services.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from twisted.application.service import MultiService
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IAddress, IPushProducer
from twisted.logger import Logger
from zope.interface import implementer

from webhookrx.config.settings import TLS, Listener, Settings, Source
from webhookrx.config.tls_files import check_tls_files
from webhookrx.errors import BAD_REQUEST, CannotStart, ConfigError
from webhookrx.http.root_resource import RootResource
from webhookrx.http.site import Connections, Site
from webhookrx.http.webhook_resource import WebhookResource
from webhookrx.intake import SourceRules
from webhookrx.listening.endpoints import build_endpoint
from webhookrx.listening.listener_service import ListenerService
from webhookrx.observers import registry
from webhookrx.operations.counters import Counters
from webhookrx.operations.line_limit import LineLimit
from webhookrx.operations.receipts import Receipts
from webhookrx.operations.ticker import Ticker
from webhookrx.operations.traffic_log import TrafficLog
from webhookrx.pipeline.chain import Chain
from webhookrx.pipeline.worker import ThreadWorker
from webhookrx.tls.connection_creator import ServerConnectionCreator
from webhookrx.tls.handshake import describe_failure

_log = Logger()


class ReceiverService(MultiService):
    """
    The whole receiver.

    Nothing is opened before it starts, so that it can be built before C{twistd} goes to the background. It opens
    ports first, while the process may still be privileged, and files after, as the user who will write to them.
    """

    def __init__(self, settings: Settings, reactor: Any) -> None:
        super().__init__()
        self.settings = settings
        self.counters = Counters()
        self._reactor = reactor
        self._traffic = TrafficLog(self.counters, LineLimit(time.monotonic), describe_failure)
        self.chain = Chain(
            reactor,
            [registry.build(observer, settings.ack) for observer in settings.observers],
            ack=settings.ack,
            max_bytes=settings.limits.queue,
            max_messages=settings.limits.queue_messages,
            make_worker=partial(ThreadWorker, reactor),
            report=self._traffic.observer_failed,
        )
        self._sites: list[Site] = []
        self._creators: dict[TLS, ServerConnectionCreator] = {}
        self.listeners: list[ListenerService] = []
        self._add_listeners()
        self._ticker = Ticker(reactor, self._tick)
        self._awaited: Deferred[None] | None = None
        self._patience_ends = 0.0
        self._ticks = 0
        self._old_hangup: Any = None

    def _add_listeners(self) -> None:
        connections = Connections(self.settings.limits)
        receipts = Receipts()
        resources = {
            source.name: WebhookResource(rules_of(source, self.settings), self.chain, self._traffic, receipts)
            for source in self.settings.sources
        }
        for listener, sources in by_listener(self.settings.sources):
            root = RootResource(
                [(pattern, resources[source.name]) for source in sources for pattern in source.paths], self._traffic
            )
            site = Site(
                root,
                self.chain,
                self._traffic,
                limits=self.settings.limits,
                connections=connections,
                knows_peers_at_once=not listener.proxy_protocol,
            )
            creator = None
            if listener.tls is not None:
                if listener.tls not in self._creators:
                    self._creators[listener.tls] = ServerConnectionCreator(listener.tls)
                creator = self._creators[listener.tls]
            endpoint = build_endpoint(self._reactor, listener, creator, self._bad_proxy_header)
            service = ListenerService(endpoint, site, listener.text)
            service.setServiceParent(self)
            self.listeners.append(service)
            self._sites.append(site)

    def _bad_proxy_header(self, peer: str) -> None:
        detail = "The connection began without a good PROXY header."
        self._traffic.refused(BAD_REQUEST, detail, peer, b"", b"")

    # -- starting ------------------------------------------------------------------------------------------------

    def startService(self) -> None:
        """
        Open everything.

        @raise CannotStart: an observer can't be opened.
        @raise webhookrx.listening.listener_service.CannotListen: a port can't be opened.
        """
        try:
            self.chain.start()
        except ConfigError as error:
            raise CannotStart(str(error)) from None
        super().startService()
        self.chain.registerProducer(_AllSites(self._sites), True)
        self._ticker.startService()
        if hasattr(signal, "SIGHUP"):
            self._old_hangup = signal.signal(signal.SIGHUP, lambda *_: self._reactor.callFromThread(self.hang_up))
        for warning in (*self.settings.warnings, *self.chain.weaker_than_ack(), *_too_few_files(self.settings)):
            _log.warn("{problem}", problem=warning)
        for line in self.describe():
            _log.info("{line}", line=line)

    def describe(self) -> list[str]:
        """Return a line for each endpoint: where it listens, with which patterns, policy and observers."""
        observers = ", ".join(observer.text for observer in self.settings.observers)
        return [
            f"Listening on {_where(service.address) or listener.text} ({_transport(listener)}) for "
            f"{'; '.join(map(_source, sources))}; observers: {observers}; ack: {self.settings.ack}"
            for service, (listener, sources) in zip(self.listeners, by_listener(self.settings.sources), strict=True)
        ]

    # -- running -------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        for site in self._sites:
            site.sweep()
        self.chain.flush()
        self._ticks += 1
        if self._ticks % 10 == 0:
            self._traffic.report_held_back()
        if self._awaited is not None and time.monotonic() >= self._patience_ends:
            self._awaited.cancel()

    def hang_up(self) -> None:
        """SIGHUP: read certificates again and open files anew by name."""
        _log.info("Reopening files. Counts so far: {counts}", counts=self.counters.summary() or "none")
        self.chain.reopen()
        for tls, creator in self._creators.items():
            try:
                creator.reload()
            except ConfigError as error:
                _log.error("The old certificate stays in use: {error}", error=str(error))
            except Exception:
                _log.failure("The old certificate {file} stays in use", file=tls.cert_file)
            else:
                _log.info("Read certificate {file} again", file=tls.cert_file)
                for finding in check_tls_files(tls, datetime.now(UTC)):
                    _log.warn("{problem}", problem=finding.problem)

    # -- stopping ------------------------------------------------------------------------------------------------

    def stopService(self) -> Deferred[None]:
        """Take nothing new, finish what is under way, make it safe, and close."""
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        self.running = False
        for service in self.listeners:
            try:
                await service.stopService()
            except Exception:
                _log.failure("An endpoint could not be closed")
        if not await self._in_time(*[site.drain() for site in self._sites]):
            _log.warn("Cutting off senders that have not finished")
        # What they have sent in full is stored all the same.
        if not await self._in_time(self.chain.stop()):
            _log.critical(
                "An observer hangs: {messages} messages were not made safe, and their senders not answered with 200",
                messages=self.chain.budget.messages,
            )
        for site in self._sites:
            site.abort()
        self._ticker.stopService()
        if self._old_hangup is not None:
            signal.signal(signal.SIGHUP, self._old_hangup)
            self._old_hangup = None
        self._traffic.report_held_back()
        _log.info("Stopped. Counts: {counts}", counts=self.counters.summary() or "none")

    async def _in_time(self, *results: Deferred[None]) -> bool:
        """Wait for as long as an answer may take, on the monotonic clock; say whether all came in time."""
        self._patience_ends = time.monotonic() + self.settings.limits.answer_time
        in_time = True
        for self._awaited in results:
            try:
                await self._awaited
            except CancelledError:
                in_time = False
        self._awaited = None
        return in_time


@implementer(IPushProducer)
class _AllSites:
    """All sites as the one producer that the chain pauses."""

    def __init__(self, sites: list[Site]) -> None:
        self._sites = sites

    def pauseProducing(self) -> None:
        for site in self._sites:
            site.pauseProducing()

    def resumeProducing(self) -> None:
        for site in self._sites:
            site.resumeProducing()

    def stopProducing(self) -> None:
        for site in self._sites:
            site.stopProducing()


def build(settings: Settings, reactor: Any = None) -> ReceiverService:
    """
    Make the service of these settings; nothing is opened yet.

    @param reactor: the global one when None.
    @raise ConfigError: a file that was there at validation has gone, or a socket of systemd was not passed.
    """
    if reactor is None:
        from twisted.internet import reactor
    return ReceiverService(settings, reactor)


def rules_of(source: Source, settings: Settings) -> SourceRules:
    """Return how a source decides."""
    return SourceRules(
        source.name,
        parse_json=source.source == "webhook-json",
        prefix=source.prefix,
        auth_tokens=source.auth_tokens,
        include_request_headers=source.include_request_headers,
        proxy_header=source.proxy_header,
        keep_unparsed=source.on_parse_error == "keep",
        body_limit=settings.limits.body,
    )


def by_listener(sources: Iterable[Source]) -> list[tuple[Listener, list[Source]]]:
    """Return each endpoint once, with the sources that share it, in the order of the settings."""
    shared: dict[str, tuple[Listener, list[Source]]] = {}
    for source in sources:
        for listener in source.listeners:
            _, users = shared.setdefault(listener.inner, (listener, []))
            users.append(source)
    return list(shared.values())


def _too_few_files(settings: Settings) -> list[str]:
    """Warn when the process may not open as many files as connections are allowed."""
    try:
        may_open, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except OSError:
        return []  # a sandbox may keep even that secret
    wanted = settings.limits.connections
    if may_open == resource.RLIM_INFINITY or may_open > wanted:
        return []
    warning = (
        f"The process may open {may_open} files, so there can't be {wanted} connections: raise the limit on open files "
        "(ulimit -n, LimitNOFILE=), or lower the limit on connections."
    )
    return [warning]


def _where(address: IAddress | None) -> str:
    """Return an address as people write it; empty when there is none."""
    match address:
        case IPv4Address(host=host, port=port):
            return f"{host}:{port}"
        case IPv6Address(host=host, port=port):
            return f"[{host}]:{port}"
        case UNIXAddress(name=bytes(name)):
            return f"unix:{os.fsdecode(name)}"
    return ""


def _transport(listener: Listener) -> str:
    proxy = ", behind a PROXY header" if listener.proxy_protocol else ""
    if listener.tls is None:
        return f"plain HTTP{proxy}"
    policy = "required and verified" if listener.tls.peer_verify else "not asked for"
    return f"TLS with {listener.tls.cert_file}, client certificate {policy}{proxy}"


def _source(source: Source) -> str:
    shown = ", ".join(source.paths[:5]) + (f" and {len(source.paths) - 5} more" if len(source.paths) > 5 else "")
    token = "token required" if source.auth_tokens else "no token"
    return f"{source.source} {source.name!r} at {shown} ({token})"
