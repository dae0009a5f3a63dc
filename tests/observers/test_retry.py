"""Pauses between tries, and what the other end asks for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.backoff import LONGEST_RETRY_AFTER
from webhookrx.observers.retry import parse_retry_after

#: 2026-01-02T03:04:05Z.
NOW = 1_767_323_045.0


class RetryAfterTests(SynchronousTestCase):
    """Seconds or a date, in reason."""

    def test_values(self) -> None:
        """Each form is read; what is neither is as if it were missing."""
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
        """Whatever it says, it is nothing, or a time within bounds."""
        seconds = parse_retry_after(value, NOW)

        self.assertTrue(seconds is None or 0.0 <= seconds <= LONGEST_RETRY_AFTER)
