"""
Tests for L{webhookrx.guard.quota}.
"""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.guard.quota import BUCKETS_SIZE, Buckets, SourceQuota, retry_after


def buckets() -> Buckets:
    """Return buckets that are all full."""
    return Buckets(bytearray(os.urandom(16) + bytes(BUCKETS_SIZE - 16)))


class TakeTests(SynchronousTestCase):
    """
    Tests for L{Buckets.take}.
    """

    def test_burst(self) -> None:
        """A full bucket has room for its burst; then one message has room each time the rate allows it."""
        taken, quota = buckets(), SourceQuota(messages=10, burst=2)
        self.assertEqual([0.0] * 20, [taken.take(quota, "s", "", 1, 0, 1000.0) for _ in range(20)])
        self.assertAlmostEqual(0.1, taken.take(quota, "s", "", 1, 0, 1000.0))
        self.assertAlmostEqual(0.05, taken.take(quota, "s", "", 1, 0, 1000.05))
        self.assertEqual(0.0, taken.take(quota, "s", "", 1, 0, 1000.1))
        self.assertAlmostEqual(0.1, taken.take(quota, "s", "", 1, 0, 1000.1))

    def test_larger_than_bucket(self) -> None:
        """A body that is larger than the bucket has room when it is full, and the next waits for as long as it cost."""
        taken, quota = buckets(), SourceQuota(bytes=100, burst=2)
        self.assertEqual(0.0, taken.take(quota, "s", "", 1, 1000, 50.0))
        self.assertAlmostEqual(8.01, taken.take(quota, "s", "", 1, 1, 50.0))
        self.assertAlmostEqual(10.0, taken.take(quota, "s", "", 1, 1000, 50.0))

    def test_both(self) -> None:
        """Of messages and bytes, the one with less room decides, and a refusal takes of neither."""
        taken, quota = buckets(), SourceQuota(messages=1, bytes=100, burst=2)
        self.assertEqual(0.0, taken.take(quota, "s", "", 1, 200, 50.0))
        self.assertAlmostEqual(1.0, taken.take(quota, "s", "", 1, 100, 50.0))
        self.assertEqual(0.0, taken.take(quota, "s", "", 1, 0, 50.0))
        self.assertAlmostEqual(1.0, taken.take(quota, "s", "", 1, 0, 50.0))


class RetryAfterTests(SynchronousTestCase):
    """
    Tests for L{retry_after}.
    """

    def test_whole_seconds(self) -> None:
        """It is a whole number of seconds, never too early, and a day at most."""
        self.assertEqual([1, 1, 2, 86400], [retry_after(wait) for wait in (0.001, 1.0, 1.001, 1e9)])
