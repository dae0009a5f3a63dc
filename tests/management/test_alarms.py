"""
Tests for L{webhookrx.management.alarms}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.management.alarm_rules import AlarmRule
from webhookrx.management.alarm_subjects import NOTHING_MATCHED
from webhookrx.management.alarm_values import AlarmMark, Fact
from webhookrx.management.alarms import MOST_SUBJECTS, Alarms

SILENT = AlarmRule("quiet", "silent", 3600.0)
GATE = AlarmRule("gate", "gate_closed", 300.0)
CERTIFICATE = AlarmRule("ends", "certificate", 86400.0)
REFUSED = AlarmRule("no", "refused", 60.0, rate=2.0)


def fact(subject: str, value: float | None, share: float = 0.0, **fields: object) -> Fact:
    """Return a fact."""
    return Fact(subject, {"source": subject, **fields}, value, f"{subject}: {value}", share)


def first(subject: str, value: float | None = 0.0) -> Fact:
    """Return the fact that nothing has ever come from a subject."""
    return fact(subject, value)._replace(is_first=True)


class AlarmsTests(SynchronousTestCase):
    """The states of alarms."""

    def look(self, alarms: Alarms, kind: str, now: float, *facts: Fact) -> list[tuple[str, str]]:
        """Return the subjects and states of the changes."""
        return [(each.subject, each.state) for each in alarms.look({kind: facts}, now, 1e9 + now)]

    def states(self, alarms: Alarms) -> list[tuple[str, str]]:
        """Return the subjects and states of all that is not ok."""
        return [(each.subject, each.state) for each in alarms.rows]

    def test_silent(self) -> None:
        """A source that is silent for too long fires once, and is ok with its next message."""
        alarms = Alarms([SILENT], 0.0)
        self.assertEqual(self.look(alarms, "silent", 10.0, fact("a", 3599.0)), [])
        self.assertEqual(self.look(alarms, "silent", 11.0, fact("a", 3600.0)), [("a", "firing")])
        self.assertEqual(self.look(alarms, "silent", 12.0, fact("a", 3601.0)), [])
        self.assertEqual(alarms.rows[0].since, 1e9 + 11.0)
        self.assertEqual(self.look(alarms, "silent", 13.0, fact("a", 1.0)), [("a", "ok")])
        self.assertEqual(alarms.rows, [])

    def test_lasting(self) -> None:
        """A gate that is closed is pending, and fires when that lasts; a moment without it begins anew."""
        alarms = Alarms([GATE], 0.0)
        for now, value, state in (
            (0.0, 1.0, "pending"),
            (299.0, 1.0, "pending"),
            (299.5, 0.0, ""),
            (300.0, 1.0, "pending"),
        ):
            self.assertEqual(self.look(alarms, "gate_closed", now, fact("gate", value)), [])
            self.assertEqual(self.states(alarms), [("gate", state)] if state else [])
        self.assertEqual(self.look(alarms, "gate_closed", 600.0, fact("gate", 1.0)), [("gate", "firing")])
        self.assertEqual(self.look(alarms, "gate_closed", 601.0, fact("gate", 0.0)), [("gate", "ok")])

    def test_certificate(self) -> None:
        """A certificate that ends soon fires, also when it has ended."""
        alarms = Alarms([CERTIFICATE], 0.0)
        facts = fact("a", 86401.0), fact("b", 86400.0), fact("c", -5.0)
        self.assertEqual(self.look(alarms, "certificate", 0.0, *facts), [("b", "firing"), ("c", "firing")])

    def test_refused(self) -> None:
        """The refusals of a source are added up, whatever their reasons, as far as the query is about them."""
        facts = fact("a", 1.5, 0.2, reason="x"), fact("a", 1.0, 0.1, reason="y")
        for rule, state in (
            (REFUSED, [("a", "pending")]),
            (AlarmRule("no", "refused", 60.0, "reason = x", rate=2.0), []),
            (AlarmRule("no", "refused", 60.0, "reason = x", rate=1.0), [("a", "pending")]),
            (AlarmRule("no", "refused", 60.0, share=0.25), [("a", "pending")]),
            (AlarmRule("no", "refused", 60.0, share=0.35), []),
        ):
            alarms = Alarms([rule], 0.0)
            self.look(alarms, "refused", 0.0, *facts)
            self.assertEqual(self.states(alarms), state, rule)

    def test_unknown(self) -> None:
        """What is not known any more is unknown; it is told neither as ok nor as firing again."""
        alarms = Alarms([SILENT], 0.0)
        self.look(alarms, "silent", 0.0, fact("a", 4000.0))
        self.assertEqual(self.look(alarms, "silent", 1.0, fact("a", None), fact("b", None)), [])
        self.assertEqual(self.states(alarms), [("a", "unknown"), ("b", "unknown")])
        self.assertEqual(self.look(alarms, "silent", 2.0, fact("a", 4002.0), fact("b", 0.0)), [])
        self.assertEqual(self.states(alarms), [("a", "firing")])

    def test_unknown_is_not_lasting(self) -> None:
        """Time in which something was unknown does not count for how long it lasts."""
        alarms = Alarms([GATE], 0.0)
        self.look(alarms, "gate_closed", 0.0, fact("a", None))
        self.assertEqual(self.look(alarms, "gate_closed", 400.0, fact("a", 1.0)), [])
        self.assertEqual(self.look(alarms, "gate_closed", 699.0, fact("a", 1.0)), [])
        self.assertEqual(self.look(alarms, "gate_closed", 700.0, fact("a", 1.0)), [("a", "firing")])

    def test_gone(self) -> None:
        """A subject that is there no more is ok."""
        alarms = Alarms([CERTIFICATE], 0.0)
        self.look(alarms, "certificate", 0.0, fact("a", 0.0))
        self.assertEqual(self.look(alarms, "certificate", 1.0), [("a", "ok")])

    def test_senders(self) -> None:
        """A rule is about sources, and about senders only if its query asks for them."""
        facts = fact("a", 9999.0), fact("a/github", 9999.0, sender="github"), fact("a/gitlab", 9999.0, sender="gitlab")
        self.assertEqual(self.look(Alarms([SILENT], 0.0), "silent", 0.0, *facts), [("a", "firing")])
        rule = AlarmRule("quiet", "silent", 3600.0, "sender = github")
        self.assertEqual(self.look(Alarms([rule], 0.0), "silent", 0.0, *facts), [("a/github", "firing")])

    def test_never_spoken(self) -> None:
        """A sender that was never there is as silent as the service is old."""
        alarms = Alarms([AlarmRule("quiet", "silent", 3600.0, "sender = github")], 100.0)
        self.assertEqual(self.look(alarms, "silent", 3699.0), [])
        self.assertEqual(self.look(alarms, "silent", 3700.0), [(NOTHING_MATCHED, "firing")])
        self.assertEqual(
            self.look(alarms, "silent", 3701.0, fact("a/github", 0.5, sender="github")), [(NOTHING_MATCHED, "ok")]
        )

    def test_bounded(self) -> None:
        """Only so many subjects are told, and the others are counted."""
        alarms = Alarms([CERTIFICATE], 0.0)
        changes = self.look(alarms, "certificate", 0.0, *(fact(str(each), 0.0) for each in range(MOST_SUBJECTS + 3)))
        self.assertEqual((len(changes), alarms.counts[0].left_out), (MOST_SUBJECTS, 3))
        self.look(alarms, "certificate", 0.0, fact("0", 0.0))
        self.assertEqual((alarms.counts[0].firing, alarms.counts[0].left_out), (1, 0))

    def test_other_rules(self) -> None:
        """With other rules, one that is as before goes on, and fires no second time."""
        alarms = Alarms([SILENT, CERTIFICATE], 0.0)
        self.look(alarms, "silent", 0.0, fact("a", 4000.0))
        alarms.use([GATE, SILENT])
        self.assertEqual(alarms.kinds, {"gate_closed", "silent"})
        self.assertEqual(self.look(alarms, "silent", 1.0, fact("a", 4001.0)), [])
        self.assertEqual(self.states(alarms), [("a", "firing")])

    def test_changed_rule(self) -> None:
        """A rule that changes while it fires goes on: nothing is told again, and its end is told to who knows."""
        alarms = Alarms([AlarmRule("ends", "certificate", 100.0, notify="ops")], 0.0)
        self.look(alarms, "certificate", 0.0, fact("a", 50.0), fact("b", 50.0))
        alarms.use([AlarmRule("ends", "certificate", 200.0, "source = a", notify="night")])
        (change,) = alarms.look({"certificate": [fact("a", 150.0), fact("b", 150.0)]}, 1.0, 1e9)
        self.assertEqual(("b", "ok", "ops"), (change.subject, change.state, change.notify))
        (change,) = alarms.look({"certificate": [fact("a", 999.0)]}, 2.0, 1e9)
        self.assertEqual(("a", "ok", "ops"), (change.subject, change.state, change.notify))
        (change,) = alarms.look({"certificate": [fact("a", 1.0)]}, 3.0, 1e9)
        self.assertEqual(("a", "firing", "night"), (change.subject, change.state, change.notify))

    def test_removed_rule(self) -> None:
        """The target of an alarm that is removed while it fires, or gets another kind, is told, once."""
        for rules in ([], [AlarmRule("ends", "silent", 100.0)]):
            alarms = Alarms([AlarmRule("ends", "certificate", 100.0, notify="ops")], 0.0)
            self.look(alarms, "certificate", 0.0, fact("a", 50.0))
            alarms.use(rules)
            (change,) = alarms.look({"certificate": [fact("a", 50.0)]}, 1.0, 1e9)
            self.assertEqual(
                ("certificate", "a", "ok", "ops"), (change.kind, change.subject, change.state, change.notify)
            )
            self.assertEqual({("ends", "a"): None}, dict(alarms.touched()))
            self.assertEqual(self.look(alarms, "certificate", 2.0, fact("a", 50.0)), [])

    def test_flapping(self) -> None:
        """What is wrong again and again, but never for as long as the rule says, is told to nobody."""
        alarms = Alarms([GATE], 0.0)
        for now in range(0, 6000, 30):
            is_wrong = float(now % 300 != 0)
            self.assertEqual(self.look(alarms, "gate_closed", float(now), fact("a", is_wrong)), [])

    def test_doubtful_age(self) -> None:
        """An age that is not right already is pending until it is as old as the rule says."""
        alarms = Alarms([AlarmRule("away", "router_away", 300.0)], 0.0)
        self.look(alarms, "router_away", 0.0, fact("a", 61.0)._replace(is_doubtful=True), fact("b", 20.0))
        self.assertEqual(self.states(alarms), [("a", "pending")])
        late = fact("a", 300.0)._replace(is_doubtful=True)
        self.assertEqual(self.look(alarms, "router_away", 30.0, late), [("a", "firing")])
        self.assertEqual(alarms.rows[0].since, 1e9 + 30.0)
        self.assertEqual(self.look(alarms, "router_away", 31.0, fact("a", 1.0)), [("a", "ok")])

    def test_first_message(self) -> None:
        """The first message is waited for, also while nothing is known; C{expect} says for how long."""
        alarms = Alarms([AlarmRule("quiet", "silent", 60.0, expect=1000.0)], 0.0)
        self.assertEqual(self.look(alarms, "silent", 0.0, first("a")), [])
        self.assertEqual(self.look(alarms, "silent", 500.0, first("a", None)), [])
        self.assertEqual(self.look(alarms, "silent", 999.0, first("a")), [])
        self.assertEqual(self.states(alarms), [("a", "pending")])
        self.assertEqual(self.look(alarms, "silent", 1000.0, first("a")), [("a", "firing")])
        self.assertEqual(self.look(alarms, "silent", 1001.0, fact("a", 0.5)), [("a", "ok")])
        self.assertEqual(self.look(alarms, "silent", 1061.0, fact("a", 60.5)), [("a", "firing")])

    def test_hidden(self) -> None:
        """What is hidden is unknown, not gone: it is told neither as ok nor as firing again."""
        alarms = Alarms([SILENT], 0.0)
        self.look(alarms, "silent", 0.0, fact("a", 4000.0))
        alarms.begin_look(1.0, 1e9 + 1)
        self.assertEqual(list(alarms.end_look(lambda subject: subject in ("a", NOTHING_MATCHED))), [])
        self.assertEqual(self.states(alarms), [("a", "unknown")])
        self.assertEqual(self.look(alarms, "silent", 2.0, fact("a", 4002.0)), [])
        self.assertEqual([("firing", 1e9)], [(each.state, each.since) for each in alarms.rows])

    def test_pieces(self) -> None:
        """A look in pieces is like one at once."""
        alarms = Alarms([SILENT, GATE], 0.0)
        alarms.begin_look(0.0, 1e9)
        found = [*alarms.take({"silent": [fact("a", 4000.0)]}), *alarms.take({"silent": [fact("b", 4000.0)]})]
        self.assertEqual([("a", "firing"), ("b", "firing")], [(each.subject, each.state) for each in found])
        self.assertEqual([], list(alarms.end_look()))

    def test_marks(self) -> None:
        """What is kept of it makes others that tell nothing twice and lose nothing."""
        rules = [
            AlarmRule("ends", "certificate", 100.0, notify="ops"),
            GATE,
            AlarmRule("quiet", "silent", 60.0, expect=1000.0),
        ]
        alarms = Alarms(rules, 0.0)
        facts = {
            "certificate": [fact("a", 50.0), fact("b", 50.0), fact("c", None)],
            "gate_closed": [fact("a", 1.0)],
            "silent": [first("a")],
        }
        alarms.look(facts, 0.0, 1e9)
        marks = {key: mark for key, mark in alarms.touched() if mark is not None}
        self.assertEqual({("ends", "a"), ("ends", "b"), ("gate", "a"), ("quiet", "a")}, set(marks))
        self.assertEqual(AlarmMark("ends", "certificate", "a", "firing", 1e9, "a: 50.0", "ops"), marks["ends", "a"])
        alarms.look(facts, 10.0, 1e9 + 10)
        self.assertEqual({}, dict(alarms.touched()))

        again = Alarms(rules[:1] + rules[2:], 5000.0)
        again.restore(marks.values(), 5000.0, 1e9 + 900)
        self.assertEqual({"unknown"}, {each.state for each in again.rows})
        facts = {"certificate": [fact("a", 40.0), fact("b", 400.0)], "silent": [first("a")]}
        found = again.look(facts, 5099.0, 1e9 + 999)
        self.assertEqual([("b", "ok", "ops")], [(each.subject, each.state, each.notify) for each in found])
        self.assertEqual({("ends", "b"): None, ("gate", "a"): None}, dict(again.touched()))
        found = again.look(facts, 5100.0, 1e9 + 1000)
        self.assertEqual([("quiet", "a", "firing")], [(each.alarm, each.subject, each.state) for each in found])

    def test_restored_of_no_rule(self) -> None:
        """What fired before a restart, and has no rule any more, is told to be ok."""
        alarms = Alarms([], 0.0)
        alarms.restore([AlarmMark("ends", "certificate", "a", "firing", 1e9, "a", "ops")], 0.0, 1e9)
        (change,) = alarms.look({}, 1.0, 1e9 + 1)
        self.assertEqual(("ends", "a", "ok", "ops"), (change.alarm, change.subject, change.state, change.notify))
        self.assertEqual([], alarms.look({}, 2.0, 1e9 + 2))

    def test_room(self) -> None:
        """What is unknown, or waited for, takes half of the room of a rule at most; all rules have a bound together."""
        alarms = Alarms([CERTIFICATE, AlarmRule("other", "certificate", 1.0)], 0.0, most_subjects=10, most_in_all=14)
        unknown = [fact(f"u{each}", None) for each in range(8)]
        changes = self.look(alarms, "certificate", 0.0, *unknown, *(fact(f"w{each}", 9.0) for each in range(8)))
        self.assertEqual([("firing")] * 5, [state for _, state in changes])
        self.assertEqual([(5, 5, 6), (4, 0, 4)], [(c.unknown, c.firing, c.left_out) for c in alarms.counts])
