"""
Tests for L{webhookrx.console.status}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.console.routers.test_port import PortCase
from webhookrx.console.alarms.console_alarms import AlarmsStatus
from webhookrx.console.alarms.telling import TellingStatus
from webhookrx.console.status import CONSOLE_METRICS, ConsoleStatus, FleetStatus, console_health, fleet_status
from webhookrx.console.taps.console_taps import TapsStatus
from webhookrx.management.agent_protocol import AppliedState, ConnectorState, GateState
from webhookrx.management.alarm_values import AlarmCount
from webhookrx.operations.snapshot import Phase
from webhookrx.service.admin import this_build

RUNNING = ConsoleStatus(Phase.RUNNING, this_build(), 1000.0, revision=7, waiting=2, writes=9, failed_writes=3)
FLEET = FleetStatus({"pending": 1, "approved": 5}, {"APPLIED": 4, "FAILED": 1}, 3, 2, 1, 0, 40, True)
ALARMS = AlarmsStatus(
    900.0, (AlarmCount("quiet", "silent", pending=1, firing=2, unknown=3, left_out=4),), TellingStatus(5, 6, 7)
)
SHOWN = RUNNING._replace(fleet=FLEET, taps=TapsStatus(2, 30, 4), alarms=ALARMS)


class ConsoleStatusTests(SynchronousTestCase):
    """What operators see."""

    def test_health(self) -> None:
        """It is ready when it runs and writes, degraded when something needs attention."""
        self.assertEqual(("ready", ()), console_health(RUNNING))
        self.assertEqual(("degraded", ("a",)), console_health(RUNNING._replace(problems=("a",))))
        full = RUNNING._replace(store_problem="There is no room.", problems=("a",))
        self.assertEqual(("not_ready", ("There is no room.", "a")), console_health(full))
        self.assertFalse(console_health(RUNNING._replace(phase=Phase.DRAINING)).is_ready)

    def test_metrics(self) -> None:
        """Each metric has its value."""
        values = {metric.name: [value for _, value in metric.read(SHOWN)] for metric in CONSOLE_METRICS}
        self.assertEqual(
            {
                "webhookrx_console_start_timestamp_seconds": [1000.0],
                "webhookrx_console_revision": [7],
                "webhookrx_console_store_waiting": [2],
                "webhookrx_console_writes_total": [9],
                "webhookrx_console_failed_writes_total": [3],
                "webhookrx_console_store_failed": [False],
                "webhookrx_console_routers": [1, 5, 0],
                "webhookrx_console_router_bundles": [0, 0, 4, 1, 0],
                "webhookrx_console_router_polls": [3],
                "webhookrx_console_routers_away": [2],
                "webhookrx_console_routers_gate_closed": [1],
                "webhookrx_console_routers_duplicate": [0],
                "webhookrx_console_connectors": [40],
                "webhookrx_console_held_back": [True],
                "webhookrx_console_taps": [2],
                "webhookrx_console_tap_rows_total": [30],
                "webhookrx_console_tap_rows_dropped_total": [4],
                "webhookrx_console_alarms": [2, 1, 3, 4],
                "webhookrx_console_alarms_looked_timestamp_seconds": [900.0],
                "webhookrx_console_alarm_posts_total": [5, 6],
                "webhookrx_console_alarm_posts_waiting": [7],
            },
            values,
        )

    def test_no_fleet(self) -> None:
        """Before the routers have been read there are none."""
        self.assertEqual(FleetStatus(), fleet_status(None))


class FleetStatusTests(PortCase):
    def test_fleet(self) -> None:
        """Routers are counted as they are, and as they have told; those that wait count as that alone."""
        fra = self.router("fra-1")
        self.router("fra-2")
        self.router("ber-1", approve="manual")
        fra.report(
            applied=AppliedState(status="BLOCKED"),
            gate=GateState(reasons=("missing",)),
            connectors=(ConnectorState(name="fra-1-a-a", rule="a", port=1),),
        )
        found = fleet_status(self.fleet)
        self.assertEqual((found.states, found.statuses), ({"approved": 2, "pending": 1}, {"BLOCKED": 1, "NONE": 1}))
        self.assertEqual((found.away, found.gates_closed, found.connectors, found.is_held_back), (0, 1, 1, False))
        self.wall += 3_600
        self.assertEqual(fleet_status(self.fleet).away, 2)

    def test_clock_jumps(self) -> None:
        """After a clock that was put forward or back, only those that have been heard since are here."""
        fra = self.router("fra-1")
        self.router("fra-2")
        self.assertEqual(0, fleet_status(self.fleet).away)
        for jump in (86_400, -2 * 86_400):
            self.wall += jump
            self.assertEqual(2, fleet_status(self.fleet).away)
            fra.report(health="ready")
            self.assertEqual(1, fleet_status(self.fleet).away)
