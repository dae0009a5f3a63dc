"""What the web side may rely on at the end of the chain, real or fake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer
from zope.interface.verify import verifyObject

from webhookrx.errors import NoRoom, NotStored
from webhookrx.interfaces import IMessageConsumer
from webhookrx.pipeline.admission import size_of
from webhookrx.testing import make_message

if TYPE_CHECKING:
    from twisted.trial.unittest import SynchronousTestCase as _Base
else:
    _Base = object

MiB = 1024 * 1024


@implementer(IPushProducer)
class RecordingProducer:
    """Notes what it was told."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def pauseProducing(self) -> None:
        """Note it."""
        self.calls.append("pause")

    def resumeProducing(self) -> None:
        """Note it."""
        self.calls.append("resume")

    def stopProducing(self) -> None:
        """Note it."""
        self.calls.append("stop")


class ConsumerContract(_Base):
    """Mix into a C{SynchronousTestCase} that says how to make the consumer and let it work."""

    def make_consumer(self, max_bytes: int = MiB, max_messages: int = 100) -> IMessageConsumer:
        """Make a consumer that is ready for messages and acknowledges them in a later turn."""
        raise NotImplementedError

    def hold(self) -> None:
        """Let nothing be acknowledged until L{finish}."""
        raise NotImplementedError

    def finish(self) -> None:
        """Let turns pass until everything is acknowledged."""
        raise NotImplementedError

    def fail_all(self) -> None:
        """Make all messages from now on end as not stored."""
        raise NotImplementedError

    def stored_texts(self) -> list[str]:
        """Return the C{MESSAGE} of all messages that the consumer has passed on, in order."""
        raise NotImplementedError

    def write(self, consumer: IMessageConsumer, *texts: str) -> list[NotStored | None]:
        """Write messages; return the list that their acknowledgements go to."""
        told: list[NotStored | None] = []
        for text in texts:
            consumer.write(make_message(text), told.append)
        return told

    def test_interface(self) -> None:
        """It provides the interface."""
        self.assertTrue(verifyObject(IMessageConsumer, self.make_consumer()))

    def test_acknowledge(self) -> None:
        """Each message is acknowledged once, not before write() has returned."""
        consumer = self.make_consumer()

        told = self.write(consumer, "one", "two")
        self.assertEqual([], told)
        self.finish()

        self.assertEqual([None, None], told)
        self.assertEqual(["one", "two"], self.stored_texts())

    #: Whether a message is acknowledged only once it takes no room any more.
    gives_room_back_first = True

    def test_write_from_acknowledge(self) -> None:
        """A message that is written out of an acknowledgement finds the room of the other, and gets one of its own."""
        consumer = self.make_consumer(max_messages=1 if self.gives_room_back_first else 2)
        told: list[NotStored | None] = []

        consumer.write(make_message("one"), lambda failure: consumer.write(make_message("two"), told.append))
        self.finish()
        self.finish()

        self.assertEqual([None], told)
        self.assertEqual(["one", "two"], self.stored_texts())

    def test_not_stored(self) -> None:
        """A message that could not be made safe is acknowledged with the reason."""
        consumer = self.make_consumer()
        self.fail_all()

        told = self.write(consumer, "one")
        self.finish()

        self.assertEqual([NotStored], [type(failure) for failure in told])

    def test_full_of_messages(self) -> None:
        """Beyond the number of messages write() raises and calls nobody; once some are acknowledged there is room."""
        consumer = self.make_consumer(max_messages=2)
        self.hold()
        told = self.write(consumer, "one", "two")

        with self.assertRaises(NoRoom):
            self.write(consumer, "three")
        self.finish()

        self.assertEqual([None, None], told)
        self.assertEqual([], self.write(consumer, "four"))
        self.finish()
        self.assertEqual(["one", "two", "four"], self.stored_texts())

    def test_full_of_bytes(self) -> None:
        """Beyond the number of bytes write() raises; once some are acknowledged there is room."""
        size = size_of(make_message("three"))
        consumer = self.make_consumer(max_bytes=2 * size)
        self.hold()
        self.write(consumer, "one", "two")

        with self.assertRaises(NoRoom):
            self.write(consumer, "three")
        self.finish()
        self.write(consumer, "four")
        self.finish()

        self.assertEqual(["one", "two", "four"], self.stored_texts())

    def test_reserve(self) -> None:
        """Reserved bytes count against the same limit, and a reservation that does not fit counts for nothing."""
        size = size_of(make_message("one"))
        consumer = self.make_consumer(max_bytes=4 * size)
        self.hold()
        self.write(consumer, "one")

        self.assertFalse(consumer.has_room(2 * size + 1, small=False))
        self.assertEqual((False, False), (consumer.has_room(2 * size + 1), consumer.reserve(2 * size + 1)))
        self.assertTrue(consumer.has_room(2 * size + 1, small=True))
        self.assertTrue(consumer.reserve(2 * size + 1, small=True))
        self.assertFalse(consumer.reserve(size, small=True))
        self.assertFalse(consumer.has_room(size, small=True))
        with self.assertRaises(NoRoom):
            self.write(consumer, "two")
        consumer.release(1)
        self.write(consumer, "two")
        self.assertFalse(consumer.reserve(1, small=True))
        self.finish()
        self.assertTrue(consumer.reserve(size, small=True))

    def test_retry_after(self) -> None:
        """It tells whole seconds, at least one and not more than a minute, when it is full and when it is not."""
        consumer = self.make_consumer(max_messages=2)
        self.assertEqual(1, consumer.retry_after())
        self.hold()
        self.write(consumer, "one", "two")

        seconds = consumer.retry_after()

        self.assertIsInstance(seconds, int)
        self.assertIn(seconds, range(1, 61))

    def test_pause_and_resume(self) -> None:
        """Past three quarters of the messages the producer is paused, at half of them it is resumed; once each."""
        consumer = self.make_consumer(max_messages=8)
        producer = RecordingProducer()
        consumer.registerProducer(producer, True)
        self.hold()

        self.write(consumer, *"123456")
        self.assertEqual([], producer.calls)
        self.write(consumer, *"78")
        self.assertEqual(["pause"], producer.calls)
        self.finish()

        self.assertEqual(["pause", "resume"], producer.calls)

    def test_pause_by_bytes(self) -> None:
        """Past three quarters of the bytes the producer is paused too."""
        size = size_of(make_message("1"))
        consumer = self.make_consumer(max_bytes=4 * size)
        producer = RecordingProducer()
        consumer.registerProducer(producer, True)
        self.hold()

        self.write(consumer, *"123")
        self.assertEqual([], producer.calls)
        self.write(consumer, "4")

        self.assertEqual(["pause"], producer.calls)

    def test_reserved_bytes_do_not_pause(self) -> None:
        """Bodies in progress pause nobody: only more reading can end them."""
        consumer = self.make_consumer(max_bytes=100)
        producer = RecordingProducer()
        consumer.registerProducer(producer, True)

        self.assertTrue(consumer.reserve(75, small=True))

        self.assertEqual([], producer.calls)

    def test_late_producer(self) -> None:
        """A producer that registers when too much waits already is paused at once."""
        consumer = self.make_consumer(max_messages=4)
        self.hold()
        self.write(consumer, *"1234")
        producer = RecordingProducer()

        consumer.registerProducer(producer, True)

        self.assertEqual(["pause"], producer.calls)

    def test_one_producer(self) -> None:
        """There is one producer at a time, and it is a push producer."""
        consumer = self.make_consumer()
        with self.assertRaises(ValueError):
            consumer.registerProducer(RecordingProducer(), False)
        consumer.registerProducer(RecordingProducer(), True)
        with self.assertRaises(RuntimeError):
            consumer.registerProducer(RecordingProducer(), True)
        consumer.unregisterProducer()
        consumer.registerProducer(RecordingProducer(), True)

    def test_unregistered(self) -> None:
        """A producer that was unregistered hears nothing more."""
        consumer = self.make_consumer(max_messages=4)
        producer = RecordingProducer()
        consumer.registerProducer(producer, True)
        self.hold()
        self.write(consumer, *"1234")
        consumer.unregisterProducer()
        self.finish()

        self.assertEqual(["pause"], producer.calls)

    def test_write_all(self) -> None:
        """Several messages have one acknowledgement, and stay in order with those before and behind them."""
        consumer = self.make_consumer()

        told = self.write(consumer, "one")
        together: list[NotStored | None] = []
        consumer.write_all([make_message(text) for text in ("two", "three")], together.append)
        told += self.write(consumer, "four")
        self.assertEqual([], together)
        self.finish()

        self.assertEqual(([None], ["one", "two", "three", "four"]), (together, self.stored_texts()))

    def test_write_all_not_stored(self) -> None:
        """When one of several messages could not be made safe, all are acknowledged with the reason, once."""
        consumer = self.make_consumer()
        self.fail_all()

        told: list[NotStored | None] = []
        consumer.write_all([make_message("one"), make_message("two")], told.append)
        self.finish()

        self.assertEqual([NotStored], [type(failure) for failure in told])

    def test_write_all_or_none(self) -> None:
        """When there is no room for all of them, none is taken; once the others have left, there is."""
        consumer = self.make_consumer(max_messages=3)
        self.hold()
        self.write(consumer, "one", "two")
        told: list[NotStored | None] = []
        both = [make_message("three"), make_message("four")]

        with self.assertRaises(NoRoom):
            consumer.write_all(both, told.append)
        self.finish()
        self.assertEqual(["one", "two"], self.stored_texts())
        consumer.write_all(both, told.append)
        self.finish()

        self.assertEqual(([None], ["one", "two", "three", "four"]), (told, self.stored_texts()))

    def test_more_than_there_is_room_for(self) -> None:
        """Messages that come together find room when no other waits, like one that is too large."""
        consumer = self.make_consumer(max_bytes=100, max_messages=3)
        told: list[NotStored | None] = []

        consumer.write_all([make_message(str(number)) for number in range(5)], told.append)
        self.finish()

        self.assertEqual(([None], ["0", "1", "2", "3", "4"]), (told, self.stored_texts()))
