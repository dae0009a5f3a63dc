"""
Tests for L{webhookrx.console.query_routes}.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from os.path import abspath
from types import SimpleNamespace
from typing import Any

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.console.direct_store import DirectStore
from tests.console.routers import test_port
from webhookrx.console import query_routes
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.api.route import ApiCall
from webhookrx.console.console import Console, ConsoleSettings
from webhookrx.console.counts import analytics_routes
from webhookrx.console.counts.analytics_routes import TopQuery
from webhookrx.console.counts.count_tables import SeriesLabels
from webhookrx.console.query_routes import QueryText, QueryVerdict, check_query
from webhookrx.console.routers import routes
from webhookrx.console.routers.routes import RouterListQuery
from webhookrx.management.agent_protocol import CountsReport, SeriesCounts
from webhookrx.management.rollups import SECOND
from webhookrx.router.rules.rules_file import read_rule

NOW = 1_800_000_000
COSTLY = ",".join(["@ANY!*qq"] * 900)
"""Little for a few labels, and too much for many."""

MANY = {f"key-{number}": "x" * 63 for number in range(64)}


def checking(console: Any, text: str, about: Any) -> Coroutine[Any, Any, QueryVerdict]:
    """Call the route."""
    return check_query(ApiCall(console, None, body=QueryText(text, about)))


class AboutMessagesTests(SynchronousTestCase):
    """Any text, and those about messages."""

    def verdict(self, text: str, about: str = "messages") -> Any:
        """Return the verdict as JSON values."""
        console = SimpleNamespace(fleet=None)
        found = self.successResultOf(Deferred.fromCoroutine(checking(console, text, about)))
        return msgspec.to_builtins(found)

    def test_a_query_is_told_with_its_fields(self) -> None:
        """A query comes in normal form, with its fields and their columns."""
        found = self.verdict("log.body.a = b AND meta.id EXISTS")
        self.assertEqual((True, "log.body.a = b AND meta.id EXISTS"), (found["valid"], found["normalized"]))
        self.assertEqual(
            [("log.body.a", 1), ("meta.id", 20)], [(each["field"], each["column"]) for each in found["fields"]]
        )
        self.assertNotIn("findings", found)
        self.assertTrue(self.verdict("")["valid"])

    def test_no_query_of_any_subject(self) -> None:
        """A text that is no query has the place of the mistake, whatever it is about."""
        for about in ("routers", "messages", "connectors"):
            found = self.verdict("rule =\n b =", about)
            self.assertEqual((False, 2, 4), (found["valid"], found["line"], found["column"]), about)
            self.assertTrue(found["problem"], about)

    def test_fields_are_those_of_the_subject(self) -> None:
        """A field that one subject has and another has not is a finding, at its place, as in a rules file."""
        (finding,) = self.verdict("log.body.a = 1\nAND label.site = fra")["findings"]
        self.assertEqual(
            ("step-unknown-field", "warning", 2, 5),
            tuple(finding[key] for key in ("code", "severity", "line", "column")),
        )
        (finding,) = self.verdict("label.site = fra, log.body.a = 1", "routers")["findings"]
        self.assertEqual(
            ("selector-unknown-field", "warning", 1, 19),
            tuple(finding[key] for key in ("code", "severity", "line", "column")),
        )
        rule = b"name: a\nport: 80\nselector: log.body.a = 1\npreprocessing: {steps: [{select: label.site = fra}]}\n"
        self.assertEqual(
            {"selector-unknown-field", "step-unknown-field"},
            {each.code for each in read_rule(rule, "r").diagnostics if "field" in each.code},
        )


class AboutRoutersTests(test_port.PortCase):
    """Queries about routers, with routers."""

    def test_too_costly(self) -> None:
        """A query that a list of routers refuses as too costly is told to be so, and one that it takes is not."""
        self.router("fra-1")
        console: Any = SimpleNamespace(reactor=self.clock, fleet=self.fleet, counts=None)
        self.assertEqual((True, ""), self.judged(console, COSTLY))
        self.router("fra-2", labels=MANY)
        valid, problem = self.judged(console, COSTLY)
        self.assertFalse(valid)
        listing = routes.list_routers(ApiCall(console, None, query=RouterListQuery(COSTLY)))
        failed = self.failureResultOf(Deferred.fromCoroutine(listing), ApiProblem)
        self.assertEqual(problem, failed.value.detail)
        self.assertEqual((True, ""), self.judged(console, "label.key-1 = x"))

    def judged(self, console: Any, text: str) -> tuple[bool, str]:
        """Return whether it is valid, and the problem."""
        found = self.done(checking(console, text, "routers"))
        return found.valid, found.problem


class AboutConnectorsTests(SynchronousTestCase):
    """Queries about connectors, with one that has counted something."""

    def setUp(self) -> None:
        """Make a console with counts."""
        clock: Callable[[], float] = lambda: float(NOW)  # noqa: E731
        store = DirectStore(abspath(self.mktemp()), clock)
        self.addCleanup(store.close)
        self.console = Console(ConsoleSettings("db", "https://console.example"), store, Clock(), clock)
        report = CountsReport(begun=1, since=0, until=NOW * SECOND, series=(SeriesCounts(name="a", messages=5),))
        labels = SeriesLabels("a", "hooks", 8080, MANY, "r1", {"site": "fra"})
        self.console.counts.take("g", 1, report, lambda connector: labels)
        self.successResultOf(Deferred.fromCoroutine(self.console.counts.write()))

    def both(self, text: str) -> tuple[QueryVerdict, str]:
        """Return the verdict, and what analytics refuses; empty if they answer."""
        verdict = self.successResultOf(Deferred.fromCoroutine(checking(self.console, text, "connectors")))
        call = ApiCall(self.console, None, query=TopQuery(query=text, begin=NOW - 3600))
        answered = Deferred.fromCoroutine(analytics_routes.top(call))
        refused: list[ApiProblem] = []
        answered.addErrback(lambda failure: refused.append(failure.value))
        self.successResultOf(answered)
        return verdict, refused[0].detail if refused else ""

    def test_it_is_as_in_analytics(self) -> None:
        """What analytics take is valid, and what they refuse is not, with the same sentence."""
        for text in (
            "",
            "rule = hooks",
            "connector.labels.key-1 = x AND meta.connector.port = 1",
            "router = r1, label.x = 1",
        ):
            verdict, refused = self.both(text)
            self.assertEqual((True, ""), (verdict.valid, refused), text)
        for text, place in (
            ("rule =", (1, 7)),
            ("rule = a\n,name = b", (2, 2)),
            ("log.body = x", (1, 1)),
            (COSTLY, (0, 0)),
        ):
            verdict, refused = self.both(text)
            self.assertEqual((False, place), (verdict.valid, (verdict.line, verdict.column)), text)
            self.assertIn(verdict.problem, refused)

    def test_it_ends(self) -> None:
        """One that takes too long is answered as analytics are."""
        self.patch(query_routes, "LONGEST_QUESTION", -1.0)
        checked = Deferred.fromCoroutine(checking(self.console, COSTLY, "connectors"))
        self.assertEqual("busy", self.failureResultOf(checked, ApiProblem).value.kind.code)
