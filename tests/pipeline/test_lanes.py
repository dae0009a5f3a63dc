"""The lanes of a chain, those that go and those that can't be opened; the rest is in test_replace.py."""

from __future__ import annotations

from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from tests.pipeline.rig import Rig
from webhookrx.errors import ConfigError, NotStored
from webhookrx.pipeline.lanes import Lanes
from webhookrx.testing import MemoryObserver


class LanesTests(SynchronousTestCase):
    """All observers together."""

    def test_nothing_to_stop(self) -> None:
        """Where no lane is open a stop is done at once."""
        rig = Rig(MemoryObserver(), start=False)
        lanes = Lanes([MemoryObserver()], rig.chain._make_lane, 30.0, rig.clock.seconds)
        stopped: list[bool] = []
        lanes.stop(lambda: stopped.append(True))

        self.assertEqual([True], stopped)

    def test_first_of_several(self) -> None:
        """Of several observers that can't be opened the first one that was written is told."""
        new = [MemoryObserver("first"), MemoryObserver("second")]
        for observer in new:
            observer.open_error = ConfigError(f"{observer.spec} is locked")
        failure = self.failureResultOf(Rig(MemoryObserver()).replace(*new), ConfigError)

        self.assertEqual("first is locked", str(failure.value))

    def test_left_to_itself(self) -> None:
        """One that leaves and takes too long is named in the log, and nobody else is."""
        quick, slow = MemoryObserver("quick"), MemoryObserver("slow")
        rig = Rig(quick, slow)
        rig.threads[1].hold()
        rig.write("one")
        rig.turns()
        replaced = rig.chain.replace([MemoryObserver("new")], ack="durable")
        with capturedLogs() as events:
            rig.wait(30)

        self.successResultOf(replaced)
        said = [formatEvent(event) for event in events if "waiting for" in event["log_format"]]
        self.assertEqual(["No longer waiting for observer slow"], said)

    def test_give_up(self) -> None:
        """What observers have not stored by now has failed, and who waits for it hears so at once."""
        rig = Rig(MemoryObserver("quick"), MemoryObserver("slow"))
        rig.threads[1].hold()
        told = rig.write("one")
        rig.turns()
        self.assertEqual([], told)
        rig.chain.give_up()

        self.assertEqual(["slow: it does not answer"], [str(failure) for failure in told])
        self.assertIsInstance(told[0], NotStored)
        self.assertTrue(rig.chain.is_stuck)
