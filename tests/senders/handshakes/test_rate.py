"""
Tests for L{webhookrx.senders.handshakes.rate}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.senders.handshakes import HandshakeRate
from webhookrx.senders.handshakes.rate import PER_SECOND


class RateTests(SynchronousTestCase):
    """Questions a second."""

    def test_limit(self) -> None:
        """Ten are taken at once, no more; a tenth of a second later there is one again."""
        self.assertEqual(PER_SECOND, 10)
        rate = HandshakeRate(100.0)
        self.assertEqual([rate.take(100.0) for _ in range(PER_SECOND)], [0] * PER_SECOND)
        self.assertEqual([rate.take(100.0), rate.take(100.05)], [1, 1])
        self.assertEqual([rate.take(100.11), rate.take(100.11)], [0, 1])

    def test_full(self) -> None:
        """However long nobody asks, no more than ten gather."""
        rate = HandshakeRate()
        taken = [rate.take(1_000_000.0) for _ in range(PER_SECOND + 1)]
        self.assertEqual(taken, [0] * PER_SECOND + [1])

    def test_first(self) -> None:
        """From the first moment on there are ten, whatever the clock says."""
        for now in (0.0, 0.05, 1e9):
            rate = HandshakeRate()
            self.assertEqual([rate.take(now) for _ in range(PER_SECOND + 1)], [0] * PER_SECOND + [1])

    def test_clock(self) -> None:
        """A clock that goes back gives nothing."""
        rate = HandshakeRate(50.0)
        for _ in range(PER_SECOND):
            rate.take(50.0)
        self.assertEqual([rate.take(40.0), rate.take(49.0), rate.take(50.0)], [1, 1, 1])
