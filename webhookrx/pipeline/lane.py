"""
A lane brings batches to one observer: one C{store} at a time, each with all that waits, while the next batch gathers.

That is group commit: what came in during one turn of the reactor, or during one sync, is stored together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial
from math import inf
from typing import TYPE_CHECKING, cast

from twisted.logger import Logger

from webhookrx.errors import NotStored
from webhookrx.interfaces import LaneStatus
from webhookrx.pipeline.batch import Batch, Part, Report, StoreCall
from webhookrx.pipeline.guarded_calls import (
    backlog_of,
    error_text,
    finish_and_close,
    hurry,
    outcome_of_each,
    rejects_only,
    why_not_opened,
)
from webhookrx.pipeline.lane_counts import Counted, LaneCounts
from webhookrx.pipeline.observer_thread import BriefWait

if TYPE_CHECKING:
    from webhookrx.errors import ConfigError
    from webhookrx.interfaces import IMessageObserver, Prepared
    from webhookrx.pipeline.observer_thread import ObserverThread
    from webhookrx.pipeline.queue_limit import QueueLimit

#: Called after each C{store}: the observer's spec, messages, bytes, and seconds that it took.
Stored = Callable[[str, int, int, float], None]

#: Why an observer takes no messages while its C{store} does not come back.
NO_ANSWER = "it does not answer"
#: The same while it is closed.
CLOSED = "it was closed"
#: Seconds between two attempts to open an observer that could not be opened.
OPEN_AGAIN = 1.0

_log = Logger()


class LaneLife(Enum):
    """
    The states of an observer, from before it is opened until it is closed, and what its lane takes in each.

    A C{store} that hangs is not a state of its own: it can happen in any state that stores, and changes nothing about
    what comes next. The lane only takes no messages until it is back.

    ================  =====================================  ====================================================
    state             its observer                           what comes next
    ================  =====================================  ====================================================
    CLOSED            is not open; there is no thread        begin: OPENING. stay: OPENING_AGAIN
    OPENING           is opened for the first time           OPEN, or CLOSED when it can't be. stop: LEAVING
    OPEN              stores; only here messages are taken   stop: LEAVING
    LEAVING           stores what waits, and is closed       CLOSED. stay: RETURNING
    RETURNING         the same                               OPENING_AGAIN. stop: LEAVING
    OPENING_AGAIN     is opened, as it was before            OPEN, or RETRY_OPEN when it can't be. stop: LEAVING.
                                                             reopen: RETURNING, since it may have opened too early
    RETRY_OPEN        could not be opened again              OPENING_AGAIN a second later. stop: CLOSED
    ================  =====================================  ====================================================

    At the start of the service an observer goes from CLOSED to OPEN and, when another one can't be opened, back, in
    the thread of the reactor. All else is done in the thread of the lane.

    LEAVING and RETURNING may begin while the observer is being opened: it is closed once it is open. When it can't be
    opened, they end in CLOSED and RETRY_OPEN.
    """

    CLOSED = "closed"
    OPENING = "opening"
    OPEN = "open"
    LEAVING = "leaving"
    RETURNING = "returning"
    OPENING_AGAIN = "opening again"
    RETRY_OPEN = "retry open"

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is under way."""
        return self in _AT_REST


_AT_REST = frozenset((LaneLife.CLOSED, LaneLife.OPEN, LaneLife.RETRY_OPEN))


