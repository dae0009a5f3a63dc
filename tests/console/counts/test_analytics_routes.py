"""
Tests for L{webhookrx.console.counts.analytics_routes}.
"""

from __future__ import annotations

from collections.abc import Callable
from os.path import abspath
from typing import Any
from urllib.parse import urlencode

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.console.direct_store import DirectStore
from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.api.reading import read_query
from webhookrx.console.api.route import Answer, ApiCall
from webhookrx.console.api.table import RouteTable
from webhookrx.console.console import Console, ConsoleSettings
from webhookrx.console.counts import analytics_routes
from webhookrx.console.counts.analytics_routes import ROUTES
from webhookrx.console.counts.count_tables import SeriesLabels
from webhookrx.management.agent_protocol import CountsReport, SeriesCounts
from webhookrx.management.rollups import SECOND

NOW = 1_800_000_030
MINUTE = NOW - NOW % 60


class AnalyticsRouteTests(SynchronousTestCase):
    """C{/analytics}."""

    def setUp(self) -> None:
        """Make a console with a counted report of one connector."""
        clock: Callable[[], float] = lambda: float(NOW)  # noqa: E731
        store = DirectStore(abspath(self.mktemp()), clock)
        self.addCleanup(store.close)
        self.console = Console(ConsoleSettings("db", "https://console.example"), store, Clock(), clock)
        series = SeriesCounts(name="a", messages=5, bytes=70, last=NOW)
        report = CountsReport(begun=MINUTE * SECOND, since=0, until=NOW * SECOND, series=(series,))
        labels = SeriesLabels("a", "hooks", 8080, {"product": "github"}, "r1")
        self.console.counts.take("g", 1, report, lambda connector: labels)
        self.successResultOf(Deferred.fromCoroutine(self.console.counts.write()))

    def get(self, path: str, **fields: object) -> Any:
        """Call a route, and return its answer as JSON values."""
        answer = self.successResultOf(self.call(path, **fields))
        assert isinstance(answer, Answer)
        self.assertEqual("application/json", answer.content_type)
        return msgspec.json.decode(answer.body)  # type: ignore[arg-type]

    def call(self, path: str, *accepted: str, **fields: object) -> Deferred[object]:
        """Call a route that viewers may call."""
        route = RouteTable(ROUTES).match("GET", f"/api/v1{path}".encode()).route
        self.assertIs(Permission.VIEW, route.permission)

        async def answered() -> object:
            query = read_query(urlencode(fields).encode(), route.query)
            call = ApiCall(self.console, None, query=query, accepted=frozenset(accepted))
            return await route.handler(call)

        return Deferred.fromCoroutine(answered())

    def refused(self, **fields: object) -> ApiProblem:
        """Return the problem of a call."""
        problem = self.failureResultOf(self.call("/analytics", **fields)).value
        assert isinstance(problem, ApiProblem), problem
        return problem

    def test_by_time(self) -> None:
        """Counts come by time and label, by default of the last day."""
        self.assertEqual(
            {
                "step": "10m",
                "step_seconds": 600,
                "series": 1,
                "values": [{"value": "github", "total": 5, "points": [{"at": NOW - NOW % 600, "amount": 5}]}],
            },
            self.get("/analytics", by="connector.labels.product"),
        )
        found = self.get("/analytics", **{"from": MINUTE, "to": NOW, "step": "1m", "measure": "bytes"})
        self.assertEqual([{"at": MINUTE, "amount": 70}], found["values"][0]["points"])
        self.assertEqual([], self.get("/analytics", **{"from": 0, "to": MINUTE - 86400})["values"])

    def test_top(self) -> None:
        """The top has totals alone."""
        expected = {"step": "10m", "series": 1, "values": [{"value": "r1", "total": 5}]}
        self.assertEqual(expected, self.get("/analytics/top", by="router", query="connector.port = 8080"))

    def test_last_message(self) -> None:
        """The last message is among the tops; it has no points in time."""
        expected = {"step": "1d", "series": 1, "values": [{"value": "r1", "total": NOW}]}
        self.assertEqual(expected, self.get("/analytics/top", by="router", measure="last_message"))
        self.assertIn("ask /analytics/top", self.refused(measure="last_message").detail)

    def test_csv(self) -> None:
        """Both come as CSV for who asks for it by C{format}, or by C{Accept}; the field wins."""
        when = "2027-01-15T08:00:00Z"
        for path, more, expected in (
            ("/analytics", {"by": "rule", "step": "1h"}, f"time,value,messages\r\n{when},hooks,5\r\n"),
            ("/analytics/top", {"by": "router", "measure": "bytes"}, "value,bytes\r\nr1,70\r\n"),
            ("/analytics/top", {"by": "rule", "measure": "p99"}, "value,p99\r\n"),
            ("/analytics/top", {"measure": "last_message"}, "value,last_message\r\n,2027-01-15T08:00:30Z\r\n"),
        ):
            for asked in (self.call(path, **more, format="csv"), self.call(path, "text/csv", **more)):
                answer = self.successResultOf(asked)
                assert isinstance(answer, Answer)
                self.assertEqual(("text/csv; charset=utf-8", expected.encode()), (answer.content_type, answer.body))
                self.assertIn(("Content-Disposition", 'attachment; filename="analytics.csv"'), answer.headers)
        answer = self.successResultOf(self.call("/analytics", "text/csv", format="json"))
        assert isinstance(answer, Answer)
        self.assertEqual("application/json", answer.content_type)

    def test_too_long(self) -> None:
        """A question that takes too long is to be asked again, or otherwise."""
        self.patch(analytics_routes, "LONGEST_QUESTION", -1.0)
        problem = self.refused()
        self.assertEqual(("busy", (("Retry-After", "30"),)), (problem.kind.code, problem.headers))
        self.assertIn("ask for a shorter time", problem.detail)

    def test_refused(self) -> None:
        """A wrong query, label, time, measure or step is a problem with a sentence."""
        for fields, sentence in (
            ({"query": "a ="}, "query: column"),
            ({"by": "a..b"}, "by: A field is written"),
            ({"from": NOW, "to": NOW}, "ends before it begins"),
            ({"measure": "mood"}, "measure"),
            ({"step": "1s"}, "step"),
            ({"format": "xls"}, "format"),
            ({"from": 0, "step": "1m"}, "shorter time"),
            ({"page": 1}, "The query takes by, format, from, measure"),
        ):
            with self.subTest(sentence):
                problem = self.refused(**fields)
                self.assertEqual("bad_call", problem.kind.code)
                self.assertIn(sentence, problem.detail)
