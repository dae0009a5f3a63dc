"""The fakes that webhookrx ships keep to the contracts of what they stand for."""

from __future__ import annotations

from threading import Thread

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.consumer_contract import ConsumerContract, MiB
from tests.contracts.observer_contract import ObserverContract
from tests.contracts.thread_contract import ThreadContract
from webhookrx.errors import NoRoom, NotStored
from webhookrx.testing import RECEIVED, MemoryObserver, RecordingConsumer, StepThread, make_message


class MemoryObserverContractTests(ObserverContract, SynchronousTestCase):
    """A MemoryObserver is an observer."""

    def make_observer(self) -> MemoryObserver:
        """Make it."""
        self.observer = MemoryObserver()
        return self.observer

    def break_observer(self) -> None:
        """Let it raise."""
        self.observer.store_error = OSError("broken")

    def stored_texts(self) -> list[str]:
        """Look into it."""
        return [str(message.values["MESSAGE"]) for message in self.observer.messages]


class MemoryObserverTests(SynchronousTestCase):
    """A MemoryObserver fails and blocks as told."""

    def test_judge(self) -> None:
        """It keeps the messages that are judged well and tells why the others are not stored."""
        observer = MemoryObserver()
        observer.judge = lambda message: ValueError("no b") if message.values["MESSAGE"] == "b" else None

        outcome = observer.store([make_message("a"), make_message("b")])

        assert outcome is not None
        self.assertIsNone(outcome[0])
        self.assertIsInstance(outcome[1], ValueError)
        self.assertEqual([make_message("a")], observer.messages)

    def test_open_and_close(self) -> None:
        """It knows whether it is open, and fails to open as told."""
        observer = MemoryObserver()
        observer.open_error = OSError("no")

        self.assertRaises(OSError, observer.open)
        self.assertFalse(observer.is_open)
        observer.open_error = None
        observer.open()
        self.assertTrue(observer.is_open)
        observer.close()
        self.assertFalse(observer.is_open)

    def test_reopen(self) -> None:
        """It counts each reopen that succeeds."""
        observer = MemoryObserver()
        observer.reopen()
        observer.reopen_error = OSError("no")

        self.assertRaises(OSError, observer.reopen)
        self.assertEqual(1, observer.reopened)

    def test_block(self) -> None:
        """While it blocks, nothing is stored; once released, the batch is."""
        observer = MemoryObserver()
        observer.block()
        thread = Thread(target=observer.store, args=([make_message()],), daemon=True)
        thread.start()

        self.assertEqual([], observer.batch_sizes)
        observer.release()
        thread.join(10)

        self.assertEqual([1], observer.batch_sizes)


class StepThreadContractTests(ThreadContract, SynchronousTestCase):
    """A StepThread is a thread."""

    def make_thread(self) -> StepThread:
        """Make it."""
        self.clock = Clock()
        return StepThread(self.clock, "step")

    def settled(self, result: Deferred[object]) -> Deferred[None]:
        """Advance the clock until nothing is left to do."""
        self.clock.advance(0)
        self.successResultOf(result)
        return result.addCallback(lambda _: None)


class StepThreadTests(SynchronousTestCase):
    """A StepThread can be held up."""

    def test_hold(self) -> None:
        """Work that is given while it is held is done after the release, once."""
        clock = Clock()
        thread = StepThread(clock, "step")
        thread.start()
        seen: list[object] = []
        thread.hold()
        thread.run(lambda: 1, seen.append)
        clock.advance(1)
        self.assertEqual([], seen)
        thread.release()
        clock.advance(1)

        self.assertEqual([1], seen)

    def test_hold_and_release_within_a_turn(self) -> None:
        """A step too many does nothing."""
        clock = Clock()
        thread = StepThread(clock, "step")
        thread.start()
        seen: list[object] = []
        thread.run(lambda: 1, seen.append)
        thread.hold()
        thread.release()
        clock.advance(1)

        self.assertEqual([1], seen)


class RecordingConsumerContractTests(ConsumerContract, SynchronousTestCase):
    """A RecordingConsumer is a consumer."""

    def make_consumer(self, max_bytes: int = MiB, max_messages: int = 100) -> RecordingConsumer:
        """Make it."""
        self.clock = Clock()
        self.consumer = RecordingConsumer(self.clock, max_bytes, max_messages)
        return self.consumer

    def hold(self) -> None:
        """Hold it."""
        self.consumer.hold()
        self.held = True

    def finish(self) -> None:
        """Acknowledge by hand what is held, by turns what is not."""
        if getattr(self, "held", False):
            self.consumer.acknowledge_all()
        self.clock.advance(0)

    def fail_all(self) -> None:
        """Let it acknowledge with a failure."""
        self.consumer.failure = NotStored("broken")

    def stored_texts(self) -> list[str]:
        """Look into it."""
        return [str(message.values["MESSAGE"]) for message in self.consumer.messages]


class RecordingConsumerTests(SynchronousTestCase):
    """A RecordingConsumer does as told."""

    def test_full(self) -> None:
        """It refuses everything when it is told to be full."""
        consumer = RecordingConsumer(Clock())
        consumer.is_full = True

        self.assertRaises(NoRoom, consumer.write, make_message(), self.fail)
        self.assertFalse(consumer.reserve(1))

    def test_held_then_failed(self) -> None:
        """What was held is acknowledged with the failure that it is told."""
        clock = Clock()
        consumer = RecordingConsumer(clock)
        told: list[NotStored | None] = []
        failure = NotStored("disk full")
        consumer.hold()
        consumer.write(make_message(), told.append)
        clock.advance(1)
        self.assertEqual([], told)
        consumer.acknowledge_all(failure)

        self.assertEqual([failure], told)

    def test_seconds_to_room(self) -> None:
        """It tells the seconds that it was given."""
        consumer = RecordingConsumer(Clock())
        consumer.seconds_to_room = 7

        self.assertEqual(7, consumer.retry_after())


class MakeMessageTests(SynchronousTestCase):
    """make_message makes a message of pairs."""

    def test_pairs(self) -> None:
        """Further pairs come on top of the usual ones."""
        message = make_message("text", {"HOST": "other"})

        self.assertEqual(
            ({"HOST": "other", "MESSAGE": "text", "SOURCEIP": "192.0.2.1"}, RECEIVED),
            (message.values, message.received),
        )
