"""
Where a relay puts messages: an observer, the thread of its calls, and what is counted of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from webhookrx.errors import Rejected
from webhookrx.interfaces import LaneStatus
from webhookrx.operations.counters import Counters
from webhookrx.pipeline.guarded_calls import backlog_of, finish_and_close, hurry, take_counts, why_not_opened
from webhookrx.promises import is_weaker, weaknesses, word_of
from webhookrx.relay.part import RelayPart
from webhookrx.relay.side_thread import Beside
from webhookrx.spool.batches import OfferSize, offer_size
from webhookrx.spool.drainer import outcomes_of

if TYPE_CHECKING:
    from webhookrx.interfaces import IMessageObserver, Prepared

HANGS: Final = 60.0
"""Seconds after which an observer that has not come back from a call counts as hanging."""


class RelayTarget:
    """
    An observer of a relay.

    @param beside: makes its calls once the relay runs.
    @param part: whether it takes messages.
    @param counters: counts of the batches are added to it in the relay's thread.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(
        self,
        observer: IMessageObserver,
        beside: Beside,
        part: RelayPart,
        counters: Counters,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.observer = observer
        self.part = part
        self.messages = 0
        self._beside = beside
        self._clock = clock
        self._bytes = 0
        # Made here: the reactor's thread copies these while this one counts, so that their number must not change.
        self._counts = counters.observers[observer.spec]

    @property
    def spec(self) -> str:
        """The observer's."""
        return self.observer.spec

    @property
    def batch_size(self) -> OfferSize:
        """How large its batches are to be, and how long to wait for that much, from the first record on."""
        return offer_size(getattr(self.observer, "wants", None))

    @property
    def hangs(self) -> bool:
        """Whether a call has not come back for too long. Asked from any thread."""
        return self._beside.busy > HANGS

    def status(self) -> LaneStatus:
        """Return its status, from any thread."""
        failed_ago = None if self.part.away is None else 0.0
        return LaneStatus(self.spec, self.messages, self._bytes, self.hangs, failed_ago, backlog_of(self.observer))

    def open(self) -> None:
        """
        Open the observer, in the thread that starts all.

        @raise webhookrx.errors.ConfigError: it can't be opened.
        """
        try:
            self.observer.open()
        except Exception as error:
            raise why_not_opened(self.observer, error) from error

    def store(self, prepared: Sequence[Prepared], meanwhile: Callable[[], None]) -> Sequence[BaseException | None]:
        """Return for each message None, or why it is not stored."""
        count, size = len(prepared), sum(map(_size_of, prepared))
        self.messages, self._bytes = count, size
        began = self._clock()
        try:
            returned = self._beside.call(lambda: self.observer.store(prepared), meanwhile)
        except BaseException as error:
            outcomes: Sequence[BaseException | None] = [error] * count
        else:
            outcomes = [None] * count if returned is None else outcomes_of(count, returned)
        self._counts.messages += count
        self._counts.bytes += size
        self._counts.stores.observe(self._clock() - began)
        self._counts.refused += sum(isinstance(outcome, Rejected) for outcome in outcomes)
        self._take_counts()
        self.messages = self._bytes = 0
        return outcomes

    def reopen(self, meanwhile: Callable[[], None]) -> None:
        """Reopen the observer; what it raises goes to the caller."""
        self._beside.call(self.observer.reopen, meanwhile)

    def hurry(self) -> str:
        """Tell the observer to stop waiting, from any thread. Return what went wrong, else C{""}."""
        return hurry(self.observer)

    def close(self, meanwhile: Callable[[], None]) -> list[str]:
        """Let the observer finish, close it, and end its thread. Return what went wrong."""
        hurried = hurry(self.observer)
        problems = self._beside.call(lambda: finish_and_close(self.observer), meanwhile)
        self._beside.stop()
        self._take_counts()
        return [*([hurried] if hurried else []), *problems]

    def _take_counts(self) -> None:
        """Add what the observer, or the one behind it, has counted itself."""
        taken = take_counts(self.observer)
        if taken is not None:
            self._counts.add_taken(taken)


def _size_of(prepared: Prepared) -> int:
    """Return the bytes that a message is counted for; of one that is not encoded yet, nothing."""
    return len(prepared) if isinstance(prepared, bytes) else 0


def relay_weaknesses(observer: IMessageObserver, ack: str) -> list[str]:
    """
    Return a sentence for each promise that is weaker than it may seem, as L{webhookrx.promises.weaknesses} does for a
    receiver. Call it once the observer is open, when its promise is final.
    """
    # No promise is weaker than this word: what is left is about spools.
    found = weaknesses(observer, "queued")
    if is_weaker(observer.promise, ack):
        found.append(
            f"--ack {ack} is more than observer {observer.spec} can promise: its word means {word_of(observer)}, and a "
            "message leaves the broker on that"
        )
    return found
