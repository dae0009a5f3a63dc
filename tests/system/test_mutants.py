"""
The tests of a small tree, and what they make of mutants in it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

from twisted.trial.unittest import SynchronousTestCase

from tests.mutants.mutant import Fate, Mutant
from tests.mutants.report import report
from tests.mutants.trial_runs import TestsDoNotPass, TreeCopy, fates_of

CODE = """
def larger(one, other):
    while True:
        if one > other:
            return one
        return other
"""

TESTS = """
from twisted.trial.unittest import SynchronousTestCase

from planted import larger


class PlantedTests(SynchronousTestCase):
    def test_larger(self):
        self.assertEqual([2, 2], [larger(1, 2), larger(2, 1)])
"""


class TreeCase(SynchronousTestCase):
    """Mutants of a small tree."""

    def setUp(self) -> None:
        """Write it."""
        self.root = Path(self.mktemp())
        self.root.mkdir(parents=True)
        (self.root / "planted.py").write_text(CODE, encoding="utf-8")
        (self.root / "test_planted.py").write_text(TESTS, encoding="utf-8")

    def mutant(self, old: str, new: str) -> Mutant:
        """Return the tree's file with one text put for another."""
        assert old in CODE
        return Mutant(f"{old} {new}", "planted.py", 1, CODE, CODE.replace(old, new))

    def copy(self, slack: float = 60.0) -> TreeCopy:
        """Return a copy of the tree, which is removed in the end."""
        copy = TreeCopy(self.root, slack)
        self.addCleanup(copy.remove)
        return copy


class FateTests(TreeCase):
    """What becomes of one mutant."""

    def test_fates(self) -> None:
        """One that is noticed is killed, and one that is not survives, though they came within a second."""
        copy = self.copy()
        fates = [
            copy.fate_of(self.mutant(*change), {"test_planted": 0.0})
            for change in (
                ("> other", "< other"),
                ("> other", ">=other"),
                ("one > ", "one < "),
                ("return other", "1/0"),
            )
        ]
        self.assertEqual([Fate.KILLED, Fate.SURVIVED, Fate.KILLED, Fate.KILLED], fates)
        self.assertEqual(CODE, (copy.tree / "planted.py").read_text(encoding="utf-8"))
        self.assertEqual(CODE, (self.root / "planted.py").read_text(encoding="utf-8"))

    def test_endless(self) -> None:
        """One that never ends is ended."""
        endless = self.mutant("if one > other", "while one > other: pass\n        if one > other")
        self.assertIs(Fate.TIMED_OUT, self.copy(slack=3.0).fate_of(endless, {"test_planted": 0.0}))

    def test_tests_that_fail(self) -> None:
        """Tests that fail without a mutant are said to, and what fails."""
        (self.root / "planted.py").write_text(CODE.replace(">", "<"), encoding="utf-8")
        with self.assertRaises(TestsDoNotPass) as caught:
            self.copy().time_of("test_planted")
        self.assertIn("test_larger", str(caught.exception))

    def test_time(self) -> None:
        """Those that pass are timed."""
        self.assertGreater(self.copy().time_of("test_planted"), 0.0)


class PlantedTests(TreeCase):
    """From the code to the report."""

    if not find_spec("cosmic_ray"):
        skip = "needs pip install -e '.[mutants]'"

    def test_report(self) -> None:
        """Of all mutants the survivors are reported, and those that are killed are not."""
        from tests.mutants.candidates import candidates_of, sample

        mutants = sample(candidates_of("planted.py", CODE), 1, None, self.root)
        told: list[str] = []
        fates = fates_of(mutants, self.root, lambda root, path: ["test_planted"], 2, told.append)
        survivors = dedent("""\
            planted.py:4
            planted.py: larger: if one > other:: ReplaceComparisonOperator_Gt_GtE
            -        if one > other:
            +        if one >= other:

            """)
        said = report(mutants, fates)
        self.assertTrue(said.startswith(survivors + " 75.0 % of   4  planted.py"), said)
        self.assertEqual(4, len(told))
