"""
Tests for L{webhookrx.operations.counters}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.operations.counters import Counters


class CountersTests(SynchronousTestCase):
    """Counts by name and label."""

    def test_counting(self) -> None:
        """Counts add up by name and label, and what was never counted is zero without being remembered."""
        counters = Counters()
        counters.add("refused", "bad_token")
        counters.add("refused", "bad_token", 2)
        counters.add("failures")
        self.assertEqual((3, 1, 0), (counters.get("refused", "bad_token"), counters.get("failures"), counters.get("x")))
        self.assertEqual("failures=1 refused.bad_token=3", counters.summary())
