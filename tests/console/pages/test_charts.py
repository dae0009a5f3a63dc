"""
Tests for L{webhookrx.console.pages.charts}.
"""

from __future__ import annotations

import re

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from twisted.trial.unittest import SynchronousTestCase

from tests.console.pages.paging import check_html, text_of
from webhookrx.console.pages.charts import HEIGHT, MOST_LINES, MOST_POINTS, ChartLine, TimeChart, shares, time_chart
from webhookrx.console.pages.rendering import TEMPLATES

START = 1_764_252_000
HOUR = 3600


def chart_of(*lines: ChartLine, hours: int = 24, step: int = HOUR, **options: object) -> TimeChart:
    """Return a chart of some hours, the last of which is over."""
    end = START + hours * HOUR
    return time_chart("c", "Messages", lines, start=START, end=end, step=step, **{"now": end, **options})  # type: ignore[arg-type]


def points_of(path: str) -> list[tuple[int, int]]:
    """Return the points of a path."""
    return [(int(x), int(y)) for x, y in re.findall(r"(\d+),(\d+)", path)]


class ChartTests(SynchronousTestCase):
    """Where lines go."""

    def test_line(self) -> None:
        """Points are in the middle of their steps, and as high as they are much; steps without any are 0."""
        chart = chart_of(ChartLine("", {START: 10, START + 2 * HOUR: 5}), hours=4)
        self.assertEqual([(125, 0), (375, HEIGHT), (625, HEIGHT // 2), (875, HEIGHT)], points_of(chart.lines[0].path))
        self.assertIn("The highest is 10 at 2025-11-27 14:00 UTC.", chart.about)
        self.assertTrue(chart.lines[0].area)
        self.assertEqual(["0", "5", "10"], [mark.text for mark in chart.marks])
        self.assertEqual(sorted((mark.y for mark in chart.marks), reverse=True), [mark.y for mark in chart.marks])

    def test_gaps(self) -> None:
        """What isn't known is a gap; one point between two gaps is a dot."""
        amounts = {START: 0.2, START + HOUR: 0.1, START + 2 * HOUR: None, START + 4 * HOUR: 0.1}
        chart = chart_of(ChartLine("", amounts), hours=6, unit="seconds", missing="gap")
        self.assertEqual(2, chart.lines[0].path.count("M"))
        self.assertTrue(chart.lines[0].path.endswith("h0"))
        self.assertEqual(["0 s", "50 ms", "100 ms", "150 ms", "200 ms"], [mark.text for mark in chart.marks])

    def test_step_that_is_not_over(self) -> None:
        """A step that goes on would look like a fall, and is left out."""
        chart = chart_of(ChartLine("", {START: 10, START + HOUR: 10}), hours=2, now=START + 1.5 * HOUR)
        self.assertEqual([(250, 0)], points_of(chart.lines[0].path))

    def test_bounds(self) -> None:
        """There are so many lines and points, and the highest and lowest are among them."""
        line = {START + 60 * index: float(index % 7) for index in range(6000)}
        line[START + 60 * 1234] = 1000.0
        chart = chart_of(*(ChartLine(f"n{index}", line) for index in range(50)), hours=100, step=60)
        self.assertEqual(MOST_LINES, len(chart.lines))
        found = [points_of(each.path) for each in chart.lines]
        self.assertLessEqual(sum(map(len, found)), MOST_POINTS)
        self.assertIn(0, [y for _, y in found[0]])
        self.assertEqual(sorted(found[0]), sorted(found[0], key=lambda point: point[0]))
        self.assertEqual(["", ""], [each.area for each in chart.lines[:2]])
        self.assertLess(sum(len(each.path) for each in chart.lines), 16_000)

    def test_axes(self) -> None:
        """Numbers at the axes are round, and have their units."""
        for unit, highest, last in (
            ("count", 1, "1"),
            ("count", 7, "8"),
            ("count", 123_456, "150,000"),
            ("rate", 0.3, "0.3"),
            ("bytes", 1500, "1.5 KiB"),
            ("bytes", 3_000_000, "3 MiB"),
            ("seconds", 7.3, "8 s"),
        ):
            chart = chart_of(ChartLine("", {START: highest}), unit=unit)
            self.assertEqual(last, chart.marks[-1].text)
            self.assertLessEqual(len(chart.marks), 6)

    def test_times(self) -> None:
        """Times at the axis are round, few, and days when the time is long."""
        for hours in (1, 3, 6, 24, 72, 720, 24 * 730):
            chart = chart_of(hours=hours)
            self.assertIn(len(chart.times), range(2, 8), hours)
            self.assertEqual(hours < 720, chart.is_local)
        self.assertEqual(["18:00", "28 Nov", "06:00", "12:00"], [each.text for each in chart_of().times][:4])

    def test_nothing(self) -> None:
        """Without any amount there is an axis and a sentence."""
        for lines in ((), (ChartLine("", {}),), (ChartLine("a", {}), ChartLine("b", {START: None}))):
            chart = chart_of(*lines)
            self.assertEqual("Nothing was counted in this time.", chart.about)
            self.assertEqual(["0", "1"], [mark.text for mark in chart.marks])

    def test_shares(self) -> None:
        """Bars are percents of the longest."""
        self.assertEqual(["100", "50", "0", "0"], shares([10, 5, 0, None]))
        self.assertEqual([], shares([]))
        self.assertEqual(["0"], shares([0]))

    def test_html(self) -> None:
        """A chart is well formed, with a name and a sentence, and names of others are text."""
        hostile = "</title><script>alert(1)</script>\u202e"
        chart = chart_of(ChartLine(hostile, {START: 1}), ChartLine("b", {}))
        environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
        source = (
            '{% import "_chart.html" as c %}{{ c.time_chart(chart) }}{{ c.key(3) }}'
            '{{ c.bar("37.5") }}{{ c.bar("1", "bad") }}'
        )
        html = environment.from_string(source).render(chart=chart)
        check_html(html)
        self.assertNotIn("<script", html)
        self.assertIn(hostile, text_of(html))
        self.assertIn('aria-labelledby="c-title c-about"', html)
        self.assertIn('<rect width="37.5%"/>', html)
