"""Pauses between tries."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.spool.backoff import Backoff


class BackoffTests(SynchronousTestCase):
    """Full jitter."""

    def test_bounds(self) -> None:
        """The bound doubles from 0.1 s to 30 s and stays there; a success begins anew."""
        backoff = Backoff(lambda: 1.0)
        pauses = [backoff.failed() for _ in range(40)]
        self.assertEqual([0.1, 0.2, 0.4, 0.8], pauses[:4])
        self.assertEqual([30.0] * 20, pauses[-20:])
        backoff.succeeded()
        self.assertEqual(0.1, backoff.failed())

    def test_jitter(self) -> None:
        """A pause is any part of its bound."""
        parts = iter((0.0, 0.5, 0.25))
        backoff = Backoff(lambda: next(parts))

        self.assertEqual([0.0, 0.1, 0.1], [backoff.failed() for _ in range(3)])

    def test_retry_after(self) -> None:
        """What the observer asks for is the least it gets, up to five minutes."""
        backoff = Backoff(lambda: 1.0)

        self.assertEqual([7.0, 0.2, 300.0, 0.8], [backoff.failed(asked) for asked in (7.0, 0.1, 1e9, None)])
