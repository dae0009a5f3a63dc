"""
Group commit: what came in during one turn of the reactor, or during one sync, is stored together.

A L{Lane} brings batches to one observer: one call of C{store} at a time, each with all that waits, while the next
gathers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, NamedTuple, cast

from twisted.logger import Logger

from webhookrx.errors import ConfigError, NotStored
from webhookrx.interfaces import IBufferingObserver, IWaitingObserver
from webhookrx.pipeline.batch import (
    Batch,
    Part,
    StoreCall,
    is_about_messages,
    note_failures,
    outcome_of_each,
    text_of,
)

if TYPE_CHECKING:
    from webhookrx.interfaces import IMessageObserver, Prepared
    from webhookrx.pipeline.pace import Pace
    from webhookrx.pipeline.worker import Worker

#: Told of a failure: the observer's spec, what went wrong, and how many messages it hit.
Report = Callable[[str, str, int], None]
#: Told of a C{store}: the observer's spec, messages, bytes, and seconds that it took.
Stored = Callable[[str, int, int, float], None]

#: Why an observer takes no messages while its C{store} does not come back.
NO_ANSWER = "it does not answer"
#: The same while it is closed.
CLOSED = "it was closed"
#: Seconds between two attempts to open an observer that could not be opened.
OPEN_AGAIN = 1.0

_log = Logger()


class LaneState(NamedTuple):
    """
    How one observer is doing.

    @ivar messages: that wait for it or are being stored.
    @ivar bytes: that are counted for them.
    @ivar storing_for: seconds since the running C{store} was asked for; 0.0 when none is.
    @ivar stalled: its C{store} has run for too long, and it is given no messages.
    @ivar failing: why the last C{store} made nothing safe, or it can't be opened; None when all is well.
    @ivar failing_age: seconds since then.
    """

    spec: str
    observer: IMessageObserver
    messages: int
    bytes: int
    storing_for: float
    stalled: bool
    failing: str | None
    failing_age: float


class LaneContext(NamedTuple):
    """
    What all lanes of a chain share.

    @ivar gather: makes the chain hand over what the running turn has gathered so far.
    @ivar settle: told of batches that an observer is done with, for good or ill.
    @ivar report: told of failures.
    @ivar stored: told of each C{store} that came back.
    @ivar monotonic: seconds on a clock that nobody sets, from any thread.
    """

    gather: Callable[[], None]
    settle: Callable[[list[Batch]], None]
    report: Report
    stored: Stored | None
    monotonic: Callable[[], float]


class Lane:
    """
    Brings batches to one observer, in order.

    An observer that can't take messages now does not hold up those that come: they fail at once, and other observers
    get them.

    @param observer: who stores them.
    @param worker: where C{store} and C{reopen} run.
    @param pace: how much is worth having in front of it.
    @ivar waiting: bytes that wait or are being stored.
    """

    def __init__(self, observer: IMessageObserver, worker: Worker, pace: Pace, context: LaneContext) -> None:
        self.observer = observer
        self.pace = pace
        self.waiting = 0
        self._worker = worker
        self._gather, self._settle, self._report, self._told_stored, self._monotonic = context
        self._pending: deque[Part] = deque()
        self._store: StoreCall | None = None
        self._unfinished = 0  # tasks of the worker whose outcome is not dealt with yet
        self._obstacle: str | None = None  # why no messages are taken
        self._open_next = inf  # when to try to open it again
        self._is_open = False
        self._failing: str | None = None
        self._failing_since = 0.0
        self._when_idle: Callable[[], None] | None = None
        self._stays = False

    # Its life

    def open(self) -> None:
        """
        Open the observer.

        @raise ConfigError: it can't be opened.
        """
        try:
            self.observer.open()
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(f"observer {self.observer.spec} can't be opened: {text_of(error)}") from error
        self._is_open = True

    def start(self) -> None:
        """Start the worker."""
        self._worker.start()

    def start_again(self) -> None:
        """Go on after a stop. When the observer can't be opened, that is reported, and tried again as messages come."""
        self._worker.start()
        self._obstacle = CLOSED
        self._open_next = -inf
        self._can_take()

    def reopen(self) -> None:
        """Let the observer open anew, between two batches."""
        self._unfinished += 1
        self._worker.run(self.observer.reopen, self._reopened)

    def hurry(self) -> None:
        """Tell an observer that waits for something outside that it should not any more."""
        if IWaitingObserver.providedBy(self.observer):
            try:
                self.observer.hurry()
            except Exception as error:
                self._report(self.observer.spec, text_of(error), 0)

    def stop(self, stopped: Callable[[], None]) -> None:
        """Store all that waits, close the observer, and then call C{stopped}. Nothing is submitted any more."""
        self._when_idle = partial(self._close, stopped)
        self._close_if_idle()

    def stay(self) -> None:
        """
        Go on after all, though a stop has not come to its end: once it has, start again. Nothing is taken until then,
        since an observer that was told to hurry does not do all that it should.
        """
        self._stays = True
        self._obstacle = self._obstacle or CLOSED

    # Messages

    def submit(self, batch: Batch, items: list[Prepared | None]) -> bool:
        """
        Store a batch: now, or with all else that waits once the running C{store} is back.

        @param items: its messages as this observer prepares them.
        @return: False when the observer takes nothing now; then all of it has failed, and the lane is done with it.
        """
        if self._obstacle is not None and not self._can_take():
            self._refuse([batch], self._obstacle)
            return False
        self._pending.append((batch, items))
        self.waiting += batch.size
        self.pace.came(self._monotonic(), batch.size)
        if self._store is None:
            self._store_pending()
        return True

    def look(self, now: float, patience: float) -> None:
        """
        Give up on an observer whose C{store} has run for longer than C{patience} seconds; called now and then.

        It takes two looks: when the whole process, or the machine, was stopped for a while, the first one comes before
        the word of a C{store} that was stopped with it.
        """
        self.pace.look(now, self.waiting)
        store = self._store
        if store is None or self.is_stalled or now - store.asked < patience:
            return
        if not store.is_overdue:
            store.is_overdue = True
            return
        _log.error(
            "Observer {spec} has not answered for {seconds} s. Until it does, messages are not stored by it",
            spec=self.observer.spec,
            seconds=round(now - store.asked, 1),
        )
        self.give_up()

    def give_up(self) -> None:
        """
        Fail what waits and what is being stored, and take nothing until the running C{store} is back, if one runs.

        What was acknowledged before it was stored keeps its place: it must not be thrown away.
        """
        store = self._store
        if store is None:
            return  # then nothing waits either
        self._obstacle = NO_ANSWER
        self.pace.relax()
        given_up = [batch for batch in (*store.batches, *(batch for batch, _ in self._pending)) if batch.acknowledges]
        store.batches = [batch for batch in store.batches if not batch.acknowledges]
        self._pending = deque(part for part in self._pending if not part[0].acknowledges)
        if given_up:
            self.waiting -= sum(batch.size for batch in given_up)
            self._refuse(given_up, NO_ANSWER)
            self._settle(given_up)

    @property
    def is_stalled(self) -> bool:
        """Whether a C{store} has run for too long and is not back yet."""
        return self._obstacle is NO_ANSWER

    def state(self, now: float) -> LaneState:
        """Tell how the observer is doing."""
        batches = [batch for batch, _ in self._pending]
        if self._store is not None:
            batches += self._store.batches
        return LaneState(
            self.observer.spec,
            self.observer,
            sum(batch.count for batch in batches),
            sum(batch.size for batch in batches),
            0.0 if self._store is None else now - self._store.asked,
            self.is_stalled,
            self._failing,
            0.0 if self._failing is None else now - self._failing_since,
        )

    def _refuse(self, batches: list[Batch], why: str) -> None:
        failure = NotStored(f"{self.observer.spec}: {why}")
        for batch in batches:
            batch.fail_all(failure)
        self._report(self.observer.spec, why, sum(batch.count for batch in batches))

    def _store_pending(self) -> None:
        """Hand the worker as many of the waiting batches as fit into one C{store}."""
        pending = self._pending
        most = self.pace.store_bytes
        parts: list[Part] = []
        # A list of the observer's own: what it does to it can't reach another observer.
        items: list[Prepared | None] = []
        size = 0
        gaps = False
        while pending and (not parts or size + pending[0][0].size <= most):
            part = pending.popleft()
            parts.append(part)
            batch, prepared = part
            items += prepared
            size += batch.size
            gaps = gaps or batch.has_gaps
        if gaps:
            items = [item for item in items if item is not None]
        self._unfinished += 1
        self._store = store = StoreCall(self.observer, parts, cast("list[Prepared]", items), size, self._monotonic)
        self._worker.run(store, partial(self._stored, store))

    def _stored(self, store: StoreCall, outcome: object) -> None:
        """Take the outcome of a C{store}: set the next one going, then settle this one."""
        if self.is_stalled:
            self._end_stall(store, outcome)
        # What the running turn has gathered would otherwise wait for a whole sync more.
        self._gather()
        self._store = None
        if self._pending:
            self._store_pending()
        failed, reason = 0, ""
        if outcome is not None:
            failed, reason = note_failures(self.observer.spec, store.parts, outcome_of_each(store.count, outcome))
        self._note_health(reason if failed == store.count and not is_about_messages(outcome) else None)
        try:
            self._learn(store)
            if store.batches:
                self._settle(store.batches)
                if failed:
                    self._report(self.observer.spec, reason, failed)
        finally:
            self._unfinished -= 1
            self._close_if_idle()

    def _end_stall(self, store: StoreCall, outcome: object) -> None:
        self._obstacle = CLOSED if self._stays else None
        _log.warn(
            "Observer {spec} answers again, after {seconds} s: {outcome}",
            spec=self.observer.spec,
            seconds=round(self._monotonic() - store.asked, 1),
            outcome="what it was given last is stored" if outcome is None else "what it was given last is not stored",
        )

    def _note_health(self, reason: str | None) -> None:
        self._failing = reason or None
        if reason:
            self._failing_since = self._monotonic()

    def _learn(self, store: StoreCall) -> None:
        """Take note of what a C{store} cost."""
        self.waiting -= sum(batch.size for batch in store.batches)
        if store.count:
            self.pace.stored(self._monotonic(), store.size, store.seconds, self.waiting)
            if self._told_stored is not None:
                self._told_stored(self.observer.spec, store.count, store.size, store.seconds)

    # Opening and closing

    def _can_take(self) -> bool:
        """Try to be rid of what is in the way; tell whether it is."""
        now = self._monotonic()
        if self.is_stalled or now < self._open_next:
            return False
        try:
            self.open()
        except ConfigError as error:
            self._open_next = now + OPEN_AGAIN
            self._obstacle = str(error)
            self._note_health(self._obstacle)
            self._report(self.observer.spec, self._obstacle, 0)
            return False
        self._obstacle = None
        return True

    def _reopened(self, outcome: object) -> None:
        if isinstance(outcome, BaseException):
            self._report(self.observer.spec, text_of(outcome), 0)
        self._unfinished -= 1
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self._when_idle is not None and not (self._unfinished or self._pending):
            close, self._when_idle = self._when_idle, None
            close()

    def _close(self, stopped: Callable[[], None]) -> None:
        if IBufferingObserver.providedBy(self.observer):
            self._worker.run(self.observer.finish, partial(self._finished, stopped))
        else:
            self._finished(stopped, None)

    def _finished(self, stopped: Callable[[], None], outcome: object) -> None:
        if isinstance(outcome, BaseException):
            self._report(self.observer.spec, text_of(outcome), 0)
        self._worker.stop()
        self.close()
        if self._stays:
            self._stays = False
            self.start_again()
        else:
            stopped()

    def close(self) -> None:
        """Close the observer, if it is open; a failure is reported."""
        if self._is_open:
            self._is_open = False
            try:
                self.observer.close()
            except Exception as error:
                self._report(self.observer.spec, text_of(error), 0)
