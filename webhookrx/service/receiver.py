"""
The receiver of one process: endpoints, the chain to the observers, and what is counted.
"""

from __future__ import annotations

import gc
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from webhookrx.errors import CannotStart, ConfigError
from webhookrx.http.time_slices import TimeSlices
from webhookrx.intake.judge import Receipt
from webhookrx.interfaces import IMessageObserver
from webhookrx.operations.counters import Counters
from webhookrx.operations.health import ALONE as BY_ITSELF
from webhookrx.operations.health import WorkerState
from webhookrx.operations.oplog import LineLimit
from webhookrx.operations.recorder import RecordDirectory, Recorder
from webhookrx.operations.snapshot import Level, Phase, ReceiverSnapshot
from webhookrx.operations.traffic_log import TrafficLog
from webhookrx.pipeline.chain import Chain
from webhookrx.pipeline.observer_thread import RealThread
from webhookrx.service import known_observers
from webhookrx.service.description import describe, difference, renewals, rules_not_taken
from webhookrx.service.drain import STOP_NOW_TIME, Drain
from webhookrx.service.key_fetcher import KeyFetcher, KnownPublicKeys
from webhookrx.service.listeners import Listeners, OpenSocket
from webhookrx.service.masks import path_mask
from webhookrx.service.routes import (
    SharedByGuards,
    build_roots,
    connector_labels,
    tls_files,
)
from webhookrx.service.shared_state import delivery_file, longest_window, open_state
from webhookrx.service.source_rules import by_listener
from webhookrx.service.taps import LocalTaps
from webhookrx.settings import ALONE, Group, Observer, Settings
from webhookrx.transport.handshake import describe_failure
from webhookrx.transport.listener_service import ListenerService
from webhookrx.transport.turn_end import TurnEnd

if TYPE_CHECKING:
    from webhookrx.tapping.tap import Tap
    from webhookrx.tapping.tap_request import TapRequest

#: Ticks, of half a second each, between two reports of lines held back.
_TICKS_TO_REPORT = 10

_log = Logger()


