"""
Tests for L{webhookrx.agent.reports}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.agent.reports import Reports, ToldState
from webhookrx.management.agent_protocol import (
    AppliedState,
    CommandAnswer,
    GateState,
    HeardSender,
    RouterFacts,
    RouterReport,
    SeriesCounts,
    SpoolState,
)

STATE = ToldState((), GateState(), RouterFacts(hostname="fra-1"), "ready", (), (SeriesCounts("a", 1),))
APPLIED = AppliedState(status="APPLIED", revision=7)


class ReportsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.reports = Reports(100, "i")

    def report(self, now: int, state: ToldState = STATE, applied: AppliedState = APPLIED) -> RouterReport:
        return self.reports.next(applied, state, now)

    def test_differences(self) -> None:
        """The first report has everything, and the next what is different."""
        first = self.report(200)
        self.assertEqual((1, 0, "ready", APPLIED), (first.number, first.base, first.health, first.applied))
        self.reports.confirmed()
        second = self.report(300, STATE._replace(health="degraded"))
        self.assertEqual((2, 1, "degraded"), (second.number, second.base, second.health))
        self.assertEqual((None, None, None, None), (second.applied, second.facts, second.gate, second.connectors))

    def test_spools(self) -> None:
        """Spools are told at first, when they are others, and when everything is asked for again."""
        waits = (SpoolState(name="spool:/x", messages=2, bytes=9, oldest=5),)
        told = []
        for number, spools in enumerate(((), waits, waits, waits, ())):
            if number == 3:
                self.report(200, STATE._replace(spools=spools))
                self.reports.send_all()
            told.append(self.report(200, STATE._replace(spools=spools)).spools)
            self.reports.confirmed()
        self.assertEqual([(), waits, None, waits, ()], told)

    def test_senders(self) -> None:
        """So are senders."""
        told = []
        for last in (1.0, 1.0, 2.0):
            told.append(self.report(200, STATE._replace(senders=(HeardSender("a", "github", last),))).senders)
            self.reports.confirmed()
        self.assertEqual([(HeardSender("a", "github", 1.0),), None, (HeardSender("a", "github", 2.0),)], told)

    def test_a_lost_answer(self) -> None:
        """A report without an answer is sent again as it was, and its interval is counted once."""
        first = self.report(200)
        self.assertIs(first, self.report(300, STATE._replace(health="degraded")))
        self.reports.confirmed()
        second = self.report(400)
        assert first.counts is not None and second.counts is not None
        self.assertEqual((100, 200), (first.counts.since, first.counts.until))
        self.assertEqual((200, 400), (second.counts.since, second.counts.until))

    def test_everything_again(self) -> None:
        """A console that lacks a report gets everything, with another number and the same answers to commands."""
        self.report(200)
        self.reports.confirmed()
        self.reports.answer(CommandAnswer(id="c"))
        self.report(300)
        self.reports.send_all()
        again = self.report(400)
        self.assertEqual((3, 0, "ready"), (again.number, again.base, again.health))
        self.assertEqual(["c"], [each.id for each in again.answers])
        assert again.counts is not None
        self.assertEqual(200, again.counts.since)

    def test_a_clock_that_was_put_back(self) -> None:
        """An interval never ends before it begins."""
        self.report(200)
        self.reports.confirmed()
        counts = self.report(150).counts
        assert counts is not None
        self.assertEqual((200, 200), (counts.since, counts.until))
