"""
Tests for L{webhookrx.console.alarms.alarm_book} and its routes: what alarms may say, and how they change.
"""

from __future__ import annotations

from typing import Any

import msgspec
from twisted.internet.defer import Deferred

from tests.console.alarms.alarming import ADMIN, EDITOR, AlarmCase
from webhookrx.console.alarms import alarm_book
from webhookrx.console.alarms.alarm_routes import (
    delete_alarm,
    roll_back_alarm,
    save_alarm,
    show_alarm,
    show_alarm_history,
)
from webhookrx.console.alarms.documents import FIELDS, AlarmDocument
from webhookrx.console.alarms.fleet_facts import SETTLING
from webhookrx.console.alarms.target_routes import TargetDocument, delete_target, save_target
from webhookrx.console.api.history import HistoryQuery, RollbackRequest
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.counts.count_tables import SeriesLabels
from webhookrx.management.alarm_rules import CONSOLE_KINDS, AlarmRule
from webhookrx.message.fields import MISSING, get_field, split_path
from webhookrx.router.rules.router import Router

QUIET: dict[str, Any] = {"kind": "silent", "for": "6h", "when": "rule = hooks", "expect_within": "2d", "notify": "ops"}


class BookCase(AlarmCase):
    """A console with a target."""

    def setUp(self) -> None:
        super().setUp()
        body = TargetDocument("https://alerts.example.com/c4nary")
        self.done(save_target(self.call(body, caller=ADMIN, path={"name": "ops"})))

    def ask(self, handler: Any, name: str = "quiet", body: Any = None, **parts: Any) -> Any:
        """Return what comes of a call: an answer, or a problem."""
        call = self.call(body, caller=EDITOR, path={"name": name}, **parts)
        result: list[Any] = []
        Deferred.fromCoroutine(handler(call)).addCallbacks(result.append, lambda failure: result.append(failure.value))
        if isinstance(result[0], Exception) and not isinstance(result[0], ApiProblem):
            raise result[0]
        return result[0]

    def put(self, text: Any, name: str = "quiet", etag: str = "") -> Any:
        """Make an alarm, or change the one that has an ETag."""
        body = msgspec.convert(text, AlarmDocument)
        parts = {"if_match": etag} if etag else {"if_none_match": "*"}
        return self.ask(save_alarm, name, body, **parts)

    def findings(self, text: Any, name: str = "quiet") -> list[tuple[str, str]]:
        """Return code and place of what is wrong with an alarm."""
        problem = self.put(text, name)
        self.assertEqual(422, problem.kind.status, text)
        return [(each.code, ".".join(map(str, each.path))) for each in problem.findings]


