"""When a queue stands, how large stores are, and the cap in front of an observer; test_overload.py has all of it."""

from __future__ import annotations

from math import inf

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from webhookrx.pipeline.queue_limit import (
    CALM,
    FIRST,
    GROWTH,
    INTERVAL,
    LATELY,
    ON_BYTES,
    SHORT_WAIT,
    SMALLEST,
    QueueLimit,
    StandingQueue,
    StoreSize,
)
from webhookrx.wire_interfaces import IStandingQueue

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


class QueueLimitTests(SynchronousTestCase):
    """How much there may be in front of an observer that stores 1 MB a second."""

    def setUp(self) -> None:
        self.limit = QueueLimit(4 * MiB)
        for number in range(LATELY + 1):
            self.store(0.0, 0, size=62_500 if number % LATELY == 0 else 125_000)

    def store(self, now: float, waiting: int, *, size: int = 125_000, age: float = 9.0) -> None:
        """Let a store come back as it should."""
        self.limit.stored(now, size, size / 1e6, waiting, age)

    def test_unknown(self) -> None:
        """As long as nothing is known, nothing is refused."""
        queue = QueueLimit(4 * MiB)
        for now in (0.0, 5.0, 10.0):
            queue.stored(now, 10_000, 0.0, 50 * MiB, 9.0)
        self.assertEqual(inf, queue.cap)

    def test_short_wait(self) -> None:
        """What can be stored soon may stay for ever."""
        for number in range(100):
            self.store(10 + number / 8, int(0.95 * SHORT_WAIT * 1e6))
        self.assertEqual(inf, self.limit.cap)

    def test_standing(self) -> None:
        """What can't, and is not less after the interval, leaves room for what can, and no more."""
        self.store(10, 800_000)
        self.assertEqual(inf, self.limit.cap)
        self.store(10.01 + INTERVAL, 800_000)
        self.assertApproximates(SHORT_WAIT * 1e6, self.limit.cap, 40_000)

    def test_shrinking(self) -> None:
        """A queue that shrinks is left to do so."""
        waiting = 8_000_000
        for number in range(80):
            self.store(10 + number / 8, waiting)
            waiting = int(waiting * 0.97)
            self.assertEqual(inf, self.limit.cap)

    def test_proof(self) -> None:
        """It takes messages that have waited, and no estimate alone."""
        for number in range(20):
            self.store(10 + number, 8_000_000, age=SHORT_WAIT / 2 - 0.01)
        self.assertEqual(inf, self.limit.cap)
        self.store(40, 8_000_000, age=SHORT_WAIT / 2 + 0.01)
        self.store(41, 8_000_000, age=SHORT_WAIT / 2 + 0.01)
        self.assertLess(self.limit.cap, inf)

    def test_long_stores(self) -> None:
        """There is always room for a store that is under way, and for one that waits, however long they take."""
        queue = QueueLimit(4 * MiB)
        for number in range(4 * LATELY):
            queue.stored(10.0 + 2 * number, 4 * MiB, 2.0, 8 * MiB - 1, 4.0)
            self.assertEqual(inf, queue.cap)
        for number in range(3):
            queue.stored(1000.0 + 2 * number, 4 * MiB, 2.0, 9 * MiB, 4.0)
        self.assertApproximates(8 * MiB, queue.cap, MiB / 100)

    def test_end(self) -> None:
        """A second of a queue no more than half full is the end of it, also when nothing is stored any more."""
        self.store(10, 800_000)
        self.store(11, 800_000)
        self.limit.tick(12, 100_000)
        self.limit.tick(12.5, 400_000)
        self.limit.tick(13, 100_000)
        self.limit.tick(12.9 + CALM, 0)
        self.assertLess(self.limit.cap, inf)
        self.limit.tick(13 + CALM, 0)
        self.assertEqual(inf, self.limit.cap)

    def test_no_store(self) -> None:
        """While nothing comes back from the observer, nobody is blamed for what waits."""
        for number in range(20):
            self.limit.tick(10 + number, 8_000_000)
        self.assertEqual(inf, self.limit.cap)

    def test_relax(self) -> None:
        """It can be ended at once, and can come again."""
        for now in (10, 20):
            self.store(now, 800_000)
            self.store(now + 1, 800_000)
            self.assertLess(self.limit.cap, inf)
            self.limit.lift()
            self.assertEqual(inf, self.limit.cap)
            self.limit.tick(now + 2, 800_000)
            self.assertEqual(inf, self.limit.cap)


MiB = 1024 * 1024


