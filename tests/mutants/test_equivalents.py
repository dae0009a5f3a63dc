"""
Tests for L{tests.mutants.equivalents}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.mutants.equivalents import FILE, out_of_date, read_equivalents


class EquivalentsTests(SynchronousTestCase):
    """The list of mutants that do the same as the code."""

    def test_read(self) -> None:
        """Names stand on lines of their own, reasons below them."""
        text = "# They do the same.\n\na.py: b: c(': \"'): AddNot\n    It is\n    so.\nd\n\te\n"
        self.assertEqual({"a.py: b: c(': \"'): AddNot": "It is so.", "d": "e"}, read_equivalents(text))

    def test_mistakes(self) -> None:
        """Each has a reason, and is there once."""
        for text in ("a\nb\n  why\n", "a\n", "a\n  why\na\n  why\n"):
            with self.assertRaises(ValueError, msg=text):
                read_equivalents(text)

    def test_out_of_date(self) -> None:
        """One that stands nowhere any more is found."""
        self.assertEqual(["b"], out_of_date({"a": "why", "b": "why"}, {"a", "c"}))

    def test_file(self) -> None:
        """Ours can be read."""
        read_equivalents(FILE.read_text(encoding="utf-8"))
