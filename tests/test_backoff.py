"""
Tests for L{webhookrx.backoff}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.backoff import full_jitter


class FullJitterTests(SynchronousTestCase):
    """
    Tests for L{full_jitter}.
    """

    def test_bounds(self) -> None:
        """The bound begins as it should, doubles with each failure, and stays where it should."""
        bounds = [full_jitter(failures, 0.25, 6.0, lambda: 1.0) for failures in (1, 2, 3, 5, 6, 5000)]
        self.assertEqual([0.25, 0.5, 1.0, 4.0, 6.0, 6.0], bounds)

    def test_any_pause_below(self) -> None:
        """Chance alone decides how long a pause is, from nothing to the bound."""
        for share in (0.0, 0.5, 0.75):
            self.assertEqual(share, full_jitter(3, 0.25, 6.0, lambda share=share: share))
