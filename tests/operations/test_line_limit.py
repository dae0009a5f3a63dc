"""
Tests for L{webhookrx.operations.line_limit}.
"""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.operations.line_limit import LineLimit


class LineLimitTests(SynchronousTestCase):
    """A few lines a second of each kind."""

    def test_limit(self) -> None:
        """Beyond the limit lines are held back until the next second, each kind on its own."""
        clock = Clock()
        limit = LineLimit(clock.seconds, lines=2)
        self.assertEqual([True, True, False, False], [limit.passes("a") for _ in range(4)])
        self.assertTrue(limit.passes("b"))
        clock.advance(0.9)
        self.assertFalse(limit.passes("a"))
        clock.advance(0.1)
        self.assertTrue(limit.passes("a"))

    def test_held_back(self) -> None:
        """What was held back is told once."""
        limit = LineLimit(Clock().seconds, lines=1)
        for _ in range(3):
            limit.passes("a")
        limit.passes("b")
        self.assertEqual([("a", 2)], limit.take_held_back())
        self.assertEqual([], limit.take_held_back())
