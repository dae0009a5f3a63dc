"""
Tests for L{webhookrx.work}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.work import MOST_FOR_MESSAGE, MOST_FOR_STEP, TooMuchWork, Work


class WorkTests(SynchronousTestCase):
    """Work that is counted."""

    def test_spend(self) -> None:
        """All that is there may be spent, and not one unit more; what is refused takes nothing."""
        work = Work(10)
        work.spend(4)
        self.assertRaises(TooMuchWork, work.spend, 7)
        work.spend(6)
        self.assertEqual(0, work.left)
        self.assertRaises(TooMuchWork, work.spend, 1)
        work.spend(0)

    def test_most(self) -> None:
        """A message has more than one step of it may take."""
        self.assertEqual(MOST_FOR_MESSAGE, Work().left)
        self.assertLess(MOST_FOR_STEP, MOST_FOR_MESSAGE)
