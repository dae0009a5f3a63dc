"""
Tests that everything is counted once, from the reports of routers to the answers of analytics, whatever comes between.
"""

from __future__ import annotations

import os
import tempfile
from shutil import rmtree
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.console.direct_store import DirectStore
from webhookrx.agent.reports import Reports, ToldState
from webhookrx.console.counts.analytics import CountRange, read_counts
from webhookrx.console.counts.console_counts import ConsoleCounts
from webhookrx.console.counts.count_reading import TimeLimit
from webhookrx.console.counts.count_tables import SeriesLabels
from webhookrx.console.counts.group_sums import GroupMeasure
from webhookrx.errors import StoreFull
from webhookrx.management.agent_protocol import AppliedState, GateState, RouterFacts, RouterReport, SeriesCounts
from webhookrx.management.rollups import MOST_STARTS, ROLLUP_STEPS, SECOND
from webhookrx.query import parse

BEGIN = 1_800_000_000
ROUTERS = ("fra", "ams")
CONNECTORS = ("a", "b")
MEASURES: tuple[GroupMeasure, ...] = ("messages", "bytes", "answers", "refused", "dropped", "text_bodies")


def labels(router: str, connector: str) -> SeriesLabels:
    """The labels of a connector; both routers have the same rules."""
    return SeriesLabels(connector, f"rule-{connector}", 8080, {"product": "github", "vendor": "x"}, router)


