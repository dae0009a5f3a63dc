"""A batch, and what an observer said about it."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.pipeline.rig import Rig
from webhookrx.errors import NotStored, Rejected
from webhookrx.message.message import Message
from webhookrx.pipeline.batch import Batch, is_about_messages, note_failures, outcome_of_each
from webhookrx.testing import MemoryObserver


class BatchTests(SynchronousTestCase):
    """Who is told what."""

    def make_batch(self, count: int = 3) -> tuple[Batch, list[str]]:
        """Hand over a batch of so many messages, and return it with the list of what is told."""
        batch = Batch(1)
        told: list[str] = []
        for number in range(count):
            batch.add([number], 1, lambda failure: told.append(str(failure)), None)
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
            note_failures(spec, [(batch, batch.prepared[0])], outcomes)
        batch.acknowledge()

        self.assertEqual(["net: away", "disk: full", "None"], told)

    def test_about_messages(self) -> None:
        """An observer complains of messages alone only if each complaint is a refusal for good."""
        refused, away = Rejected("no"), OSError("away")
        for outcome, expected in (
            ([refused, None, refused], True),
            ([refused, refused], True),
            ((None, None), True),
            ([refused, away], False),
            ([away, refused, None], False),
            ([None, away], False),
            ([away], False),
            (away, False),
            ("no", False),
            (None, False),
        ):
            self.assertIs(expected, is_about_messages(outcome), outcome)

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

    def test_outcome_of_each(self) -> None:
        """An observer that does not say one thing of each message has said nothing of any."""
        self.assertEqual(["x"] * 2, outcome_of_each(2, OSError("x")))
        self.assertEqual([None, "x"], outcome_of_each(2, [None, OSError("x")]))
        for outcome in ([None], [None] * 3, 5):
            self.assertEqual(2, sum(word is not None for word in outcome_of_each(2, outcome)), outcome)
