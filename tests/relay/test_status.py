"""Tests of webhookrx.relay.status."""

from __future__ import annotations

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.interfaces import Backlog, LaneStatus
from webhookrx.operations.counters import Counters
from webhookrx.operations.exposition import exposition
from webhookrx.operations.health import Health
from webhookrx.operations.metric import Build, View
from webhookrx.operations.snapshot import NOTHING, Phase
from webhookrx.relay.relay import COUNTS
from webhookrx.relay.status import OWN_METRICS, RELAY_METRICS, RelayStatus, RelayView, relay_health, summary

WELL = RelayStatus(Phase.RUNNING, "kafka:kafka://b/t", False, 3, 40, (LaneStatus("file:x"), LaneStatus("file:dead")))

BACKLOG = Backlog(5, 100, None, 0, 0, None, False)


class HealthTests(SynchronousTestCase):
    """Whether a relay is ready."""

    def test_health(self) -> None:
        """It is not ready while a part is away, and degraded while a spool keeps messages for one that is."""
        target = LaneStatus("file:x")
        for status, health in (
            (WELL, Health("ready")),
            (WELL._replace(phase=Phase.STARTING), Health("not_ready", ("The relay is starting.",))),
            (WELL._replace(phase=Phase.DRAINING), Health("not_ready", ("The relay is draining.",))),
            (
                WELL._replace(broker_away=True),
                Health("not_ready", ("Broker kafka:kafka://b/t does not deliver.",)),
            ),
            (
                WELL._replace(lanes=(target, target._replace(spec="d", failed_ago=0.0))),
                Health("not_ready", ("Observer d does not take messages.",)),
            ),
            (
                WELL._replace(lanes=(target._replace(stalled=True, failed_ago=0.0),)),
                Health("not_ready", ("Observer file:x hangs.",)),
            ),
            (
                WELL._replace(lanes=(target._replace(backlog=BACKLOG._replace(full=True)),)),
                Health("not_ready", ("Observer file:x is full.",)),
            ),
            (
                WELL._replace(lanes=(target._replace(backlog=BACKLOG._replace(away="no route to 10.0.0.1")),)),
                Health("degraded", ("Observer file:x keeps messages for an observer that is away.",)),
            ),
        ):
            self.assertEqual(health, relay_health(status))

    def test_summary(self) -> None:
        """One line says how it does; a lag that is not known is left out."""
        counters = Counters()
        for number, name in enumerate(COUNTS, 1):
            counters.add(name, amount=number)

        self.assertEqual(
            "1 records, 5 stored, 6 dead letters, 3 in hand, 40 waiting in the broker", summary(counters, WELL)
        )
        self.assertEqual("1 records, 5 stored, 6 dead letters, 3 in hand", summary(counters, WELL._replace(lag=None)))


class MetricTests(SynchronousTestCase):
    """The metrics of a relay."""

    def text(self, status: RelayStatus) -> str:
        """Return all metrics, with 10, 20, … as counts."""
        counters = Counters()
        for number, name in enumerate(COUNTS, 1):
            counters.add(name, amount=10 * number)
        counters.observers["file:x"].messages = 7
        view = View(counters, NOTHING, Build("3.13", "26", "1", "pure"), 10.0, 5.0)
        snapshot = replace(NOTHING, lanes=status.lanes)
        _, pieces = exposition(RELAY_METRICS, RelayView(view._replace(snapshot=snapshot), status), b"")
        return b"".join(pieces).decode()

    def test_own(self) -> None:
        """Each of its own has its count."""
        lines = self.text(WELL).splitlines()
        for line in (
            "webhookrx_relay_records_total 10.0",
            "webhookrx_relay_record_bytes_total 20.0",
            "webhookrx_relay_text_records_total 30.0",
            "webhookrx_relay_redelivered_records_total 40.0",
            "webhookrx_relay_stored_messages_total 50.0",
            "webhookrx_relay_dead_messages_total 60.0",
            "webhookrx_relay_lost_records_total 70.0",
            "webhookrx_relay_held_records 3.0",
            "webhookrx_relay_lag_records 40.0",
            "webhookrx_relay_broker_away 0.0",
        ):
            self.assertIn(line, lines)
        self.assertEqual(10, len(OWN_METRICS))

    def test_shared(self) -> None:
        """Those of observers are a receiver's; what only a receiver has is not there."""
        text = self.text(WELL)

        self.assertIn('webhookrx_observer_messages_total{observer="file:x"} 7.0', text)
        self.assertIn("webhookrx_build_info{", text)
        self.assertIn("webhookrx_start_timestamp_seconds 5.0", text)
        self.assertNotIn("webhookrx_requests", text)
        self.assertNotIn("webhookrx_queue", text)

    def test_unknown_lag(self) -> None:
        """A lag that is not known is not there, rather than 0."""
        lines = self.text(WELL._replace(lag=None)).splitlines()

        self.assertEqual([], [line for line in lines if line.startswith("webhookrx_relay_lag_records")])
