"""
Tests for L{benchmarks.taps}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.taps import added


class AddedTests(SynchronousTestCase):
    """Tests for L{added}."""

    def test_middle(self) -> None:
        """What taps add is the middle of all rounds, so that a slow moment of the machine does not count."""
        self.assertAlmostEqual(0.02, added([(10.0, 10.1), (10.0, 10.2), (10.0, 20.0)]))
