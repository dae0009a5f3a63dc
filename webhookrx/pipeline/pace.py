"""
How much is worth having in front of an observer: enough to keep it busy, not so much that all wait long. No clock.

Two things make a queue grow. In a hiccup, such as a disk that is busy elsewhere for a second, stores take far longer
than they should; when it is over, the queue empties by itself, so all of it may be used. Under overload stores come
back as they should and the queue grows all the same. It would stay full for as long as the load lasts, every message
would wait as long as a full queue takes, and not one more would be stored for it. Then it is better to refuse at once
what can't be stored soon.
"""

from __future__ import annotations

from math import exp, inf

KiB = 1024

#: Seconds that one store may spend on its bytes, unless its fixed time is so long that this would be a waste.
QUICK = 0.125
#: The most of them, however long the fixed time is.
SLOW = 0.3
#: Seconds that the last message of the queue should wait while there is more to do than can be done.
SHORT_WAIT = 0.5
#: A store is given no less than this, however slow the observer, so that what a store costs can be learnt.
SMALLEST_STORE = 8 * KiB
#: A store is given no more than this, or four times the largest before it.
FIRST_STORE = 256 * KiB
#: A store that takes so many seconds more than twice the expected time is a hiccup.
HICCUP = 0.25
#: Seconds that count as lately, for what comes.
LATELY = 0.1
#: Seconds of a queue no more than half full that end the refusing.
CALM = 1.0

#: Weight of the newest store. The last twenty or so count.
_FADE = 0.05
#: What is left, after a store, of the belief in what a byte costs, if nothing supports it.
_FORGET = 0.9
#: Variance of sizes from which on they count as different.
_DIFFERENT = float(KiB * KiB)


class StoreCost:
    """
    What a store costs: a fixed time, such as a sync or a round trip, and a time for each byte.

    Both are learnt by least squares over the last stores. As long as these hardly differ in size they say nothing
    new about the time for a byte, and the belief in it fades: whoever thinks bytes cheap makes larger stores, and
    learns. To think them dear would make stores ever smaller. So would one rate for all sizes, for an observer that
    syncs slowly, but any amount at once.

    @ivar fixed: seconds for each store.
    @ivar per_byte: seconds for each byte.
    @ivar largest: bytes of the largest store that was learnt from.
    """

    __slots__ = ("_both", "_hiccups", "_seconds", "_size", "_square", "_stores", "fixed", "largest", "per_byte")

    def __init__(self) -> None:
        self.fixed = 0.0
        self.per_byte = 0.0
        self.largest = 0
        self._stores = 0
        self._hiccups = 0  # in a row
        self._size = self._seconds = self._square = self._both = 0.0  # means, of squares and products too

    def note(self, size: int, seconds: float) -> bool:
        """
        Learn from a store of C{size} bytes.

        @return: whether it was a hiccup. Nothing is learnt from one; from two in a row, that things have changed.
        """
        if self._stores and seconds > 2 * (self.fixed + self.per_byte * size) + HICCUP:
            self._hiccups += 1
            if self._hiccups == 1:
                return True
            self._stores = self.largest = 0
            self.per_byte = 0.0
        else:
            self._hiccups = 0
        self.largest = max(self.largest, size)
        self._stores += 1
        weight = max(_FADE, 1 / self._stores)
        self._size += weight * (size - self._size)
        self._seconds += weight * (seconds - self._seconds)
        self._square += weight * (size * size - self._square)
        self._both += weight * (size * seconds - self._both)
        spread = max(0.0, self._square - self._size * self._size)
        together = self._both - self._size * self._seconds
        known = self.per_byte * _FORGET
        self.per_byte = max(0.0, (together + known * _DIFFERENT) / (spread + _DIFFERENT))
        self.fixed = max(0.0, self._seconds - self.per_byte * self._size)
        return self._hiccups > 0


