"""
The batches of a spool: how large they are, and how long one gathers for an observer that wants large ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from webhookrx.interfaces import LARGEST_BATCH, MOST_MESSAGES
from webhookrx.spool.database import BATCH_BYTES, BATCH_MESSAGES

if TYPE_CHECKING:
    from webhookrx.interfaces import Wants
    from webhookrx.spool.quota import Quota
    from webhookrx.spool.rows import Row, Totals

SMALL_BATCH: Final = 32

_NANOSECONDS: Final = 1_000_000_000


class OfferSize(NamedTuple):
    """
    How large a batch is to be.

    @ivar messages: the most messages of it.
    @ivar bytes: about the most bytes of it.
    @ivar seconds: how long it gathers.
    """

    messages: int
    bytes: int
    seconds: float


def offer_size(wants: Wants | None) -> OfferSize:
    """Return how large batches are for an observer, within what fits into memory; None wants usual ones."""
    if wants is None:
        return OfferSize(BATCH_MESSAGES, BATCH_BYTES, 0.0)
    messages = min(wants.messages or MOST_MESSAGES, MOST_MESSAGES)
    return OfferSize(messages, min(wants.bytes, LARGEST_BATCH), wants.seconds)


class Batches:
    """
    The size of batches, and when there is one.

    @param wants: those of the observer; None for usual ones, which never gather.
    @param quota: a batch gathers no longer than until half of it is used.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: nanoseconds since the epoch.
    @ivar messages: the most messages of a batch.
    @ivar bytes: about the most bytes of a batch; it is larger by a part of its last message.
    """

    def __init__(
        self,
        wants: Wants | None,
        quota: Quota,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._is_usual = wants is None
        self.messages, self.bytes, seconds = offer_size(wants)
        self._enough = min(self.bytes, quota.size // 2)
        self._seconds = seconds if quota.age is None else min(seconds, quota.age / 2)
        self._clock = clock
        self._wall_clock = wall_clock
        self._since: float | None = None
        self._acked: set[int] = set()
        self._is_new = False

    def count_for(self, waiting: int) -> int:
        """
        Return the largest count of messages for a new batch.

        A crash between the observer's answer and our removal delivers a batch again; so it is small while the observer
        keeps up, and grows with the backlog. One that had time to gather is as large as it may be.
        """
        return self.messages if self._seconds else min(max(waiting // 4, SMALL_BATCH), self.messages)

    def gathers(self, totals: Totals, oldest: int | None, *, is_full: bool) -> float:
        """
        Return for how many seconds at most the next batch may still gather; 0 when it is to be offered now, or when
        nothing waits.

        @param oldest: when the oldest message was received, nanoseconds since the epoch.
        @param is_full: the spool refuses messages.
        """
        if not self._seconds or not totals.messages:
            return 0.0
        if is_full or totals.messages >= self.messages or totals.bytes >= self._enough:
            return 0.0
        now = self._clock()
        if self._since is None:
            self._since = now
        # The wall clock may have been set back.
        age = max(now - self._since, 0.0 if oldest is None else (self._wall_clock() - oldest) / _NANOSECONDS)
        return max(0.0, self._seconds - age)

    def in_pieces(self, rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
        """
        Cut the rows of a batch so that each piece is no larger than a usual batch: one transaction, which delays those
        that append, removes no more.
        """
        if self._is_usual:
            yield rows
            return
        begin = size = 0
        for place, row in enumerate(rows):
            if place - begin >= BATCH_MESSAGES or size >= BATCH_BYTES:
                yield rows[begin:place]
                begin, size = place, 0
            size += row.size
        if begin < len(rows):
            yield rows[begin:]

    def offered(self) -> None:
        """Begin the time of the next batch: one is offered now."""
        self._since = None
        self._is_new = True

    def acked(self, numbers: Sequence[int]) -> None:
        """Note which messages of the batch that was offered last are removed; a large one is, piece by piece."""
        if self._is_new:
            self._acked.clear()
            self._is_new = False
        self._acked.update(numbers)

    def is_acked(self, row: Row) -> bool:
        """Tell whether a message was removed with the last batch; then it can't wait."""
        return row.id in self._acked

    def forget(self) -> None:
        """Forget what was removed: the queue is opened anew."""
        self._acked.clear()
