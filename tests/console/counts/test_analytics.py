"""
Tests for L{webhookrx.console.counts.analytics}.
"""

from __future__ import annotations

import sqlite3
from os.path import abspath
from typing import get_args

from twisted.trial.unittest import SynchronousTestCase

from tests.console.direct_store import DirectStore
from webhookrx.console.counts import analytics
from webhookrx.console.counts.analytics import (
    CountAnswer,
    CountRange,
    needs_routers,
    read_counts,
    read_last,
)
from webhookrx.console.counts.count_reading import TimeLimit, TookTooLong
from webhookrx.console.counts.count_tables import CountWrites, SeriesKey, SeriesLabels, write_counts
from webhookrx.console.counts.group_sums import GroupMeasure, measured
from webhookrx.errors import ConfigError
from webhookrx.management.agent_protocol import BUCKETS
from webhookrx.management.rollups import ROLLUP_STEPS, CountedPart
from webhookrx.query import parse, query
from webhookrx.store_counts import BOUNDS

NOW = 1_800_000_000
START = NOW - 3600
REASONS = {"github": "bad_token", "stripe": "draining"}
"""Why a request of each product is refused: 403 and 503."""


def series(router: str, product: str) -> tuple[SeriesKey, SeriesLabels]:
    """A series, and its labels."""
    labels = SeriesLabels(product, f"rule-{product}", 8080, {"product": product}, router, {"site": router[0]})
    return SeriesKey(router, product), labels