class LocalReceiver:
    """
    Receives in this process: alone (see L{Receiver<webhookrx.service.receiver_interface.Receiver>}), or as one of
    several workers.

    Nothing is opened before it starts. It opens ports first, while the process may still be privileged, and files
    after, as the user who will write to them.

    @param group: which of how many workers this process is.
    @param open_socket: makes the sockets of endpoints; by default they are bound as their strings say.
    @ivar settings: the settings in use.
    @ivar phase: where in its life it is.
    @ivar counters: everything counted so far.
    @ivar taps: what operators look at.
    """

    def __init__(
        self, settings: Settings, reactor: Any, group: Group = ALONE, open_socket: OpenSocket | None = None
    ) -> None:
        self.settings = settings
        self.phase = Phase.STARTING
        self.counters = Counters()
        self._service_is_ready = False
        self._stops_now = False
        self._reactor = reactor
        self._group = group
        self._traffic = TrafficLog(self.counters, LineLimit(time.monotonic), describe_failure)
        self._traffic.mask_path = path_mask(settings)
        self._observers = self._build_observers(settings, {})
        turn_end = TurnEnd()
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
            counted=self._traffic.store_counted,
            at_turn_end=turn_end.add,
        )
        self._recorder = Recorder(reactor, self.counters)
        self._recorder.use(_record_directory(settings))
        self._slices = TimeSlices(lambda call: reactor.callFromThread(call))
        self._listeners = Listeners(reactor, self.chain, self._traffic, settings.limits, open_socket, turn_end)
        listeners = [listener for listener, _ in by_listener(settings.sources)]
        self._listeners.commit(self._listeners.plan(listeners, {}, settings.limits, tls_files(settings)))
        state = open_state(group.state_files)
        self._buckets, self._window = state.buckets, state.window(reactor, settings.limits.answer_time)
        # With workers, their parent keeps what they share.
        self._keeper = None if group.state_files else state.keeper(reactor)
        self._fetcher = KeyFetcher(self._fetch, reactor)
        self.taps = LocalTaps(reactor, self._traffic)
        self._ticks = 0
        self._loaded = 0.0
        self._drain: Drain | None = None
        self._last_tick: IDelayedCall | None = None

    @property
    def ports(self) -> list[ListenerService]:
        """The services of the ports, in the order of the settings."""
        return [each.service for each in self._listeners]

    # -- starting ------------------------------------------------------------------------------------------------

    def open_ports(self) -> None:
        for service in self.ports:
            service.privilegedStartService()

    def start(self) -> None:
        self.phase = Phase.STARTING
        try:
            self.chain.start()
        except ConfigError as error:
            raise CannotStart(str(error)) from None
        # Not before the process has forked for the background: its random numbers must be its own.
        self._message_ids = MessageIds()
        self._loaded = time.time()
        if self._keeper is not None:
            self._keeper.window = longest_window(self.settings)
            self._keeper.use(delivery_file(self.settings))
        for service in self.ports:
            service.startService()
        roots = self._build_roots(self.settings)
        self._listeners.use(roots, self.settings.limits)
        self.taps.use(self.settings, roots)
        self.chain.registerProducer(self._listeners, True)
        # The objects of the start stay; the garbage collector need not look at them.
        gc.collect()
        gc.freeze()

    def run(self, up: Callable[[], None], failed: Callable[[str], None]) -> None:
        self.phase = Phase.RUNNING
        up()

    def describe(self) -> list[str]:
        return describe(self.settings, {each.listener.socket: each.service.address for each in self._listeners})

    # -- running -------------------------------------------------------------------------------------------------

    @property
    def workers(self) -> Sequence[WorkerState]:
        return (BY_ITSELF._replace(connections=self._listeners.connections.total),)

    @property
    def is_stuck(self) -> bool:
        return self.chain.is_stuck

    @property
    def warnings(self) -> Sequence[str]:
        return self.chain.weaker_than_ack()

    @property
    def snapshot(self) -> ReceiverSnapshot:
        """What it is like now. It knows nothing of reloads, and says that they succeed."""
        budget, limits, listeners = self.chain.budget, self.settings.limits, self._listeners
        return ReceiverSnapshot(
            phase=self.phase,
            endpoints={each.listener.text: each.service.address is not None for each in listeners},
            lanes=self.chain.lanes(),
            sources=[source.name for source in self.settings.sources],
            queue_bytes=Level(budget.bytes, limits.queue),
            queue_messages=Level(budget.messages, limits.queue_messages),
            connections=Level(listeners.connections.total, listeners.connections.most),
            requests=listeners.requests,
            paused=listeners.paused,
            certificates=listeners.certificates,
            reload_succeeded=True,
            loaded=self._loaded,
            connectors=connector_labels(self.settings),
            blocked=self.settings.blocked,
            closed=self.settings.closed,
            not_taken=rules_not_taken(self.settings),
            unread_age=listeners.overload.age,
            overloaded=listeners.overload.stands,
            deliveries=0 if self._keeper is None else self._keeper.keys,
            deliveries_not_kept="" if self._keeper is None else self._keeper.problem,
        )

    def set_ready(self, ready: bool) -> None:
        self._service_is_ready = ready

    def tick(self) -> None:
        self._listeners.sweep()
        self.chain.tick()
        self._window.tick()
        self.counters.counts["deliveries_forgotten",] = self._window.forgotten
        if self._keeper is not None:
            self._keeper.tick()
            self.counters.counts["delivery_file_errors",] = self._keeper.errors
        self._ticks += 1
        if self._ticks % _TICKS_TO_REPORT == 0:
            self._traffic.report_held_back()
        if self._drain is not None:
            self._drain.tick()

    def start_tap(self, request: TapRequest, deliver: Callable[[Tap], object]) -> Tap:
        return self.taps.start(request, deliver)

    def stop_tap(self, tap: Tap) -> None:
        self.taps.stop(tap)

    # -- changing ------------------------------------------------------------------------------------------------

    def check(self, settings: Settings) -> None:
        if settings.workers > 1:
            raise ConfigError("One process can't become several by a reload, restart for it.", option="workers")

    async def change(self, settings: Settings) -> str:
        observers = self._build_observers(settings, self._observers if settings.ack == self.settings.ack else {})
        listeners = [listener for listener, _ in by_listener(settings.sources)]
        roots = self._build_roots(settings)
        change = self._listeners.plan(listeners, roots, settings.limits, tls_files(settings))
        try:
            change.open()
            if observers != self._observers:
                await self.chain.replace(list(observers.values()), ack=settings.ack)
            if self._keeper is not None:
                await self._keeper.use_later(delivery_file(settings))
            if self.phase is Phase.DRAINING:
                raise ConfigError("The receiver stops.")
        except BaseException:
            change.abandon()
            raise
        before, self.settings, self._observers = self.settings, settings, observers
        self._traffic.mask_path = path_mask(settings)
        self._recorder.use(_record_directory(settings))
        renewed = renewals(self._listeners.certificates, change.certificates)
        same = before == settings
        limits = settings.limits
        self.chain.set_limits(
            max_bytes=limits.queue,
            max_messages=limits.queue_messages,
            answer_time=limits.answer_time,
            pause_time=limits.pause_time,
        )
        self._window.answer_time = limits.answer_time
        if self._keeper is not None:
            self._keeper.window = longest_window(settings)
        closed = self._listeners.commit(change)
        self.taps.use(settings, roots)
        self._loaded = time.time()
        # What was removed takes nothing any more by the time that the change is reported.
        await gatherResults(closed)
        blocked = "; the router is blocked" if settings.blocked else ""
        if same:
            return f"the settings are unchanged; files were read and opened again{renewed}{blocked}"
        counts = f"{len(listeners)} endpoints, {len(observers)} observers"
        return f"{difference(before, settings)}; {counts}{renewed}{blocked}"

    def reopen(self) -> None:
        self.chain.reopen()

    def _build_roots(self, settings: Settings) -> dict[str, Any]:
        record = None if settings.record is None else self._recorder.record
        return dict(
            build_roots(
                settings,
                self.chain,
                self._traffic,
                self._message_ids,
                self._slices,
                record,
                lambda: self._is_ready,
                self._shared_by_guards(settings),
            )
        )

    def _shared_by_guards(self, settings: Settings) -> SharedByGuards | None:
        """Return what guarded sources share; None without any."""
        if all(source.guard is None for source in settings.sources):
            return None
        # It takes megabytes of memory, which a receiver without guards does not need.
        from webhookrx.service.subscriptions import Subscriptions

        keys = KnownPublicKeys(settings.signing_certs, self._fetcher if settings.fetch_keys else None)
        return SharedByGuards(self._window, self._buckets, keys, Subscriptions(self._fetcher.once))

    def _fetch(self, url: str) -> Deferred[bytes]:
        # Few receivers need an HTTP client.
        from webhookrx.service.pinned_client import PinnedClient

        return PinnedClient(self._reactor).get(url)

    @property
    def _is_ready(self) -> bool:
        """The answer to health checks of load balancers. Anybody may ask often, so it costs next to nothing."""
        return self._service_is_ready and self.phase is Phase.RUNNING

    def _build_observers(
        self, settings: Settings, known: Mapping[Observer, IMessageObserver]
    ) -> dict[Observer, IMessageObserver]:
        """Return the observers of these settings: known ones, and new ones that are not open yet."""
        return {
            each: known[each] if each in known else known_observers.build_observer(each, settings.ack, self._group)
            for each in settings.observers
        }

    # -- stopping ------------------------------------------------------------------------------------------------

    async def drain(self, seconds: float, ports_closed: Callable[[], None] = lambda: None) -> bool:
        """
        See L{webhookrx.service.receiver_interface.Receiver.drain}.

        @param ports_closed: called when no port accepts connections any more.
        """
        self.phase = Phase.DRAINING
        self._drain = Drain(self._listeners, self.chain, seconds, self._turn, time.monotonic, ports_closed)
        if self._stops_now:
            self.stop_now()
        self._fetcher.stop()
        whole = await self._drain.run()
        self._drain = None
        if self._keeper is not None:
            await self._keeper.close_later()
        if self._last_tick is not None and self._last_tick.active():
            self._last_tick.cancel()
        self._traffic.report_held_back()
        return whole or not self._stops_now

    def stop_now(self) -> None:
        self._stops_now = True
        if self._drain is not None and self._last_tick is None:
            _log.warn("Second signal to stop: not waiting any longer")
            self._drain.stop_now()
            # By the wall clock, but the ticks look as well.
            self._last_tick = self._reactor.callLater(STOP_NOW_TIME, self._drain.tick)

    def _turn(self) -> Deferred[None]:
        # Not callLater(0), which goes by the wall clock.
        turned: Deferred[None] = Deferred()
        self._reactor.callFromThread(turned.callback, None)
        return turned


def _record_directory(settings: Settings) -> RecordDirectory | None:
    """Return where these settings have requests recorded; None: nowhere."""
    if settings.record is None:
        return None
    return RecordDirectory(settings.record, settings.limits.recorded_requests, settings.limits.recorded_bytes)


class MessageIds:
    """
    Gives each message the time of its receipt and an id that no other message has, in any process. Ids of one process
    sort in the order of receipt, also when the clock is set back.

    @param wall_clock: nanoseconds since the epoch.
    @param start: the beginning of all ids, which no other process uses.
    """

    def __init__(self, wall_clock: Callable[[], int] = time.time_ns, start: str | None = None) -> None:
        self._wall_clock = wall_clock
        if start is None:
            start = f"{wall_clock() // 1_000_000:012x}-{secrets.token_hex(4)}"
        self._id = start.replace("%", "%%") + "-%010x"
        self._numbers = count(1)

    def __call__(self) -> Receipt:
        return Receipt(self._wall_clock(), self._id % next(self._numbers))