class JudgingTests(BookCase):
    """What is an alarm."""

    def test_all_kinds(self) -> None:
        """Each kind has its defaults."""
        self.put(QUIET)
        self.put({"kind": "refused", "above": "5%", "name": "no"}, "no")
        self.put({"kind": "refused", "above": "6/m", "for": "1m", "when": "reason = bad_token"}, "many")
        self.put({"kind": "certificate", "for": "30d", "when": "connector.labels.product = github"}, "ends")
        self.put({"kind": "router_away", "for": "1h", "when": "label.site = fra"}, "fra")
        self.put({"kind": "gate_closed"}, "gate")
        self.put({"kind": "apply_failed", "notify": "ops"}, "apply_failed", "g0")
        rules = {each.name: each for each in self.alarms.book.rules}
        wanted = (
            AlarmRule("quiet", "silent", 21600.0, "rule = hooks", notify="ops", expect=2 * 86400.0),
            AlarmRule("no", "refused", 300.0, share=0.05),
            AlarmRule("many", "refused", 60.0, "reason = bad_token", rate=0.1),
            AlarmRule("ends", "certificate", 30 * 86400.0, "connector.labels.product = github"),
            AlarmRule("fra", "router_away", 3600.0, "label.site = fra"),
            AlarmRule("gate", "gate_closed", 300.0),
            AlarmRule("apply_failed", "apply_failed", 0.0, notify="ops"),
            AlarmRule("duplicate", "duplicate", 0.0),
        )
        for rule in wanted:
            self.assertEqual(rule, rules[rule.name])
        self.assertEqual(len(wanted) + 2, len(rules))
        self.restart()
        self.assertEqual(rules, {each.name: each for each in self.alarms.book.rules})

    def test_mistakes(self) -> None:
        """Each mistake has its code and place, and nothing is saved."""
        for text, found in (
            ({}, [("missing-key", "")]),
            ({"kind": "spool", "for": "59s"}, [("bad-value", "for")]),
            ({"kind": "spool", "when": "rule = a"}, [("alarm-query", "when")]),
            ({"kind": "silenced", "for": "6h"}, [("alarm-kind", "kind")]),
            ({"kind": "silent"}, [("missing-key", "")]),
            ({"kind": "silent", "for": "6 weeks"}, [("bad-value", "for")]),
            ({"kind": "silent", "for": "59s"}, [("bad-value", "for")]),
            ({"kind": "silent", "for": "6h", "expect_within": "x"}, [("bad-value", "expect_within")]),
            ({"kind": "certificate", "expect_within": "6h"}, [("bad-value", "expect_within")]),
            ({"kind": "router_away", "for": "29s"}, [("bad-value", "for")]),
            ({"kind": "refused"}, [("missing-key", "")]),
            ({"kind": "refused", "above": "100%"}, [("bad-value", "above")]),
            ({"kind": "certificate", "above": "5%"}, [("bad-value", "above")]),
            ({"kind": "certificate", "when": "rule ="}, [("alarm-query", "when")]),
            ({"kind": "certificate", "when": "reason = bad_token"}, [("alarm-query", "when")]),
            ({"kind": "refused", "above": "5%", "when": "sender = github"}, [("alarm-query", "when")]),
            ({"kind": "gate_closed", "when": "rule = a"}, [("alarm-query", "when")]),
            ({"kind": "gate_closed", "notify": "nobody"}, [("alarm-target", "notify")]),
            ({"kind": "gate_closed", "name": "other"}, [("bad-name", "name")]),
        ):
            self.assertEqual(found, self.findings(text), text)
        self.assertEqual([("bad-name", "name")], self.findings({"kind": "gate_closed"}, "a b"))
        problem = self.put({"kind": "silent", "for": "1h"}, "gate_closed", "g0")
        self.assertEqual([("alarm-kind", ("kind",))], [(each.code, each.path) for each in problem.findings])
        problem = self.put({"kind": "certificate", "when": "rule = a\nAND AND"})
        self.assertEqual((2, 5), (problem.findings[0].line, problem.findings[0].column))
        self.assertEqual(4, len(self.alarms.book.rules))

    def test_fields(self) -> None:
        """The fields that a query may test are there: those of connectors, and those of routers."""
        self.assertEqual(set(CONSOLE_KINDS), set(FIELDS))
        labels = SeriesLabels("a", "hooks", 8443, {"KEY": "x"}, "fra-1", {"KEY": "x"})
        router = Router("fra-1", {"KEY": "x"}, "fra-1", "fra-1.x", ("10.0.0.1",), "linux", "x86_64", "26.11.10")
        for kind in FIELDS:
            record: dict[str, Any] = {**labels.record, "reason": "x"} if "router" in FIELDS[kind] else router.record
            record |= {"spool": {"observer": "x"}, "silent": {"sender": "x"}}.get(kind, {})
            for field in FIELDS[kind]:
                self.assertIsNot(MISSING, get_field(record, split_path(field)), (kind, field))

    def test_too_many(self) -> None:
        """There are not too many alarms; one that is there can be changed, and one deleted makes room."""
        self.patch(alarm_book, "MOST_RULES", 2)
        self.put(QUIET, "a")
        self.put(QUIET, "b")
        self.assertEqual(409, self.put(QUIET, "c").kind.status)
        self.assertEqual("g2", self.put(QUIET | {"for": "7h"}, "b", "g1").etag)
        self.ask(delete_alarm, "a", if_match="g1")
        self.assertEqual("g1", self.put(QUIET, "c").etag)

    def test_unusable(self) -> None:
        """An alarm that can't be used as it is saved is left out, and the console says so until it is written anew."""
        self.put(QUIET)
        self.store.writer.write(lambda t: t.execute("""UPDATE alarm SET doc = '{"kind": "gone"}'"""))
        self.restart()
        self.assertIn("quiet", self.console.problems["alarms"])
        self.assertEqual(4, len(self.alarms.book.rules))
        self.put(QUIET, etag="g1")
        self.look()
        self.assertEqual({}, self.console.problems)


