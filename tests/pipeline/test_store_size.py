"""Tests for L{webhookrx.pipeline.store_size}."""

from __future__ import annotations

from math import inf

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.pipeline.store_size import FIRST, GROWTH, LATELY, ON_BYTES, SMALLEST, StoreSize

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