class AnalyticsTests(SynchronousTestCase):
    """Sums by labels."""

    def setUp(self) -> None:
        """Write the counts of three connectors of two routers: 1, 2 and 4 messages, and as many refusals."""
        self.store = DirectStore(abspath(self.mktemp()), lambda: float(NOW))
        self.addCleanup(self.store.close)
        known = dict([series("ams", "github"), series("fra", "github"), series("fra", "stripe")])
        parts = {
            key: {
                START + 60 * number: CountedPart(
                    1 << number, 10, [1, *[0] * (BUCKETS - 1)], 0.1, {REASONS[key[1]]: 1}, number, 2 * number
                )
            }
            for number, key in enumerate(known)
        }
        last = {key: START + 60.5 * number for number, key in enumerate(known)}
        self.store.writer.write(lambda transaction: write_counts(transaction, CountWrites(parts, known, last, {})))

    def ask(self, query: str = "", by: str = "", measure: GroupMeasure = "messages", **more: object) -> CountAnswer:
        """Ask for the last hour."""
        asked = CountRange(query=parse(query), by=by, **({"start": START, "end": NOW} | more))  # type: ignore[arg-type]
        return self.store.reader.read(lambda db: read_counts(db, asked, measure, NOW, TimeLimit(60.0)))

    def totals(
        self, query: str = "", by: str = "", measure: GroupMeasure = "messages"
    ) -> list[tuple[str, float | None]]:
        """The groups and their totals."""
        return [(group.value, group.total) for group in self.ask(query, by, measure).groups]

    def test_labels(self) -> None:
        """Sums are by any label, those with the most first; queries choose by any label."""
        self.assertEqual([("", 7)], self.totals())
        for prefix in ("", "meta."):
            self.assertEqual([("stripe", 4), ("github", 3)], self.totals("", f"{prefix}connector.labels.product"))
            self.assertEqual([("", 3)], self.totals(f"{prefix}connector.labels.product = github"))
            self.assertEqual([("8080", 7)], self.totals("connector.type = webhook", f"{prefix}connector.port"))
        self.assertEqual([("fra", 6), ("ams", 1)], self.totals("", "router"))
        self.assertEqual([("f", 6)], self.totals("router = fra", "label.site"))
        self.assertEqual([("rule-github", 2)], self.totals("label.site = f AND rule = rule-github", "rule"))
        self.assertEqual([("github", 3)], self.totals("connector.name = github", "connector.name"))
        self.assertEqual([("", 7)], self.totals("", "label.missing"))
        self.assertEqual([], self.totals("router = none"))

    def test_cube(self) -> None:
        """Routers are read only when a label needs them."""
        self.assertEqual(2, self.ask("", "rule").series)
        self.assertEqual(3, self.ask("", "router").series)
        self.assertTrue(needs_routers(parse("@ANY = a"), ""))

    def test_measures(self) -> None:
        """Each measure is that of the sums."""
        self.assertEqual([("", 30)], self.totals(measure="bytes"))
        self.assertEqual([("", 6)], self.totals(measure="answers"))
        self.assertEqual([("", 3)], self.totals(measure="dropped"))
        self.assertEqual([("", 6)], self.totals(measure="text_bodies"))
        self.assertEqual([("", 3)], self.totals(measure="refused"))
        self.assertEqual([("", BOUNDS[0] / 2)], self.totals(measure="p50"))
        self.assertEqual([("bad_token", 2), ("draining", 1)], self.totals("", "reason", "refused"))
        self.assertIsNone(measured(CountedPart(), "p99"))

    def test_status(self) -> None:
        """
        Answers are told apart by the class of their status, which a refusal has from its reason; classes without any
        are left out.
        """
        self.assertEqual([("2xx", 3), ("4xx", 2), ("5xx", 1)], self.totals("", "status", "answers"))
        self.assertEqual([("2xx", 7)], self.totals("", "status", "messages"))
        parts = {SeriesKey("x", "x"): {START: CountedPart(refused={"of_a_later_version": 1})}}
        of = {SeriesKey("x", "x"): SeriesLabels("x", router="x")}
        self.store.writer.write(lambda transaction: write_counts(transaction, CountWrites(parts, of, {}, {})))
        self.assertEqual([("other", 1)], self.totals("router = x", "status", "answers"))

    def test_last_message(self) -> None:
        """The last message of each value is the latest of its connectors; what has never had one is left out."""
        self.store.writer.write(
            lambda transaction: write_counts(
                transaction,
                CountWrites(
                    {SeriesKey("x", "x"): {START: CountedPart(refused={"late": 1})}},
                    {SeriesKey("x", "x"): SeriesLabels("x", router="x")},
                    {},
                    {},
                ),
            )
        )
        for by, expected in (
            ("router", [("fra", START + 121.0), ("ams", START)]),
            ("connector.labels.product", [("stripe", START + 121.0), ("github", START + 60.5)]),
        ):
            found = self.store.reader.read(lambda db, by=by: read_last(db, parse(""), by, TimeLimit(60.0)))
            self.assertEqual(expected, [(group.value, group.total) for group in found.groups])
        self.patch(analytics, "MOST_GROUPS", 1)
        found = self.store.reader.read(lambda db: read_last(db, parse("router = ams"), "router", TimeLimit(60.0)))
        self.assertEqual((1, [("ams", START)]), (found.series, [(each.value, each.total) for each in found.groups]))
        found = self.store.reader.read(lambda db: read_last(db, parse(""), "connector.name", TimeLimit(60.0)))
        self.assertEqual(["stripe", "(others)"], [each.value for each in found.groups])

    def test_time(self) -> None:
        """Points are those of the step, inside of the time; a coarser step sums them up."""
        points = self.ask(start=START + 60).groups[0].points
        self.assertEqual([(START + 60, 2), (START + 120, 4)], list(points.items()))
        self.assertEqual([7], list(self.ask(step=ROLLUP_STEPS[2]).groups[0].points.values()))
        self.assertEqual([], self.ask(end=START).groups)

    def test_totals_alone(self) -> None:
        """Without points, totals are the same; of many groups, too, most of which are summed up as one."""
        for measure in get_args(GroupMeasure):
            for most in (50, 1):
                self.patch(analytics, "MOST_GROUPS", most)
                for by in ("connector.name", "reason", "router"):
                    asked = CountRange(query=parse(""), by=by, start=START, end=NOW)
                    found, totals = (
                        self.store.reader.read(
                            lambda db, asked=asked, measure=measure, points=points: read_counts(
                                db, asked, measure, NOW, TimeLimit(60.0), with_points=points
                            )
                        ).groups
                        for points in (True, False)
                    )
                    self.assertEqual(
                        [(each.value, each.total) for each in found], [(each.value, each.total) for each in totals]
                    )

    def test_points_of_others(self) -> None:
        """What is summed up as one has points, too, of which there is nothing where nothing was counted."""
        self.patch(analytics, "MOST_GROUPS", 1)
        self.assertEqual(
            [{START + 120: 4}, {START: 1, START + 60: 2}],
            [each.points for each in self.ask("", "connector.name").groups],
        )
        self.assertEqual(
            [{START + 120: BOUNDS[0] / 2}, {START: BOUNDS[0] / 2, START + 60: BOUNDS[0] / 2}],
            [each.points for each in self.ask("", "rule", "p50").groups][::-1],
        )

    def test_few_of_many(self) -> None:
        """A few of very many series are looked for one by one, and found as by reading all; only they are counted."""
        parts = {}
        known = dict(series(f"r{number}", "sms") for number in range(100))
        parts = {key: {START + 60: CountedPart(5, 10, [1, *[0] * (BUCKETS - 1)])} for key in known}
        self.store.writer.write(lambda transaction: write_counts(transaction, CountWrites(parts, known, {}, {})))
        for measure, expected in (("messages", 3.0), ("answers", 4.0)):
            asked = {"query": "connector.labels.product = github AND NOT label.site = z", "measure": measure}
            found = self.ask(**asked, start=START, end=START + 600)  # type: ignore[arg-type]
            self.assertEqual((2, expected), (found.series, found.groups[0].total))
            self.assertEqual([START, START + 60], list(found.groups[0].points))
        # Two of 103 series cost as much as eight, for which 30,000 minutes are few enough.
        long = {"start": NOW - 60 * 30_000, "step": ROLLUP_STEPS[0]}
        self.assertEqual(
            3, self.ask("connector.labels.product = github AND NOT label.site = z", **long).groups[0].total
        )
        with self.assertRaises(ConfigError):
            self.ask("NOT label.site = z", **long)

    def test_time_over(self) -> None:
        """A question that takes too long ends, in Python and in SQLite, and the connection is good for the next one."""
        asked = CountRange(query=parse("label.site = f"), start=START, end=NOW)
        with self.assertRaises(TookTooLong):
            self.store.reader.read(lambda db: read_counts(db, asked, "messages", NOW, TimeLimit(-1.0)))
        with self.assertRaises(TookTooLong):
            self.store.reader.read(lambda db: read_last(db, asked.query, "", TimeLimit(-1.0)))
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
        ticks = iter(range(100))
        limit = TimeLimit(5.0, lambda: float(next(ticks)))

        def read(db: sqlite3.Connection) -> None:
            with limit.bounds(db):
                db.execute(endless).fetchone()

        with self.assertRaises(TookTooLong):
            self.store.reader.read(read)
        self.assertEqual([("", 7)], self.totals())

    def test_other_errors(self) -> None:
        """An error that is not the end of the time stays as it is."""

        def read(db: sqlite3.Connection) -> None:
            with TimeLimit(60.0).bounds(db):
                db.execute("SELECT * FROM nothing")

        with self.assertRaises(sqlite3.OperationalError):
            self.store.reader.read(read)

    def test_costly_query(self) -> None:
        """A query that has too much to do with labels is refused, rather than answered without them."""
        self.patch(query, "MOST_WORK", 0)
        with self.assertRaisesRegex(ConfigError, "too much to do"):
            self.ask("rule =* github")

    def test_bounded(self) -> None:
        """Past a bound, values are summed up, and what reads too many rows is refused."""
        self.patch(analytics, "MOST_GROUPS", 1)
        self.assertEqual([("stripe", 4), ("(others)", 3)], self.totals("", "connector.name"))
        others = self.ask("", "connector.name").groups[1]
        self.assertEqual({START: 1, START + 60: 2}, others.points)
        with self.assertRaisesRegex(ConfigError, "ask for a shorter time"):
            self.ask("router = fra", start=0, step=ROLLUP_STEPS[0])