class ChangeTests(BookCase):
    """How alarms change."""

    def test_generations(self) -> None:
        """A change needs what was read; a stale one is answered with what is there now."""
        self.assertEqual("g1", self.put(QUIET).etag)
        self.assertEqual(412, self.put(QUIET).kind.status)
        self.assertEqual("g2", self.put(QUIET | {"for": "7h"}, etag="g1").etag)
        problem = self.put(QUIET, etag="g1")
        self.assertEqual((412, 2), (problem.kind.status, problem.members["current"].generation))
        self.assertEqual("g2", self.put(QUIET | {"for": "7h"}, etag="g2").etag)
        self.assertEqual(400, self.put(QUIET, etag="r2").kind.status)
        self.assertEqual(404, self.put(QUIET, "other", "g1").kind.status)
        shown = self.ask(show_alarm)
        self.assertEqual(("g2", "7h", "quiet"), (shown.etag, shown.body.alarm.lasts, shown.body.alarm.name))
        self.assertEqual("g3", self.put(msgspec.to_builtins(shown.body.alarm) | {"for": "8h"}, etag="g2").etag)
        self.assertEqual(428, self.ask(save_alarm, body=AlarmDocument(kind="duplicate")).kind.status)

    def test_delete(self) -> None:
        """One that is deleted is no more, and goes on with its generations when it is made again."""
        self.put(QUIET)
        self.assertEqual(428, self.ask(delete_alarm).kind.status)
        self.assertEqual(412, self.ask(delete_alarm, if_match="g2").kind.status)
        self.assertIsNone(self.ask(delete_alarm, if_match="g1"))
        for handler in (show_alarm, delete_alarm):
            self.assertEqual(404, self.ask(handler, if_match="g2").kind.status)
        self.assertEqual("g3", self.put(QUIET).etag)

    def test_built_in(self) -> None:
        """A built-in alarm can be written, and is as it was when that is deleted."""
        shown = self.ask(show_alarm, "router_away")
        self.assertEqual(("g0", True, "5m"), (shown.etag, shown.body.built_in, shown.body.alarm.lasts))
        self.assertEqual(412, self.put({"kind": "router_away"}, "router_away").kind.status)
        self.assertEqual(404, self.ask(delete_alarm, "router_away", if_match="g0").kind.status)
        self.assertEqual("g1", self.put({"kind": "router_away", "for": "1h"}, "router_away", "g0").etag)
        self.assertEqual(3600.0, self.alarms.book.rules[0].seconds)
        self.ask(delete_alarm, "router_away", if_match="g1")
        shown = self.ask(show_alarm, "router_away")
        self.assertEqual(("g2", True, "5m"), (shown.etag, shown.body.built_in, shown.body.alarm.lasts))
        self.assertEqual("g3", self.put({"kind": "router_away", "for": "1h"}, "router_away", "g2").etag)

    def test_history(self) -> None:
        """Each change is a revision, and an alarm can be made what it was, as another one."""
        self.put(QUIET)
        self.put(QUIET | {"for": "7h"}, etag="g1")
        self.ask(delete_alarm, if_match="g2")
        page = self.ask(show_alarm_history, query=HistoryQuery())
        self.assertEqual(
            [("delete", 3), ("update", 2), ("create", 1)], [(each.operation, each.generation) for each in page.entries]
        )
        self.assertEqual(
            ("7h", "6h", "mara"), (page.entries[1].after["for"], page.entries[1].before["for"], page.entries[1].by)
        )
        self.assertEqual("g4", self.ask(roll_back_alarm, body=RollbackRequest(1)).etag)
        self.assertEqual("6h", self.ask(show_alarm).body.alarm.lasts)
        self.assertEqual(404, self.ask(roll_back_alarm, body=RollbackRequest(9)).kind.status)
        self.assertEqual(409, self.ask(roll_back_alarm, body=RollbackRequest(3)).kind.status)
        self.assertEqual(404, self.ask(show_alarm_history, "other", query=HistoryQuery()).kind.status)
        page = self.ask(show_alarm_history, query=HistoryQuery())
        self.assertEqual("rollback:1", page.entries[0].via)

    def test_targets_in_use(self) -> None:
        """A target that an alarm notifies can't be deleted; with one that is gone no alarm is made what it was."""
        self.put(QUIET)
        call = self.call(caller=ADMIN, path={"name": "ops"})
        problem = self.failureResultOf(Deferred.fromCoroutine(delete_target(call)), ApiProblem).value
        self.assertEqual((409, "The alarm quiet notifies it."), (problem.kind.status, problem.detail))  # type: ignore[attr-defined]
        self.put({"kind": "silent", "for": "1h"}, etag="g1")
        self.done(delete_target(call))
        self.assertEqual(422, self.ask(roll_back_alarm, body=RollbackRequest(1)).kind.status)


