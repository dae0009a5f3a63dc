"""Tests for L{benchmarks.outcome}."""

from __future__ import annotations

import json
import os

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.comparisons import Bound, Case, Goal, Ratio
from benchmarks.lab import Lab
from benchmarks.outcome import Outcome, run_rounds
from benchmarks.runs import Run
from benchmarks.tools import Broken, Cores, Tools, Unavailable
from tests.benchmarks.figures import told


class RoundTests(SynchronousTestCase):
    """What is run, how often and in which order."""

    def run_all(self, *cases: Case, rounds: int = 2) -> tuple[Outcome, list[str]]:
        """Run some cases; return what came out, and what was said."""
        outcome, said = Outcome({}), []
        tools = Tools(cores=Cores(0, 0))
        run_rounds(cases, lambda: Lab(tools, 0.0, self.directory), rounds, outcome, said.append)
        return outcome, said

    def setUp(self) -> None:
        """Make a place."""
        self.directory = self.mktemp()
        os.mkdir(self.directory)

    def case(self, *runs: Run, name: str = "some") -> Case:
        """Return a case that needs some runs."""
        return Case(name, "", tuple(Bound(run, "cpu", "", "") for run in runs))

    def test_interleaved(self) -> None:
        """A round has every case, and a case has each of its runs once, also those that an earlier one has had."""
        first = told("first", {"cpu": 1.0}, {"cpu": 2.0})
        second = told("second", *({"cpu": float(number)} for number in range(4)))
        outcome, said = self.run_all(self.case(first, second, first, name="one"), self.case(second, name="two"))
        self.assertEqual(
            [
                f"round {number} of 2: {what}"
                for number in (1, 2)
                for what in ("one: first", "one: second", "two: second")
            ],
            said,
        )
        self.assertEqual([{"cpu": 0.0}, {"cpu": 2.0}], outcome.rounds["one"]["second"])
        self.assertEqual([{"cpu": 1.0}, {"cpu": 3.0}], outcome.rounds["two"]["second"])

    def test_once(self) -> None:
        """What need not be repeated is not."""
        outcome, said = self.run_all(self.case(told("first", {"cpu": 1.0}, once=True)))
        self.assertEqual(["round 1 of 2: some: first"], said)
        self.assertEqual([{"cpu": 1.0}, None], outcome.rounds["some"]["first"])

    def test_unavailable(self) -> None:
        """What can't be run is left out with its reason, and the others run."""
        missing, there = told("missing", Unavailable("no such thing")), told("there", {"cpu": 1.0}, {"cpu": 2.0})
        outcome, said = self.run_all(self.case(missing, there))
        self.assertEqual({"missing": "no such thing"}, outcome.skipped)
        self.assertEqual(1, said.count("round 1 of 2: some: missing") + said.count("round 2 of 2: some: missing"))
        self.assertEqual([{"cpu": 1.0}, {"cpu": 2.0}], outcome.rounds["some"]["there"])

    def test_broken(self) -> None:
        """What went wrong once counts not at all in its case, and is not tried again there."""
        for error in (Broken("a line is missing"), ConnectionResetError("a line is missing")):
            outcome, _ = self.run_all(self.case(told("broken", {"cpu": 1.0}, error, {"cpu": 1.0})), rounds=3)
            self.assertEqual({"some: broken": "a line is missing"}, outcome.broken)
            self.assertNotIn("broken", outcome.rounds["some"])

    def test_json(self) -> None:
        """JSON has the figures, and what they come to."""
        ours, other = told("ours", {"cpu": 1.0}), told("other", {"cpu": 3.0})
        case = Case("some", "", (Ratio(ours, other, goal=Goal(1, 2)),))
        outcome, _ = self.run_all(case, rounds=1)
        read = json.loads(outcome.as_json((case,)))
        self.assertEqual([{"cpu": 3.0}], read["rounds"]["some"]["other"])
        self.assertEqual(
            [
                {
                    "case": "some",
                    "what": "ours / other",
                    "by": "cpu",
                    "is ratio": True,
                    "spread": {"median": 3.0, "least": 3.0, "most": 3.0},
                    "goal": {"enough": 1, "best": 2},
                }
            ],
            read["comparisons"],
        )
