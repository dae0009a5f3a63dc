"""
All workers: started, restarted, scaled, changed and stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from webhookrx.backoff import Random
from webhookrx.errors import ConfigError
from webhookrx.interfaces import Backlog, LaneStatus
from webhookrx.operations.counters import Counters
from webhookrx.operations.health import WorkerState
from webhookrx.operations.snapshot import ReceiverSnapshot
from webhookrx.service.workers.log_lines import WorkersLog
from webhookrx.service.workers.messages import (
    Began,
    LogLine,
    PortsClosed,
    Reopen,
    Report,
    StartTap,
    StopTap,
    Tapped,
    ToParent,
)
from webhookrx.service.workers.process import Launch
from webhookrx.service.workers.slot import Restarts, Wanted, WorkerSlot
from webhookrx.settings import Settings
from webhookrx.speedups import in_use

#: Seconds after the drain timeout at which a worker is killed; its own backstop comes later than that.
KILL_AFTER = 2.5

#: Seconds that a worker may still live after it was told to stop now.
KILL_AFTER_STOP_NOW = 0.6

_log = Logger()


class Sockets(NamedTuple):
    """
    The files that workers share.

    @ivar descriptors: the listening sockets, by C{Listener.socket}.
    @ivar lock_fd: the file by whose locks workers write one at a time.
    @ivar page_fd: the page by whose counters they share connections evenly.
    @ivar state_files: see L{Group}.
    """

    descriptors: Mapping[str, int]
    lock_fd: int
    page_fd: int
    state_files: tuple[int, ...]


class WorkerSupervisor:
    """
    Keeps as many workers alive as the settings say. L{tick} checks all deadlines.

    @param launch: starts a worker.
    @param sockets: returns the files that workers share now.
    @param clock: seconds on the monotonic clock.
    @param random: a number from 0 to 1, as C{random.random}.
    @param gone: called with the number of each worker that has ended, before another one takes its place.
    @param tapped: called with the number of a worker and what it has seen for a tap.
    @ivar settings: the settings in use.
    @ivar restarts: how many workers have ended unasked.
    """

    def __init__(
        self,
        launch: Launch,
        sockets: Callable[[], Sockets],
        settings: Settings,
        clock: Callable[[], float],
        random: Random,
        gone: Callable[[int], object],
        tapped: Callable[[int, Tapped], object],
    ) -> None:
        self.settings = settings
        self.restarts = 0
        self._launch = launch
        self._sockets = sockets
        self._clock = clock
        self._random = random
        self._gone = gone
        self._tapped = tapped
        self._taps: dict[int, bytes] = {}
        self._up: Callable[[], None] = _not_started
        self._failed: Callable[[str], None] = _not_started
        self._slots: dict[int, WorkerSlot] = {}
        self._retired = RetiredCounters()
        self._log = WorkersLog(clock)
        self._ready = False
        self._begun = False
        self._changing = False
        self._orders = 0
        self._stopping = False
        self._ended_well = True
        self._ports_closed: Deferred[None] = Deferred()
        self._all_ended: Deferred[bool] = Deferred()

    # -- what is known of them -----------------------------------------------------------------------------------

    @property
    def workers(self) -> list[WorkerState]:
        """The state of each worker that is to receive."""
        patience = self.settings.limits.answer_time
        return [slot.health(patience) for slot in self._slots.values() if slot.wanted is Wanted.RUN]

    @property
    def snapshots(self) -> list[ReceiverSnapshot]:
        """The snapshots of living workers; those of spools include the counts of retired workers."""
        return self._retired.added_to([report.snapshot for report in self._reports()])

    @property
    def counters(self) -> Counters:
        """The counts of all workers, retired ones included."""
        total = self._retired.counters.copy()
        for report in self._reports():
            total.add_all(report.counters)
        return total

    @property
    def stuck(self) -> bool:
        """Whether a worker hangs, or an observer of one does."""
        return any(worker.stuck for worker in self.workers) or any(report.stuck for report in self._reports())

    def _reports(self) -> list[Report]:
        return [slot.report for slot in self._slots.values() if slot.report is not None]

    # -- their life ----------------------------------------------------------------------------------------------

    def start(self, up: Callable[[], None], failed: Callable[[str], None]) -> None:
        """
        Start all workers.

        @param up: called once, when all workers receive for the first time.
        @param failed: called with the reason when a worker says that it can't begin, before all have begun. One that
            ends without a word is restarted, then as later.
        """
        self._up, self._failed = up, failed
        self._start_missing()

    def tick(self) -> None:
        """Start workers that are due, and kill overdue ones; called now and then."""
        now = self._clock()
        for slot in list(self._slots.values()):
            if slot.kill_if_due():
                _log.critical("Worker {worker} does not end, and is killed", worker=slot.number)
            if slot.change_overdue:
                self._retire(slot)
                slot.give_up_change()
            # During a change it is open with which settings a worker should begin.
            if now >= slot.restarts.due and not (self._changing or self._stopping):
                self._begin(slot)
        if self._begun and not (self._changing or self._stopping):
            self._scale()

    def _scale(self) -> None:
        """
        Scale to C{settings.workers}: stop surplus workers, restart the others one at a time (each must know the new
        count, on which for example the directory of its spool depends), then start missing ones.
        """
        if not all(slot.up and not slot.told_to_end for slot in self._slots.values()):
            return
        for slot in self._slots.values():
            if slot.size != self.settings.workers:
                self._retire(slot)
                return
        self._start_missing()

    def _start_missing(self) -> None:
        for number in range(self.settings.workers):
            if number not in self._slots:
                self._slots[number] = WorkerSlot(number, self, Restarts(self._random), self._clock)
                self._begin(self._slots[number])

    def _retire_surplus(self) -> None:
        for number, slot in list(self._slots.items()):
            if number < self.settings.workers:
                slot.wanted = Wanted.RUN
            elif slot.wanted is Wanted.RUN:
                slot.wanted = Wanted.END
                self._retire(slot)

    def _begin(self, slot: WorkerSlot) -> None:
        try:
            worker = self._launch(slot)
        except OSError as error:
            slot.ended(f"could not be started: {error.strerror}", -1)
            return
        sockets = self._sockets()
        slot.occupy(worker, self.settings, sockets.descriptors, sockets.lock_fd, sockets.page_fd, *sockets.state_files)

    def _retire(self, slot: WorkerSlot) -> None:
        """Have the worker of a slot finish what is under way, and end."""
        if slot.worker is None:
            self._slots.pop(slot.number, None)
        else:
            slot.finish(self.settings.drain_timeout + KILL_AFTER)

    # -- what they do --------------------------------------------------------------------------------------------

    def received(self, slot: WorkerSlot, message: ToParent) -> None:
        match message:
            case LogLine():
                self._log.write(slot.number, message)
            case Began(path=path):
                if path != in_use:
                    # The installation has changed since the start.
                    _log.warn(
                        "Worker {worker} is {path}; the others are {ours}", worker=slot.number, path=path, ours=in_use
                    )
                self.set_ready(self._ready)
                for number, request in self._taps.items():
                    self._send(slot, StartTap(number, request))
                if not self._begun and all(each.up for each in self._slots.values()):
                    self._begun = True
                    self._up()
            case PortsClosed():
                self._check_ports_closed()
            case Tapped():
                self._tapped(slot.number, message)

    def channel_lost(self, slot: WorkerSlot) -> None:
        """See L{webhookrx.service.workers.slot.SlotOwner.channel_lost}: the worker takes it for its parent's end."""
        slot.kill_in(self.settings.drain_timeout + KILL_AFTER)
        self._check_ports_closed()

    def ended(self, slot: WorkerSlot, how: str, status: int) -> None:
        failure, told = slot.failure, slot.told_to_end
        if slot.report is not None:
            self._retired.add(slot.report)
        slot.vacate()
        self._gone(slot.number)
        if self._stopping:
            self._ended_well = self._ended_well and status == 0
            self._check_all_ended()
        elif slot.wanted is Wanted.END:
            del self._slots[slot.number]
        elif failure and not self._begun:
            self._failed(failure)
        elif told:
            slot.restarts.at_once(self._clock())
        else:
            self._restart_later(slot, f"could not begin: {failure}" if failure else how)

    def _restart_later(self, slot: WorkerSlot, how: str) -> None:
        self.restarts += 1
        now = self._clock()
        slot.restarts.ended(now)
        pause = max(0.0, slot.restarts.due - now)
        when = f"in {pause:.1f} s" if pause >= 0.05 else "at once"
        _log.error("Worker {worker} {how}; another one follows {when}", worker=slot.number, how=how, when=when)

    def report_held_back(self) -> None:
        """Log how many of their lines were too many for the log; called every few seconds."""
        self._log.report_held_back()

    # -- changing ------------------------------------------------------------------------------------------------

    async def change(self, settings: Settings, descriptors: Mapping[str, int]) -> str:
        """
        Have all workers use other settings, one after another; scaling follows soon after.

        @param descriptors: the sockets that come with the settings, by C{Listener.socket}.
        @return: what has changed.
        @raise ConfigError: a worker could not; all use the old settings, or are restarted with them.
        """
        self._changing = True
        text = "no worker lives; the next ones begin with these settings"
        done: list[WorkerSlot] = []
        try:
            for slot in list(self._slots.values()):
                if not slot.accepts or slot.wanted is Wanted.END:
                    continue  # the next worker there begins with these settings
                changed = await slot.change(self._next_order(), settings, descriptors, self._time_to_change)
                if not changed.ok or self._stopping:
                    await self._change_back(done)
                    raise ConfigError(changed.text if not changed.ok else "The receiver stops.")
                text = changed.text
                done.append(slot)
            self.settings = settings
            self._retire_surplus()
        finally:
            self._changing = False
        return text

    async def _change_back(self, slots: Sequence[WorkerSlot]) -> None:
        for slot in slots:
            if not slot.accepts or self._stopping:
                continue
            sockets = self._sockets().descriptors
            changed = await slot.change(self._next_order(), self.settings, sockets, self._time_to_change)
            if not changed.ok and slot.worker is not None:
                _log.error("Worker {worker} can't go back: {why}", worker=slot.number, why=changed.text)
                self._retire(slot)

    def _next_order(self) -> int:
        self._orders += 1
        return self._orders

    @property
    def _time_to_change(self) -> float:
        return self.settings.limits.answer_time + self.settings.drain_timeout

    def set_ready(self, ready: bool) -> None:
        """Tell all workers whether the service as a whole is ready for messages."""
        self._ready = ready
        for slot in self._slots.values():
            slot.set_ready(ready)

    def reopen(self) -> None:
        """Have all workers reopen the files of messages by name."""
        for slot in self._slots.values():
            if slot.worker is not None:
                slot.worker.send(Reopen())

    # -- taps ----------------------------------------------------------------------------------------------------

    def start_tap(self, number: int, request: bytes) -> None:
        """Have all workers look for a tap, and those that begin later."""
        self._taps[number] = request
        for slot in self._slots.values():
            if slot.up:
                self._send(slot, StartTap(number, request))

    def stop_tap(self, number: int) -> None:
        """Have no worker look for this tap."""
        del self._taps[number]
        for slot in self._slots.values():
            if slot.up:
                self._send(slot, StopTap(number))

    def _send(self, slot: WorkerSlot, message: StartTap | StopTap) -> None:
        if slot.worker is not None:
            slot.worker.send(message)

    # -- stopping ------------------------------------------------------------------------------------------------

    def stop(self, seconds: float) -> tuple[Deferred[None], Deferred[bool]]:
        """
        Have all workers finish what is under way, and end.

        @param seconds: for that; a worker that lives much longer is killed.
        @return: a result that fires when none of them accepts connections any more; and one that fires when all have
            ended, with whether all have ended well.
        """
        self._stopping = True
        for slot in self._slots.values():
            slot.finish(seconds + KILL_AFTER)
        self._check_all_ended()
        return self._ports_closed, self._all_ended

    def stop_now(self) -> None:
        """Have all workers end without waiting. Call L{stop} before."""
        for slot in self._slots.values():
            slot.stop_now(KILL_AFTER_STOP_NOW)

    def _check_ports_closed(self) -> None:
        closed = not any(slot.accepts for slot in self._slots.values())
        if closed and self._stopping and not self._ports_closed.called:
            self._ports_closed.callback(None)

    def _check_all_ended(self) -> None:
        self._check_ports_closed()
        if not self._all_ended.called and all(slot.worker is None for slot in self._slots.values()):
            self._all_ended.callback(self._ended_well)


