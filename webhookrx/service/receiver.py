"""
What one process receives with: endpoints, the chain to the observers, and what is counted.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from webhookrx.errors import CannotStart, ConfigError
from webhookrx.http.time_slices import TimeSlices
from webhookrx.interfaces import IMessageObserver
from webhookrx.operations.counters import Counters
from webhookrx.operations.facts import Facts, Level, Phase
from webhookrx.operations.line_limit import LineLimit
from webhookrx.operations.receipts import Receipts
from webhookrx.operations.recorder import Place, Recorder
from webhookrx.operations.traffic_log import TrafficLog
from webhookrx.pipeline.chain import Chain
from webhookrx.pipeline.observer_thread import RealThread
from webhookrx.service import known_observers
from webhookrx.service.description import describe, difference, renewals
from webhookrx.service.drain import LAST_WORDS, Drain
from webhookrx.service.listeners import Listeners, OpenSocket
from webhookrx.service.routes import build_roots, by_listener, connector_labels, tls_files
from webhookrx.settings import ALONE, Group, Observer, Settings
from webhookrx.transport.handshake import describe_failure
from webhookrx.transport.listener_service import ListenerService

#: Ticks, of half a second each, between two reports of lines held back.
_TICKS_TO_REPORT = 10

_log = Logger()


class Receiver:
    """
    Receives by some settings, and by others once they change.

    Nothing is opened before it starts. It opens ports first, while the process may still be privileged, and files
    after, as the user who will write to them.

    @param group: which of how many workers this process is.
    @param open_socket: makes the sockets of endpoints; None has them bound as their strings say.
    @ivar settings: those in use.
    @ivar phase: what it is about.
    @ivar fit: whether the service that it belongs to, as a whole, should be sent messages, as far as it was told.
    @ivar hurried: whether it was told not to wait for the end of what is under way.
    """

    def __init__(
        self, settings: Settings, reactor: Any, group: Group = ALONE, open_socket: OpenSocket | None = None
    ) -> None:
        self.settings = settings
        self.phase = Phase.STARTING
        self.fit = False
        self.counters = Counters()
        self.hurried = False
        self._reactor = reactor
        self._group = group
        self._traffic = TrafficLog(self.counters, LineLimit(time.monotonic), describe_failure)
        self._observers = self._build_observers(settings, {})
        self.chain = Chain(
            reactor,
            list(self._observers.values()),
            ack=settings.ack,
            max_bytes=settings.limits.queue,
            max_messages=settings.limits.queue_messages,
            answer_time=settings.limits.answer_time,
            pause_time=settings.limits.pause_time,
            make_thread=partial(RealThread, reactor),
            report=self._traffic.observer_failed,
            stored=self._traffic.store_done,
        )
        self._recorder = Recorder(reactor, self.counters)
        self._recorder.use(_place_of(settings))
        self._slices = TimeSlices(lambda call: reactor.callFromThread(call))
        self._endpoints = Listeners(reactor, self.chain, self._traffic, settings.limits, open_socket)
        listeners = [listener for listener, _ in by_listener(settings.sources)]
        self._endpoints.commit(self._endpoints.plan(listeners, {}, settings.limits, tls_files(settings)))
        self._ticks = 0
        self._loaded = 0.0
        self._drain: Drain | None = None
        self._last_look: IDelayedCall | None = None

    @property
    def listeners(self) -> list[ListenerService]:
        """What has the ports, in the order of the settings."""
        return [each.service for each in self._endpoints]

    # -- starting ------------------------------------------------------------------------------------------------

    def open_ports(self) -> None:
        """
        Open the ports.

        @raise webhookrx.transport.listener_service.CannotListen: one can't be opened.
        """
        for service in self.listeners:
            service.privilegedStartService()

    def start(self) -> None:
        """
        Open the observers, and the ports that are not open.

        @raise CannotStart: an observer can't be opened.
        @raise webhookrx.transport.listener_service.CannotListen: a port can't be opened.
        """
        self.phase = Phase.STARTING
        try:
            self.chain.start()
        except ConfigError as error:
            raise CannotStart(str(error)) from None
        # Not before the process is in the background: what it draws at random is to be its own.
        self._receipts = Receipts()
        self._loaded = time.time()
        for service in self.listeners:
            service.startService()
        self._endpoints.use(self._build_roots(self.settings), self.settings.limits)
        self.chain.registerProducer(self._endpoints, True)
        # What is there at the start stays; no collection of cycles needs to look at it.
        gc.collect()
        gc.freeze()

    def describe(self) -> list[str]:
        """Return a line for each endpoint: where it listens, with which patterns, policy and observers."""
        return describe(self.settings, {each.listener.inner: each.service.address for each in self._endpoints})

    # -- running -------------------------------------------------------------------------------------------------

    @property
    def facts(self) -> Facts:
        """What it is like now. Of reloads it knows nothing: as far as it can tell they succeed."""
        budget, limits, endpoints = self.chain.budget, self.settings.limits, self._endpoints
        return Facts(
            phase=self.phase,
            endpoints={each.listener.text: each.service.address is not None for each in endpoints},
            lanes=self.chain.lanes(),
            sources=[source.name for source in self.settings.sources],
            queue_bytes=Level(budget.bytes, limits.queue),
            queue_messages=Level(budget.messages, limits.queue_messages),
            connections=Level(endpoints.connections.total, endpoints.connections.most),
            requests=endpoints.requests,
            paused=endpoints.paused,
            certificates=endpoints.certificates,
            reload_succeeded=True,
            loaded=self._loaded,
            connectors=connector_labels(self.settings),
            blocked=self.settings.blocked,
            closed=self.settings.closed,
            not_taken=self.settings.not_taken,
            unread_age=endpoints.overload.age,
            overloaded=endpoints.overload.stands,
        )

    def tick(self) -> None:
        """Look at all deadlines; called twice a second."""
        self._endpoints.sweep()
        self.chain.tick()
        self._ticks += 1
        if self._ticks % _TICKS_TO_REPORT == 0:
            self._traffic.report_held_back()
        if self._drain is not None:
            self._drain.tick()

    # -- changing ------------------------------------------------------------------------------------------------

    async def change(self, settings: Settings) -> str:
        """
        Go by other settings. Up to the last step nothing of the old is given up.

        @return: what has changed.
        @raise webhookrx.errors.WebhookrxError: why everything stays as it was.
        """
        observers = self._build_observers(settings, self._observers if settings.ack == self.settings.ack else {})
        listeners = [listener for listener, _ in by_listener(settings.sources)]
        change = self._endpoints.plan(listeners, self._build_roots(settings), settings.limits, tls_files(settings))
        try:
            change.open()
            if observers != self._observers:
                await self.chain.replace(list(observers.values()), ack=settings.ack)
            if self.phase is Phase.DRAINING:
                raise ConfigError("The receiver stops.")
        except BaseException:
            change.abandon()
            raise
        before, self.settings, self._observers = self.settings, settings, observers
        self._recorder.use(_place_of(settings))
        renewed = renewals(self._endpoints.certificates, change.certificates)
        same = before == settings
        limits = settings.limits
        self.chain.set_limits(
            max_bytes=limits.queue,
            max_messages=limits.queue_messages,
            answer_time=limits.answer_time,
            pause_time=limits.pause_time,
        )
        self._endpoints.commit(change)
        self._loaded = time.time()
        blocked = "; the router is blocked" if settings.blocked else ""
        if same:
            return f"the settings are the same; files were read and opened anew{renewed}{blocked}"
        counts = f"{len(listeners)} endpoints, {len(observers)} observers"
        return f"{difference(before, settings)}; {counts}{renewed}{blocked}"

    def reopen(self) -> None:
        """Open the files of messages anew by name: logrotate relies on it."""
        self.chain.reopen()

    def _build_roots(self, settings: Settings) -> dict[str, Any]:
        record = None if settings.record is None else self._recorder.record
        return dict(
            build_roots(
                settings, self.chain, self._traffic, self._receipts, self._slices, record, lambda: self._is_ready
            )
        )

    @property
    def _is_ready(self) -> bool:
        """Whether load balancers should have messages sent here: asked by anybody, so it is next to no work."""
        return self.fit and self.phase is Phase.RUNNING

    def _build_observers(
        self, settings: Settings, known: Mapping[Observer, IMessageObserver]
    ) -> dict[Observer, IMessageObserver]:
        """Return the observers of these settings: those that are known already, and new ones that are not open yet."""
        return {
            each: known[each] if each in known else known_observers.build(each, settings.ack, self._group)
            for each in settings.observers
        }

    # -- stopping ------------------------------------------------------------------------------------------------

    async def drain(self, seconds: float, ports_closed: Callable[[], None] = lambda: None) -> bool:
        """
        Take nothing new, finish what is under way, make it safe, and close.

        @param seconds: for all of it together.
        @param ports_closed: called when no port takes connections any more.
        @return: whether each request that was begun has its answer, and each message is with its observers.
        """
        self.phase = Phase.DRAINING
        self._drain = Drain(self._endpoints, self.chain, seconds, self._turn, time.monotonic, ports_closed)
        if self.hurried:
            self.hurry()
        whole = await self._drain.run()
        self._drain = None
        if self._last_look is not None and self._last_look.active():
            self._last_look.cancel()
        self._traffic.report_held_back()
        return whole

    def hurry(self) -> None:
        """End at once what L{drain} does."""
        self.hurried = True
        if self._drain is not None and self._last_look is None:
            _log.warn("Told to stop once more: not waiting any longer")
            self._drain.hurry()
            # By the wall clock, but the ticks look as well.
            self._last_look = self._reactor.callLater(LAST_WORDS, self._drain.tick)

    def _turn(self) -> Deferred[None]:
        # Not callLater(0), which goes by the wall clock.
        turned: Deferred[None] = Deferred()
        self._reactor.callFromThread(turned.callback, None)
        return turned


def _place_of(settings: Settings) -> Place | None:
    """Return where these settings have requests recorded; None: nowhere."""
    if settings.record is None:
        return None
    return Place(settings.record, settings.limits.recorded_requests, settings.limits.recorded_bytes)
