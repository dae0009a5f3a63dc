"""
Tests for L{webhookrx.service.alarms}.
"""

from __future__ import annotations

from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from tests.operations.snapshots import make_snapshot
from webhookrx.management.alarm_rules import AlarmRule, AlarmSettings
from webhookrx.operations.counters import Counters
from webhookrx.service.alarms import MOST_SHOWN, ReceiverAlarms


class ReceiverAlarmsTests(SynchronousTestCase):
    """The alarms of a receiver."""

    def setUp(self) -> None:
        """Look at a receiver with many certificates."""
        self.certificates = {str(number): 0.0 for number in range(MOST_SHOWN + 1)}
        self.alarms = ReceiverAlarms(
            MemoryReactorClock(),
            Counters,
            lambda: make_snapshot(certificates=self.certificates),
            Counters(),
            lambda: 100.0,
            lambda: 1e9,
        )

    def test_none(self) -> None:
        """A receiver without alarm rules has no alarms."""
        self.alarms.use(AlarmSettings())
        self.alarms.look()
        self.assertEqual((None, ()), (self.alarms.rows, self.alarms.tallies))
        self.alarms.stop()

    def test_look(self) -> None:
        """What fires is shown, only so much of it, and counted by its state."""
        self.alarms.use(AlarmSettings((AlarmRule("ends", "certificate", 60.0),)))
        self.assertEqual([], self.alarms.rows)
        self.alarms.look()
        assert self.alarms.rows is not None
        self.assertEqual(MOST_SHOWN, len(self.alarms.rows))
        tallies = {each.state: each.subjects for each in self.alarms.tallies}
        self.assertEqual({"pending": 0, "firing": MOST_SHOWN + 1, "unknown": 0, "left_out": 0}, tallies)
        self.certificates.clear()
        self.alarms.look()
        self.assertEqual([], self.alarms.rows)
        self.alarms.use(AlarmSettings())
        self.assertIs(None, self.alarms.rows)