class UseTests(BookCase):
    """Alarms that are in use when they change."""

    def away(self) -> Any:
        """Return a router that has been away for ten minutes."""
        router = self.talk("fra-1", labels={"site": "fra"})
        self.pass_time(SETTLING)
        self.talking.clear()
        self.pass_time(600)
        self.assertIn(("router_away", "fra-1", "firing"), self.told())
        return router

    def test_soon(self) -> None:
        """A new alarm is looked at at once."""
        self.away()
        self.put({"kind": "router_away", "for": "1m", "when": "label.site = fra"}, "fra")
        self.alarms.tick()
        self.assertEqual([("fra", "fra-1", "firing")], self.told())

    def test_changed_while_firing(self) -> None:
        """One that is changed while it fires is not told again while it is right still, and is ok when it is not."""
        router = self.away()
        self.put({"kind": "router_away", "for": "1m", "notify": "ops"}, "router_away", "g0")
        self.pass_time(60)
        self.assertEqual([], self.told())
        self.put({"kind": "router_away", "for": "1m", "when": "label.site = ber"}, "router_away", "g1")
        self.pass_time(60)
        self.assertEqual([("router_away", "fra-1", "ok")], self.told())
        self.talking.append(router)
        self.look()
        self.assertEqual([], self.told())

    def test_deleted_while_firing(self) -> None:
        """Who was told that it fires is told its end when it is deleted, also if the console is killed just then."""
        self.away()
        for number in range(2):
            self.put({"kind": "router_away", "for": "1m", "notify": "ops"}, "fra", self.etag("fra"))
            self.pass_time(SETTLING + 60)
            self.assertEqual([("fra", "fra-1", "firing")], self.told())
            self.ask(delete_alarm, "fra", if_match=self.etag("fra"))
            if number:
                self.restart()
            self.pass_time(60)
            self.assertEqual([("fra", "fra-1", "ok")], self.told())
        self.clock.advance(600)
        self.assertEqual(["firing", "ok"] * 2, [body["state"] for _, body in self.posted])

    def etag(self, name: str) -> str:
        """Return the ETag of an alarm, if it is there."""
        listed = self.alarms.book.listed(name)
        return "" if listed is None else f"g{listed.generation}"

    def test_notified(self) -> None:
        """The target that an alarm names is told of it, and of no other."""
        self.put({"kind": "router_away", "for": "1m", "notify": "ops"}, "fra")
        self.away()
        self.clock.advance(0)
        self.assertEqual(["fra"], [body["alarm"] for _, body in self.posted])
