"""
Tests for L{webhookrx.query.completion}.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.query.completion import Expected, expected_at


class ExpectedTests(SynchronousTestCase):
    """What may stand at a place; | is the cursor."""

    def test_table(self) -> None:
        """Fields, operators, values and what joins terms, with what is written of each."""
        cases: tuple[tuple[str, tuple[str, str, str] | None], ...] = (
            ("|", ("field", "", "")),
            ("lab|", ("field", "lab", "")),
            ("la|bel.site = x", ("field", "la", "")),
            ("label.site |", ("operator", "", "label.site")),
            ("label.site =|", ("operator", "=", "label.site")),
            ("label.site !|", ("operator", "!", "label.site")),
            ("label.site = |", ("value", "", "label.site")),
            ("label.site = fr|a", ("value", "fr", "label.site")),
            ("label.site = 'fr|", ("value", "fr", "label.site")),
            ("label.site = 'fr|'", ("value", "fr", "label.site")),
            ("label.'a.b' = |", ("value", "", "label.a.b")),
            ("a = b |", ("joint", "", "a")),
            ("a = b AN|", ("joint", "AN", "a")),
            ("a = b AND |", ("field", "", "a")),
            ("a = b, |", ("field", "", "a")),
            ("NOT |", ("field", "", "")),
            ("(a EXISTS OR |", ("field", "", "a")),
            ("a NOT |", ("operator", "", "a")),
            ("a NOT EXISTS |", ("joint", "", "a")),
            ("a IN (|", ("value", "", "a")),
            ("a IN (x, y|", ("value", "y", "a")),
            ("a IN (x, y) |", ("joint", "", "a")),
            ("a IN (x |", None),
            ("a IN |", None),
            ("a = b c |", None),
            ("a ==== |", None),
            ("a = b) |", None),
            ("= |", None),
            ("{|", None),
        )
        for text, wanted in cases:
            with self.subTest(text=text):
                at = text.index("|")
                found = expected_at(text.replace("|", "", 1), at)
                self.assertEqual(wanted, found and (found.kind, found.begun, found.field))

    def test_places(self) -> None:
        """The whole word is replaced, with its quotes."""
        self.assertEqual(Expected("field", 0, 10, "la"), expected_at("label.site = x", 2))
        self.assertEqual(Expected("value", 4, 7, "b", "a"), expected_at("a = 'b' OR", 6))
        self.assertEqual((2, 4), expected_at("a =~ x", 3)[1:3])  # type: ignore[index]
        self.assertEqual(2, expected_at("((a = b ", 8).levels)  # type: ignore[union-attr]
        for at in (-1, 2):
            self.assertIsNone(expected_at("a", at))
        self.assertIsNone(expected_at("a" * 20_000, 0))

    @given(st.text("ab.='\"(),! ANDORINEXSTS~<>*\\\n\u0130{", max_size=40), st.integers(0, 40))
    def test_any_text(self, text: str, at: int) -> None:
        """Any text at any place has an answer, in its bounds."""
        found = expected_at(text, at)
        if found is not None:
            self.assertTrue(0 <= found.start <= at <= found.end <= len(text))
