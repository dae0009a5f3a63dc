"""
When a queue stands: what is at its end waits too long, and does so all the time. No clock.

A queue that fills up and empties again does its work: it bears what comes at once. One that stays full bears nothing
any more; all who come wait, and not one more is served for it. Length does not tell the two apart, nor does age at one
moment; age over a time does, as in CoDel (RFC 8289).
"""

from __future__ import annotations

from math import inf

from zope.interface import implementer

from webhookrx.interfaces import IStandingQueue
from webhookrx.pipeline.store_size import StoreSize

#: Seconds that the last in front of an observer should wait while there is more to do than can be done.
SHORT_WAIT = 0.4
#: Seconds for which it waits longer and not less, until the queue stands.
INTERVAL = 0.1
#: Seconds for which it waits half as long at most, until the queue stands no more.
CALM = 1.0


@implementer(IStandingQueue)
class StandingQueue:
    """
    Tells by the age of what waits whether the queue stands.

    It does once its age has been above C{target} for C{interval}, while its length never fell below what it was at
    first: a queue that gets shorter empties by itself. It does no more once its age has been at most half of C{target}
    for C{calm}.

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
        self._since = inf  # when what may change this began
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
        """It stands no more, whatever its age was."""
        self.stands = False
        self._since = self._least = inf


class ObserverQueue:
    """
    The queue in front of one observer: how much of it one store takes, and how much there may be of it.

    What comes now is as old, once it is stored, as what waits takes to be. Two stores, one under way and one that
    waits, keep the observer busy; what waits longer than that, and than L{SHORT_WAIT}, waits for nothing. While the
    queue stands there is no room beyond that, and what finds none is refused before it has cost anything.

    @param most: bytes of a store at most.
    @ivar store: how large stores are.
    @ivar room: bytes that may wait; infinite while the queue does not stand.
    """

    __slots__ = ("_age", "_rule", "room", "store")

    def __init__(self, most: int) -> None:
        self.store = StoreSize(most)
        self.room = inf
        self._age = 0.0  # of what was stored last
        self._rule = StandingQueue(SHORT_WAIT, INTERVAL, CALM)

    def stored(self, now: float, size: int, seconds: float, waiting: int, age: float) -> None:
        """
        Learn from a store, and look at what waits after it.

        @param size: bytes that the store had.
        @param seconds: that it took.
        @param waiting: bytes that wait for the observer now, those in the next store included.
        @param age: seconds that the oldest in the store has waited for its end.
        """
        self.store.note(size, seconds)
        self._age = age
        self._saw(now, waiting)

    def look(self, now: float, waiting: int) -> None:
        """Look at what waits, at any time: a load that has ended brings no store that could tell."""
        if self._rule.stands:
            self._saw(now, waiting)

    def _saw(self, now: float, waiting: int) -> None:
        store, rule = self.store, self._rule
        rule.target = max(SHORT_WAIT, 2 * store.seconds)
        # An estimate alone proves nothing: who was stored last has waited as well, if half as long.
        age = min(waiting / store.rate, 2 * self._age)
        self.room = rule.target * store.rate if rule.observe(now, age, waiting) else inf

    def relax(self) -> None:
        """Refuse nothing any more, and begin to look anew."""
        self._rule.end()
        self.room = inf
