"""
Tests for L{tests.mutants.report}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.mutants.mutant import Fate, Mutant
from tests.mutants.report import report, score


class ReportTests(SynchronousTestCase):
    """What is said in the end."""

    def test_survivors(self) -> None:
        """A survivor is shown with place, name and diff, and others are counted."""
        mutants = [Mutant(name, f"{name[0]}.py", 2, "a\nb\nc\n", "a\nd\nc\n") for name in ("b1", "a1", "a2", "b2")]
        said = report(mutants, [Fate.SURVIVED, Fate.KILLED, Fate.TIMED_OUT, Fate.KILLED])
        self.assertEqual(
            "b.py:2\nb1\n-b\n+d\n\n"
            "100.0 % of   2  a.py\n"
            " 50.0 % of   2  b.py\n"
            "75.0 % of 4 mutants killed, 1 of them by the time-out",
            said,
        )

    def test_score(self) -> None:
        """It is the share of those that did not survive."""
        self.assertEqual(100.0, score([]))
        self.assertEqual(50.0, score([Fate.SURVIVED, Fate.KILLED]))
        self.assertEqual(0.0, score([Fate.SURVIVED]))
