"""What observers count themselves, on its way to the metrics."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.memory_store import MemoryStore
from tests.pipeline.rig import BufferingObserver, Rig
from webhookrx.errors import Rejected
from webhookrx.testing import MemoryObserver


class CountTests(SynchronousTestCase):
    """From an observer to its lane, and on."""

    def counts(self, rig: Rig, spec: str) -> tuple[int, int, int]:
        """Return what has come: refused, known, confirmed."""
        taken = rig.counted[spec]
        return taken.refused, taken.known, taken.confirms.count

    def test_store(self) -> None:
        """What a store counts is taken with the status of its lane, once."""
        observer = MemoryStore("store")
        rig = Rig(observer)
        observer.counts.known(2)
        observer.counts.confirmed(0.5)
        rig.chain.lanes()
        rig.chain.lanes()

        self.assertEqual((0, 2, 1), self.counts(rig, "store"))

    def test_buffer(self) -> None:
        """So is what one behind a spool counts."""
        observer = BufferingObserver("spool")
        rig = Rig(observer)
        observer.counts.refused(3)
        rig.chain.lanes()

        self.assertEqual((3, 0, 0), self.counts(rig, "spool"))

    def test_refused(self) -> None:
        """Messages that any observer refuses for good are counted, and no others."""
        observer = MemoryObserver("memory")
        rig = Rig(observer)
        observer.judge = lambda message: {"bad": Rejected("no"), "away": OSError("no")}.get(
            str(message.values["MESSAGE"])
        )
        rig.write("good", "bad", "away")
        rig.turns()
        rig.write("good")
        rig.turns()

        self.assertEqual((1, 0, 0), self.counts(rig, "memory"))

    def test_end(self) -> None:
        """What was counted up to the end is not lost with the observer."""
        observer = MemoryStore("store")
        rig = Rig(observer)
        self.patch(observer, "close", lambda: observer.counts.known(7))
        self.successResultOf(rig.replace(MemoryObserver()))

        self.assertEqual((0, 7, 0), self.counts(rig, "store"))

    def test_broken(self) -> None:
        """An observer that can't tell what it counts harms nothing."""
        observer = BufferingObserver("spool")
        rig = Rig(observer)
        self.patch(observer, "take_counts", lambda: 1 // 0)

        self.assertEqual(["spool"], [status.spec for status in rig.chain.lanes()])
        self.assertTrue(self.flushLoggedErrors(ZeroDivisionError))
