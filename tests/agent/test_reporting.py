"""
Tests for L{webhookrx.agent.reporting}: which reports a console gets, whatever becomes of them on the way.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred

from tests.agent.played import STATE, AgentCase
from webhookrx.agent.link import ConsoleAnswer
from webhookrx.management.agent_protocol import REPORT_INTERVAL, ReloadCommand, SeriesCounts


class ReportingTests(AgentCase):
    """Reports of an agent."""

    def setUp(self) -> None:
        super().setUp()
        self.start()
        self.console.reports.clear()

    def tick(self) -> None:
        """Let the time of a report come."""
        self.reactor.advance(REPORT_INTERVAL)

    def test_differences(self) -> None:
        """A report says what is different, and what has been counted."""
        self.host.told = STATE._replace(health="degraded", series=(SeriesCounts("a", 5),))
        self.tick()
        (report,) = self.console.reports
        self.assertEqual((2, 1, "degraded", None), (report.number, report.base, report.health, report.facts))
        assert report.counts is not None
        self.assertEqual([("a", 5)], [(each.name, each.messages) for each in report.counts.series])

    def test_send_all(self) -> None:
        """A console that has lost what it knew gets everything at once."""
        self.console.report_answers = [(409, b'{"code": "send_all"}')]
        self.tick()
        (report,) = self.console.reports
        self.assertEqual((0, "ready"), (report.base, report.health))
        self.assertIsNotNone(report.facts)

    def test_lost(self) -> None:
        """A report whose answer was lost is sent again as it was, however often, and then the next one at once."""
        self.console.report_answers = [(0, b""), (0, b""), (503, b""), (429, b""), (403, b'{"code": "disabled"}')]
        for _ in range(5):
            self.tick()
        self.host.told = STATE._replace(health="degraded")
        self.tick()
        first, second = self.console.reports
        self.assertEqual((2, None, 3, "degraded"), (first.number, first.health, second.number, second.health))
        assert first.counts is not None and second.counts is not None
        self.assertEqual(first.counts.until, second.counts.since)

    def test_not_taken(self) -> None:
        """A report that the console will never take is given up with its answers; the next one says everything."""
        for status in (400, 404, 409, 413, 422):
            self.console.reports.clear()
            self.console.report_answers = [(status, b'{"code": "bad_request", "detail": "at $.health"}')]
            self.console.says(ReloadCommand(id=f"r{status}"))
            self.assertEqual([], self.console.reports)
            self.tick()
            (report,) = self.console.reports
            self.assertEqual((0, "ready", ()), (report.base, report.health, report.answers))

    def test_one_at_a_time(self) -> None:
        """What changes while a report is on its way is one more report after it."""
        waiting: Deferred[ConsoleAnswer] = Deferred()
        self.console.report_answers = [waiting]
        self.agent.report_soon()
        for health in ("degraded", "not_ready"):
            self.host.told = STATE._replace(health=health)
            self.agent.report_soon()
            self.tick()
        self.assertEqual([], self.console.reports)
        waiting.callback(ConsoleAnswer(204, b""))
        self.assertEqual(["not_ready"], [each.health for each in self.console.reports])

    def test_bound(self) -> None:
        """A console that always wants everything gets eight reports, and then the next in time."""
        self.console.report_answers = [(409, b'{"code": "send_all"}')] * 20
        self.tick()
        self.assertEqual(12, len(self.console.report_answers))

    def test_answers(self) -> None:
        """Each answer to a command comes once, also when the console lost the first report with it."""
        self.console.report_answers = [(0, b""), (409, b'{"code": "send_all"}')]
        self.console.says(ReloadCommand(id="r1"))
        self.tick()
        self.assertEqual(["r1"], [each.id for each in self.console.answers])
