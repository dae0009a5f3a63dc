"""
Tests for L{webhookrx.console.taps.console_taps}: how taps end, and what the audit has of them.
"""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from tests.console.routers.test_port import MARA
from tests.console.taps.tapping import TapCase, message
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.taps.console_taps import TapsStatus
from webhookrx.console.taps.tap_routes import end_tap
from webhookrx.errors import StoreUnavailable
from webhookrx.management.agent_protocol import ConnectorState
from webhookrx.management.bundle import digest
from webhookrx.management.tap_protocol import UntapCommand

KEY = "/etc/webhookrx/tls/k.pem"
RULE = "name: hooks\nselector: os = linux\nprotocol: HTTP\nport: 8080\nlabels: {product: github}\n"
HOOKS = ConnectorState(name="fra-1-hooks-hooks", rule="hooks", port=8080)


class EndTests(TapCase):
    """How a tap ends."""

    def setUp(self) -> None:
        super().setUp()
        self.fra = self.reported("fra-1")

    def begun(self, **order: Any) -> tuple[str, Any]:
        started = self.started(self.fra, **order)
        return started.id, self.read(started)

    def untapped(self, tap: str) -> bool:
        """Tell whether the router is told to end a tap, and is not heard any more."""
        told = [each.tap for each in self.commands(self.fra) if isinstance(each, UntapCommand)]
        return tap in told and self.shows(self.fra, tap, 99, message()) == 404

    def hold(self, tap: str, seconds: int, number: int = 1) -> None:
        """Have the router go on for some seconds."""
        for each in range(number, number + seconds):
            self.shows(self.fra, tap, each)
            self.pass_time(1)

    def test_time_over(self) -> None:
        """It ends when its time is over, and not before."""
        tap, reader = self.begun(lasts=5)
        self.hold(tap, 4)
        self.assertEqual(reader.end, "")
        self.hold(tap, 1, 5)
        self.assertEqual(reader.end, "over")
        self.assertTrue(self.untapped(tap))

    def test_reader_gone(self) -> None:
        """It ends with its reader, at once; also when the reader may not read any more."""
        for why in ("gone", "rights"):
            tap, reader = self.begun()
            reader.stop(why)
            self.assertTrue(self.untapped(tap), why)
            self.assertEqual(self.audit()[-1].details["why"], why)

    def test_ended_by_hand(self) -> None:
        """Who has started it ends it."""
        tap, reader = self.begun()
        self.done(end_tap(self.call(id=tap)))
        self.assertEqual(reader.end, "ended")
        self.assertTrue(self.untapped(tap))
        again = Deferred.fromCoroutine(end_tap(self.call(id=tap)))
        self.assertEqual(self.failureResultOf(again, ApiProblem).value.kind.code, "not_found")  # type: ignore[attr-defined]

    def test_never_read(self) -> None:
        """It ends when nobody reads it within ten seconds."""
        started = self.started(self.fra)
        self.hold(started.id, 9)
        self.assertEqual(self.audit()[-1].event, "tap")
        self.hold(started.id, 1, 10)
        self.assertEqual(self.audit()[-1].details["why"], "unread")
        self.assertTrue(self.untapped(started.id))

    def test_ended_at_the_routers(self) -> None:
        """It ends with the last router, whose reason is among the counts; a router that has ended is not heard."""
        ber = self.reported("ber-1")
        started = self.started(self.fra, ber)
        reader = self.read(started)
        self.shows(self.fra, started.id, 1, ended="The reload gate is closed.")
        self.assertEqual(self.shows(self.fra, started.id, 2, message()), 404)
        self.pass_time(1)
        self.assertEqual(reader.end, "")
        states = {each["router"]: (each["state"], each["ended"]) for each in reader.counts["routers"]}
        self.assertEqual(states, {"fra-1": ("ended", "The reload gate is closed."), "ber-1": ("taps", "")})
        self.shows(ber, started.id, 1, message(), ended="The service stops.")
        self.assertEqual((reader.end, len(reader.rows)), ("routers", 1))
        self.assertEqual(reader.counts["routers"][0]["ended"], "The service stops.")

    def test_restarted(self) -> None:
        """Another process of the router knows nothing of the tap."""
        tap, reader = self.begun()
        self.hold(tap, 1)
        self.fra.report(instance="two", number=1)
        self.pass_time(0.5)
        self.assertEqual(reader.end, "routers")
        self.assertEqual(reader.counts["routers"][0]["ended"], "It has restarted.")

    def test_lost(self) -> None:
        """A router that neither shows nor asks anything for two seconds has gone."""
        started = self.started(self.fra)
        reader = self.read(started)
        self.hold(started.id, 1)
        self.fleet.polls.drop(self.fra.guid)
        self.pass_time(0.5)
        self.assertEqual(reader.end, "")
        self.pass_time(0.5)
        self.assertEqual(reader.end, "routers")
        self.assertEqual(reader.counts["routers"][0]["ended"], "It is not heard any more.")

    def test_console_held_up(self) -> None:
        """What a router has not been heard of while the console was stopped says nothing of it."""
        started = self.started(self.fra)
        reader = self.read(started)
        self.hold(started.id, 1)
        self.fleet.polls.drop(self.fra.guid)
        self.clock.advance(20)
        self.wall += 20
        self.taps.tick()
        self.assertEqual(reader.end, "")
        self.pass_time(0.5)
        self.assertEqual(reader.end, "")
        self.pass_time(1)
        self.assertEqual(reader.end, "routers")

    def test_lost_while_busy(self) -> None:
        """A router that asks has not gone, though it says nothing of the tap for some seconds."""
        _, reader = self.begun()
        self.fra.sync(digest(self.fra.bundle()), wait=5)
        self.pass_time(6)
        self.assertEqual(reader.end, "")
        self.pass_time(0.5)
        self.assertEqual(reader.end, "routers")

    def test_silent(self) -> None:
        """A router that asks, and says nothing of the tap for longer than it may, does not have it any more."""
        _, reader = self.begun()
        self.fra.sync(digest(self.fra.bundle()), wait=55)
        self.pass_time(14.5)
        self.assertEqual(reader.end, "")
        self.pass_time(0.5)
        self.assertEqual(reader.end, "routers")

    def test_cut_off(self) -> None:
        """A router that is disabled or forgotten is heard no more."""
        for name, cut_off in (
            ("ham-1", lambda router: self.fleet.change(MARA, router, state="disabled")),
            ("ham-2", lambda router: self.fleet.delete(MARA, router)),
        ):
            router = self.reported(name, os="linux")
            started = self.started(router, routers="os = linux")
            reader = self.read(started)
            self.done(cut_off(self.known(router)))
            self.assertEqual(self.shows(router, started.id, 1, message()), 403)
            self.pass_time(0.5)
            self.assertEqual((reader.end, reader.rows), ("routers", []))

    def test_console_stops(self) -> None:
        """A console that stops ends all taps and writes that down; one whose routers are still asked never begins."""
        tap, reader = self.begun()
        asked = self.asked()
        self.done(self.taps.stop())
        self.assertEqual(reader.end, "stopping")
        self.assertTrue(self.untapped(tap))
        self.assertEqual([each.event for each in self.audit()], ["tap", "tap_ended"])
        self.clock.advance(5)
        self.failureResultOf(asked, ApiProblem)
        self.assertEqual(self.refused().kind.code, "busy")
        self.assertEqual([each.event for each in self.audit()], ["tap", "tap_ended"])

    def test_rows_that_nobody_took(self) -> None:
        """What waits for a slow reader at the end is counted as dropped."""
        tap, reader = self.begun(rate=20.0)
        reader.takes = False
        self.shows(self.fra, tap, 1, message(), message())
        self.done(end_tap(self.call(id=tap)))
        self.assertEqual(self.taps.status, TapsStatus(0, 2, 2))


