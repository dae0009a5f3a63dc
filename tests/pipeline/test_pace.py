"""How much is worth having in front of an observer; what comes of it is in the tests of overload."""

from __future__ import annotations

from math import inf

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.pipeline.pace import FIRST_STORE, SMALLEST_STORE, Pace, StoreCost

KiB = 1024
MiB = 1024 * KiB


class StoreCostTests(SynchronousTestCase):
    """What a store costs is learnt from stores."""

    def learn(self, fixed: float, per_byte: float, *sizes: int, times: int = 20) -> StoreCost:
        """Let stores of these sizes take their time, over and over."""
        cost = StoreCost()
        for _ in range(times):
            for size in sizes:
                cost.note(size, fixed + per_byte * size)
        return cost

    def test_both(self) -> None:
        """From stores of different sizes both times are learnt."""
        for fixed, per_byte in ((0.01, 1e-6), (0.2, 1e-8), (0.0, 1e-5), (0.5, 0.0)):
            cost = self.learn(fixed, per_byte, 10_000, 100_000, 300_000)

            self.assertApproximates(fixed, cost.fixed, 0.001)
            self.assertApproximates(per_byte, cost.per_byte, 1e-9)

    def test_one_size(self) -> None:
        """Stores of one size are taken for a fixed time."""
        cost = self.learn(0.1, 1e-6, 100_000)

        self.assertAlmostEqual(0.2, cost.fixed)
        self.assertEqual(0.0, cost.per_byte)

    def test_belief_fades(self) -> None:
        """What a byte costs is forgotten by and by when all stores have one size."""
        cost = self.learn(0.1, 1e-6, 10_000, 100_000)
        believed = [cost.per_byte]
        for _ in range(300):
            cost.note(100_000, 0.2)
            believed.append(cost.per_byte)

        self.assertLess(believed[-1], believed[0] / 50)

    def test_larger_is_quicker(self) -> None:
        """No time is ever taken to be less than nothing."""
        cost = StoreCost()
        for _ in range(10):
            cost.note(100_000, 0.1)
            cost.note(200_000, 0.05)

        self.assertEqual(0.0, cost.per_byte)
        self.assertGreater(cost.fixed, 0)

    def test_hiccup(self) -> None:
        """From one store that takes far too long nothing is learnt."""
        cost = self.learn(0.01, 1e-6, 10_000, 100_000)
        before = (cost.fixed, cost.per_byte, cost.largest)

        self.assertFalse(cost.note(1_000, 0.02))
        self.assertTrue(cost.note(1_000_000, 5.0))
        self.assertApproximates(before[0], cost.fixed, 0.002)
        self.assertEqual(before[2], cost.largest)
        self.assertFalse(cost.note(10_000, 0.02))
        self.assertTrue(cost.note(1_000_000, 5.0))
        self.assertEqual(before[2], cost.largest)

    def test_change(self) -> None:
        """Two of them in a row say that everything is different now."""
        cost = self.learn(0.01, 1e-6, 10_000, 100_000)
        self.assertTrue(cost.note(1_000, 2.0))
        self.assertTrue(cost.note(2_000, 2.0))
        self.assertEqual((2.0, 0.0, 2_000), (cost.fixed, cost.per_byte, cost.largest))
        self.assertFalse(cost.note(2_000, 2.0))

    def test_first(self) -> None:
        """The first store is no hiccup, however long it takes: nothing was expected of it."""
        self.assertFalse(StoreCost().note(1_000, 30.0))


