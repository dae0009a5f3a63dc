"""Messages that are handed over together: stored in as many batches as it takes, acknowledged once."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.pipeline.rig import LinesObserver, Rig, texts
from webhookrx.errors import NoRoom, NotStored, Rejected
from webhookrx.message.encoders import encode_line
from webhookrx.message.message import Message
from webhookrx.pipeline.admission import Budget
from webhookrx.testing import MemoryObserver, make_message


def numbered(count: int) -> list[Message]:
    """Return messages whose texts are numbers."""
    return [make_message(str(number)) for number in range(count)]


class TogetherTests(SynchronousTestCase):
    """All or none, and one acknowledgement."""

    def test_several_batches(self) -> None:
        """The acknowledgement waits for the last batch, at the last observer; order is kept."""
        first, second = LinesObserver(encode_line, "first"), MemoryObserver("second")
        rig = Rig(first, second, max_batch_bytes=2_000)
        told: list[NotStored | None] = []
        rig.chain.write_all(numbered(30), told.append)
        rig.chain.flush()
        self.assertEqual(30, rig.chain.budget.messages)
        while not told:
            self.assertTrue(rig.clock.getDelayedCalls(), "it is never acknowledged")
            self.assertLess(min(len(first.messages), len(second.messages)), 30)
            rig.clock.advance(0)
            if rig.chain.budget.messages == 0:
                break
        self.assertEqual([None], told)
        self.assertEqual([str(number) for number in range(30)], texts(second))
        self.assertEqual((0, 0), (rig.chain.budget.messages, rig.chain.budget.bytes))

    def test_one_bad(self) -> None:
        """When one observer has not one of them, the answer for all is why."""
        good, bad = MemoryObserver("good"), MemoryObserver("bad")
        bad.judge = lambda message: Rejected("too odd") if message.values["MESSAGE"] == "17" else None
        rig = Rig(good, bad, max_batch_bytes=2_000)
        told: list[NotStored | None] = []
        rig.chain.write_all(numbered(30), told.append)
        rig.clock.advance(0)
        self.assertEqual(["bad: too odd"], [str(each) for each in told])
        self.assertEqual((30, 29), (len(good.messages), len(bad.messages)))

    def test_last_batch_fails(self) -> None:
        """So it is when only the last batch is not stored; what was stored before it stays."""
        observer = MemoryObserver()
        rig = Rig(observer, max_batch_bytes=1_000)

        def judge(message: Message) -> Exception | None:
            return OSError(28, "No space left on device") if message.values["MESSAGE"] == "29" else None

        observer.judge = judge
        told: list[NotStored | None] = []
        rig.chain.write_all(numbered(30), told.append)
        rig.clock.advance(0)
        (failure,) = told
        self.assertIn("No space left", str(failure))
        self.assertEqual(29, len(observer.messages))

    def test_not_encoded(self) -> None:
        """One that can't be encoded fails all of them; the first error is the one that is told."""

        def encode(message: Message) -> bytes:
            if message.values["MESSAGE"] in ("3", "5"):
                raise ValueError(f"number {message.values['MESSAGE']}")
            return encode_line(message)

        rig = Rig(LinesObserver(encode))
        told: list[NotStored | None] = []
        rig.chain.write_all(numbered(8), told.append)
        rig.clock.advance(0)
        self.assertEqual(["lines: number 3"], [str(each) for each in told])

    def test_prepared(self) -> None:
        """What was prepared is not encoded again, unless the observers are others by now."""
        count = 0

        def encode(message: Message) -> bytes:
            nonlocal count
            count += 1
            return encode_line(message)

        rig = Rig(LinesObserver(encode))
        told: list[NotStored | None] = []
        messages = numbered(5)
        prepared = [rig.chain.prepare(message) for message in messages]
        rig.chain.write_all(messages, told.append, prepared)
        rig.clock.advance(0)
        self.assertEqual((5, [None]), (count, told))
        rig.chain.replace([LinesObserver(encode, "other")], ack="durable")
        rig.clock.advance(0)
        rig.chain.write_all(messages, told.append, prepared)
        rig.clock.advance(0)
        self.assertEqual((10, [None, None]), (count, told))

    def test_given_up(self) -> None:
        """An observer that hangs fails all of them, once."""
        observer = MemoryObserver()
        rig = Rig(observer, max_batch_bytes=1_000)
        told: list[NotStored | None] = []
        rig.chain.write_all(numbered(30), told.append)
        rig.chain.flush()
        rig.chain.give_up()
        self.assertEqual(["memory: it does not answer"], [str(each) for each in told])
        rig.clock.advance(0)
        self.assertEqual(1, len(told))

    def test_held(self) -> None:
        """Those that come while observers are exchanged go to the new ones."""
        old, new = MemoryObserver("old"), MemoryObserver("new")
        rig = Rig(old)
        told: list[NotStored | None] = []
        rig.chain.replace([new], ack="durable")
        rig.chain.write(make_message("first"), told.append)
        rig.chain.write_all(numbered(3), told.append)
        self.assertEqual(4, rig.chain.budget.messages)
        rig.clock.advance(0)
        self.assertEqual(([None, None], ["first", "0", "1", "2"], []), (told, texts(new), texts(old)))
        self.assertEqual((0, 0), (rig.chain.budget.messages, rig.chain.budget.bytes))

    def test_stopped(self) -> None:
        """A chain that does not run takes none."""
        rig = Rig(MemoryObserver())
        rig.chain.stop()
        rig.clock.advance(0)
        with self.assertRaises(NoRoom):
            rig.chain.write_all(numbered(2), self.fail)

    def test_broken_acknowledgement(self) -> None:
        """An acknowledgement that fails is logged, and keeps no other from its own."""
        rig = Rig(MemoryObserver())
        told: list[NotStored | None] = []

        def broken(failure: NotStored | None) -> None:
            raise ValueError("broken")

        rig.chain.write_all(numbered(2), broken)
        rig.chain.write(make_message("next"), told.append)
        rig.clock.advance(0)
        self.assertEqual([None], told)
        self.assertEqual(1, len(self.flushLoggedErrors(ValueError)))


