"""
Tests for L{webhookrx.service.workers.slot}.
"""

from __future__ import annotations

from math import inf

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.service.workers.slot import LONGEST_PAUSE, SETTLED, Restarts


class RestartsTests(SynchronousTestCase):
    """
    A worker that ends again and again, with the longest pauses there can be.
    """

    def setUp(self) -> None:
        self.restarts = Restarts(lambda: 1.0)
        self.now = 1000.0

    def end_after(self, seconds: float) -> float:
        """Start it, have it end after so long, and return for how long it then pauses."""
        self.restarts.started(self.now)
        self.assertEqual(inf, self.restarts.due)
        self.now += seconds
        self.restarts.ended(self.now)
        return round(self.restarts.due - self.now, 6)

    def test_pauses(self) -> None:
        """They double from a tenth of a second, up to a bound."""
        pauses = [self.end_after(1.0) for _ in range(11)]
        self.assertEqual([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, LONGEST_PAUSE, LONGEST_PAUSE], pauses)

    def test_settled(self) -> None:
        """One that has lived for a while begins again with short pauses."""
        for _ in range(5):
            self.end_after(SETTLED - 0.1)
        self.assertEqual(0.1, self.end_after(SETTLED))
        self.assertEqual(0.2, self.end_after(1.0))

    def test_not_started(self) -> None:
        """One that can't even be started, after a long life or at the first time, has longer and longer pauses."""
        for first in (SETTLED, None):
            self.setUp()
            pauses = [] if first is None else [self.end_after(first)]
            for _ in range(12):
                self.now += SETTLED
                self.restarts.ended(self.now)
                pauses.append(round(self.restarts.due - self.now, 6))
            self.assertEqual([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, LONGEST_PAUSE, LONGEST_PAUSE], pauses[:11])

    def test_jitter(self) -> None:
        """Pauses are anything up to these, so that workers do not start all at once."""
        self.restarts = Restarts(lambda: 0.25)
        self.assertEqual(0.025, self.end_after(1.0))

    def test_at_once(self) -> None:
        """One that was to end is followed without a pause."""
        self.restarts.at_once(7.0)
        self.assertEqual(7.0, self.restarts.due)
