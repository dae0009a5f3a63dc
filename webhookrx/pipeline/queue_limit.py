"""
Adaptive limit of the queue in front of an observer: keep it busy without letting queueing delay grow. No clock.

A queue that fills and empties again absorbs bursts. One that stays full absorbs nothing: every message waits longer,
and none is stored sooner. Length does not tell the two apart, nor does age at one moment; age over a time does, as in
CoDel (RFC 8289).
"""

from __future__ import annotations

from collections import deque
from math import inf

from zope.interface import implementer

from webhookrx.wire_interfaces import IStandingQueue

KiB = 1024

#: Seconds that a message should wait at most while an observer is overloaded.
SHORT_WAIT = 0.4
#: Seconds of longer waits, in a queue that gets no shorter, after which it stands.
INTERVAL = 0.1
#: Seconds of waits half as long at most, after which it stands no more.
CALM = 1.0

#: Stores that the averages are over. One of them is half as large as it might be, so that they show what size costs.
LATELY = 32
#: Seconds that one store may spend on its bytes, unless its fixed time is longer still.
ON_BYTES = 0.125
#: Bytes that every store may have, however slow the observer.
SMALLEST = 8 * KiB
#: A store has at most this, or L{GROWTH} times the largest of late: larger sizes are tried step by step.
FIRST = 256 * KiB
GROWTH = 4


@implementer(IStandingQueue)
class StandingQueue:
    """
    Tells by the age of its oldest entry whether a queue stands.

    It stands once its age has been above C{target} for C{interval}, while its length never fell below what it was at
    first: a queue that gets shorter empties by itself. That ends once its age has been at most half of C{target} for
    C{calm}.

    Times are seconds, C{now} on the monotonic clock.

    @ivar target: an age that is no trouble.
    @ivar stands: whether the queue does.
    """

    __slots__ = ("_calm", "_interval", "_least", "_since", "stands", "target")

    def __init__(self, target: float, interval: float, calm: float) -> None:
        self.target = target
        self.stands = False
        self._interval = interval
        self._calm = calm
        self._since = inf  # the beginning of what may change this
        self._least = inf  # the length then

    def observe(self, now: float, age: float, length: float) -> bool:
        """See L{IStandingQueue.observe}."""
        if self.stands:
            if age > self.target / 2:
                self._since = inf
            else:
                self._since = min(self._since, now)
                if now - self._since >= self._calm:
                    self.end()
        elif age <= self.target:
            self._since = self._least = inf
        elif length < self._least:
            self._since, self._least = now, length
        elif now - self._since >= self._interval:
            self.stands = True
            self._since = inf
        return self.stands

    def end(self) -> None:
        """Let it stand no more, whatever its age."""
        self.stands = False
        self._since = self._least = inf


class StoreSize:
    """
    How large the next store should be: as large as pays, and no larger, since all in it wait until the last is safe.

    Plain averages over the last L{LATELY} stores give a fixed time, such as a sync or a round trip, shown by the
    quickest of them, and a time for each byte, in which the others were slower than that.

    They are taken only when one of them is asked for: most stores come back before anything waits for the next one.

    @param most: bytes of a store at most.
    """

    __slots__ = ("_bytes", "_count", "_most", "_rate", "_seconds", "_stores", "_worked_out")

    def __init__(self, most: int) -> None:
        self._bytes: float = min(FIRST, most)
        self._seconds = 0.0
        self._rate = inf
        self._most = most
        self._count = 0
        self._worked_out = 0  # the count for which the figures hold
        self._stores: deque[tuple[int, float]] = deque(maxlen=LATELY)

    @property
    def bytes(self) -> float:
        """Bytes that the next store should have at most."""
        self._work_out()
        return self._bytes

    @property
    def seconds(self) -> float:
        """The time of a store of the size that pays; 0 while nothing is known."""
        self._work_out()
        return self._seconds

    @property
    def rate(self) -> float:
        """Bytes a second by such stores; infinite while nothing is known."""
        self._work_out()
        return self._rate

    def note(self, size: int, seconds: float) -> None:
        """Learn from a store of C{size} bytes."""
        self._stores.append((size, seconds))
        self._count += 1

    def _work_out(self) -> None:
        if self._worked_out == self._count:
            return
        self._worked_out = self._count
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
        self._bytes = min(pays, known) / (1 if self._count % LATELY else 2)
        self._seconds = fixed + pays * per_byte
        self._rate = pays / self._seconds if self._seconds else inf


class QueueLimit:
    """
    How much may wait in front of one observer, and how much of it one store takes.

    A message that comes now is as old, once it is stored, as the queue takes to drain. Two stores, one under way and
    one that waits, keep the observer busy; anything that waits longer than that, and than L{SHORT_WAIT}, gains nothing.
    While the queue stands, messages beyond that are refused before they have cost anything.

    @param most: bytes of a store at most.
    @ivar store: how large stores are.
    @ivar cap: bytes that may wait; infinite while the queue does not stand.
    """

    __slots__ = ("_age", "_queue", "cap", "store")

    def __init__(self, most: int) -> None:
        self.store = StoreSize(most)
        self.cap = inf
        self._age = 0.0  # seconds that the oldest message of the last store waited
        self._queue = StandingQueue(SHORT_WAIT, INTERVAL, CALM)

    def stored(self, now: float, size: int, seconds: float, waiting: int, age: float) -> None:
        """
        Learn from a store, and from what waits after it.

        @param size: bytes of the store.
        @param seconds: that it took.
        @param waiting: bytes that wait for the observer now, those in the next store included.
        @param age: seconds that the oldest message of the store waited until its end.
        """
        self.store.note(size, seconds)
        self._age = age
        self._observe(now, waiting)

    def tick(self, now: float, waiting: int) -> None:
        """Learn from what waits, at any time: once a load has ended, no store brings the news."""
        if self._queue.stands:
            self._observe(now, waiting)

    def lift(self) -> None:
        """Have no cap any more, and begin to learn anew."""
        self._queue.end()
        self.cap = inf

    def _observe(self, now: float, waiting: int) -> None:
        store, queue = self.store, self._queue
        # An estimate alone proves nothing: the message that was stored last has waited as well, if half as long.
        longest = 2 * self._age
        if longest <= SHORT_WAIT and not queue.stands:
            queue.observe(now, longest, waiting)  # no target is shorter, so the estimate does not matter
            return
        queue.target = max(SHORT_WAIT, 2 * store.seconds)
        age = min(waiting / store.rate, longest)
        self.cap = queue.target * store.rate if queue.observe(now, age, waiting) else inf