class PaceTests(SynchronousTestCase):
    """A queue that stands is found out, and has an end."""

    def make_pace(self, pause_time: float = 2.0) -> Pace:
        """Make the pace of an observer that writes 1 MB/s."""
        pace = Pace(4 * MiB, pause_time)
        for number in range(20):
            pace.stored(0.0, 10_000 + number * 5_000, 0.01 + number * 0.005, 0)
        return pace

    def stored(self, pace: Pace, now: float, waiting: int, came: int = 0) -> None:
        """Let a store come back as it should."""
        if came:
            pace.came(now, came)
        pace.stored(now, 125_000, 0.125, waiting)

    def test_unknown(self) -> None:
        """As long as nothing is known, nothing is refused, and stores are not too large."""
        pace = Pace(4 * MiB, 2.0)
        pace.stored(0.0, 10_000, 0.0, 50 * MiB)
        pace.stored(9.0, 10_000, 0.0, 50 * MiB)

        self.assertEqual((inf, FIRST_STORE), (pace.room, pace.store_bytes))

    def test_store_bytes(self) -> None:
        """A store is as large as an eighth of a second allows, or more when the fixed time is long; within limits."""
        for fixed, per_byte, expected in (
            (0.0, 1e-6, 125_000),
            (0.05, 1e-6, 200_000),
            (1.0, 1e-6, 300_000),
            (0.0, 1e-3, SMALLEST_STORE),
            (0.0, 1e-9, 4 * MiB),
            (5.0, 0.0, 4 * MiB),
        ):
            pace = Pace(4 * MiB, 2.0)
            for size in (8_000, 16_000, 100_000, 2 * MiB) * 20:
                pace.stored(0.0, size, fixed + size * per_byte, 0)

            self.assertApproximates(expected, pace.store_bytes, expected / 50)

    def test_step_by_step(self) -> None:
        """A store is at most four times as large as any before it."""
        pace = Pace(4 * MiB, 2.0)
        self.assertEqual(FIRST_STORE, pace.store_bytes)
        pace.stored(0.0, FIRST_STORE, 0.001, 0)
        self.assertEqual(4 * FIRST_STORE, pace.store_bytes)
        self.assertEqual(1_000, Pace(1_000, 2.0).store_bytes)

    def test_no_excess(self) -> None:
        """What can be stored within half a second may stay for ever."""
        pace = self.make_pace()
        for number in range(100):
            self.stored(pace, 10 + number / 8, 450_000, came=125_000)

        self.assertEqual(inf, pace.room)

    def test_lasting(self) -> None:
        """More than that may stay for the pause time."""
        pace = self.make_pace(pause_time=1.0)
        for number in range(8):
            self.stored(pace, 10 + number / 8, 800_000)
            self.assertEqual(inf, pace.room)
        self.stored(pace, 11, 800_000)

        self.assertApproximates(500_000, pace.room, 20_000)

    def test_shrinking(self) -> None:
        """A queue that shrinks is left to do so."""
        pace = self.make_pace(pause_time=1.0)
        waiting = 8_000_000
        for number in range(80):
            self.stored(pace, 10 + number / 8, waiting)
            waiting = int(waiting * 0.97)

            self.assertEqual(inf, pace.room)

    def test_growing(self) -> None:
        """One that grows from store to store stands after a few of them, long before the pause time."""
        pace = self.make_pace()
        for number in range(3):
            self.stored(pace, 10 + number / 8, 600_000 + number * 250_000, came=375_000)

        self.assertLess(pace.room, 600_000)

    def test_grown(self) -> None:
        """One that has grown, but to which no more comes than leaves, does not."""
        pace = self.make_pace()
        for number in range(3):
            self.stored(pace, 10 + number / 8, 600_000 + number * 250_000, came=10_000)

        self.assertEqual(inf, pace.room)

    def test_growth_in_a_hiccup(self) -> None:
        """For the pause time after a hiccup growth is not held against anyone."""
        pace = self.make_pace()
        pace.stored(10.0, 1_000, 1.9, 1_900_000)
        self.stored(pace, 10.2, 2_200_000, came=375_000)
        self.stored(pace, 10.4, 2_600_000, came=375_000)
        self.stored(pace, 10.6, 3_000_000, came=375_000)

        self.assertEqual(inf, pace.room)

    def test_end(self) -> None:
        """A second of a queue no more than half full is the end of it, also when nothing is stored any more."""
        pace = self.make_pace(pause_time=0.0)
        self.stored(pace, 10, 800_000)
        self.assertLess(pace.room, inf)
        pace.look(11, 100_000)
        pace.look(11.5, 400_000)
        pace.look(12, 100_000)
        pace.look(12.9, 0)
        self.assertLess(pace.room, inf)
        pace.look(13, 0)
        self.assertEqual(inf, pace.room)
        pace.look(14, 10_000_000)
        self.assertEqual(inf, pace.room)

    def test_again(self) -> None:
        """After its end it can come again."""
        pace = self.make_pace(pause_time=0.0)
        for now in (10, 20):
            self.stored(pace, now, 800_000)
            self.assertLess(pace.room, inf)
            pace.relax()
            self.assertEqual(inf, pace.room)