class RoomTests(SynchronousTestCase):
    """How messages that come together are counted."""

    def test_all_or_none(self) -> None:
        """They are counted together, or not at all."""
        budget = Budget(1_000, 10)
        self.assertTrue(budget.admit(100))
        self.assertTrue(budget.admit(400))
        self.assertFalse(budget.admit_all(9, 100))
        self.assertEqual((2, 500), (budget.messages, budget.bytes))
        self.assertTrue(budget.admit_all(8, 300))
        self.assertEqual((10, 800, True), (budget.messages, budget.message_bytes, budget.is_high))
        budget.remove(10, 800)
        self.assertEqual((0, 0, False), (budget.messages, budget.bytes, budget.is_high))

    def test_bytes(self) -> None:
        """So are their bytes; those of more than half of the queue may wait beside the limit, as one message may."""
        budget = Budget(1_000, 10)
        self.assertTrue(budget.admit_all(2, 500))
        self.assertTrue(budget.admit_all(2, 400))
        self.assertFalse(budget.admit_all(2, 101))
        self.assertTrue(budget.admit_all(2, 600))
        self.assertFalse(budget.admit_all(2, 600))

    def test_too_many_for_the_queue(self) -> None:
        """More than the queue may hold find room when no other message waits, and then nothing else does."""
        budget = Budget(1_000, 10)
        self.assertTrue(budget.admit_all(50, 5_000))
        self.assertFalse(budget.admit_all(1, 1))
        budget.remove(50, 5_000)
        self.assertTrue(budget.admit_all(1, 1))

    def test_capped(self) -> None:
        """What an observer that can't keep up would not store soon is refused."""
        budget = Budget(1_000, 10)
        budget.cap = 50
        self.assertTrue(budget.admit_all(2, 100))
        self.assertFalse(budget.admit_all(2, 100))
