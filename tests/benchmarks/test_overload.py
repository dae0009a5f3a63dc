"""Tests for what C{benchmarks.overload} makes of answers."""

from __future__ import annotations

from math import inf

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.overload import CASES, PATIENCE, _figures, percentile
from benchmarks.senders import Answered


class FiguresTests(SynchronousTestCase):
    """Answers come to figures."""

    def test_figures(self) -> None:
        """Each answer counts in its second, as a part of the capacity; light load counts once it should be well."""
        answers = [
            Answered(10.0, 10.5, 200),
            Answered(10.0, 10.9, 200),
            Answered(10.0, 11.2, 200),
            Answered(10.0, 11.3, 503, polite=True),
            Answered(10.0, 11.4, 503),
            Answered(10.0, 10.0 + PATIENCE, 0),
            Answered(10.0, 10.1, 0),
            Answered(11.9, 12.5, 200),
        ]
        rest = [Answered(5.0, 5.25, 200)]
        light = [Answered(12.5, 14.5, 200), Answered(13.5, 14.0, 200)]
        figures = _figures(2.0, answers, (rest, light), 10.0, 12.0, 7)
        self.assertEqual(((1.0, 0.5), (0.0, 0.5)), (figures.good, figures.refused))
        self.assertEqual((2, 1, 7), (figures.other, figures.unanswered, figures.stored))
        self.assertApproximates(1.2, figures.slowest, 1e-6)
        self.assertEqual((0.25, 0.5), (figures.rest, figures.light))
        self.assertIn("99 % of 200s within          1.20 s", figures.lines())

    def test_not_well(self) -> None:
        """Light load that is not answered with 200 has no time at all."""
        figures = _figures(1.0, [], ([], [Answered(13.5, 13.6, 503, polite=True)]), 10.0, 12.0, 0)
        self.assertEqual((inf, inf, inf), (figures.light, figures.rest, figures.slowest))

    def test_percentile(self) -> None:
        """Of a hundred times 99 are no longer than that."""
        self.assertEqual(99, percentile(range(1, 101)))
        self.assertEqual(3, percentile([3]))

    def test_cases(self) -> None:
        """Each case has a name of its own."""
        self.assertEqual(8, len({case.name for case in CASES}))
