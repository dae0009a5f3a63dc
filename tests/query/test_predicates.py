"""
Tests for L{webhookrx.query.predicates}.
"""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.query.predicates import required_text
from webhookrx.regex import LinearRegex

PIECES = (
    *("a", "K", "s-", "1", " ", "ß", ".", "^", "$", "a*", "b?", "b+", "a??", "b+?", "{2}", "a{0}"),
    *("[ab]", "[^a]", "[a-b]*", "[]a]", "[^]a]", r"[\]a]", "[^^]", "[[:alpha:]]", "|", "(", ")", "(?:", "(?i)"),
    *(r"\.", r"\d", r"\w+", r"\b", r"\x61", r"\Qa*\E", r"\pL", r"\-", r"\/", r"\\", r"\["),
)
PATTERNS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
TEXTS = st.text("aAbBk\u212as\u017f1-. ß\\[]/^", max_size=8)


class RequiredTextTests(SynchronousTestCase):
    """What a text must contain for an expression to match."""

    @given(PATTERNS, TEXTS, st.booleans())
    def test_law(self, pattern: str, text: str, ignore_case: bool) -> None:
        """Whatever an expression matches contains what it requires, once both are casefolded."""
        try:
            expression = LinearRegex(pattern, ignore_case=ignore_case)
        except ValueError:
            return
        if expression.search(text):
            self.assertIn(required_text(pattern), text.casefold())

    def test_table(self) -> None:
        """It is the longest text between what may vary; none where there are groups and alternatives."""
        table = {
            "": "",
            "^Router-0042.*net$": "router-0042",
            "fra": "fra",
            r"web[0-9]+\.example": "example",
            r"SN\d+": "sn",
            "abc*": "ab",
            "abc?de": "ab",
            "abc+": "abc",
            "a|b": "",
            "(abc)": "",
            "abc{0}": "",
            "(?i)abc": "",
            r"\x61bc": "",
            "münchen": "",
        }
        for pattern, expected in table.items():
            with self.subTest(pattern=pattern):
                re.compile(pattern)
                self.assertEqual(expected, required_text(pattern))
