"""
The receiver that consists of workers: the ports that they share, and their merged snapshots and counters.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from msgspec.json import encode
from msgspec.structs import replace
from twisted.internet.defer import gatherResults
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from webhookrx.errors import CantTap
from webhookrx.idempotency.keeper import DeliveryKeeper
from webhookrx.operations.counters import Counters
from webhookrx.operations.health import WorkerState
from webhookrx.operations.snapshot import Phase, ReceiverSnapshot, merge
from webhookrx.service.description import describe, rules_not_taken
from webhookrx.service.routes import connector_labels
from webhookrx.service.shared_state import delivery_file, longest_window, make_state_files, open_state
from webhookrx.service.source_rules import by_listener
from webhookrx.service.workers import messages
from webhookrx.service.workers.messages import Tapped
from webhookrx.service.workers.process import Launch, Launcher
from webhookrx.service.workers.supervisor import KILL_AFTER_STOP_NOW, Sockets, WorkerSupervisor
from webhookrx.settings import Listener, Settings
from webhookrx.transport.endpoints import socket_endpoint
from webhookrx.transport.fair_share import CounterPage
from webhookrx.transport.shared_ports import BoundPorts

if TYPE_CHECKING:
    from webhookrx.tapping.tap import Tap
    from webhookrx.tapping.tap_request import TapRequest

#: Ticks, of half a second each, between two reports of lines held back.
_TICKS_TO_REPORT = 10

_log = Logger()


class WorkerPool:
    """
    Receives by several processes; see L{webhookrx.service.receiver_interface.Receiver}.

    This process opens the ports and never accepts from them, so that connections that wait in them survive a worker
    that ends.

    @param launch: starts a worker.
    @ivar phase: where in its life it is.
    """

    def __init__(self, settings: Settings, reactor: Any, launch: Launch | None = None) -> None:
        messages.check(settings)
        self.phase = Phase.STARTING
        self._reactor = reactor
        self._ports = BoundPorts(partial(socket_endpoint, reactor))
        self._ports.commit(self._ports.plan(_listeners(settings)))
        self._lock_fd = -1
        self._page: CounterPage | None = None
        self._state_files: tuple[int, ...] = ()
        self._keeper: DeliveryKeeper | None = None
        self._loaded = 0.0
        self._ticks = 0
        self._workers = WorkerSupervisor(
            Launcher(reactor, os.environ) if launch is None else launch,
            self._sockets,
            settings,
            time.monotonic,
            random.random,
            self._worker_gone,
            self._tapped,
        )
        self._taps: dict[int, Tap] = {}
        self._tap_numbers = count(1)
        self._draining = False
        self._stops_now = False
        self._last_tick: IDelayedCall | None = None

    @property
    def settings(self) -> Settings:
        return self._workers.settings

    def _sockets(self) -> Sockets:
        assert self._page is not None
        return Sockets(self._ports.descriptors, self._lock_fd, self._page.descriptor, self._state_files)

    def _worker_gone(self, number: int) -> None:
        if self._page is not None:
            self._page.clear(number)
        for tap in self._taps.values():
            tap.retire(number)

    # -- starting ------------------------------------------------------------------------------------------------

    def open_ports(self) -> None:
        for port in self._ports:
            port.startService()

    def start(self) -> None:
        self.open_ports()
        # Locks on it let one worker at a time write to a shared place (fcntl(2)).
        self._lock_fd = os.memfd_create("webhookrx-locks")
        self._page = CounterPage()
        self._state_files = make_state_files()
        self._keeper = open_state(self._state_files).keeper(self._reactor)
        self._keeper.window = longest_window(self.settings)
        self._keeper.use(delivery_file(self.settings))
        self._loaded = time.time()

    def run(self, up: Callable[[], None], failed: Callable[[str], None]) -> None:
        def is_up() -> None:
            self.phase = Phase.RUNNING
            up()

        self._workers.start(is_up, failed)

    # -- running -------------------------------------------------------------------------------------------------

    @property
    def warnings(self) -> Sequence[str]:
        return ()  # the first worker logs its own

    def describe(self) -> list[str]:
        return [
            f"{self.settings.workers} workers share all endpoints",
            *describe(self.settings, self._ports.addresses),
        ]

    @property
    def counters(self) -> Counters:
        counters = self._workers.counters
        counters.add("worker_restarts", amount=self._workers.restarts)
        if self._keeper is not None:
            counters.add("delivery_file_errors", amount=self._keeper.errors)
        return counters

    @property
    def snapshot(self) -> ReceiverSnapshot:
        """The merged snapshots of the workers, with what this process knows better."""
        settings, addresses = self.settings, self._ports.addresses
        return replace(
            merge(self._workers.snapshots),
            phase=self.phase,
            endpoints={each.text: addresses.get(each.socket) is not None for each in _listeners(settings)},
            sources=[source.name for source in settings.sources],
            connectors=connector_labels(settings),
            blocked=settings.blocked,
            closed=settings.closed,
            not_taken=rules_not_taken(settings),
            reload_succeeded=True,
            loaded=self._loaded,
            deliveries=0 if self._keeper is None else self._keeper.keys,
            deliveries_not_kept="" if self._keeper is None else self._keeper.problem,
        )

    @property
    def workers(self) -> Sequence[WorkerState]:
        return self._workers.workers

    @property
    def is_stuck(self) -> bool:
        return self._workers.stuck

    def tick(self) -> None:
        self._workers.tick()
        if self._keeper is not None:
            self._keeper.tick()
        self._ticks += 1
        if self._ticks % _TICKS_TO_REPORT == 0:
            self._workers.report_held_back()

    def set_ready(self, ready: bool) -> None:
        self._workers.set_ready(ready)

    # -- taps ----------------------------------------------------------------------------------------------------

    def start_tap(self, request: TapRequest, deliver: Callable[[Tap], object]) -> Tap:
        """
        See L{webhookrx.service.receiver_interface.Receiver.start_tap}. The rate holds for all workers together.
        """
        # They take memory that a receiver without taps does not need.
        from webhookrx.tapping.tap import Tap
        from webhookrx.tapping.taps import MOST_TAPS

        if len(self._taps) >= MOST_TAPS:
            raise CantTap(f"{MOST_TAPS} taps run already.", "too_many_taps")
        tap = Tap(request, time.monotonic(), lambda: self._reactor.callFromThread(deliver, tap))
        number = next(self._tap_numbers)
        self._taps[number] = tap
        self._workers.start_tap(number, encode(request))
        return tap

    def stop_tap(self, tap: Tap) -> None:
        for number, each in list(self._taps.items()):
            if each is tap:
                del self._taps[number]
                self._workers.stop_tap(number)

    def _tapped(self, worker: int, seen: Tapped) -> None:
        tap = self._taps.get(seen.tap)
        if tap is None:
            return  # it has ended meanwhile
        from webhookrx.tapping.tap import TapCounts

        tap.count_of(worker, TapCounts(*seen.counts))
        for row in seen.rows:
            tap.show_of(row, time.monotonic())

    # -- changing ------------------------------------------------------------------------------------------------

    def check(self, settings: Settings) -> None:
        messages.check(settings)

    async def change(self, settings: Settings) -> str:
        keeper = self._keeper
        assert keeper is not None, "it has started"
        change = self._ports.plan(_listeners(settings))
        try:
            change.open()
            # Before a worker asks for what the file has.
            await keeper.use_later(delivery_file(settings))
            text = await self._workers.change(settings, change.descriptors)
        except BaseException:
            change.abandon()
            await keeper.use_later(delivery_file(self.settings))
            raise
        keeper.window = longest_window(settings)
        await gatherResults(self._ports.commit(change))
        self._loaded = time.time()
        return text

    def reopen(self) -> None:
        self._workers.reopen()

    # -- stopping ------------------------------------------------------------------------------------------------

    async def drain(self, seconds: float) -> bool:
        self.phase = Phase.DRAINING
        ports_closed, ended = self._workers.stop(seconds)
        self._draining = True
        if self._stops_now:
            self.stop_now()
        await ports_closed
        # Not earlier: to close them here is to close them for all.
        await gatherResults(self._ports.close())
        ended_well = await ended
        if self._keeper is not None:
            await self._keeper.close_later()
        for fd in self._state_files:
            os.close(fd)
        self._state_files = ()
        if self._last_tick is not None and self._last_tick.active():
            self._last_tick.cancel()
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1
        if self._page is not None:
            self._page.close()
            self._page = None
        return ended_well

    def stop_now(self) -> None:
        self._stops_now = True
        if self._draining and self._last_tick is None:
            _log.warn("Second signal to stop: not waiting any longer")
            self._workers.stop_now()
            # By the wall clock, but the ticker looks as well.
            self._last_tick = self._reactor.callLater(KILL_AFTER_STOP_NOW, self._workers.tick)


def _listeners(settings: Settings) -> list[Listener]:
    return [listener for listener, _ in by_listener(settings.sources)]
