"""Counts of observers that store elsewhere."""

from __future__ import annotations

from threading import Thread

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.store_counts import BOUNDS, Histogram, StoreCounts


class StoreCountsTests(SynchronousTestCase):
    """Counted in one thread, taken in another."""

    def test_take(self) -> None:
        """What is taken is gone."""
        counts = StoreCounts()
        counts.refused(2)
        counts.known(3)
        counts.known(1)
        counts.confirmed(0.02)
        counts.confirmed(40.0)

        first, second = counts.take(), counts.take()

        self.assertEqual((2, 4, 2, 40.02), (first.refused, first.known, first.confirms.count, first.confirms.sum))
        self.assertEqual((0, 0, 0, 0.0), (second.refused, second.known, second.confirms.count, second.confirms.sum))

    def test_threads(self) -> None:
        """Nothing is lost or counted twice between threads."""
        counts = StoreCounts()

        def count() -> None:
            for _ in range(5000):
                counts.known(1)

        threads = [Thread(target=count) for _ in range(3)]
        for thread in threads:
            thread.start()
        total = 0
        while any(thread.is_alive() for thread in threads):
            total += counts.take().known
        total += counts.take().known

        self.assertEqual(15000, total)


class HistogramTests(SynchronousTestCase):
    """Times by bucket."""

    def test_buckets(self) -> None:
        """A time falls into the first bucket whose end is not before it, or into the last, which has no end."""
        for seconds, bucket in (
            (0.0, 0), (0.001, 0), (0.0011, 1), (2.0, BOUNDS.index(2.0)), (2.9, BOUNDS.index(3.0)),
            (3.0, BOUNDS.index(3.0)), (3.1, BOUNDS.index(5.0)), (30.0, len(BOUNDS) - 1), (31.0, len(BOUNDS)),
        ):  # fmt: skip
            times = Histogram.empty()
            times.observe(seconds)
            self.assertEqual(1, times.counts[bucket], seconds)
            self.assertEqual((1, seconds), (times.count, times.sum))

    def test_deadlines(self) -> None:
        """The times after which senders give up are ends of buckets."""
        self.assertLessEqual({3.0, 5.0, 10.0, 30.0}, set(BOUNDS))
        self.assertEqual(sorted(BOUNDS), list(BOUNDS))
