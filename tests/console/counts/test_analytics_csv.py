"""
Tests for L{webhookrx.console.counts.analytics_csv}.
"""

from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.console.counts.analytics import CountAnswer, CountGroup
from webhookrx.console.counts.analytics_csv import csv_of, safe_cell
from webhookrx.management.rollups import ROLLUP_STEPS


class CsvTests(SynchronousTestCase):
    """Answers for spreadsheets."""

    @given(st.text(alphabet=st.characters(blacklist_categories=["Cs"])))
    def test_no_formula(self, value: str) -> None:
        """Whatever a label is, its cell is read back as one, and begins no formula."""
        answer = CountAnswer(ROLLUP_STEPS[0], 1, [CountGroup(value, 3, {60: 3})])
        for with_points in (False, True):
            written = csv_of(answer, "messages", with_points=with_points)
            head, line = csv.reader(io.StringIO(written.decode(), newline=""))
            cell = line[head.index("value")]
            self.assertIn(value, (cell, cell[1:]))
            self.assertNotRegex(cell, r"\A[=+\-@\t\r\n]")
            self.assertEqual(("messages", "3"), (head[-1], line[-1]))

    def test_formulas(self) -> None:
        """What begins a formula has an apostrophe before it; anything else is as it is."""
        for text in ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"):
            self.assertEqual(f"'{text}", safe_cell(text))
        for text in ("", "github", "a=1", "'=1", " =1", "4xx"):
            self.assertEqual(text, safe_cell(text))
