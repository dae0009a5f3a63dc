"""
Group commit: what came in during one turn of the reactor, or during one sync, is stored together.

A L{Lane} brings batches to one observer: one call of C{store} at a time, each with all that waits, while the next
gathers.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from math import inf
from typing import TYPE_CHECKING, cast

from twisted.logger import Logger

from webhookrx.errors import NotStored
from webhookrx.interfaces import LaneStatus
from webhookrx.pipeline.batch import (
    Batch,
    Part,
    StoreCall,
    is_about_messages,
    note_failures,
    outcome_of_each,
    text_of,
)
from webhookrx.pipeline.careful_calls import backlog_of, end, hurry, why_not_opened
from webhookrx.pipeline.lane_life import LaneLife
from webhookrx.pipeline.prompt_wait import PromptWait

if TYPE_CHECKING:
    from webhookrx.errors import ConfigError
    from webhookrx.interfaces import IMessageObserver, Prepared
    from webhookrx.pipeline.admission import ObserverQueue
    from webhookrx.pipeline.lane_context import LaneContext
    from webhookrx.pipeline.observer_thread import ObserverThread

#: Why an observer takes no messages while its C{store} does not come back.
NO_ANSWER = "it does not answer"
#: The same while it is closed.
CLOSED = "it was closed"
#: Seconds between two attempts to open an observer that could not be opened.
OPEN_AGAIN = 1.0

_log = Logger()


class Lane:
    """
    Brings batches to one observer, in order.

    An observer that can't take messages now does not hold up those that come: they fail at once, and other observers
    get them.

    @param observer: who stores them.
    @param thread: where the observer may wait for a disk: all its calls but the first C{open}, C{prepare} and C{hurry}.
    @param queue: how much is worth having in front of it.
    @ivar waiting: bytes that wait or are being stored.
    @ivar life: whether the observer is open.
    @ivar problem: why it could not be opened; None since it could.
    """

    def __init__(
        self, observer: IMessageObserver, thread: ObserverThread, queue: ObserverQueue, context: LaneContext
    ) -> None:
        self.observer = observer
        self.queue = queue
        self.waiting = 0
        self.life = LaneLife.CLOSED
        self.problem: ConfigError | None = None
        self._thread = thread
        self._gather, self._settle, self._report, self._told_stored, self._changed, self._monotonic = context
        self._pending: deque[Part] = deque()
        self._store: StoreCall | None = None
        self._unfinished = 0  # tasks of the thread whose outcome is not dealt with yet
        self._open_next = inf  # when to try again, in RETRY_OPEN
        self._failed_at: float | None = None  # when it last failed; None when all is well
        self._wait = PromptWait(observer, thread)

    # Its life

    def open(self) -> None:
        """
        Open the observer, here and now, and do not start its thread yet: the service starts.

        @raise ConfigError: it can't be opened.
        """
        try:
            self.observer.open()
        except Exception as error:
            raise why_not_opened(self.observer, error) from error
        self.life = LaneLife.OPEN

    def close(self) -> None:
        """Close the observer again, here and now: another one can't be opened. A failure is reported."""
        self.life = LaneLife.CLOSED
        try:
            self.observer.close()
        except Exception as error:
            self._report(self.observer.spec, text_of(error), 0)

    def start(self) -> None:
        """Start the thread of an observer that is open."""
        self._thread.start()

    def begin(self) -> None:
        """Start the thread, and open the observer in it."""
        self._thread.start()
        self._open_aside(LaneLife.OPENING)

    def reopen(self) -> None:
        """Let the observer open anew, between two batches."""
        if self.life is LaneLife.OPEN:
            self._unfinished += 1
            self._thread.run(self.observer.reopen, self._reopened)
        elif self.life is LaneLife.OPENING_AGAIN:
            self.life = LaneLife.RETURNING

    def stop(self) -> None:
        """Let the observer hurry, store all that waits, and close it. Nothing is submitted any more."""
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
        Go on after a stop, whether that has come to its end or not: the observer is closed first in any case, since one
        that was told to hurry does not do all that it should. When it can't be opened again, that is reported, and
        tried again now and then.
        """
        if self.life is LaneLife.CLOSED:
            self._thread.start()
            self._open_aside(LaneLife.OPENING_AGAIN)
        else:
            self.life = LaneLife.RETURNING

    # Messages

    def submit(self, batch: Batch, items: list[Prepared | None]) -> bool:
        """
        Store a batch: now, or with all else that waits once the running C{store} is back.

        @param items: its messages as this observer prepares them.
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
        """Wait a moment for a C{store} that this turn of the reactor has begun. Return whether it is back."""
        store = self._store
        # What waits behind it tells that it was begun before.
        return store is not None and not self._pending and not store.is_given_up and self._wait.is_back()

    def look(self, now: float, answer_time: float) -> None:
        """
        Give up on an observer whose C{store} has run for longer than C{answer_time} seconds, and try to open one in
        RETRY_OPEN; called about twice a second.

        It takes two looks: when the whole process, or the machine, was stopped for a while, the first one comes before
        the word of a C{store} that was stopped with it.
        """
        self.queue.look(now, self.waiting)
        self._wait.try_again()
        if self.life is LaneLife.RETRY_OPEN and now >= self._open_next:
            self._open_aside(LaneLife.OPENING_AGAIN)
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
            # Then nothing waits either. It is about something else, and has to be seen to come back from there.
            self._failed_at = self._monotonic()
            return
        store.is_given_up = True
        self.queue.relax()
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

    def state(self, now: float) -> LaneStatus:
        """Tell how the observer is doing."""
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
        # What is not open goes on to fail, whether messages come or not.
        return now - self._failed_at if self.life in (LaneLife.OPEN, LaneLife.LEAVING) else 0.0

    def _obstacle(self) -> str:
        """Say why nothing is taken."""
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
        most = self.queue.store.bytes
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
        self._thread.run(store, partial(self._stored, store))

    def _stored(self, store: StoreCall, outcome: object) -> None:
        """Take the outcome of a C{store}: set the next one going, then settle this one."""
        if store.is_given_up:
            self._end_stall(store, outcome)
        # What the running turn has gathered would otherwise wait for a whole sync more.
        self._gather()
        self._store = None
        if self._pending:
            self._store_pending()
        failed, reason = 0, ""
        if outcome is not None:
            failed, reason = note_failures(self.observer.spec, store.parts, outcome_of_each(store.count, outcome))
        if store.count:
            is_failing = failed == store.count and not is_about_messages(outcome)
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
        """Take note of what a C{store} cost."""
        self.waiting -= sum(batch.size for batch in store.batches)
        if store.count:
            now = self._monotonic()
            self.queue.stored(now, store.size, store.seconds, self.waiting, now - store.parts[0][0].came)
            if self._told_stored is not None:
                self._told_stored(self.observer.spec, store.count, store.size, store.seconds)

    # Opening and closing

    def _open_aside(self, life: LaneLife) -> None:
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
            self._report(self.observer.spec, text_of(outcome), 0)
        self._unfinished -= 1
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        # What waits for the next store waits behind one that is not finished.
        if self.life in (LaneLife.LEAVING, LaneLife.RETURNING) and not self._unfinished:
            self._unfinished += 1
            self._thread.run(partial(end, self.observer), self._closed)

    def _closed(self, outcome: object) -> None:
        self._unfinished -= 1
        for problem in cast("list[str]", outcome):
            self._report(self.observer.spec, problem, 0)
        if self.life is LaneLife.RETURNING:
            self._open_aside(LaneLife.OPENING_AGAIN)
        else:
            self._end()

    def _end(self) -> None:
        self.life = LaneLife.CLOSED
        self._thread.stop()
        self._changed()
