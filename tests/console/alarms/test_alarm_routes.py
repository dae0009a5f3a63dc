"""
Tests for L{webhookrx.console.alarms.alarm_routes}.
"""

from __future__ import annotations

from tests.console.alarms.alarming import AlarmCase
from webhookrx.console.alarms.console_alarms import LOOK_EVERY
from webhookrx.console.alarms.fleet_facts import SETTLING
from webhookrx.management.agent_protocol import AppliedState


class ShowAlarmsTests(AlarmCase):
    """What is shown."""

    def test_before(self) -> None:
        """Before the first look all alarms are there, and nothing else."""
        page = self.shown()
        self.assertEqual((0.0, (), 0), (page.looked_at, page.states, page.more))
        self.assertEqual(["5m", "5m", "0s", "0s"], [each.lasts for each in page.alarms])

    def test_chosen(self) -> None:
        """States are chosen by alarm, state and number; those that fire come first, and others are counted."""
        for number in range(3):
            self.router(f"ber-{number}")
        router = self.talk("fra-1")
        router.told = {"applied": AppliedState(status="FAILED", error="It can't be read.")}
        self.pass_time(SETTLING + 30)
        found = [(each.alarm, each.state) for each in self.shown().states]
        self.assertEqual(("apply_failed", "firing"), found[0])
        self.assertEqual([("router_away", "pending")] * 3, found[1:4])
        self.assertEqual({"unknown"}, {state for _, state in found[4:]})
        self.assertLessEqual(self.wall - self.shown().looked_at, LOOK_EVERY)
        self.assertEqual(3, len(self.shown(alarm="router_away").states))
        self.assertEqual((), self.shown(alarm="nothing").states)
        page = self.shown(alarm="router_away", state="pending", count=1)
        self.assertEqual((1, 2), (len(page.states), page.more))
        page = self.shown(count=2)
        self.assertEqual((2, len(found) - 2), (len(page.states), page.more))
        page = self.shown(count=2, skip=1)
        self.assertEqual((found[1:3], len(found) - 3), ([(each.alarm, each.state) for each in page.states], page.more))
        page = self.shown(skip=99)
        self.assertEqual(((), 0), (page.states, page.more))
        counted = {each.name: (each.firing, each.pending) for each in page.alarms}
        self.assertEqual(((1, 0), (0, 3)), (counted["apply_failed"], counted["router_away"]))
