"""
Tests for L{webhookrx.console.alarms.telling}, the outbox and the targets: what they are told, and when the console is
killed.
"""

from __future__ import annotations

from typing import Any

import msgspec
from twisted.internet.defer import Deferred

from tests.console.alarms.alarming import ADMIN, AlarmCase
from webhookrx.console.alarms import outbox
from webhookrx.console.alarms.target_routes import TargetDocument, delete_target, save_target, show_targets
from webhookrx.console.alarms.telling import WINDOW
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.store.history import read_history
from webhookrx.errors import StoreFull
from webhookrx.management.agent_protocol import AppliedState
from webhookrx.management.alarm_rules import MOST_TARGETS
from webhookrx.service.alarm_posts import LONGEST_PAUSE, OLDEST, AlarmPost

URL = "https://alerts.example.com/c4nary?x=1"
FAILED = {"applied": AppliedState(status="FAILED", error="It can't be read.")}
APPLIED = {"applied": AppliedState(status="APPLIED")}


class TargetCase(AlarmCase):
    """A console with targets."""

    def target(self, name: str = "ops", url: str = URL, *, built_in: bool = True) -> None:
        """Save a target."""
        self.done(save_target(self.call(TargetDocument(url, built_in), caller=ADMIN, path={"name": name})))

    def delete(self, name: str = "ops") -> None:
        """Delete a target."""
        self.done(delete_target(self.call(caller=ADMIN, path={"name": name})))

    def refused(self, work: Any) -> ApiProblem:
        """Return the problem of a call."""
        problem: ApiProblem = self.failureResultOf(Deferred.fromCoroutine(work), ApiProblem).value  # type: ignore[assignment]
        return problem

    def waiting(self) -> int:
        """Return how many POSTs wait in the store."""
        return self.store.reader.read(outbox.count_posts)


class TargetTests(TargetCase):
    """The settings."""

    def test_settings(self) -> None:
        """Targets are saved with history, and no URL is ever shown, whether in answers or in the history."""
        self.target()
        self.target("night", "http://10.0.0.1:8080/c4nary", built_in=False)
        self.target("ops", URL, built_in=False)
        self.target("ops", URL, built_in=False)
        shown = self.done(show_targets(self.call()))
        self.assertEqual(
            [("night", "http://10.0.0.1:8080/***", False), ("ops", "https://alerts.example.com/***", False)],
            [(each.name, each.url, each.built_in) for each in shown.targets],
        )
        self.delete("night")
        history = self.store.reader.read(lambda db: read_history(db, kind="setting"))
        self.assertEqual(
            [("delete", "night"), ("update", "ops"), ("create", "night"), ("create", "ops")],
            [(each.operation, each.name.removeprefix("alarm_target:")) for each in history],
        )
        self.assertEqual({"root"}, {each.by for each in history})
        body = TargetDocument(URL)
        for text in (repr(history), repr(shown), repr(body), repr(self.call(body)), repr(self.alarms.telling.targets)):
            self.assertNotIn("c4nary", text)
        self.restart()
        self.assertEqual(["ops"], list(self.alarms.telling.targets))

    def test_refused(self) -> None:
        """URLs and names that can't be used are refused without being quoted, and there are not too many."""
        for name, url in (
            ("ops", "ftp://c4nary"),
            ("ops", "https://user:c4nary@host/"),
            ("ops", "http://169.254.169.254/c4nary"),
            ("", URL),
            ("a b", URL),
            ("a,b", URL),
        ):
            problem = self.refused(save_target(self.call(TargetDocument(url), caller=ADMIN, path={"name": name})))
            self.assertEqual((422, True), (problem.kind.status, "c4nary" not in problem.detail), name)
        for number in range(MOST_TARGETS):
            self.target(f"t{number}")
        problem = self.refused(save_target(self.call(TargetDocument(URL), caller=ADMIN, path={"name": "more"})))
        self.assertEqual(409, problem.kind.status)
        self.target("t0", built_in=False)
        problem = self.refused(delete_target(self.call(caller=ADMIN, path={"name": "more"})))
        self.assertEqual(404, problem.kind.status)