class AuditTests(TapCase):
    """Who has looked."""

    def test_begin_and_end(self) -> None:
        """The audit has who looked where for what, from when to when, and how much; and nothing of what was shown."""
        fra = self.reported("fra-1")
        order = {"routers": "label.a = b OR NOT label.a = b", "filter": "log.body = x", "point": "input", "rate": 5.0}
        started = self.started(fra, lasts="30s", **order)
        reader = self.read(started)
        self.shows(fra, started.id, 1, message(output="content"), seen=9, matched=2)
        self.wall += 4
        reader.stop("gone")
        begin, end = self.audit()
        for each in (begin, end):
            self.assertEqual((each.by, each.via, each.address, each.name), ("mara", "ui", "192.0.2.7", started.id))
        self.assertEqual((begin.event, begin.details), ("tap", {**order, "for": 30, "taking_part": ["fra-1"]}))
        self.assertEqual(end.event, "tap_ended")
        self.assertEqual(end.details["to"] - end.details["from"], 4)
        counts = {name: end.details[name] for name in ("why", "seen", "matched", "shown", "not_looked_at", "dropped")}
        known = {"why": "gone", "seen": 9, "matched": 2, "shown": 1, "not_looked_at": 0, "dropped": 0}
        self.assertEqual(counts, known)
        self.assertNotIn("content", repr(self.audit()))

    def test_no_audit_no_tap(self) -> None:
        """A tap does not begin when that can't be written down; when its end can't be, it ends all the same."""
        fra = self.reported("fra-1")
        write, self.store.write = self.store.write, _fail  # type: ignore[method-assign,assignment]
        asked = self.asked()
        tap = self.answer(fra)
        self.failureResultOf(asked, StoreUnavailable)
        self.assertEqual(self.shows(fra, tap, 1, message()), 404)
        self.store.write = write  # type: ignore[method-assign]
        self.clock.advance(10)
        started = self.started(fra)
        reader = self.read(started)
        self.store.write = _fail  # type: ignore[method-assign,assignment]
        self.done(end_tap(self.call(id=started.id)))
        self.assertEqual(reader.end, "ended")


async def _fail(work: Any) -> Any:
    raise StoreUnavailable("The store is broken.")
