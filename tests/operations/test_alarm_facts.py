"""
Tests for L{webhookrx.operations.alarm_facts}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.operations.snapshots import make_snapshot
from webhookrx.interfaces import Backlog, LaneStatus
from webhookrx.management.alarm_rules import RECEIVER_KINDS
from webhookrx.management.alarm_values import Fact
from webhookrx.operations.alarm_facts import REFUSED_OVER, AlarmFacts
from webhookrx.operations.counters import Counters
from webhookrx.router.gate import ClosedConnector, GateReason

AT = 1_795_000_000.0


class AlarmFactsTests(SynchronousTestCase):
    """Facts of counters and snapshots."""

    def setUp(self) -> None:
        """Begin."""
        self.counters = Counters()
        self.facts = AlarmFacts(100.0)
        self.snapshot = make_snapshot(sources=["hooks", "files"], connectors=(), blocked=(), closed=())

    def of(self, kind: str, now: float, at: float = AT) -> dict[str, Fact]:
        """Return the facts for a kind, by subject."""
        made = self.facts.facts((kind,), self.counters, self.snapshot, now, at)
        self.assertEqual({kind}, set(made))
        return {fact.subject: fact for fact in made[kind]}

    def test_silent(self) -> None:
        """A source is as silent as its last message is old, by a clock that nobody sets."""
        self.assertEqual(0.0, self.of("silent", 100.0)["hooks"].value)
        self.assertEqual(50.0, self.of("silent", 150.0)["hooks"].value)
        self.counters.sources["hooks"].last = AT
        self.assertEqual(0.0, self.of("silent", 200.0)["hooks"].value)
        facts = self.of("silent", 260.0, AT + 1e6)
        self.assertEqual({"hooks": 60.0, "files": 160.0}, {name: fact.value for name, fact in facts.items()})
        self.assertEqual("Its last message came 1 min ago.", facts["hooks"].text)
        later = self.of("silent", 200.0 + 5400, AT + 1e6)
        self.assertEqual("Its last message came 1 h 30 min ago.", later["hooks"].text)

    def test_senders(self) -> None:
        """Each known sender of a source has a fact of its own, but for those that nobody knows."""
        self.counters.sources["hooks"].heard("github", AT)
        self.counters.sources["hooks"].heard("", AT)
        facts = self.of("silent", 100.0)
        self.assertEqual({"hooks", "hooks/github", "files"}, set(facts))
        self.assertEqual({"source": "hooks", "sender": "github"}, facts["hooks/github"].fields)

    def test_connectors(self) -> None:
        """A connector has its labels."""
        self.snapshot = make_snapshot(
            sources=["hooks"], connectors=(("hooks", "r", "webhook", "8443", "p", "v", "product=p,site=fra"),)
        )
        wanted = {
            "source": "hooks",
            "rule": "r",
            "port": "8443",
            "product": "p",
            "vendor": "v",
            "label": {"product": "p", "site": "fra"},
        }
        self.assertEqual(wanted, self.of("silent", 100.0)["hooks"].fields)

    def test_refused(self) -> None:
        """Refusals are taken over the last minute, as a rate and as a part of all requests."""
        self.counters.sources["hooks"].messages = 1000
        self.counters.add("refused", "bad_token", "hooks", amount=1000)
        self.of("refused", 110.0)
        for second in range(120, 190, 10):
            self.counters.sources["hooks"].messages += 15
            self.counters.add("refused", "bad_token", "hooks", amount=5)
            facts = self.of("refused", float(second))
        self.assertEqual((0.5, 0.25), (facts["hooks"].value, facts["hooks"].share))
        self.assertEqual({"source": "hooks", "reason": "bad_token"}, facts["hooks"].fields)
        for second in range(190, 190 + int(REFUSED_OVER) + 20, 10):
            facts = self.of("refused", float(second))
        self.assertEqual((0.0, 0.0), (facts["hooks"].value, facts["hooks"].share))

    def test_refused_before_a_source(self) -> None:
        """What was refused before a source was known is a part of all requests."""
        self.of("refused", 110.0)
        self.counters.sources["hooks"].messages = 80
        self.counters.add("refused", "bad_token", "hooks", amount=5)
        self.counters.add("refused", "no_matching_path", "", amount=15)
        fact = self.of("refused", 120.0)[""]
        self.assertEqual(0.15, fact.share)
        self.assertEqual({"source": "", "reason": "no_matching_path"}, fact.fields)

    def test_fewer(self) -> None:
        """Counts that a worker has taken along are no refusals below zero."""
        self.counters.add("refused", "bad_token", "", amount=10)
        self.of("refused", 110.0)
        self.of("refused", 170.0)
        self.counters.counts["refused", "bad_token", ""] = 4
        self.assertEqual(0.0, self.of("refused", 180.0)[""].value)

    def test_gate(self) -> None:
        """A blocked router, and connectors that could not begin, close the gate."""
        self.assertEqual(0.0, self.of("gate_closed", 100.0)["gate"].value)
        for words, text in (
            ({"blocked": (GateReason("No key.x"),)}, "No key.x"),
            ({"closed": (ClosedConnector("a", "r", 80, "No key.x"),)}, 'Connector "a" is closed: No key.x'),
        ):
            self.snapshot = make_snapshot(**{"blocked": (), "closed": (), **words})
            fact = self.of("gate_closed", 100.0)["gate"]
            self.assertEqual((1.0, text), (fact.value, fact.text))

    def test_certificates(self) -> None:
        """A certificate has so many seconds left."""
        self.snapshot = make_snapshot(certificates={"a.pem": AT + 86400, "b.pem": AT - 86400})
        facts = self.of("certificate", 100.0)
        self.assertEqual([86400.0, -86400.0], [fact.value for fact in facts.values()])
        self.assertEqual(["It ends in 1 d.", "It ended 1 d ago."], [fact.text for fact in facts.values()])

    def test_spools(self) -> None:
        """A spool is as old as its oldest message; other observers have none."""
        backlog = Backlog(3, 300, int((AT - 90) * 1e9), 0, 0, None, False)
        self.snapshot = make_snapshot(lanes=[LaneStatus("spool:a", 0, 0, False, None, backlog), LaneStatus("stdout")])
        facts = self.of("spool", 100.0)
        self.assertEqual({"spool:a"}, set(facts))
        self.assertEqual(90.0, facts["spool:a"].value)
        self.assertEqual(0.0, self.of("spool", 100.0, AT - 1000)["spool:a"].value)

    def test_all(self) -> None:
        """There are facts of each kind that a receiver can tell."""
        self.assertEqual(
            set(RECEIVER_KINDS), set(self.facts.facts(RECEIVER_KINDS, self.counters, self.snapshot, 100.0, AT))
        )