class PlayedRouter:
    """
    A router that counts and reports.

    @ivar sent: all its reports, of all its processes; each may come at any time, and again.
    @ivar skew: how far its clock is ahead, seconds.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.starts = 0
        self.skew = 0
        self.sent: list[RouterReport] = []
        self.restart(BEGIN)

    def restart(self, now: int) -> None:
        """Begin to count anew."""
        self.starts += 1
        # No two processes of a machine begin in the same nanosecond.
        self.begun = (now + self.skew) * SECOND + self.starts
        self.reports = Reports(self.begun, f"{self.name}-{self.starts}")
        self.counted = dict.fromkeys(CONNECTORS, 0)

    def report(self, now: int) -> RouterReport:
        """The report to send: the same again, if nothing came back."""
        series = tuple(
            SeriesCounts(
                name=name,
                messages=count,
                bytes=count * 100,
                last=float(now),
                answers=(count,),
                refused={"bad_token": count * 2} if count else {},
                dropped=count // 2,
                text_bodies=count // 3,
            )
            for name, count in self.counted.items()
        )
        state = ToldState((), GateState(), RouterFacts(), "ready", (), series)
        self.sent.append(self.reports.next(AppliedState(), state, (now + self.skew) * SECOND))
        return self.sent[-1]


class PlayedFleet:
    """
    A console and its routers. What the console is to know is added up beside it, as simply as possible.

    @ivar told: what each process of each router has told last, by router and begin.
    @ivar written: the same, as of the last write: a console that ends without one knows no more.
    """

    def __init__(self, case: SynchronousTestCase, directory: str) -> None:
        self.case = case
        self.now = BEGIN
        self.clock = Clock()
        self.store = DirectStore(os.path.join(directory, "console.sqlite"), lambda: float(self.now))
        self.routers = [PlayedRouter(name) for name in ROUTERS]
        self.told: dict[tuple[str, int], RouterReport] = {}
        self.written: dict[tuple[str, int], RouterReport] = {}
        self.knows_base: set[str] = set()
        self.start()

    def done(self, work: Any) -> Any:
        """The result of a coroutine that never waits."""
        return self.case.successResultOf(Deferred.fromCoroutine(work))

    def start(self) -> None:
        """Start the console, which knows what is written."""
        self.counts = ConsoleCounts(self.store, lambda: float(self.now), self.clock.seconds)
        self.done(self.counts.start())
        self.told = dict(self.written)
        self.knows_base = set()

    def take(self, router: PlayedRouter, report: RouterReport) -> None:
        """Let the console take a report."""
        assert report.counts is not None
        self.counts.take(router.name, report.number, report.counts, lambda name: labels(router.name, name))
        key = router.name, report.begun
        if key not in self.told or self.told[key].number < report.number:
            self.told[key] = report

    def play(self, router: PlayedRouter, event: str, amount: int) -> None:
        """Let something happen."""
        match event:
            case "restart":
                router.restart(self.now)
                self.knows_base.discard(router.name)
            case "report" | "answer lost":
                router.counted[CONNECTORS[amount % 2]] += amount
                report = router.report(self.now)
                if report.base and router.name not in self.knows_base:
                    router.reports.send_all()
                    report = router.report(self.now)
                self.knows_base.add(router.name)
                self.take(router, report)
                if event == "report":
                    router.reports.confirmed()
            case "lost":
                router.report(self.now)
            case "late":
                if router.sent:
                    self.take(router, router.sent[-1 - amount % len(router.sent)])
            case "write":
                self.case.assertTrue(self.done(self.counts.write()))
                self.written = dict(self.told)
            case "full":
                write = self.store.writer.write
                self.case.patch(self.store.writer, "write", _refuse)
                self.done(self.counts.write())
                self.case.patch(self.store.writer, "write", write)
            case "console ends":
                self.done(self.counts.stop())
                self.written = dict(self.told)
                self.start()
            case "console crashes":
                self.start()
            case "time":
                self.now += amount * 20
            case "console's clock":
                self.now -= amount
            case "router's clock":
                router.skew = (amount - 50) * 30

    def expected(self, measure: GroupMeasure) -> int:
        """All that was told, added up."""
        total = 0
        for report in self.told.values():
            assert report.counts is not None
            for each in report.counts.series:
                count = each.messages
                total += {
                    "messages": count,
                    "bytes": count * 100,
                    "answers": count * 3,
                    "refused": count * 2,
                    "dropped": each.dropped,
                    "text_bodies": each.text_bodies,
                }[measure]
        return total

    def found(self, measure: GroupMeasure, by: str, step: int) -> float:
        """All that analytics say."""
        start, end = BEGIN - 7200, BEGIN + 20_000
        asked = CountRange(query=parse(""), start=start, end=end, by=by, step=ROLLUP_STEPS[step])
        answer = self.store.reader.read(lambda db: read_counts(db, asked, measure, self.now, TimeLimit(60.0)))
        for group in answer.groups:
            self.case.assertEqual(group.total, sum(point or 0 for point in group.points.values()))
        return sum(group.total or 0 for group in answer.groups)


def _refuse(work: object) -> None:
    raise StoreFull("full")


EVENTS = st.tuples(
    st.sampled_from(ROUTERS),
    st.sampled_from(
        [
            *("report", "report", "report", "write", "write", "time"),
            *("answer lost", "lost", "restart", "late", "full"),
            *("console ends", "console crashes", "console's clock", "router's clock"),
        ]
    ),
    st.integers(1, 99),
)


class CountedOnceTests(SynchronousTestCase):
    """Reports, crashes, restarts and wrong clocks."""

    @given(st.lists(EVENTS, min_size=20, max_size=60))
    def test_once(self, story: list[tuple[str, str, int]]) -> None:
        """
        However reports are lost, late or sent twice, processes start anew, writes fail and clocks are wrong: what the
        console was told and could write is there once, in each step, with and without routers, by any label.
        """
        directory = tempfile.mkdtemp(prefix="webhookrx-counts-")
        try:
            self.check(PlayedFleet(self, directory), story)
        finally:
            rmtree(directory)

    def check(self, fleet: PlayedFleet, story: list[tuple[str, str, int]]) -> None:
        """Play a story, and compare."""
        routers = {router.name: router for router in fleet.routers}
        for name, event, amount in story:
            if event != "restart" or routers[name].starts < MOST_STARTS:
                fleet.play(routers[name], event, amount)
        fleet.play(fleet.routers[0], "write", 0)
        for measure in MEASURES:
            expected = fleet.expected(measure)
            for step in range(len(ROLLUP_STEPS)):
                for by in ("", "rule", "router", "connector.name"):
                    self.assertEqual(expected, fleet.found(measure, by, step), (measure, step, by))
        fleet.store.close()
