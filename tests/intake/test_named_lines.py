"""
Tests for L{webhookrx.intake.named_lines}.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake.named_lines import named_lines


class NamedLinesTests(SynchronousTestCase):
    def test_lines(self) -> None:
        """Blanks around C{=} set a name off; else the line is the value, and its number the name."""
        text = "\ufeff# ours\r\nold = abc\n\n  new\t=\t d e = f \nbWFnaWM=\nx=y\nverify-token.2 = 1\n# x = y"

        self.assertEqual(
            [("old", "abc"), ("new", "d e = f"), ("5", "bWFnaWM="), ("6", "x=y"), ("verify-token.2", "1")],
            [(line.name, line.value) for line in named_lines(text)],
        )
        self.assertEqual([True, True, False, False, True], [line.has_name for line in named_lines(text)])

    def test_mistakes(self) -> None:
        """A mistake is one sentence with the number of the line, and quotes nothing that may be secret."""
        cases = {
            "s3cr3t x = y": "Line 1: the name before = is",
            "\n\té = s3cr3t": "Line 2: the name before = is",
            "a =": "Line 1: the value of a is empty",
            "a = s3cr3t\na = s3cr3t2": "Line 2: the name a is that of line 1, too",
            "s3cr3t\n1 = s3cr3t": "Line 2: the name 1 is that of line 1, too",
            f"{'a' * 65} = s3cr3t": "Line 1: the name before = is",
            "-a = s3cr3t": "Line 1: the name before = is",
        }
        for text, problem in cases.items():
            error = self.assertRaises(ValueError, named_lines, text)
            self.assertIn(problem, str(error), text)
            self.assertNotIn("s3cr3t", str(error))

    def test_repr(self) -> None:
        """Its representation does not show the value."""
        self.assertNotIn("s3cr3t", repr(named_lines("a = s3cr3t\ns3cr3t")))

    @given(st.text(alphabet="a= \t\n#1-", max_size=40))
    def test_any_text(self, text: str) -> None:
        """Any text is lines with names that differ and values that are not empty, or one mistake."""
        try:
            lines = named_lines(text)
        except ValueError:
            return
        self.assertEqual(len(lines), len({line.name for line in lines}))
        self.assertTrue(all(line.value == line.value.strip() != "" for line in lines))
