"""
Tests for L{webhookrx.console.pages.analytics}, its question and its parts.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from tests.console.pages.paging import PageCase
from tests.http.wire import Response
from webhookrx.console import query_routes
from webhookrx.console.counts import analytics_routes
from webhookrx.console.counts.count_tables import SeriesLabels
from webhookrx.console.pages import analytics_question
from webhookrx.console.pages.analytics_parts import PARTS
from webhookrx.console.pages.analytics_question import AnalyticsQuestion, shown
from webhookrx.console.pages.form import Form
from webhookrx.errors import ConfigError
from webhookrx.management.agent_protocol import BUCKETS, CountsReport, SeriesCounts
from webhookrx.management.rollups import SECOND
from webhookrx.query import Query, parse

HOSTILE = "<script>alert(1)</script>\" OR 'x'\u202e"


def question_of(**fields: str) -> AnalyticsQuestion:
    """Return the question of a URL."""
    return AnalyticsQuestion.of(Form(urlencode(fields).encode()))


class QuestionTests(SynchronousTestCase):
    """What a URL asks."""

    def test_default(self) -> None:
        """Without fields: messages of six hours by product."""
        question = question_of()
        self.assertEqual({}, question.errors)
        self.assertEqual(
            {
                "query": "", "by": "connector.labels.product", "measure": "messages", "step": "",
                "from": 1_800_000_001 - 6 * 3600, "to": 1_800_000_001,
            },
            question.for_api(1_800_000_000.5),
        )  # fmt: skip

    def test_days(self) -> None:
        """Days are those of UTC: the page does not know the zone of its reader."""
        midnight = 1_799_971_200
        self.assertEqual((midnight, midnight + 11), question_of(last="today").span(midnight + 10.5))
        self.assertEqual((midnight - 86_400, midnight), question_of(last="yesterday").span(midnight + 10.5))
        self.assertEqual({}, question_of(last="yesterday").errors)

    def test_custom(self) -> None:
        """A time of its own is in UTC; without its end it goes on until now."""
        question = question_of(**{"from": "2027-01-15T07:00", "to": "2027-01-15T08:00"})
        self.assertEqual(("custom", (1_799_996_400, 1_800_000_000)), (question.last, question.span(1_800_001_000.0)))
        self.assertEqual(
            (1_799_996_400, 1_800_001_001), question_of(**{"from": "2027-01-15T07:00"}).span(1_800_001_000)
        )
        for field, fields in (
            ("from", {"last": "custom"}),
            ("from", {"from": "yesterday"}),
            ("to", {"from": "2027-01-15T07:00", "to": "x"}),
            ("to", {"from": "2027-01-15T07:00", "to": "2027-01-15T07:00"}),
            ("from", {"from": "9999-99-99T00:00"}),
            ("last", {"last": "5y"}),
            ("label", {"by": "other"}),
        ):
            self.assertEqual([field], list(question_of(**fields).errors), fields)

    def test_url(self) -> None:
        """A URL has the whole question, and gives it again."""
        for fields in (
            {},
            {"by": "", "measure": "p99"},
            {"by": "label.site", "query": "a = 'b & c'", "last": "6h", "step": "1m"},
            {"by": "other", "label": "label.größe", "from": "2027-01-15T07:00"},
        ):
            question = question_of(**fields)
            again = AnalyticsQuestion.of(Form(urlsplit(question.url()).query.encode()))
            self.assertEqual(question, again)

    def test_narrowed(self) -> None:
        """A value's link has it in the query, whatever is in the value and in the query before."""
        for query in ("", "router = a", "router = a OR router = b"):
            for field, value in (("connector.labels.product", HOSTILE), ("connector.port", "8080"), ("label.a", "AND")):
                question = question_of(query=query, by=field)
                (narrowed,) = parse_qs(urlsplit(question.narrowed(field, value)).query)["query"]
                record: dict[str, Any] = {"router": "a", "label": {"a": value}}
                record["meta"] = {"connector": {"labels": {"product": value}, "port": 8080}}
                self.assertTrue(parse(narrowed).matches(record), narrowed)
                self.assertFalse(parse(narrowed).matches({**record, "meta": {}, "label": {}}), narrowed)
                self.assertEqual(not query, parse(narrowed).matches({**record, "router": "c"}), narrowed)
        for field, value in (("reason", "x"), ("status", "2xx"), ("", "x"), ("rule", "")):
            self.assertEqual("", question_of(by=field).narrowed(field, value))
        self.assertEqual("", question_of(query="a = " + "b" * 500).narrowed("rule", "x"))
        self.assertEqual("", question_of(query="a = (").narrowed("rule", "x"))
        asked: list[str] = []

        def counted(text: str) -> Query:
            asked.append(text)
            return parse(text)

        self.patch(analytics_question, "parse", counted)
        question = question_of(query="a =~ 'once'")
        self.assertEqual(40, len({question.narrowed("rule", f"r{number}") for number in range(40)}))
        self.assertEqual(["a =~ 'once'"], asked)

    def test_amounts(self) -> None:
        """Amounts have units."""
        self.assertEqual("1,234", shown(1234, "count"))
        self.assertEqual("2 KiB", shown(2048, "bytes"))
        self.assertEqual("250 ms", shown(0.25, "seconds"))
        self.assertEqual("–", shown(None, "seconds"))
        self.assertIn("2027-01-15T08:00:00Z", shown(1_800_000_000, "moment"))


