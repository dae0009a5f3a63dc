"""
Tests for L{webhookrx.config.limits}.
"""

from __future__ import annotations

from dataclasses import fields

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.limits import DEFAULTS, LIMITS, parse_limit, show_limit
from webhookrx.errors import REASONS, ConfigError
from webhookrx.settings import Limits


class LimitTests(SynchronousTestCase):
    """
    Tests for L{parse_limit}, L{show_limit} and the table.
    """

    def test_table_is_complete(self) -> None:
        """Every field of the settings is in the table, in the same order, with a reason that exists or none."""
        self.assertEqual([field.name for field in fields(Limits)], list(LIMITS))
        words = {reason.word for reason in REASONS}
        self.assertEqual(set(), {reason for _, _, reason in LIMITS.values() if reason} - words)

    def test_parse(self) -> None:
        """Sizes and times take units, counts are whole numbers, and names may have a dash."""
        cases = {
            "body=10MiB": ("body", 10 * 1024 * 1024),
            "header-block = 2KiB": ("header_block", 2048),
            "header_time=500ms": ("header_time", 0.5),
            "idle_time=2m": ("idle_time", 120.0),
            "headers=7": ("headers", 7),
        }
        for text, expected in cases.items():
            self.assertEqual(expected, parse_limit(text), text)

    def test_errors(self) -> None:
        """A wrong form, name or value is an error that says what is allowed."""
        cases = {
            "body": "not of the form NAME=VALUE",
            "boddy=1": 'Did you mean "body"?',
            "=1": "Known are answer_time,",
            "body=": "a size such as",
            "body=0": "more than 0",
            "body=-1": 'can\'t be "-1"',
            "body=ten": "a size such as",
            "header_time=0s": "more than 0",
            "header_time=soon": "a time such as",
            "headers=1.5": "a whole number",
            "headers=1KiB": "a whole number",
            "headers=²": "a whole number",
        }
        for text, fragment in cases.items():
            self.assertIn(fragment, self.assertRaises(ConfigError, parse_limit, text).problem)

    def test_show(self) -> None:
        """What is shown for a default is read back as that default."""
        for name, number in DEFAULTS.items():
            self.assertEqual((name, number), parse_limit(f"{name}={show_limit(name, number)}"))
