"""Backoff, and the Retry-After of a server."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.backoff import LONGEST_RETRY_AFTER, Backoff, parse_retry_after

#: 2026-01-02T03:04:05Z.
NOW = 1_767_323_045.0


class BackoffTests(SynchronousTestCase):
    """Full jitter below bounds that double."""

    def test_bounds(self) -> None:
        """The bound doubles with each failure up to the longest and stays there; a success begins anew."""
        backoff = Backoff(0.25, 6.0, lambda: 1.0)
        pauses = [backoff.failed() for _ in range(5000)]
        self.assertEqual([0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 6.0], pauses[:7])
        self.assertEqual(6.0, pauses[-1])
        backoff.succeeded()
        self.assertEqual(0.25, backoff.failed())

    def test_jitter(self) -> None:
        """A pause is any part of its bound, from nothing to all of it."""
        parts = iter((0.0, 0.5, 0.25))
        backoff = Backoff(0.1, 30.0, lambda: next(parts))

        self.assertEqual([0.0, 0.1, 0.1], [backoff.failed() for _ in range(3)])

    def test_retry_after(self) -> None:
        """The pause is at least the Retry-After, up to five minutes of it."""
        backoff = Backoff(0.1, 30.0, lambda: 1.0)

        self.assertEqual([7.0, 0.2, 300.0, 0.8], [backoff.failed(asked) for asked in (7.0, 0.1, 1e9, None)])


class RetryAfterTests(SynchronousTestCase):
    """Seconds or a date, in reason."""

    def test_values(self) -> None:
        """Each form is read; a malformed one counts as missing."""
        table: list[tuple[str | None, float | None]] = [
            (None, None),
            ("0", 0.0),
            ("2", 2.0),
            (" 120 ", 120.0),
            ("31536000", LONGEST_RETRY_AFTER),
            ("Fri, 02 Jan 2026 03:04:35 GMT", 30.0),
            ("Friday, 02-Jan-26 03:04:35 GMT", 30.0),
            ("Fri Jan  2 03:04:35 2026", 30.0),
            ("Fri, 02 Jan 2026 03:04:35", 30.0),
            ("Fri, 02 Jan 2026 03:00:00 GMT", 0.0),
            ("Fri, 02 Jan 2099 03:00:00 GMT", LONGEST_RETRY_AFTER),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("Fri, 99 Jan 2026 03:04:35 GMT", None),
            ("9" * 13, None),
            ("\u0662", None),
        ]

        for value, seconds in table:
            with self.subTest(value):
                self.assertEqual(seconds, parse_retry_after(value, NOW))

    @given(st.text())
    def test_any_text(self, value: str) -> None:
        """Any text is None, or a time within bounds."""
        seconds = parse_retry_after(value, NOW)

        self.assertTrue(seconds is None or 0.0 <= seconds <= LONGEST_RETRY_AFTER)
