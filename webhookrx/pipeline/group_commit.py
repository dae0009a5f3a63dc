"""
Group commit: what came in during one turn of the reactor, or during one sync, is stored together.

A L{Batch} is what one turn has gathered. A L{Lane} brings batches to one observer: one call of C{store} at a time,
each with all that waits, while the next gathers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from webhookrx.errors import NotStored

if TYPE_CHECKING:
    from webhookrx.interfaces import Acknowledge, IMessageObserver, Prepared
    from webhookrx.pipeline.worker import Worker

    #: Told of a failure: the observer's spec, what went wrong, and how many messages it hit.
    Report = Callable[[str, str, int], None]


class Batch:
    """
    The messages of one turn, by place: how the observers want them, who waits for them, and which failed.

    @ivar prepared: one list for each way to prepare a message. None stands where preparing failed.
    @ivar acknowledges: who is told; empty once they are.
    @ivar count: how many messages it had when it was handed over.
    @ivar size: bytes counted for it.
    @ivar outstanding: lanes that still have it.
    @ivar failures: place to why that message is not safe.
    @ivar has_gaps: some way of preparing failed for some message.
    """

    __slots__ = ("acknowledges", "count", "failures", "has_gaps", "outstanding", "prepared", "size")

    def __init__(self, ways: int) -> None:
        self.prepared: list[list[Prepared | None]] = [[] for _ in range(ways)]
        self.acknowledges: list[Acknowledge] = []
        self.count = 0
        self.size = 0
        self.outstanding = 0
        self.failures: dict[int, NotStored] = {}
        self.has_gaps = False

    def fail(self, place: int, failure: NotStored) -> None:
        """Note that one message is not safe. The first reason stays."""
        self.failures.setdefault(place, failure)


class Lane:
    """
    Brings batches to one observer, in order.

    @param observer: who stores them.
    @param way: the index of its way in L{Batch.prepared}.
    @param worker: where C{store} and C{reopen} run.
    @param max_batch_bytes: batches are joined into one C{store} up to this size.
    @param gather: makes the chain hand over what the running turn has gathered so far.
    @param settle: told of batches that this observer is done with, for good or ill.
    @param report: told of failures.
    """

    def __init__(
        self,
        observer: IMessageObserver,
        way: int,
        worker: Worker,
        max_batch_bytes: int,
        gather: Callable[[], None],
        settle: Callable[[list[Batch]], None],
        report: Report,
    ) -> None:
        self.observer = observer
        self._way = way
        self._worker = worker
        self._max_batch_bytes = max_batch_bytes
        self._gather = gather
        self._settle = settle
        self._report = report
        self._pending: deque[Batch] = deque()
        self._storing = False
        self._unfinished = 0  # tasks of the worker whose outcome is not dealt with yet
        self._when_idle: Callable[[], None] | None = None

    def start(self) -> None:
        """Start the worker; the observer is open."""
        self._worker.start()

    def submit(self, batch: Batch) -> None:
        """Store a batch: now, or with all else that waits once the running C{store} is back."""
        self._pending.append(batch)
        if not self._storing:
            self._store_pending()

    def reopen(self) -> None:
        """Let the observer open anew, between two batches."""
        self._unfinished += 1
        self._worker.run(self.observer.reopen, self._reopened)

    def stop(self, stopped: Callable[[], None]) -> None:
        """Store all that waits, close the observer, and then call C{stopped}. Nothing is submitted any more."""
        self._when_idle = partial(self._close, stopped)
        self._close_if_idle()

    def _store_pending(self) -> None:
        """Hand the worker as many of the waiting batches as fit into one C{store}."""
        pending = self._pending
        batches: list[Batch] = []
        # A list of the observer's own: what it does to it can't reach another observer.
        items: list[Prepared | None] = []
        size = 0
        gaps = False
        while pending and (not batches or size + pending[0].size <= self._max_batch_bytes):
            batch = pending.popleft()
            batches.append(batch)
            items += batch.prepared[self._way]
            size += batch.size
            gaps = gaps or batch.has_gaps
        if gaps:
            items = [item for item in items if item is not None]
        self._storing = True
        self._unfinished += 1
        # With nothing left to store, the way through the worker keeps the order and the contract of write().
        work = partial(self.observer.store, cast("list[Prepared]", items)) if items else _nothing
        self._worker.run(work, partial(self._stored, batches, len(items)))

    def _stored(self, batches: list[Batch], count: int, outcome: object) -> None:
        """Take the outcome of a C{store}: set the next one going, then settle this one."""
        # What the running turn has gathered would otherwise wait for a whole sync more.
        self._gather()
        self._storing = False
        if self._pending:
            self._store_pending()
        failed, reason = self._note_failures(batches, count, outcome) if outcome is not None else (0, "")
        try:
            self._settle(batches)
            if failed:
                self._report(self.observer.spec, reason, failed)
        finally:
            self._unfinished -= 1
            self._close_if_idle()

    def _note_failures(self, batches: list[Batch], count: int, outcome: object) -> tuple[int, str]:
        """Spread an outcome other than None over the messages; return how many failed and why the first did."""
        failed = 0
        reason = ""
        outcomes = iter(_outcome_of_each(count, outcome))
        known: str | None = None
        for batch in batches:
            for place, item in enumerate(batch.prepared[self._way]):
                if item is None:
                    continue
                error = next(outcomes)
                if error is None:
                    continue
                if error != known:
                    known = error
                    failure = NotStored(f"{self.observer.spec}: {error}")
                batch.fail(place, failure)
                if not failed:
                    reason = error
                failed += 1
        return failed, reason

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
        self._worker.stop()
        try:
            self.observer.close()
        except Exception as error:
            self._report(self.observer.spec, text_of(error), 0)
        stopped()


def _nothing() -> None:
    """Stand in for a C{store} of no messages."""


def _outcome_of_each(count: int, outcome: object) -> Sequence[str | None]:
    """
    Read what C{store} returned or raised, other than None, as one entry a message: None, or why it is not safe.

    An observer that breaks its contract has said nothing about its messages, so none of them is safe.
    """
    if isinstance(outcome, BaseException):
        return [text_of(outcome)] * count
    try:
        # A copy: nothing that is not ours is asked again.
        outcomes = [None if entry is None else text_of(entry) for entry in cast("Sequence[object]", outcome)]
    except Exception:
        return [f"store() returned {type(outcome).__name__}, not None or a list"] * count
    if len(outcomes) != count:
        return [f"store() returned {len(outcomes)} entries for {count} messages"] * count
    return outcomes


def text_of(error: object) -> str:
    """Say what an error says, whatever it is made of."""
    try:
        return str(error) or type(error).__name__
    except Exception:
        return type(error).__name__
