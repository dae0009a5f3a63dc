"""
Tests for L{webhookrx.console.alarms.console_alarms}: routers and time go on, and the console is killed between.
"""

from __future__ import annotations

from typing import Any

from tests.console.alarms.alarming import AlarmCase
from tests.console.routers.test_port import MARA
from webhookrx.console.alarms.console_alarms import MOST_LOGGED, MOST_OF_ONE
from webhookrx.console.alarms.fleet_facts import SETTLING
from webhookrx.console.routers.registry import AWAY_AFTER, EnrolledRouter
from webhookrx.errors import StoreFull
from webhookrx.management.agent_protocol import AppliedState, GateState

CLOSED = GateState(reasons=("/keys/key.pem is missing.",), paths=("/keys/key.pem",))


class BuiltInTests(AlarmCase):
    """The alarms for which nobody has written a rule."""

    def test_well(self) -> None:
        """Nothing is told of routers that are well."""
        self.talk("fra-1")
        self.talk("fra-2")
        self.pass_time(600)
        self.assertEqual(([], []), (self.states, self.told()))
        self.assertEqual(
            ["router_away", "gate_closed", "apply_failed", "duplicate"], [each.name for each in self.shown().alarms]
        )

    def test_away(self) -> None:
        """A router that is not heard of is pending after a minute, fires after five, and is ok with its next word."""
        router = self.talk("fra-1")
        self.talk("fra-2")
        self.pass_time(SETTLING)
        self.talking.remove(router)
        self.pass_time(AWAY_AFTER + 30)
        self.assertIn(("router_away", "fra-1", "pending"), self.states)
        self.assertEqual([], self.told())
        self.pass_time(240)
        self.assertEqual([("router_away", "fra-1", "firing")], self.told())
        (row,) = self.shown(state="firing").states
        self.assertLessEqual(self.wall - row.since, 60)
        self.assertRegex(row.text, r"Nothing has been heard of it for [56] min \d+ s\.")
        self.pass_time(3600)
        self.assertEqual([], self.told())
        self.talking.append(router)
        self.look()
        self.assertEqual([("router_away", "fra-1", "ok")], self.told())
        self.assertEqual([], self.states)

    def test_away_is_unknown(self) -> None:
        """While a router is away nothing else is known of it; what fires is told neither as ok nor again."""
        router = self.talk("fra-1")
        router.told = {"applied": AppliedState(status="FAILED", error="It can't be read.")}
        self.look()
        self.assertEqual([("apply_failed", "fra-1", "firing")], self.told())
        self.assertEqual(["It can't be read."], [each.text for each in self.shown(alarm="apply_failed").states])
        self.talking.remove(router)
        self.pass_time(180)
        self.assertIn(("apply_failed", "fra-1", "unknown"), self.states)
        self.assertIn(("gate_closed", "fra-1", "unknown"), self.states)
        self.talking.append(router)
        self.look()
        self.assertEqual([("apply_failed", "fra-1", "firing")], self.states)
        self.assertEqual([], self.told())
        router.told = {"applied": AppliedState(status="APPLIED")}
        self.look()
        self.assertEqual([("apply_failed", "fra-1", "ok")], self.told())

    def test_gate(self) -> None:
        """A gate that is closed is pending, and fires after five minutes."""
        router = self.talk("fra-1")
        self.pass_time(SETTLING)
        router.told = {"gate": CLOSED}
        self.look()
        self.assertEqual([("gate_closed", "fra-1", "pending")], self.states)
        self.pass_time(270)
        self.assertEqual([], self.told())
        self.look()
        self.assertEqual([("gate_closed", "fra-1", "firing")], self.told())
        self.assertEqual("/keys/key.pem is missing.", self.shown().states[0].text)
        router.told = {}
        self.look()
        self.assertEqual([("gate_closed", "fra-1", "ok")], self.told())

    def test_flapping_gate(self) -> None:
        """A gate that closes and opens tells nothing while it never stays closed."""
        router = self.talk("fra-1")
        for _ in range(20):
            router.told = {"gate": CLOSED}
            self.pass_time(120)
            router.told = {}
            self.look()
        self.assertEqual([], self.told())

    def test_duplicate(self) -> None:
        """One certificate in two processes fires."""
        router = self.talk("fra-1")
        self.pass_time(SETTLING)
        router.report("two", number=1)
        router.report("one", number=1000)
        router.number = 1000
        self.look()
        self.assertEqual([("duplicate", "fra-1", "firing")], self.told())
        self.pass_time(330)
        self.assertEqual([("duplicate", "fra-1", "ok")], self.told())

    def test_only_approved(self) -> None:
        """Routers that wait, or are disabled, are no matter of alarms; one that fires and is deleted is ok."""
        self.router("fra-3", approve="manual")
        gone = self.router("fra-1")
        off = self.router("fra-2")
        self.pass_time(900)
        self.assertEqual({("router_away", "fra-1", "firing"), ("router_away", "fra-2", "firing")}, set(self.told()))
        self.done(self.fleet.delete(MARA, self.known(gone)))
        self.done(self.fleet.change(MARA, self.known(off), state="disabled"))
        self.look()
        self.assertEqual({("router_away", "fra-1", "ok"), ("router_away", "fra-2", "ok")}, set(self.told()))
        self.assertEqual([], self.states)

    def test_approved_late(self) -> None:
        """A router that has waited for long is not away as soon as it is approved."""
        router = self.router("fra-1", approve="manual")
        self.pass_time(7200)
        self.done(self.fleet.change(MARA, self.known(router), state="approved"))
        self.look()
        self.assertEqual(([], []), (self.told(), [each for each in self.states if each[0] == "router_away"]))
        self.pass_time(330)
        self.assertEqual([("router_away", "fra-1", "firing")], self.told())

    def test_clock_jumps(self) -> None:
        """A clock that is set, forwards or back, makes no router away and hides none."""
        self.talk("fra-1")
        lost = self.talk("fra-2")
        self.pass_time(SETTLING)
        self.talking.remove(lost)
        self.pass_time(60)
        for jump in (86_400.0, -172_800.0):
            self.wall += jump
            self.alarms._look_at = 0.0
            self.alarms.tick()
            self.assertEqual([], self.told())
        self.pass_time(300)
        self.assertEqual([("router_away", "fra-2", "firing")], self.told())


