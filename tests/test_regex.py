"""
Tests for L{webhookrx.regex}.
"""

from __future__ import annotations

import re
import time
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx import regex as linear_regex
from webhookrx.regex import LinearRegex, RegexTooCostly, compile_linear, cost_of, spans_of
from webhookrx.work import PER_INSTRUCTION, TooMuchWork, Work

PIECES = st.sampled_from(
    ["a", "B", "1", ".", "[ab]", "[^a1]", r"\d", r"\w", "^", "$", "a*", "b?", "(a|b)", "1{,2}", r"\Z"]
)
PATTERNS = st.lists(PIECES, max_size=4).map("".join)
TEXTS = st.text("aAbB1 .", max_size=6)

TAME = (
    "a",
    "",
    "^/health",
    r"user=(?P<user>\w+) from (?P<ip>[\d.]+)",
    "(foo|bar)+$",
    "(?i)denied",
    "a{3}b?",
    ".*",
    r"\bERROR\b",
)
COSTLY = (
    "[ab]*a[ab]{30}c",
    "(a?){100}b",
    "(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)x",
    "(a|b|ab){20}",
    "((a?b?){5}c?){5}",
    "x" * 300,
    r"\pL{20}",
)


class LinearRegexTests(SynchronousTestCase):
    """Expressions that are looked for anywhere."""

    @given(PATTERNS, TEXTS, st.booleans())
    def test_as_python(self, pattern: str, text: str, ignore_case: bool) -> None:
        """They mean what they mean in Python."""
        expected = re.search(pattern, text, re.IGNORECASE if ignore_case else 0) is not None

        self.assertEqual(expected, LinearRegex(pattern, ignore_case=ignore_case).search(text))

    def test_groups(self) -> None:
        """Groups that took part are given by name, in the order of the pattern."""
        expression = LinearRegex(r"(?P<b>\w+)=(?P<a>ü+)?(\d)?")

        self.assertEqual(("b", "a"), expression.names)
        self.assertEqual({"b": "x", "a": "üü"}, expression.groups("; x=üü1", Work()))
        self.assertEqual({"b": "x"}, expression.groups("x=", Work()))
        self.assertIsNone(expression.groups("nothing", Work()))

    def test_without_captures(self) -> None:
        """Where nobody asks for groups there are none, named ones included; the match is the same."""
        for pattern in (r"(?P<a>b+)(c)", r"(?<a>b+)(c)", r"[(?P<a>]*(?P<a>b+)\(?P<a>c|(c)", r"\Q(?P<a>\E|b(b)c"):
            bare = compile_linear(pattern, captures=False)
            self.assertEqual(0, bare.groups, pattern)
            whole = spans_of(compile_linear(pattern), whole=False)(b"(?P<a>bbc")
            found = spans_of(bare, whole=False)(b"(?P<a>bbc")
            assert whole is not None and found is not None
            self.assertEqual([whole[0]], list(found), pattern)

    def test_slow_way(self) -> None:
        """With an RE2 whose inner parts are others, the public ones do the same."""
        with patch.object(linear_regex.re2, "_Anchor", None):
            expression = LinearRegex(r"b(?P<c>c)?")
            whole = spans_of(compile_linear("(a)b"))

        self.assertEqual([True, False], [expression.search("abc"), expression.search("ac")])
        self.assertEqual([{"c": "c"}, {}, None], [expression.groups(text, Work()) for text in ("abc", "ab", "a")])
        self.assertEqual([[(0, 2), (0, 1)], None], [whole(b"ab"), whole(b"abc")])

    def test_lone_surrogates(self) -> None:
        """A text that does not encode is no error."""
        expression = LinearRegex("a(?P<x>.)")

        self.assertEqual((True, {"x": "?"}), (expression.search("a\ud800"), expression.groups("a\ud800", Work())))

    def test_what_does_not_compile(self) -> None:
        """One sentence says why."""
        table: tuple[tuple[str, str], ...] = (
            ("(", "does not compile: missing )"),
            ("(?=a)", "RE2 can't run"),
            (r"(a)\1", "RE2 can't run"),
            (r"\pL{900}", "does not compile"),
            ("a" * 10_001, "longer than 10000 characters"),
            ("\ud800", "RE2 can't run"),
        )
        for pattern, reason in table:
            with self.subTest(pattern=pattern[:20]):
                error: Any = self.assertRaises(ValueError, LinearRegex, pattern)
                self.assertIn(reason, str(error))

    def test_large_ones(self) -> None:
        """An expression that becomes large in memory is refused, even if RE2 would take it."""
        self.assertTrue(LinearRegex(r"^\pL{20}").search("ü" * 20))
        self.assertRaises(ValueError, LinearRegex, r"^\pL{200}")

    def test_no_hanging(self) -> None:
        """What takes Python for ever is read once here."""
        self.assertFalse(LinearRegex("(a+)+$").search("a" * 10_000 + "b"))

    def test_too_costly(self) -> None:
        """A text is refused, not searched for minutes, when it is too long for the size of an expression."""
        costly = LinearRegex("(a?){1000}(?P<end>b)")
        self.assertFalse(costly.search("a" * 1000))
        self.assertRaises(RegexTooCostly, costly.search, "a" * 100_000)
        self.assertRaises(TooMuchWork, costly.groups, "a" * 100_000, Work())
        greedy = LinearRegex("(?P<a>(.*)(.*)(.*))$")
        self.assertEqual({"a": "a" * 1_000}, greedy.groups("a" * 1_000, Work()))
        self.assertRaises(TooMuchWork, greedy.groups, "a" * 500_000, Work())
        self.assertTrue(LinearRegex("b").search("a" * 1_000_000 + "b"))


class CostTests(SynchronousTestCase):
    """What a byte costs."""

    def test_tame(self) -> None:
        """A byte costs the same for all expressions of few uncertain places, however they are put together."""
        for pattern in TAME:
            self.assertEqual(3, cost_of(pattern, 10_000).per_byte, pattern)

    def test_costly(self) -> None:
        """It costs as much as there are instructions where there are many, and where Python can't read it."""
        for pattern in COSTLY:
            self.assertEqual(500 * PER_INSTRUCTION, cost_of(pattern, 500).per_byte, pattern)

    def test_ahead(self) -> None:
        """How far a match is looked for is known where it ends by itself."""
        for pattern, ahead in (("abc", 3), ("a|bcd", 3), ("[0-9]{13,16}", 16), ("", 0), ("a+b", None), (".*x", None)):
            self.assertEqual(ahead, cost_of(pattern, 10).ahead, pattern)
        for pattern in ("a+", r"a\d+", "(b+)"):
            ahead = cost_of(pattern, 10).ahead
            assert ahead is not None, pattern
            self.assertLess(ahead, 1_000)

    def test_never_less(self) -> None:
        """Searches take no more time than what they cost says, on texts that are made to be hard."""
        texts = [b"ab" * 10_000, b"a" * 20_000, b"ab=1.user from " * 1_300, b"aabab" * 4_000]
        for pattern in (*TAME, *COSTLY):
            regex = compile_linear(pattern, captures=False)
            per_byte = cost_of(pattern, regex.programsize).per_byte
            for text in texts:
                start = time.thread_time()
                regex.search(text)
                # Two nanoseconds for a unit, on a machine ten times as slow.
                self.assertLess(time.thread_time() - start, 0.002 + len(text) * per_byte * 20e-9, pattern)
