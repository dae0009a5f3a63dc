"""
Tests for L{webhookrx.expressions.run}: what a run may cost. What costs how much is in test_bounds.py.
"""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.expressions import Limits
from webhookrx.expressions.mistakes import Mistake
from webhookrx.expressions.run import Allowance, Run


class RunTests(SynchronousTestCase):
    """The bounds of a run: up to each of them all is well, and beyond it the run is over, whatever a program says."""

    def setUp(self) -> None:
        """Stop the clock."""
        self.clock = Clock()

    def run_of(self, made: int, allowance: Allowance | None = None) -> Run:
        """Begin a run of a quarter of a second that may make so many characters."""
        return Run({}, self.clock.seconds, Limits(seconds=0.25, made=made), allowance)

    def assert_over(self, run: Run, characters: int | None, problem: str) -> None:
        """To spend so much, or to look at the clock, ends the run."""
        with self.assertRaises(Mistake) as caught:
            run.look() if characters is None else run.spend(characters)
        self.assertEqual((problem, True), (caught.exception.problem, caught.exception.final))

    def test_time(self) -> None:
        """It may take its time, and no longer, whether it only looks or makes something."""
        run = self.run_of(100)
        self.clock.advance(0.25)
        run.look()
        run.spend(1)
        self.clock.advance(0.001)
        for characters in (None, 1, 0):
            self.assert_over(run, characters, "The run took longer than 250 ms.")

    def test_made(self) -> None:
        """What it makes is added up."""
        run = self.run_of(100)
        run.spend(60)
        run.spend(40)
        self.assert_over(run, 1, "The run made more than 100 characters.")
        self.assert_over(self.run_of(100), 101, "The run made more than 100 characters.")

    def test_allowance(self) -> None:
        """What all runs on a message make is added up too."""
        allowance = Allowance(100)
        for characters in (60, 30, 10):
            self.run_of(70, allowance).spend(characters)
        self.assertEqual(0, allowance.left)
        for _ in range(2):
            self.assert_over(self.run_of(70, allowance), 1, "All expressions made too much of this message.")

    def test_own_bound_first(self) -> None:
        """A run that makes too much for itself takes nothing from the others."""
        allowance = Allowance(100)
        self.assert_over(self.run_of(70, allowance), 71, "The run made more than 70 characters.")
        self.assertEqual(100, allowance.left)

    def test_new(self) -> None:
        """It has a record, no local variables yet, and nothing to undo."""
        record = {"a": 1}
        run = Run(record, self.clock.seconds, Limits())
        self.assertIs(record, run.record)
        self.assertEqual({}, run.locals)
