"""
Tests for L{webhookrx.text}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.text import table


class TableTests(SynchronousTestCase):
    """Tables of Markdown."""

    def test_table(self) -> None:
        """There is a line for the titles, one below them, and one for each row."""
        self.assertEqual("| a | b |\n| --- | --- |\n| 1 | 2 |\n|  | 4 |\n", table(("a", "b"), [("1", "2"), ("", "4")]))

    def test_cells(self) -> None:
        """A cell stays one cell on one line, whatever is in it."""
        self.assertEqual("| a |\n| --- |\n| x \\| y z |\n", table(("a",), [(" x | y\n  z ",)]))
