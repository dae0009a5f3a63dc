"""When a queue stands, and what room there is in front of an observer then; overload as a whole has its own tests."""

from __future__ import annotations

from math import inf

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from webhookrx.interfaces import IStandingQueue
from webhookrx.pipeline.admission import CALM, INTERVAL, SHORT_WAIT, ObserverQueue, StandingQueue
from webhookrx.pipeline.store_size import LATELY

MiB = 1024 * 1024


class StandingQueueTests(SynchronousTestCase):
    """A queue stands by its age over a time."""

    def setUp(self) -> None:
        self.rule = StandingQueue(1.0, 0.5, 2.0)

    def see(self, *seen: tuple[float, float, float]) -> list[bool]:
        """Return what becomes of moments, ages and lengths."""
        return [self.rule.observe(*each) for each in seen]

    def test_interface(self) -> None:
        """It is what the wire asks for."""
        self.assertTrue(verifyObject(IStandingQueue, self.rule))
        self.assertFalse(self.rule.stands)

    def test_stands(self) -> None:
        """It stands once its age was above the target for the interval, and not a moment before."""
        self.assertEqual([False, False, False, True], self.see((0, 1.1, 9), (0.2, 5, 9), (0.49, 5, 9), (0.5, 1.1, 9)))
        self.assertTrue(self.rule.stands)

    def test_target(self) -> None:
        """At the target it does not, for however long."""
        self.assertEqual([False] * 3, self.see((0, 1.0, 9), (5, 1.0, 9), (50, 1.0, 9)))

    def test_once_young(self) -> None:
        """Once young within the interval, it begins anew."""
        self.assertEqual([False] * 4, self.see((0, 2, 9), (0.4, 0.9, 9), (0.5, 2, 9), (0.9, 2, 9)))
        self.assertEqual([True], self.see((1.0, 2, 9)))

    def test_shorter(self) -> None:
        """A queue that gets shorter empties by itself, however old what is in it has become."""
        self.assertEqual([False] * 40, self.see(*((0.1 * step, 2 + step, 100 - step) for step in range(40))))

    def test_not_shorter_than_at_first(self) -> None:
        """What it grew by in the meantime may go again: only below what it was at first it is shorter."""
        self.assertEqual([False, False, False, True], self.see((0, 2, 10), (0.2, 2, 50), (0.4, 2, 20), (0.6, 2, 10)))

    def test_shorter_and_then_not(self) -> None:
        """The interval begins when it was shortest."""
        self.assertEqual([False] * 3, self.see((0, 2, 10), (0.4, 2, 5), (0.8, 2, 8)))
        self.assertEqual([True], self.see((0.9, 2, 8)))

    def test_ends(self) -> None:
        """It stands until its age was at most half of the target for long enough, all the time."""
        self.see((0, 2, 9), (0.5, 2, 9))
        self.assertEqual([True] * 3, self.see((1, 0.5, 9), (2.9, 0.0, 9), (2.95, 0.6, 9)))
        self.assertEqual([True, True, False], self.see((3, 0.5, 9), (4.9, 0.5, 9), (5, 0.5, 9)))

    def test_again(self) -> None:
        """After its end it takes a whole interval again, also when it was ended from outside."""
        self.see((0, 2, 9), (0.5, 2, 9), (1, 0, 0), (3, 0, 0))
        self.assertEqual([False, False, True], self.see((3.1, 2, 9), (3.5, 2, 9), (3.6, 2, 9)))
        self.rule.end()
        self.assertFalse(self.rule.stands)
        self.assertEqual([False, False, True], self.see((4, 2, 9), (4.4, 2, 9), (4.5, 2, 9)))

    def test_no_calm(self) -> None:
        """With no time for it, it ends at once."""
        rule = StandingQueue(1.0, 0.0, 0.0)
        self.assertFalse(rule.observe(0, 2, 9))
        self.assertTrue(rule.observe(0, 2, 9))
        self.assertFalse(rule.observe(0, 0.5, 9))


