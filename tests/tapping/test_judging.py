"""
Tests for what the query of connectors of a tap may cost, where there are many connectors.
"""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.tapping.tap import Tap
from webhookrx.tapping.tap_request import MOST_JUDGING, TapRequest, is_about, parsed
from webhookrx.work import TooMuchWork, Work

SIMPLE = "connector.labels.product = github"
COSTLY = " OR ".join(f'@ANY =~ "(x|xx)+y{number}"' for number in range(99))
LABELS = {f"label{number}": "x" * 200 for number in range(20)}


def judge(text: str, connectors: int, labels: dict[str, str]) -> None:
    """Decide a query for so many connectors."""
    request = TapRequest(connectors=text)
    queries, work = parsed(request), Work(MOST_JUDGING)
    for number in range(connectors):
        is_about(request, queries, f"connector-{number}", 8080, labels, work)


class JudgingTests(SynchronousTestCase):
    """Tests for L{is_about} and L{Tap.is_about}."""

    def test_bound(self) -> None:
        """A usual query is decided for as many connectors as there can be, and none takes long for all of them."""
        judge(SIMPLE, 5_000, LABELS)
        self.assertRaises(TooMuchWork, judge, COSTLY, 5_000, LABELS)

    def test_once(self) -> None:
        """A tap decides for each connector once, until its labels or port change, and for none without work left."""
        tap = Tap(TapRequest(connectors=SIMPLE), 0.0, lambda: None)
        none = Work(0)
        seen: Any = {"product": "github"}
        self.assertFalse(tap.is_about("a", 8080, seen, none))
        self.assertTrue(tap.is_about("a", 8080, seen, Work(MOST_JUDGING)))
        self.assertTrue(tap.is_about("a", 8080, dict(seen), none))
        self.assertFalse(tap.is_about("a", 8080, {"product": "jira"}, none))
        self.assertFalse(tap.is_about("a", 9090, seen, none))
        tap.keep(["b"])
        self.assertFalse(tap.is_about("a", 8080, seen, none))