class AnalyticsPageTests(PageCase):
    """The page."""

    def setUp(self) -> None:
        """Have somebody signed in, and connectors that have counted."""
        super().setUp()
        self.mine = {"cookie": self.sign_in(role="viewer")["cookie"]}
        self.count("a", "r1", 5, product="github", refused={"bad_signature": 2})
        self.count("b", "r2", 7, product=HOSTILE)

    def count(
        self, name: str, router: str, messages: int, *, product: str = "", refused: dict[str, int] | None = None
    ) -> None:
        """Have a connector count in the minute before this."""
        now = int(self.clock.seconds())
        answers = [messages, *[0] * (BUCKETS - 1)]
        series = SeriesCounts(
            name=name, messages=messages, bytes=messages * 1024, last=now, refused=refused or {}, answers=answers
        )
        report = CountsReport(begun=(now - 60) * SECOND, since=0, until=now * SECOND, series=(series,))
        labels = SeriesLabels(name, "hooks", 8080, {"product": product} if product else {}, router)
        self.console.counts.take(f"guid-{router}", 1, report, lambda connector: labels)
        self.successResultOf(Deferred.fromCoroutine(self.console.counts.write()))

    def page(self, status: int = 200, **fields: str) -> Response:
        """Return the page."""
        response = self.get(f"/analytics?{urlencode(fields)}", **self.mine)
        self.assertEqual(status, response.status)
        return response

    def part(self, name: str, status: int = 200, **fields: str) -> Response:
        """Return a part as a script asks for it."""
        path = f"/analytics?{urlencode({**fields, 'numbers': name})}"
        response = self.get(path, **self.mine, hx_request="true")
        self.assertEqual(status, response.status)
        self.assertNotIn(b"<html", response.body)
        return response

    def test_frame(self) -> None:
        """The frame has the form and a place for each part, which has a link for who has no script."""
        html = self.page(query="router = r1", measure="bytes").body.decode()
        places = [unescape(url) for url in re.findall(r'hx-get="([^"]*)"', html)]
        self.assertEqual(sorted(PARTS), sorted(parse_qs(urlsplit(url).query)["numbers"][0] for url in places))
        self.assertNotIn("<svg", html)
        for url in places:
            response = self.get(url, **self.mine, hx_request="true")
            self.assertEqual(200, response.status)
            # Without a script the same link is a page.
            self.assertIn("<h1>Analytics</h1>", self.get(url, **self.mine).body.decode())

    def test_counts(self) -> None:
        """Chart and table show the same; a value of others is text."""
        response = self.part("counts")
        text, html = self.shown(response), response.body.decode()
        self.assertIn("Messages per minute", text)
        self.assertIn("<title>github</title>", html)
        self.assertIn(f"{HOSTILE} 7", text)
        self.assertIn("github 5", text)
        self.assertIn("Numbers of the chart", text)
        self.assertNotIn("<script", html)
        self.assertLess(text.index("OR 'x'"), text.index("github 5"))

    def test_minutes(self) -> None:
        """A part whose time goes on is asked for again by itself; one whose time has an end is not."""
        for fields, again in (
            ({"last": "1h"}, True), ({"from": "2027-01-15T07:00"}, True), ({"last": "yesterday"}, False),
            ({"from": "2027-01-15T07:00", "to": "2027-01-15T07:30"}, False),
        ):  # fmt: skip
            with self.subTest(fields):
                html = self.part("refusals", **fields).body.decode()
                found = re.search(r'hx-get="([^"]*)" hx-trigger="minute from:body"', html)
                self.assertEqual(again, found is not None)
                self.assertEqual(again, 'id="goes-on"' in self.page(**fields).body.decode())
                if found is not None:
                    response = self.get(unescape(found[1]), **self.mine, hx_request="true")
                    self.assertIn('id="refusals-part"', response.body.decode())

    def test_narrow(self) -> None:
        """The link at a value leads to its numbers alone."""
        html = self.part("counts").body.decode()
        (link,) = (unescape(url) for url in re.findall(r'<a href="(/analytics[^"]*)">', html) if "script" in url)
        text = self.shown(self.get(f"{link}&numbers=counts", **self.mine, hx_request="true"))
        self.assertIn("7", text)
        self.assertNotIn("github", text)

    def test_all(self) -> None:
        """Without a script all numbers are on one page."""
        response = self.page(numbers="all")
        text = self.shown(response)
        self.assertNotIn("loading", text)
        for words in (
            "Connectors with the most messages", "Routers with the most messages", "r2 7", "bad_signature 2",
            "Last message by product", "Time to answer in each minute", "p99",
        ):  # fmt: skip
            self.assertIn(words, text)
        self.assertLess(len(response.body), 60_000)

    def test_measures(self) -> None:
        """Each measure has its unit, by each label."""
        for measure, words in (
            ("bytes", "7 KiB"),
            ("answers", "7"),
            ("refused", "2"),
            ("p99", "ms"),
            ("last_message", "silent for"),
            ("dropped", "Dropped messages"),
        ):
            for by in ("connector.labels.product", "router", ""):
                text = self.shown(self.part("counts", measure=measure, by=by))
                self.assertIn("12 KiB" if words == "7 KiB" and not by else words, text, (measure, by))
        self.assertIn("2xx 12", self.shown(self.part("counts", measure="answers", by="status")))
        self.assertIn("bad_signature 2", self.shown(self.part("counts", measure="refused", by="reason")))

    def test_csv(self) -> None:
        """The link to CSV has the whole question, and works in the browser's session."""
        html = self.part("counts", by="router", query="rule = hooks", last="1h").body.decode()
        (link,) = set(re.findall(r'href="(/api/v1/analytics\?[^"]*)"', html))
        response = self.get(unescape(link), **self.mine)
        self.assertEqual("text/csv; charset=utf-8", response.headers["content-type"])
        self.assertIn(b",r2,7\r\n", response.body)
        html = self.part("refusals").body.decode()
        (link,) = re.findall(r'href="(/api/v1/analytics/top\?[^"]*)"', html)
        self.assertEqual(b"value,refused\r\nbad_signature,2\r\n", self.get(unescape(link), **self.mine).body)

    def test_wrong_query(self) -> None:
        """What is no query is told at the field, with what was typed, and asks for no numbers."""
        response = self.page(422, query='router = ("<b>')
        html = response.body.decode()
        self.assertIn("column", self.shown(response))
        self.assertIn('value="router = (&#34;&lt;b&gt;"', html)
        self.assertIn('aria-invalid="true"', html)
        self.assertNotIn("hx-get", html)

        response = self.page(422, query="name = a")
        self.assertIn('column 1: "name" is not one of', self.shown(response))

        def too_costly(*arguments: object) -> None:
            raise ConfigError("It has too much to do.")

        self.patch(query_routes, "try_on_connectors", too_costly)
        response = self.page(422, query="@ANY = a")
        self.assertIn("Query It has too much to do.", self.shown(response))
        self.assertIn(b'aria-invalid="true"', response.body)

    def test_wrong_question(self) -> None:
        """What the API refuses is told once, by its own sentence."""
        self.assertIn("measure", self.shown(self.part("counts", 400, measure="x")))
        response = self.page(400, by="a..b", numbers="all")
        self.assertEqual(1, response.body.count(b'role="alert"'))
        self.assertIn("by:", self.shown(response))
        self.page(422, **{"from": "2027-01-15T07:00", "to": "2027-01-15T06:00"})

    def test_too_much(self) -> None:
        """A question that takes too long is told at the form, or in the place of its part."""
        self.patch(analytics_routes, "LONGEST_QUESTION", -1.0)
        self.assertIn("It took longer than", self.shown(self.part("counts", 503)))
        self.assertIn("It took longer than", self.shown(self.page(503, numbers="all")))

    def test_nothing(self) -> None:
        """Where nothing matches it is said what to do."""
        text = self.shown(self.part("counts", query="router = nobody"))
        self.assertIn("Nothing was counted in this time that matches.", text)
        self.assertIn("Choose a longer time", text)

    def test_others(self) -> None:
        """Of many values the first are shown, within what a page may weigh; CSV has 50 and the others."""
        for number in range(60):
            self.count(f"c{number}", f"router-{number}", number + 1)
        response = self.part("counts", by="router")
        self.assertIn("The first 15 of 51 rows; CSV has all.", self.shown(response))
        self.assertEqual(15 + 6, response.body.count(b'<th scope="row"'))
        self.assertLess(len(response.body), 28_000)
        self.assertIn("The first 15", self.shown(self.part("counts", by="router", measure="last_message")))
        self.assertIn("More", self.shown(self.part("routers")))