def _not_started(*_: object) -> None:
    raise AssertionError("workers that were not started can't begin")


class RetiredCounters:
    """
    The counts of workers that have exited, so that totals never decrease.

    @ivar counters: their counts, apart from those of spools.
    """

    def __init__(self) -> None:
        self.counters = Counters()
        self._backlogs: dict[str, Backlog] = {}

    def add(self, report: Report) -> None:
        """Keep the counts of the last report of a worker."""
        self.counters.add_all(report.counters)
        for lane in report.snapshot.lanes:
            if lane.backlog is not None:
                known = self._backlogs.get(lane.spec)
                self._backlogs[lane.spec] = _counts_of([lane.backlog] if known is None else [known, lane.backlog])

    def added_to(self, living: Sequence[ReceiverSnapshot]) -> list[ReceiverSnapshot]:
        """Return the snapshots of living workers with the counts of spools of retired ones added."""
        specs = {lane.spec for snapshot in living for lane in snapshot.lanes}
        retired = [LaneStatus(spec, backlog=backlog) for spec, backlog in self._backlogs.items() if spec in specs]
        first = [replace(snapshot, lanes=[*snapshot.lanes, *retired]) for snapshot in living[:1]]
        return [*first, *living[1:]]


def _counts_of(backlogs: Sequence[Backlog]) -> Backlog:
    """Return the counts alone: living workers report what waits."""
    total = Backlog.of_all(backlogs)
    return Backlog(0, 0, None, 0, dropped=total.dropped, away=None, full=False, damaged=total.damaged)