class Pace:
    """
    Decides for one observer how large a store is, and when to refuse.

    One full store under way and one that waits keep it busy. What waits beyond that, and beyond half a second, is in
    excess. When the excess grows though stores take no longer than they should, or has not shrunk for
    C{pause_time}, the queue is I{standing}, until the load fills no more than half of its room for a second.

    Times are seconds on the monotonic clock.

    @param max_store: bytes of a store at most.
    @param pause_time: seconds that an excess may last.
    @ivar store_bytes: bytes that the next store should have at most.
    @ivar room: bytes that may wait by now; infinite while the queue is not standing.
    """

    __slots__ = (
        "_calm_since",
        "_came",
        "_cost",
        "_excess",
        "_excess_since",
        "_excused_until",
        "_inflow",
        "_last",
        "_least",
        "_max_store",
        "_worth",
        "pause_time",
        "room",
        "store_bytes",
    )

    def __init__(self, max_store: int, pause_time: float) -> None:
        self.pause_time = pause_time
        self.store_bytes: float = min(FIRST_STORE, max_store)
        self.room = inf
        self._max_store = max_store
        self._cost = StoreCost()
        self._worth = inf
        self._last = 0  # that waited after the store before
        self._least = inf  # that waited since there was an excess
        self._excess_since = inf
        self._excess = 0  # the most that waited since then
        self._excused_until = -inf
        self._calm_since = inf
        self._inflow = 0.0  # bytes that came, fading
        self._came = 0.0  # when the last of them did

    def came(self, now: float, size: int) -> None:
        """Take note of C{size} bytes that begin to wait."""
        self._inflow = self._inflow * exp((self._came - now) / LATELY) + size
        self._came = now

    def stored(self, now: float, size: int, seconds: float, waiting: int) -> None:
        """
        Learn from a store, and look at what waits after it.

        @param size: bytes that the store had.
        @param seconds: that it took.
        @param waiting: bytes that wait for the observer now.
        """
        if self._cost.note(size, seconds) and now >= self._excused_until:
            self._excused_until = now + self.pause_time
        self._measure()
        if self.room == inf:
            inflow = self._inflow * exp((self._came - now) / LATELY) / LATELY
            self._look_for_excess(now, waiting, inflow * seconds > size)
        else:
            self.room = self._worth
            self.look(now, waiting)

    def look(self, now: float, waiting: int) -> None:
        """Look at what waits, at any time: a load that has ended brings no store that could tell."""
        if self.room == inf:
            return
        if waiting > self.room / 2:
            self._calm_since = inf
        elif self._calm_since == inf:
            self._calm_since = now
        elif now - self._calm_since >= CALM:
            self.relax()

    def relax(self) -> None:
        """Refuse nothing any more, and begin to look anew."""
        self.room = self._least = self._excess_since = self._calm_since = inf

    def _measure(self) -> None:
        """Work out how large a store and how long a queue is worth having."""
        fixed, per_byte = self._cost.fixed, self._cost.per_byte
        on_bytes = min(max(QUICK, 4 * fixed), SLOW)
        store = min(max(SMALLEST_STORE, on_bytes / per_byte), self._max_store) if per_byte else self._max_store
        # What is not known yet is found out step by step.
        self.store_bytes = min(store, max(FIRST_STORE, 4 * self._cost.largest))
        seconds = fixed + store * per_byte
        self._worth = store * max(2.0, SHORT_WAIT / seconds) if seconds else inf

    def _look_for_excess(self, now: float, waiting: int, is_pressed: bool) -> None:
        """
        Find out whether the queue is standing.

        @param is_pressed: more came lately than left.
        """
        worth = self._worth
        if waiting <= worth:
            self._least = self._excess_since = inf
            return
        if self._excess_since == inf or waiting < 0.9 * self._excess:
            # It has just begun, or it shrinks: a queue that shrinks ends by itself.
            self._excess_since = now
            self._excess = waiting
        self._excess = max(self._excess, waiting)
        if waiting < self._least or now < self._excused_until:
            self._least = waiting
        lasts = now - self._excess_since
        # Who all come at once and then no more are a crowd, and no overload.
        is_growing = is_pressed and waiting > self._last and lasts >= LATELY
        self._last = waiting
        if (is_growing and waiting - self._least >= worth / 4) or lasts >= self.pause_time:
            self.room = worth
