"""
How large a store should be: as large as pays, and no larger, since all in it wait until the last of it is safe. No
clock.
"""

from __future__ import annotations

from collections import deque
from math import inf

KiB = 1024

#: Stores that the averages are over. One of them is half as large as it might be, so that they tell what size costs.
LATELY = 32
#: Seconds that one store may spend on its bytes, unless its fixed time is longer still.
ON_BYTES = 0.125
#: A store is given no less than this, however slow the observer.
SMALLEST = 8 * KiB
#: A store is given no more than this, or so many times the largest of late: what is not known is found out by steps.
FIRST = 256 * KiB
GROWTH = 4


class StoreSize:
    """
    Learns what a store costs, by plain averages over the last L{LATELY}: a fixed time, such as a sync or a round trip,
    which the quickest of them shows, and a time for each byte, in which the others were slower than that.

    @param most: bytes of a store at most.
    @ivar bytes: that the next store should have at most.
    @ivar seconds: that a store takes that is as large as pays; 0 while nothing is known.
    @ivar rate: bytes a second by such stores; infinite while nothing is known.
    """

    __slots__ = ("_count", "_most", "_stores", "bytes", "rate", "seconds")

    def __init__(self, most: int) -> None:
        self.bytes: float = min(FIRST, most)
        self.seconds = 0.0
        self.rate = inf
        self._most = most
        self._count = 0
        self._stores: deque[tuple[int, float]] = deque(maxlen=LATELY)

    def note(self, size: int, seconds: float) -> None:
        """Learn from a store of C{size} bytes."""
        self._stores.append((size, seconds))
        self._count += 1
        by_time = sorted((seconds, size) for size, seconds in self._stores)
        if len(by_time) > 1 and by_time[-1][1] <= max(size for _, size in by_time[:-1]):
            del by_time[-1]  # a hiccup: one that was larger than all others may take longer
        quickest, its_size = by_time[0]
        slower = sum(seconds for seconds, _ in by_time) / len(by_time) - quickest
        average = sum(size for _, size in by_time) / len(by_time)
        per_byte = slower / max(average - its_size, average / 2, 1)
        fixed = max(0.0, quickest - its_size * per_byte)
        pays = max(SMALLEST, max(ON_BYTES, fixed) / per_byte) if per_byte > 0 else self._most
        known = max(FIRST, GROWTH * max(size for size, _ in self._stores))
        pays = min(pays, self._most)
        self.bytes = min(pays, known) / (1 if self._count % LATELY else 2)
        self.seconds = fixed + pays * per_byte
        self.rate = pays / self.seconds if self.seconds else inf
