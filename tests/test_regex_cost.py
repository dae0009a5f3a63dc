"""
Tests for L{webhookrx.regex_cost}.
"""

from __future__ import annotations

import time

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.regex import compile_linear
from webhookrx.regex_cost import cost_of
from webhookrx.work import PER_INSTRUCTION

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
