"""Tests for L{benchmarks.report}."""

from __future__ import annotations

from dataclasses import replace

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.compared import PLAIN, PLAIN_512, PURE
from benchmarks.comparisons import Bound, Case, Goal, Ratio
from benchmarks.outcome import Outcome
from benchmarks.report import report
from tests.benchmarks.figures import told

OURS, OTHER = told("ours @64"), told("other @64")

CASES = (
    Case("versus", "ours against other", (Ratio(OURS, OTHER, goal=Goal(1.2, 1.6), note="it does less"),), "read well"),
    Case("alone", "ours", (Bound(OURS, "p99", "slowest", "ms", Goal(2.0, 1.2)),)),
)


def an_outcome() -> Outcome:
    """Return what two rounds came to."""
    return Outcome(
        {"machine": "a fast one"},
        {
            "versus": {
                "ours @64": [
                    {"cpu": 10.0, "rate": 90000.0, "p99": 1.5, "others": 0.25, "compiled": 1.0},
                    {"cpu": 12.0, "rate": 80000.0, "p99": 1.7, "others": 0.75, "compiled": 1.0},
                ],
                "other @64": [{"cpu": 13.0, "rate": 70000.0}, {"cpu": 18.0, "rate": 40000.0}],
            },
            "alone": {"ours @64": [{"p99": 1.5}, {"p99": 1.7}]},
        },
        {"third @64": "not installed"},
    )


class TextTests(SynchronousTestCase):
    """For a terminal."""

    def setUp(self) -> None:
        """Make it."""
        self.lines = [line.split("  ") for line in report(CASES, an_outcome(), markdown=False).splitlines()]
        self.rows = [[cell.strip() for cell in line if cell.strip()] for line in self.lines]

    def test_ratio(self) -> None:
        """A ratio stands with its spread, what it is by, its goal, a verdict, and what the other does not do."""
        self.assertIn(
            [
                "versus", "ours @64 / other @64", "1.40 (1.30..1.50)", "CPU", "1.2", "1.6", "enough",
                "1.64 (1.29..2.00)", "it does less",
            ],
            self.rows,
        )  # fmt: skip

    def test_bound(self) -> None:
        """A figure stands with its unit."""
        self.assertIn(["alone", "slowest", "1.60 (1.50..1.70) ms", "2", "1.2", "enough"], self.rows)

    def test_figures(self) -> None:
        """Each run of a case has its medians, and says whether the compiled path was in use."""
        self.assertEqual(1, self.rows.count(["versus", "ours @64", "yes", "85,000", "11.0", "1.60"]))
        self.assertEqual(1, self.rows.count(["versus", "other @64", "55,000", "15.5"]))

    def test_compiled(self) -> None:
        """Whether the compiled path was in use is said at the top, of those alone that are to use it."""
        pure = replace(PLAIN, server=PURE)
        case = Case("pure", "", (Ratio(pure, PLAIN), Ratio(PLAIN_512, PLAIN)))
        for plain, large, said in (
            (1.0, 1.0, "The compiled path was in use."),
            (1.0, 0.0, "The compiled path was in use, but not in: webhookrx @512."),
            (0.0, 0.0, "The compiled path was NOT in use."),
        ):
            outcome = Outcome({})
            for run, compiled in ((pure, 0.0), (PLAIN, plain), (PLAIN_512, large)):
                outcome.rounds.setdefault("pure", {})[run.name] = [{"compiled": compiled}, None]
            self.assertIn(said, report((case,), outcome, markdown=False).splitlines())

    def test_around(self) -> None:
        """The machine, the notes, what else ran and what was left out are said."""
        text = report(CASES, an_outcome(), markdown=False)
        for line in (
            "machine: a fast one",
            "versus: read well.",
            "Not measured: third @64: not installed",
            "Meanwhile other programs took 0.50 cores (0.25..0.75).",
        ):
            self.assertIn(line, text.splitlines())
        self.assertNotIn("WRONG", text)

    def test_wrong(self) -> None:
        """What went wrong can't be overlooked, and has no figures."""
        outcome = an_outcome()
        del outcome.rounds["versus"]["other @64"]
        outcome.broken["versus: other @64"] = "3 messages are missing"
        lines = report(CASES, outcome, markdown=False).splitlines()
        self.assertIn("WRONG: versus: other @64: 3 messages are missing", lines)
        row = next(line for line in lines if line.startswith("versus"))
        self.assertEqual(
            ["versus", "ours", "@64", "/", "other", "@64", "CPU", "1.2", "1.6", "it", "does", "less"], row.split()
        )

    def test_nothing(self) -> None:
        """Nothing measured is no error."""
        self.assertIn("versus", report(CASES, Outcome({}), markdown=False))


class MarkdownTests(SynchronousTestCase):
    """For a page."""

    def test_tables(self) -> None:
        """Every row of a table has as many cells as its header."""
        text = report(CASES, an_outcome(), markdown=True)
        tables = [part.splitlines() for part in text.split("\n\n") if part.startswith("|")]
        self.assertEqual(3, len(tables))
        for lines in tables:
            self.assertEqual({lines[0].count("|")}, {line.count("|") for line in lines})
            self.assertEqual({"|", "-", " "}, set(lines[1]))
        self.assertIn("| `versus` | ours @64 / other @64 | 1.40 (1.30..1.50) | CPU |", text)