class ObserverQueueTests(SynchronousTestCase):
    """How much there may be in front of an observer that stores 1 MB a second."""

    def setUp(self) -> None:
        self.queue = ObserverQueue(4 * MiB)
        for number in range(LATELY + 1):
            self.store(0.0, 0, size=62_500 if number % LATELY == 0 else 125_000)

    def store(self, now: float, waiting: int, *, size: int = 125_000, age: float = 9.0) -> None:
        """Let a store come back as it should."""
        self.queue.stored(now, size, size / 1e6, waiting, age)

    def test_unknown(self) -> None:
        """As long as nothing is known, nothing is refused."""
        queue = ObserverQueue(4 * MiB)
        for now in (0.0, 5.0, 10.0):
            queue.stored(now, 10_000, 0.0, 50 * MiB, 9.0)
        self.assertEqual(inf, queue.room)

    def test_short_wait(self) -> None:
        """What can be stored soon may stay for ever."""
        for number in range(100):
            self.store(10 + number / 8, int(0.95 * SHORT_WAIT * 1e6))
        self.assertEqual(inf, self.queue.room)

    def test_standing(self) -> None:
        """What can't, and is not less after the interval, leaves room for what can, and no more."""
        self.store(10, 800_000)
        self.assertEqual(inf, self.queue.room)
        self.store(10.01 + INTERVAL, 800_000)
        self.assertApproximates(SHORT_WAIT * 1e6, self.queue.room, 40_000)

    def test_shrinking(self) -> None:
        """A queue that shrinks is left to do so."""
        waiting = 8_000_000
        for number in range(80):
            self.store(10 + number / 8, waiting)
            waiting = int(waiting * 0.97)
            self.assertEqual(inf, self.queue.room)

    def test_proof(self) -> None:
        """It takes messages that have waited, and no estimate alone."""
        for number in range(20):
            self.store(10 + number, 8_000_000, age=SHORT_WAIT / 2 - 0.01)
        self.assertEqual(inf, self.queue.room)
        self.store(40, 8_000_000, age=SHORT_WAIT / 2 + 0.01)
        self.store(41, 8_000_000, age=SHORT_WAIT / 2 + 0.01)
        self.assertLess(self.queue.room, inf)

    def test_long_stores(self) -> None:
        """There is always room for a store that is under way, and for one that waits, however long they take."""
        queue = ObserverQueue(4 * MiB)
        for number in range(4 * LATELY):
            queue.stored(10.0 + 2 * number, 4 * MiB, 2.0, 8 * MiB - 1, 4.0)
            self.assertEqual(inf, queue.room)
        for number in range(3):
            queue.stored(1000.0 + 2 * number, 4 * MiB, 2.0, 9 * MiB, 4.0)
        self.assertApproximates(8 * MiB, queue.room, MiB / 100)

    def test_end(self) -> None:
        """A second of a queue no more than half full is the end of it, also when nothing is stored any more."""
        self.store(10, 800_000)
        self.store(11, 800_000)
        self.queue.look(12, 100_000)
        self.queue.look(12.5, 400_000)
        self.queue.look(13, 100_000)
        self.queue.look(12.9 + CALM, 0)
        self.assertLess(self.queue.room, inf)
        self.queue.look(13 + CALM, 0)
        self.assertEqual(inf, self.queue.room)

    def test_no_store(self) -> None:
        """While nothing comes back from the observer, nobody is blamed for what waits."""
        for number in range(20):
            self.queue.look(10 + number, 8_000_000)
        self.assertEqual(inf, self.queue.room)

    def test_relax(self) -> None:
        """It can be ended at once, and can come again."""
        for now in (10, 20):
            self.store(now, 800_000)
            self.store(now + 1, 800_000)
            self.assertLess(self.queue.room, inf)
            self.queue.relax()
            self.assertEqual(inf, self.queue.room)
            self.queue.look(now + 2, 800_000)
            self.assertEqual(inf, self.queue.room)