class RestartTests(AlarmCase):
    """The console is killed."""

    def fire(self) -> Any:
        """Return a router that has been away until it was told."""
        self.talk("fra-2")
        router = self.talk("fra-1")
        self.pass_time(SETTLING)
        self.talking.remove(router)
        self.pass_time(420)
        self.assertEqual([("router_away", "fra-1", "firing")], self.told())
        return router

    def test_not_told_twice(self) -> None:
        """What fires goes on after a restart without being told again, since when it did; then its end is told."""
        router = self.fire()
        since = self.shown(state="firing").states[0].since
        self.restart(3600.0)
        self.alarms.tick()
        self.assertIn(("router_away", "fra-1", "unknown"), self.states)
        self.pass_time(SETTLING + 600)
        self.assertEqual([], self.told())
        self.assertEqual(since, self.shown(state="firing").states[0].since)
        self.talking.append(router)
        self.look()
        self.assertEqual([("router_away", "fra-1", "ok")], self.told())
        self.restart()
        self.pass_time(300)
        self.assertEqual([], self.told())

    def test_end_is_not_lost(self) -> None:
        """What became well while the console was away is told once it is known."""
        router = self.fire()
        self.restart(3600.0)
        self.talking.append(router)
        self.look()
        self.assertEqual([("router_away", "fra-1", "ok")], self.told())

    def test_nobody_is_away_at_first(self) -> None:
        """Routers that come again after the console was away for long are not told to be away."""
        self.talk("fra-1")
        self.talk("fra-2")
        self.look()
        talking, self.talking = self.talking, []
        self.restart(86_400.0)
        self.pass_time(75)
        self.talking = talking
        self.pass_time(600)
        self.assertEqual([], self.told())

    def test_others_too(self) -> None:
        """Restarts repeat nothing and lose nothing of the other alarms either."""
        router = self.talk("fra-1")
        router.told = {"applied": AppliedState(status="FAILED", error="It can't be read."), "gate": CLOSED}
        self.pass_time(330)
        self.assertEqual({"apply_failed", "gate_closed"}, {alarm for alarm, _, _ in self.told()})
        for _ in range(3):
            self.restart(20.0)
            self.pass_time(60)
        self.assertEqual([], self.told())
        router.told = {"applied": AppliedState(status="APPLIED")}
        self.restart(20.0)
        self.pass_time(60)
        self.assertEqual({("apply_failed", "fra-1", "ok"), ("gate_closed", "fra-1", "ok")}, set(self.told()))

    def test_full_disk(self) -> None:
        """What can't be kept is kept by a later look."""
        write = self.store.write

        async def full(work: Any) -> Any:
            raise StoreFull("There is no room.")

        router = self.router("fra-1")
        self.pass_time(SETTLING)
        self.store.write = full  # type: ignore[method-assign]
        self.pass_time(600)
        self.assertEqual([("router_away", "fra-1", "firing")], self.told())
        self.assertEqual(0, self.kept())
        self.store.write = write  # type: ignore[method-assign]
        self.look()
        self.assertEqual(1, self.kept())
        self.restart()
        self.pass_time(600)
        self.assertEqual([], self.told())
        self.assertEqual("approved", self.known(router).state)

    def kept(self) -> int:
        """Return how many alarms fire in the store."""
        return int(
            self.store.reader.read(
                lambda db: db.execute("SELECT count(*) FROM alarm_state WHERE state = 'firing'").fetchone()[0]
            )
        )


class BoundsTests(AlarmCase):
    """Many routers."""

    def test_bounds(self) -> None:
        """Of very many routers that are away only so many are known one by one, and few are logged."""
        for number in range(MOST_OF_ONE + 3):
            self.fleet.registry.add(EnrolledRouter(f"guid{number}", f"r{number}", "approved"))
        self.pass_time(SETTLING + 30)
        self.assertEqual(MOST_LOGGED, len(self.told()))
        page = self.shown(alarm="router_away", state="firing", count=10)
        self.assertEqual((10, MOST_OF_ONE - 10), (len(page.states), page.more))
        self.assertEqual((MOST_OF_ONE, 3), (page.alarms[0].firing, page.alarms[0].left_out))
        self.restart()
        self.fleet.registry.add(EnrolledRouter("guid1", "r1", "approved", seen_at=self.wall))
        self.alarms.tick()
        self.assertEqual(MOST_LOGGED, len(self.told()))
        self.assertEqual((), self.shown(state="firing").states)