class StoreSizeTests(SynchronousTestCase):
    """What a store costs is learnt from stores, and says how large they are to be."""

    def learn(self, fixed: float, per_byte: float, *sizes: int, most: int = 4 * MiB) -> StoreSize:
        """Let a whole window of stores take their time."""
        store = StoreSize(most)
        for number in range(LATELY):
            size = sizes[number % len(sizes)]
            store.note(size, fixed + per_byte * size)
        store.note(sizes[0], fixed + per_byte * sizes[0])
        return store

    def run_full(self, fixed: float, per_byte: float, stores: int) -> list[int]:
        """Return the sizes of stores that are always as large as they may be."""
        store = StoreSize(4 * MiB)
        sizes = []
        for _ in range(stores):
            sizes.append(int(store.bytes))
            store.note(sizes[-1], fixed + per_byte * sizes[-1])
        return sizes

    def test_unknown(self) -> None:
        """As long as nothing is known a store is not too large, and no queue takes long."""
        store = StoreSize(4 * MiB)
        self.assertEqual((FIRST, 0.0, inf), (store.bytes, store.seconds, store.rate))
        self.assertEqual(1_000, StoreSize(1_000).bytes)

    def test_cost(self) -> None:
        """A store is as large as its time for bytes, or a fixed time that is longer, allows; within limits."""
        for fixed, per_byte, pays in (
            (0.0, 1e-6, ON_BYTES / 1e-6),
            (0.05, 1e-6, ON_BYTES / 1e-6),
            (1.0, 1e-6, 1e6),
            (0.0, 1e-3, SMALLEST),
            (0.0, 1e-9, 4 * MiB),
            (5.0, 0.0, 4 * MiB),
        ):
            store = self.learn(fixed, per_byte, MiB // 2, *[MiB] * (LATELY - 1))
            self.assertApproximates(pays, store.bytes, pays / 10, (fixed, per_byte))
            self.assertApproximates(store.rate * store.seconds, store.bytes, 1)

    def test_settles(self) -> None:
        """Stores that are always full come to the size that pays, and stay there."""
        for fixed, per_byte, pays in ((0.01, 1e-6, 125_000), (0.3, 1e-6, 300_000), (0.0, 1e-5, 12_500)):
            sizes = self.run_full(fixed, per_byte, 10 * LATELY)[4 * LATELY :]
            self.assertApproximates(pays, sorted(sizes)[len(sizes) // 2], pays / 5, (fixed, per_byte))
            self.assertLessEqual(max(sizes), 1.5 * pays, (fixed, per_byte))

    def test_long_syncs(self) -> None:
        """Where a store takes long however small it is, stores grow to the most there may be, and stay there."""
        sizes = self.run_full(2.0, 2e-9, 4 * LATELY)
        self.assertEqual(4 * MiB, max(sizes))
        self.assertEqual(LATELY - 1, sizes[-LATELY:].count(4 * MiB))

    def test_half(self) -> None:
        """One store in a window is half as large, so that size and time can be told apart."""
        sizes = self.run_full(2.0, 2e-9, 4 * LATELY)[2 * LATELY :]
        self.assertEqual([2 * MiB] * 2, [size for size in sizes if size < 4 * MiB])

    def test_step_by_step(self) -> None:
        """A store is at most four times as large as any of late."""
        store = StoreSize(4 * MiB)
        store.note(1_000, 0.001)
        self.assertEqual(FIRST, store.bytes)
        store.note(FIRST, 0.001)
        self.assertEqual(GROWTH * FIRST, store.bytes)

    def test_hiccup(self) -> None:
        """Of one store that takes far too long nothing is learnt, unless it was larger than all others."""
        store = self.learn(0.01, 1e-6, 10_000, 100_000)
        before = store.bytes, store.rate
        store.note(50_000, 5.0)
        self.assertApproximates(before[0], store.bytes, before[0] / 5)
        self.assertApproximates(before[1], store.rate, before[1] / 5)
        store.note(1_000_000, 10.0)
        self.assertLess(store.bytes, before[0] / 3)

    def test_early_hiccup(self) -> None:
        """So it is with the second store already, and with one as large as the others."""
        for size in (50_000, 100_000):
            store = StoreSize(4 * MiB)
            store.note(100_000, 0.1)
            store.note(size, 5.0)
            self.assertEqual(0.1, store.seconds, size)

    def test_large_and_slow(self) -> None:
        """One that was larger than all others is learnt from, whatever there is besides."""
        store = StoreSize(4 * MiB)
        for size, seconds in ((100_000, 0.1), (50_000, 0.2), (300_000, 5.0)):
            store.note(size, seconds)
        self.assertEqual(SMALLEST, store.bytes)

    def test_change(self) -> None:
        """After a window of other stores nothing is left of those before."""
        store = self.learn(0.01, 1e-7, 1_000_000, 500_000)
        for number in range(LATELY):
            size = (50_000, 100_000)[number % 2]
            store.note(size, 0.01 + 1e-6 * size)
        self.assertLess(store.bytes, 250_000)
        self.assertLess(store.rate, 1.5e6)

    def test_larger_is_quicker(self) -> None:
        """No time is ever taken to be less than nothing."""
        store = self.learn(0.2, -1e-7, 1_000_000, 500_000)
        self.assertGreater(store.seconds, 0)
        self.assertGreater(store.bytes, 0)

    def test_nothing_to_write(self) -> None:
        """Stores of no bytes, and such that take no time, are borne."""
        store = StoreSize(4 * MiB)
        store.note(0, 0.0)
        store.note(0, 0.1)
        self.assertGreaterEqual(store.bytes, SMALLEST)