class Lane:
    """
    Brings batches to one observer, in order.

    While an observer can't take messages, new ones fail at once instead of waiting; other observers get them.

    @param thread: makes all calls of the observer that may block; the first C{open}, C{prepare} and C{hurry} do not.
    @param limit: how much may wait in front of the observer.
    @param flush: makes the chain hand over what the running turn has gathered so far.
    @param settle: called with batches that the observer is done with, stored or failed.
    @param report: called with failures.
    @param stored: called after each C{store}.
    @param counted: called with what the observer, or its lane, has counted beside that.
    @param changed: called when the lane has come to rest: open, closed, or in RETRY_OPEN.
    @param monotonic: seconds on a clock that nobody sets, from any thread.
    @ivar waiting: bytes that wait or are being stored.
    @ivar life: the state of the observer.
    @ivar problem: why it could not be opened; None once it could.
    """

    def __init__(
        self,
        observer: IMessageObserver,
        thread: ObserverThread,
        limit: QueueLimit,
        *,
        flush: Callable[[], None],
        settle: Callable[[list[Batch]], None],
        report: Report,
        stored: Stored | None,
        counted: Counted | None = None,
        changed: Callable[[], None],
        monotonic: Callable[[], float],
    ) -> None:
        self.observer = observer
        self.limit = limit
        self.waiting = 0
        self.life = LaneLife.CLOSED
        self.problem: ConfigError | None = None
        self._thread = thread
        self._flush = flush
        self._settle = settle
        self._report = report
        self._on_stored = stored
        self._counts = LaneCounts(observer, counted)
        self._changed = changed
        self._monotonic = monotonic
        self._pending: deque[Part] = deque()
        self._store: StoreCall | None = None
        self._unfinished = 0  # tasks of the thread whose outcome is not dealt with yet
        self._open_next = inf  # the time of the next attempt, in RETRY_OPEN
        self._failed_at: float | None = None  # the last failure; None when all is well
        self._wait = BriefWait(observer, thread)

    # -- its life --------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """
        Open the observer in the reactor thread, at the start of the service; its own thread starts later.

        @raise ConfigError: it can't be opened.
        """
        try:
            self.observer.open()
        except Exception as error:
            raise why_not_opened(self.observer, error) from error
        self.life = LaneLife.OPEN

    def close(self) -> None:
        """Close the observer again in the reactor thread: another one can't be opened. A failure is reported."""
        self.life = LaneLife.CLOSED
        try:
            self.observer.close()
        except Exception as error:
            self._report(self.observer.spec, error_text(error), 0)

    def start(self) -> None:
        """Start the thread of an observer that is open."""
        self._thread.start()

    def begin(self) -> None:
        """Start the thread, and open the observer in it."""
        self._thread.start()
        self._open_in_thread(LaneLife.OPENING)

    def reopen(self) -> None:
        """Let the observer open anew, between two batches."""
        if self.life is LaneLife.OPEN:
            self._unfinished += 1
            self._thread.run(self.observer.reopen, self._reopened)
        elif self.life is LaneLife.OPENING_AGAIN:
            self.life = LaneLife.RETURNING

    def stop(self) -> None:
        """Let the observer hurry, store all that waits, and close it. Submit nothing after this."""
        if self.life is LaneLife.CLOSED:
            return
        if self.life is LaneLife.OPEN and (problem := hurry(self.observer)):
            self._report(self.observer.spec, problem, 0)
        before, self.life = self.life, LaneLife.LEAVING
        if before is LaneLife.RETRY_OPEN:
            self._end()
        else:
            self._close_if_idle()

    def stay(self) -> None:
        """
        Undo a L{stop}, whether that is complete or not. The observer is closed first in any case: after C{hurry} it
        does less than it should. When it can't be opened again, that is reported and tried again every second.
        """
        if self.life is LaneLife.CLOSED:
            self._thread.start()
            self._open_in_thread(LaneLife.OPENING_AGAIN)
        else:
            self.life = LaneLife.RETURNING

    # -- messages --------------------------------------------------------------------------------------------------

    def submit(self, batch: Batch, items: list[Prepared | None]) -> bool:
        """
        Store a batch: now, or with all else that waits once the running C{store} is back.

        @param items: its messages, encoded for this observer.
        @return: False when the observer takes nothing now; then all of it has failed, and the lane is done with it.
        """
        if self.life is not LaneLife.OPEN or self.is_stalled:
            self._refuse([batch], self._obstacle())
            return False
        self._pending.append((batch, items))
        self.waiting += batch.size
        batch.came = self._monotonic()
        if self._store is None:
            self._store_pending()
        return True

    def await_store(self) -> bool:
        """Wait briefly for a C{store} that this turn of the reactor has begun. Return whether it is back."""
        store = self._store
        # With something pending it was begun before this turn.
        return store is not None and not self._pending and not store.is_given_up and self._wait.is_back()

    def tick(self, now: float, answer_time: float) -> None:
        """
        Give up on an observer whose C{store} has run for longer than C{answer_time} seconds, and try to open one in
        RETRY_OPEN; called about twice a second.

        It takes two ticks to give up: after the whole process, or the machine, was stopped for a while, the first tick
        comes before the outcome of a C{store} that was stopped with it.
        """
        self.limit.tick(now, self.waiting)
        self._wait.try_again()
        if self.life is LaneLife.RETRY_OPEN and now >= self._open_next:
            self._open_in_thread(LaneLife.OPENING_AGAIN)
        store = self._store
        if store is None or store.is_given_up or now - store.asked < answer_time:
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
            # Then nothing waits either: it hangs in another call, and counts as failing until it is open again.
            self._failed_at = self._monotonic()
            return
        store.is_given_up = True
        self.limit.lift()
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
        return self._store is not None and self._store.is_given_up

    def status(self, now: float) -> LaneStatus:
        """Return the status of the observer."""
        self._counts.take()
        batches = [batch for batch, _ in self._pending]
        if self._store is not None:
            batches += self._store.batches
        return LaneStatus(
            self.observer.spec,
            sum(batch.count for batch in batches),
            sum(batch.size for batch in batches),
            self.is_stalled,
            self._failed_ago(now),
            backlog_of(self.observer),
        )

    def _failed_ago(self, now: float) -> float | None:
        if self._failed_at is None:
            return None
        # An observer that is not open keeps failing, whether messages come or not.
        return now - self._failed_at if self.life in (LaneLife.OPEN, LaneLife.LEAVING) else 0.0

    def _obstacle(self) -> str:
        """Return why nothing is taken."""
        if self.is_stalled:
            return NO_ANSWER
        return CLOSED if self.problem is None else str(self.problem)

    def _refuse(self, batches: list[Batch], why: str) -> None:
        failure = NotStored(f"{self.observer.spec}: {why}")
        for batch in batches:
            batch.fail_all(failure)
        self._report(self.observer.spec, why, sum(batch.count for batch in batches))

    def _store_pending(self) -> None:
        """Hand the thread as many of the waiting batches as fit into one C{store}."""
        pending = self._pending
        # One batch alone is stored whatever its size.
        most = self.limit.store.bytes if len(pending) > 1 else inf
        parts: list[Part] = []
        # The observer gets a list of its own: changing it can't reach another observer.
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
        self._thread.run(store.run, partial(self._stored, store))

    def _stored(self, store: StoreCall, outcome: object) -> None:
        """Take the outcome of a C{store}: begin the next one, then settle this one."""
        if store.is_given_up:
            self._end_stall(store, outcome)
        # What the running turn has gathered would otherwise wait for a whole sync more.
        self._flush()
        self._store = None
        if self._pending:
            self._store_pending()
        failed, reason = 0, ""
        if outcome is not None:
            failed, reason = store.note_failures(outcome_of_each(store.count, outcome))
            self._counts.note_refused(store.count, outcome)
        if store.count:
            is_failing = failed == store.count and not rejects_only(outcome)
            self._failed_at = self._monotonic() if is_failing else None
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
        store.is_given_up = False
        _log.warn(
            "Observer {spec} answers again, after {seconds} s: {outcome}",
            spec=self.observer.spec,
            seconds=round(self._monotonic() - store.asked, 1),
            outcome="what it was given last is stored" if outcome is None else "what it was given last is not stored",
        )

    def _learn(self, store: StoreCall) -> None:
        """Learn what a C{store} cost."""
        self.waiting -= sum([batch.size for batch in store.batches])
        if store.count:
            now = self._monotonic()
            self.limit.stored(now, store.size, store.seconds, self.waiting, now - store.parts[0][0].came)
            if self._on_stored is not None:
                self._on_stored(self.observer.spec, store.count, store.size, store.seconds)

    # -- opening and closing ---------------------------------------------------------------------------------------

    def _open_in_thread(self, life: LaneLife) -> None:
        self.life = life
        self._unfinished += 1
        self._thread.run(self.observer.open, self._opened)

    def _opened(self, outcome: object) -> None:
        self._unfinished -= 1
        if isinstance(outcome, BaseException):
            self._not_opened(why_not_opened(self.observer, outcome))
        elif self.life in (LaneLife.LEAVING, LaneLife.RETURNING):
            self._close_if_idle()
        else:
            self.life = LaneLife.OPEN
            self.problem = None
            self._failed_at = None
            self._changed()

    def _not_opened(self, problem: ConfigError) -> None:
        self.problem = problem
        if self.life in (LaneLife.OPENING, LaneLife.LEAVING):
            self._end()
            return
        self.life = LaneLife.RETRY_OPEN
        self._failed_at = self._monotonic()
        self._open_next = self._failed_at + OPEN_AGAIN
        self._report(self.observer.spec, str(problem), 0)
        self._changed()

    def _reopened(self, outcome: object) -> None:
        if isinstance(outcome, BaseException):
            self._report(self.observer.spec, error_text(outcome), 0)
        self._unfinished -= 1
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        # Pending messages wait behind a store that is not finished.
        if self.life in (LaneLife.LEAVING, LaneLife.RETURNING) and not self._unfinished:
            self._unfinished += 1
            self._thread.run(partial(finish_and_close, self.observer), self._closed)

    def _closed(self, outcome: object) -> None:
        self._unfinished -= 1
        for problem in cast("list[str]", outcome):
            self._report(self.observer.spec, problem, 0)
        if self.life is LaneLife.RETURNING:
            self._open_in_thread(LaneLife.OPENING_AGAIN)
        else:
            self._end()

    def _end(self) -> None:
        self.life = LaneLife.CLOSED
        self._counts.take()
        self._thread.stop()
        self._changed()
