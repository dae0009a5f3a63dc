"""
What one turn of the reactor has gathered, how it is stored, and what the observer said about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from twisted.logger import Logger

from webhookrx.errors import NotStored, Rejected

if TYPE_CHECKING:
    from webhookrx.interfaces import Acknowledge, IMessageObserver, Prepared

_log = Logger()


class Batch:
    """
    The messages of one turn, by place: how the observers want them, who waits for them, and which failed.

    @ivar prepared: one list for each way to prepare a message. None stands where preparing failed.
    @ivar acknowledges: who is told; empty once they are.
    @ivar came: when it was handed over, seconds on the monotonic clock.
    @ivar count: how many messages it had when it was handed over.
    @ivar size: bytes counted for it.
    @ivar outstanding: lanes that still have it.
    @ivar failures: place to why that message is not safe.
    @ivar has_gaps: some way of preparing failed for some message.
    """

    __slots__ = ("acknowledges", "came", "count", "failures", "has_gaps", "outstanding", "prepared", "size")

    def __init__(self, ways: int) -> None:
        self.prepared: list[list[Prepared | None]] = [[] for _ in range(ways)]
        self.acknowledges: list[Acknowledge] = []
        self.came = 0.0
        self.count = 0
        self.size = 0
        self.outstanding = 0
        self.failures: dict[int, NotStored] = {}
        self.has_gaps = False

    def add(
        self, prepared: Sequence[Prepared | None], size: int, acknowledge: Acknowledge, failure: NotStored | None
    ) -> None:
        """
        Put a message at its end.

        @param prepared: it in all ways; None where that failed.
        @param failure: why it did.
        """
        if failure is not None:
            self.has_gaps = True
            self.failures[len(self.acknowledges)] = failure
        for way, item in enumerate(prepared):
            self.prepared[way].append(item)
        self.acknowledges.append(acknowledge)
        self.size += size

    def fail(self, place: int, failure: NotStored) -> None:
        """Note that one message is not safe. The first reason stays."""
        self.failures.setdefault(place, failure)

    def fail_all(self, failure: NotStored) -> None:
        """Note that no message of a batch that was handed over is safe. Where there is a reason, it stays."""
        for place in range(self.count):
            self.failures.setdefault(place, failure)

    def acknowledge(self) -> None:
        """Tell everyone who waits, once, whatever any of them does about it."""
        failure_of = self.failures.get
        acknowledges, self.acknowledges = self.acknowledges, []
        for place, acknowledge in enumerate(acknowledges):
            try:
                acknowledge(failure_of(place))
            except Exception:
                _log.failure("An acknowledgement of a message failed")


#: A batch, and its messages as one observer wants them.
Part = tuple[Batch, "list[Prepared | None]"]


class StoreCall:
    """
    One call of C{store}: the work of a thread.

    @ivar parts: what is stored.
    @ivar batches: those of it that are not settled yet.
    @ivar count: how many messages it is.
    @ivar size: bytes counted for it.
    @ivar asked: when the thread was asked for it, in seconds on the monotonic clock.
    @ivar is_overdue: it should have been back when it was looked at last.
    @ivar is_given_up: nobody waits for it any longer; once it is back this is over.
    @ivar seconds: that it took, in the thread's thread.
    """

    __slots__ = (
        "_items",
        "_monotonic",
        "_observer",
        "asked",
        "batches",
        "count",
        "is_given_up",
        "is_overdue",
        "parts",
        "seconds",
        "size",
    )

    def __init__(
        self,
        observer: IMessageObserver,
        parts: list[Part],
        items: list[Prepared],
        size: int,
        monotonic: Callable[[], float],
    ) -> None:
        self._observer = observer
        self._monotonic = monotonic
        self._items = items
        self.parts = parts
        self.batches = [batch for batch, _ in parts]
        self.count = len(items)
        self.size = size
        self.asked = monotonic()
        self.is_overdue = False
        self.is_given_up = False
        self.seconds = 0.0

    def __call__(self) -> object:
        # With nothing left to store, the way through the thread keeps the order and the contract of write().
        if not self._items:
            return None
        began = self._monotonic()
        try:
            return self._observer.store(self._items)
        finally:
            self.seconds = self._monotonic() - began


def note_failures(spec: str, parts: list[Part], outcomes: Sequence[str | None]) -> tuple[int, str]:
    """
    Spread what an observer said, one entry for each message that it got, over the batches.

    @return: how many messages failed, and why the first did.
    """
    failed = 0
    reason = ""
    each = iter(outcomes)
    known: str | None = None
    for batch, items in parts:
        for place, item in enumerate(items):
            if item is None:
                continue
            error = next(each)
            if error is None:
                continue
            if error != known:
                known = error
                failure = NotStored(f"{spec}: {error}")
            batch.fail(place, failure)
            if not failed:
                reason = error
            failed += 1
    return failed, reason


def outcome_of_each(count: int, outcome: object) -> Sequence[str | None]:
    """
    Read what C{store} returned or raised, other than None, as one entry a message: None, or why it is not safe.

    An observer that breaks its contract has said nothing about its messages, so none of them is safe.
    """
    if isinstance(outcome, BaseException):
        return [text_of(outcome)] * count
    try:
        # A copy: nothing that is not ours is asked again.
        outcomes = [None if entry is None else text_of(entry) for entry in cast("Sequence[object]", outcome)]
    except BaseException:
        return [f"store() returned {type(outcome).__name__}, not None or a list"] * count
    if len(outcomes) != count:
        return [f"store() returned {len(outcomes)} entries for {count} messages"] * count
    return outcomes


def is_about_messages(outcome: object) -> bool:
    """Tell whether all that an observer complained of were messages that it refuses for good."""
    return isinstance(outcome, (list, tuple)) and all(entry is None or isinstance(entry, Rejected) for entry in outcome)


def text_of(error: object) -> str:
    """Say what an error says, whatever it is made of."""
    try:
        return str(error) or type(error).__name__
    except BaseException:
        return type(error).__name__
