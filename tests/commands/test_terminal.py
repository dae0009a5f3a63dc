"""What the command prints."""

from __future__ import annotations

import io
import json

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.commands.terminal import pointed_at, print_json, safe, shortened, table, width


class TextTests(SynchronousTestCase):
    """Texts for a terminal."""

    def test_safe(self) -> None:
        """What a terminal would obey comes out as escapes, on one line."""
        for text, shown in (
            ("plain, ü, 日本", "plain, ü, 日本"),
            ("\x1b[2J\r\n\t\x9b\u202e\u2028", r"\x1b[2J\r\n\t\x9b\u202e\u2028"),
            ("\udcff", r"\udcff"),
        ):
            self.assertEqual(shown, safe(text))

    def test_width(self) -> None:
        """Wide characters take two columns, combining ones none."""
        for text, columns in (("abc", 3), ("日本", 4), ("e\u0301", 1), ("ｱ", 1), ("", 0)):
            self.assertEqual(columns, width(text), text)

    def test_shortened(self) -> None:
        """A long text ends in dots, and is as long as it may be."""
        self.assertEqual(["abc", "ab…"], [shortened(text, 3) for text in ("abc", "abcd")])

    def test_pointed_at(self) -> None:
        """The caret is under the column, also behind the end."""
        for text, column, lines in (
            ("abc", 1, ("abc", "^")),
            ("abc", 4, ("abc", "   ^")),
            ("日b", 2, ("日b", "  ^")),
            ("", 1, ("", "^")),
        ):
            self.assertEqual(lines, pointed_at(text, column))


class TableTests(SynchronousTestCase):
    """Tables."""

    def test_columns(self) -> None:
        """Columns stand below each other, rows may be shorter, no line ends in blanks, and cells are safe."""
        self.assertEqual(
            ["  a    日  x", "  bbb  \\n  y", "  c"], list(table([["a", "日", "x"], ["bbb", "\n", "y"], ["c"]]))
        )

    def test_empty(self) -> None:
        """Without rows there are no lines."""
        self.assertEqual([], list(table([])))


class JsonTests(SynchronousTestCase):
    """JSON."""

    def test_safe(self) -> None:
        """It is one line that a terminal does not obey, and means the same."""
        facts = {"a": "\x1b\x7f\u2028\x9b\n", "b": [1, None]}
        for indent in (0, 2):
            out = io.StringIO()
            print_json(out, facts, indent)
            self.assertTrue(out.getvalue().replace("\n", "").isprintable())
            self.assertEqual(facts, json.loads(out.getvalue()))
