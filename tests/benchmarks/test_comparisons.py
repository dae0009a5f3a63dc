"""Tests for L{benchmarks.comparisons}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.comparisons import Bound, Goal, Ratio, Spread
from tests.benchmarks.figures import rounds_of, told


class SpreadTests(SynchronousTestCase):
    """Many values as three."""

    def test_three(self) -> None:
        """The median is not drawn away by one that is far off."""
        self.assertEqual(Spread(2.0, 1.0, 90.0), Spread.of([90.0, 1.0, 2.0]))

    def test_none(self) -> None:
        """No values have no spread."""
        self.assertIs(None, Spread.of([]))


class GoalTests(SynchronousTestCase):
    """Where a value is to come."""

    def test_verdicts(self) -> None:
        """More is better when the best is above enough, less when it is below."""
        for goal, value, verdict in (
            (Goal(1.2, 1.6), 1.19, "SHORT"),
            (Goal(1.2, 1.6), 1.2, "enough"),
            (Goal(1.2, 1.6), 1.6, "best"),
            (Goal(2.3, 2.05), 2.31, "SHORT"),
            (Goal(2.3, 2.05), 2.3, "enough"),
            (Goal(2.3, 2.05), 2.0, "best"),
            (Goal(512, 0), -4.0, "best"),
        ):
            self.assertEqual(verdict, goal.verdict(value), (goal, value))


class RatioTests(SynchronousTestCase):
    """One run over another."""

    def test_less_cpu(self) -> None:
        """Half the processor time is twice as good."""
        ratio = Ratio(told("ours"), told("other"))
        self.assertEqual(Spread(2.0, 2.0, 2.0), ratio.spread(rounds_of(ours=[10.0], other=[20.0])))

    def test_more_rate(self) -> None:
        """Twice the requests are twice as good."""
        ratio = Ratio(told("ours"), told("other"), "rate")
        self.assertEqual(Spread(2.0, 2.0, 2.0), ratio.spread({"ours": [{"rate": 100.0}], "other": [{"rate": 50.0}]}))

    def test_by_round(self) -> None:
        """A round is compared with itself, so that a slow minute is one for both."""
        ratio = Ratio(told("ours"), told("other"))
        found = ratio.spread(rounds_of(ours=[10.0, 100.0, 10.0], other=[20.0, 200.0, 30.0]))
        self.assertEqual(Spread(2.0, 2.0, 3.0), found)

    def test_missing_round(self) -> None:
        """A round that has only one of the two does not count."""
        ratio = Ratio(told("ours"), told("other"))
        found = ratio.spread(rounds_of(ours=[10.0, None, 10.0], other=[None, 20.0, 20.0]))
        self.assertEqual(Spread(2.0, 2.0, 2.0), found)

    def test_missing_run(self) -> None:
        """Without the other there is no ratio."""
        ratio = Ratio(told("ours"), told("other"))
        self.assertIs(None, ratio.spread(rounds_of(ours=[10.0])))

    def test_missing_figure(self) -> None:
        """Nor without the figure."""
        ratio = Ratio(told("ours"), told("other"))
        self.assertIs(None, ratio.spread(rounds_of(ours=[10.0], other=[10.0]), "rate"))


class BoundTests(SynchronousTestCase):
    """One figure by itself."""

    def test_spread(self) -> None:
        """Rounds without it do not count."""
        bound = Bound(told("ours"), "cpu", "CPU", "µs")
        self.assertEqual(Spread(10.0, 10.0, 10.0), bound.spread(rounds_of(ours=[10.0, None])))
        self.assertIs(None, bound.spread({}))

    def test_title(self) -> None:
        """How many requests there were is what was measured, not what was planned."""
        bound = Bound(told("ours"), "growth", "growth over {requests} requests", "KiB")
        self.assertEqual("growth over 50,123 requests", bound.titled({"ours": [None, {"requests": 50123.0}]}))
        self.assertEqual("growth over many requests", bound.titled({}))
