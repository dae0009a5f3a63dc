"""
One of the numbered slots for workers: its process, its restarts, its last report, and the change under way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from math import inf
from typing import Protocol

from twisted.internet.defer import Deferred

from webhookrx.backoff import Backoff, Random
from webhookrx.operations.health import WorkerState
from webhookrx.service.workers.messages import (
    Began,
    Begin,
    CannotBegin,
    ChangeSettings,
    Finish,
    PortsClosed,
    Readiness,
    Report,
    SettingsChanged,
    StopNow,
    ToParent,
    portable,
)
from webhookrx.service.workers.process import WorkerProcess
from webhookrx.settings import Settings

FIRST_PAUSE = 0.1
"""Seconds that the first pause before a restart takes at most; each further one may take twice as long."""
LONGEST_PAUSE = 30.0
"""Seconds that a pause takes at most."""
SETTLED = 60.0
"""Seconds after which a worker counts as stable, and its pauses start small again."""


class Restarts:
    """
    When the worker of a slot is started again: exponential backoff with full jitter. Times are seconds on the
    monotonic clock.

    @param random: a number from 0 to 1, as C{random.random}.
    @ivar due: when to start it; never while it lives.
    """

    def __init__(self, random: Random) -> None:
        self.due = inf
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, random)
        self._started = inf

    def started(self, now: float) -> None:
        self._started = now
        self.due = inf

    def ended(self, now: float) -> None:
        """The worker has ended unasked, or could not be started: the more often in a row, the longer the pause."""
        if now - self._started >= SETTLED:
            self._backoff.succeeded()
        self._started = inf  # a worker that can't even be started never settles
        self.due = now + self._backoff.failed()

    def at_once(self, now: float) -> None:
        """The worker has ended on request; start the next one at once."""
        self.due = now


class Wanted(Enum):
    """What a slot is for."""

    RUN = "run"
    """A worker that receives; one that ends is followed by another."""
    END = "end"
    """Nothing, once its worker has finished what is under way."""


class SlotOwner(Protocol):
    """
    Handles what a slot does not handle by itself.
    """

    def received(self, slot: WorkerSlot, message: ToParent) -> None:
        """Its worker has sent a message."""

    def channel_lost(self, slot: WorkerSlot) -> None:
        """Its worker lives, but the channel to it has ended."""

    def ended(self, slot: WorkerSlot, how: str, status: int) -> None:
        """Its worker has ended; see L{webhookrx.service.workers.process.WorkerOwner.ended}."""


class WorkerSlot:
    """
    A slot for one worker, and the owner of its process. All times are seconds on the monotonic clock.

    @ivar number: from 0.
    @ivar wanted: what the slot is for.
    @ivar worker: the process; None while there is none.
    @ivar size: the number of workers that the worker knows of.
    @ivar up: the worker receives.
    @ivar accepts: the worker may accept connections.
    @ivar failure: why the worker could not begin, in its own words; empty when it did not say.
    @ivar report: the last report of the worker.
    @ivar told_to_end: the worker was told to end.
    """

    def __init__(self, number: int, owner: SlotOwner, restarts: Restarts, clock: Callable[[], float]) -> None:
        self.number = number
        self.restarts = restarts
        self.wanted = Wanted.RUN
        self.size = 0
        self._owner = owner
        self._clock = clock
        self._received_at = 0.0
        self._order = 0  # the number of the change that the worker is at
        self._changed: Deferred[SettingsChanged] | None = None  # its answer; None while no change is under way
        self._change_until = inf
        self.vacate()

    def vacate(self) -> None:
        """Its worker has ended."""
        self.worker: WorkerProcess | None = None
        self.up = False
        self.accepts = False
        self.failure = ""
        self.report: Report | None = None
        self.told_to_end = False
        self._ready = False
        self._kill_at = inf

    def occupy(self, worker: WorkerProcess, settings: Settings, sockets: Mapping[str, int], *files: int) -> None:
        """
        Have a worker that was started begin.

        @param sockets: the listening sockets, by C{Listener.socket}.
        @param files: the other descriptors of L{Begin}.
        """
        now = self._clock()
        self.worker = worker
        self.size = settings.workers
        self.accepts = True
        self._received_at = now
        self.restarts.started(now)
        worker.send(Begin(portable(settings), self.number, self.size, dict(sockets)), [*sockets.values(), *files])

    # -- what its worker does ------------------------------------------------------------------------------------

    def received(self, message: ToParent) -> None:
        self._received_at = self._clock()
        match message:
            case Report():
                self.report = message
            case Began():
                self.up = True
            case CannotBegin(text=text):
                self.failure = text
            case PortsClosed():
                self.up = self.accepts = False
            case SettingsChanged(order=order) if order == self._order:
                self._answer(message)
        self._owner.received(self, message)

    def channel_lost(self) -> None:
        self.up = self.accepts = False
        self._owner.channel_lost(self)

    def ended(self, how: str, status: int) -> None:
        self._owner.ended(self, how, status)
        self._answer(SettingsChanged(self._order, False, f"Worker {self.number} {how} while it changed."))

    def is_stuck(self, patience: float) -> bool:
        """Return whether its worker has sent nothing for longer than this many seconds."""
        return self.worker is not None and self._clock() - self._received_at > patience

    def health(self, patience: float) -> WorkerState:
        connections = 0 if self.report is None else self.report.snapshot.connections.now
        return WorkerState(self.number, self.up, self.is_stuck(patience), connections)

    # -- what its worker is to do --------------------------------------------------------------------------------

    def change(
        self, order: int, settings: Settings, sockets: Mapping[str, int], seconds: float
    ) -> Deferred[SettingsChanged]:
        """
        Have its worker, which must accept, use other settings.

        @param order: the number of this change among all.
        @param sockets: as in L{occupy}.
        @param seconds: for the answer; see L{change_overdue}.
        """
        assert self.worker is not None
        self._order = order
        self._changed = changed = Deferred[SettingsChanged]()
        self._change_until = self._clock() + seconds
        self.worker.send(ChangeSettings(order, portable(settings), dict(sockets)), list(sockets.values()))
        return changed

    @property
    def change_overdue(self) -> bool:
        """Whether a change takes too long."""
        return self._changed is not None and self._clock() >= self._change_until

    def give_up_change(self) -> None:
        """Let the change that is under way fail."""
        self._answer(SettingsChanged(self._order, False, f"Worker {self.number} hangs."))

    def _answer(self, answer: SettingsChanged) -> None:
        if self._changed is not None:
            changed, self._changed = self._changed, None
            changed.callback(answer)

    def set_ready(self, ready: bool) -> None:
        """Tell its worker whether the service as a whole is ready for messages, unless it knows."""
        if self.up and self.worker is not None and self._ready is not ready:
            self._ready = ready
            self.worker.send(Readiness(ready))

    def finish(self, seconds: float) -> None:
        """Have its worker, if any, finish what is under way within these seconds, and end."""
        if self.worker is not None:
            self.told_to_end = True
            self._kill_at = self._clock() + seconds
            self.worker.send(Finish())

    def stop_now(self, seconds: float) -> None:
        """Have its worker end without waiting; it may live this many seconds more."""
        if self.worker is not None:
            self.kill_in(seconds)
            self.worker.send(StopNow())

    def kill_in(self, seconds: float) -> None:
        """Have its worker killed after these seconds, unless that is due earlier."""
        self._kill_at = min(self._kill_at, self._clock() + seconds)

    def kill_if_due(self) -> bool:
        """Kill its worker if its time is over, and return whether that was so."""
        if self.worker is None or self._clock() < self._kill_at:
            return False
        self._kill_at = inf
        self.worker.kill()
        return True
