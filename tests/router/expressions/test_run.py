"""
Tests for L{webhookrx.router.expressions.run}: what a run may cost. What costs how much is in test_bounds.py.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.router.expressions import RunLimits
from webhookrx.router.expressions.run import OperationError, Run
from webhookrx.work import Work


class RunTests(SynchronousTestCase):
    """The bounds of a run: up to each of them all is well, and beyond it the run is over, whatever a program says."""

    def run_of(self, units: int, work: Work | None = None) -> Run:
        """Begin a run that may take so many units of work."""
        return Run({}, RunLimits(work=units), Work(1_000) if work is None else work)

    def assert_over(self, run: Run, units: int) -> None:
        """To spend so much ends the run."""
        with self.assertRaises(OperationError) as caught:
            run.spend(units)
        self.assertEqual("The program has too much to do with this message.", caught.exception.problem)
        self.assertTrue(caught.exception.final)

    def test_own_bound(self) -> None:
        """What it does is added up, to its own bound."""
        run = self.run_of(100)
        run.spend(60)
        run.spend(40)
        self.assert_over(run, 1)
        self.assert_over(self.run_of(100), 101)

    def test_bound_of_message(self) -> None:
        """It takes no more than what is left for the message."""
        work = Work(50)
        run = self.run_of(100, work)
        run.spend(50)
        self.assert_over(run, 1)

    def test_settle(self) -> None:
        """What it took is taken off what is left for the message in the end; all of its own, when it was too much."""
        work = Work(150)
        for units, more, left in ((60, 0, 90), (60, 11, 20), (0, 21, 0)):
            run = self.run_of(70, work)
            run.spend(units)
            if more:
                self.assert_over(run, more)
            run.settle()
            self.assertEqual(left, work.left)

    def test_new(self) -> None:
        """It has a record, no local variables yet, and nothing to undo."""
        record = {"a": 1}
        run = Run(record, RunLimits(), Work())
        self.assertIs(record, run.record)
        self.assertEqual({}, run.locals)
