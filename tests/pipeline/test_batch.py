"""A batch, and how an observer's answer is spread over it."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.pipeline.rig import Rig
from webhookrx.errors import NotStored, Rejected
from webhookrx.message.message import Message
from webhookrx.pipeline.batch import Batch, Encoders, StoreCall
from webhookrx.testing import MemoryObserver


class BatchTests(SynchronousTestCase):
    """Each message gets its own outcome."""

    def make_batch(self, count: int = 3) -> tuple[Batch, list[str]]:
        """Hand over a batch of so many messages, and return it with the list that their acknowledgements go to."""
        encoders = Encoders([MemoryObserver()], lambda *failure: None)
        batch = encoders.new_batch()
        told: list[str] = []
        for number in range(count):
            batch.add([b"%d" % number], 1, None, lambda failure: told.append(str(failure)))
        batch.count = count
        return batch, told

    def test_first_reason(self) -> None:
        """Where several observers fail a message, or all of them, the first reason stays."""
        batch, told = self.make_batch()
        batch.fail(0, NotStored("first"))
        batch.fail(0, NotStored("second"))
        batch.fail_all(NotStored("third"))
        batch.fail_all(NotStored("fourth"))
        batch.fail(1, NotStored("fifth"))
        batch.acknowledge()

        self.assertEqual(["first", "third", "third"], told)

    def test_first_observer(self) -> None:
        """What two observers say of one batch is told as the first one has said it, each message its own."""
        batch, told = self.make_batch()
        for spec, outcomes in (("disk", [None, "full", None]), ("net", ["away", "away", None])):
            StoreCall(MemoryObserver(spec), [(batch, batch.columns[0])], [], 0, lambda: 0.0).note_failures(outcomes)
        batch.acknowledge()

        self.assertEqual(["net: away", "disk: full", "None"], told)

    def test_failing_observer(self) -> None:
        """One that refuses some messages for good and fails the others fails; one that refuses all of them does not."""
        observer = MemoryObserver()
        rig = Rig(observer)
        for words, failing in (("good bad", False), ("bad bad", False), ("bad odd", True), ("bad bad", False)):

            def judge(message: Message) -> Exception | None:
                complaints = {"bad": Rejected("no"), "odd": OSError("away")}
                return complaints.get(str(message.values["MESSAGE"]))

            observer.judge = judge
            rig.write(*words.split())
            rig.turns()
            self.assertEqual(failing, rig.chain.lanes()[0].failed_ago is not None, words)