class TellingTests(TargetCase):
    """What targets are told."""

    def fire(self) -> Any:
        """Return a router whose rules could not be applied."""
        (router,) = self.talking or [self.talk("fra-1")]
        router.told = FAILED
        self.look()
        return router

    def told_states(self) -> list[tuple[str, str]]:
        """Return subject and state of each POST."""
        return [(body["subject"], body["state"]) for _, body in self.posted]

    def test_told(self) -> None:
        """A change is one POST, and its end another; then nothing is in the store."""
        self.target()
        router = self.fire()
        self.assertEqual([("alerts.example.com", 443, True)], self.connected)
        ((head, body),) = self.posted
        self.assertTrue(head.startswith(b"POST /c4nary?x=1 HTTP/1.1\r\n"), head)
        self.assertIn(f'Idempotency-Key: "{body["id"]}"'.encode(), head)
        del body["id"]
        self.assertLessEqual(self.wall - body.pop("since"), 30)
        wanted = {
            "version": 1,
            "service": "https://console.example.com",
            "alarm": "apply_failed",
            "kind": "apply_failed",
            "subject": "fra-1",
            "state": "firing",
            "text": "It can't be read.",
        }
        self.assertEqual((wanted, 0), (body, self.waiting()))
        router.told = APPLIED
        self.look()
        self.pass_time(3600)
        self.assertEqual(("fra-1", "ok"), (self.posted[1][1]["subject"], self.posted[1][1]["state"]))
        self.assertEqual(2, len(self.posted))
        self.assertEqual((2, 0, 0), self.alarms.telling.status)

    def test_killed_after(self) -> None:
        """What was told is not told again after a restart, and its end is."""
        self.target()
        router = self.fire()
        self.restart(60)
        self.pass_time(600)
        self.assertEqual([("fra-1", "firing")], self.told_states())
        router.told = APPLIED
        self.look()
        self.assertEqual([("fra-1", "firing"), ("fra-1", "ok")], self.told_states())

    def test_killed_before(self) -> None:
        """What was on its way when the console was killed is told again, with the same key."""
        self.target()
        self.replies = [""]
        self.fire()
        self.assertEqual(1, self.waiting())
        self.restart(60)
        self.pass_time(600)
        self.restart(60)
        self.pass_time(600)
        self.assertEqual([("fra-1", "firing")] * 2, self.told_states())
        self.assertEqual(1, len({body["id"] for _, body in self.posted}))
        self.assertEqual(0, self.waiting())

    def test_down(self) -> None:
        """A target that is down is told in order once it is there, with no more in memory than a window."""
        self.target()
        self.is_down = True
        routers = [self.talk(f"r{number}") for number in range(WINDOW + 20)]
        for each in routers:
            each.told = FAILED
        self.look()
        self.assertEqual(WINDOW + 20, self.waiting())
        self.assertEqual(WINDOW, len(self.alarms.telling._windows["ops"].keys))
        self.pass_time(3600)
        self.assertEqual([], self.posted)
        self.is_down = False
        self.pass_time(LONGEST_PAUSE)
        self.assertEqual([(f"r{number}", "firing") for number in range(WINDOW + 20)], self.told_states())
        self.assertEqual((WINDOW + 20, 0, 0), self.alarms.telling.status)

    def test_too_old(self) -> None:
        """What can't be told for a day is given up, also when the console was restarted meanwhile."""
        self.target()
        self.is_down = True
        self.fire()
        self.restart(OLDEST / 2)
        self.assertEqual(1, self.waiting())
        self.restart(OLDEST / 2 + 1)
        self.assertEqual(0, self.waiting())
        self.assertEqual((0, 1, 0), self.alarms.telling.status)

    def test_final(self) -> None:
        """A redirect is not followed: the change is given up."""
        self.target()
        self.replies = ["302 Found\r\nLocation: http://192.0.2.9/"]
        self.fire()
        self.pass_time(LONGEST_PAUSE)
        self.assertEqual((1, 0), (len(self.connected), self.waiting()))

    def test_link_local(self) -> None:
        """A host whose address is one of the link is not connected to."""
        self.reactor.resolver.addresses = ("169.254.169.254",)
        self.target()
        self.fire()
        self.assertEqual(([], 1), (self.connected, self.waiting()))

    def test_other_url(self) -> None:
        """What waits for a target is told to its new URL, and nobody is told what waits for one that is deleted."""
        self.target()
        self.replies = ["", ""]
        self.fire()
        self.target("ops", "https://other.example.com/")
        self.clock.advance(0)
        self.assertEqual(("other.example.com", 443, True), self.connected[-1])
        self.assertEqual(1, len({body["id"] for _, body in self.posted}))
        self.delete()
        self.assertEqual((0, 0), (self.waiting(), self.alarms.telling.status.waiting))
        tries = len(self.posted)
        self.pass_time(600)
        self.assertEqual(tries, len(self.posted))

    def test_only_built_in(self) -> None:
        """Only targets that want it are told of built-in alarms; who was told is told the end."""
        self.target("night", "https://night.example.com/", built_in=False)
        self.target("ops")
        self.target("ops2", "https://ops2.example.com/")
        router = self.fire()
        hosts = ["alerts.example.com", "ops2.example.com"]
        self.assertEqual(hosts, sorted(host for host, _, _ in self.connected))
        self.target("ops2", "https://ops2.example.com/", built_in=False)
        router.told = APPLIED
        self.look()
        self.assertEqual(sorted(hosts * 2), sorted(host for host, _, _ in self.connected))

    def test_full_disk(self) -> None:
        """While nothing can be kept nobody is told; afterwards all is told in order, and once."""
        self.target()
        self.talk("fra-1")
        write, self.store.write = self.store.write, full  # type: ignore[method-assign]
        router = self.fire()
        router.told = APPLIED
        self.look()
        self.assertEqual([], self.connected)
        self.store.write = write  # type: ignore[method-assign]
        self.look()
        self.assertEqual(([("fra-1", "firing"), ("fra-1", "ok")], 0), (self.told_states(), self.waiting()))

    def test_not_forgotten(self) -> None:
        """What was told while nothing could be written is taken out of the store later, and not told again."""
        self.target()
        self.is_down = True
        self.fire()
        self.is_down = False
        write, self.store.write = self.store.write, full  # type: ignore[method-assign]
        self.pass_time(600)
        self.assertEqual((1, 1), (self.waiting(), len(self.posted)))
        self.store.write = write  # type: ignore[method-assign]
        self.look()
        self.assertEqual((0, 1), (self.waiting(), len(self.posted)))

    def test_stop(self) -> None:
        """At the end nothing is told any more."""
        self.target()
        self.replies = [""]
        self.fire()
        self.done(self.alarms.stop())
        self.clock.advance(3600)
        self.assertEqual((1, 1), (self.waiting(), len(self.posted)))


async def full(work: Any) -> Any:
    """Be a store whose disk is full."""
    raise StoreFull("There is no room.")


class OutboxTests(TargetCase):
    """The outbox in the store."""

    def test_bounded(self) -> None:
        """Of what waits for a target the oldest is given up."""
        self.patch(outbox, "MOST_FOR_ONE", 3)
        posts = [("ops", AlarmPost(str(number), b"{}")) for number in range(5)]
        added = self.done(self.store.write(lambda t: outbox.add_posts(t, [*posts, ("other", AlarmPost("x", b"{}"))])))
        self.assertEqual((4, 2), added)
        rows = self.store.reader.read(lambda db: outbox.read_posts(db, "ops", 0, 9))
        self.assertEqual(["2", "3", "4"], [each.post.key for each in rows])
        self.assertEqual(3, self.done(self.store.write(lambda t: outbox.drop_posts(t, ["2"]))))

    def test_body(self) -> None:
        """A body comes out as it went in."""
        post = AlarmPost("1", msgspec.json.encode({"text": "\u2028"}))
        self.done(self.store.write(lambda t: outbox.add_posts(t, [("ops", post)])))
        (row,) = self.store.reader.read(lambda db: outbox.read_posts(db, "ops", 0, 9))
        self.assertEqual((post, self.wall), (row.post, row.at))
