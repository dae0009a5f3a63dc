"""The chain, from a message to the word of its observers."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.consumer_contract import ConsumerContract, MiB, RecordingProducer
from tests.pipeline.rig import LinesObserver, Rig, texts
from webhookrx.errors import NoRoom, NotStored
from webhookrx.message.encoders import encode_line
from webhookrx.message.message import Message
from webhookrx.pipeline.admission import size_of
from webhookrx.pipeline.chain import Chain
from webhookrx.testing import MemoryObserver, make_message
from webhookrx.transport.turn_end import TurnEnd


class ChainContractTests(ConsumerContract, SynchronousTestCase):
    """A Chain is a consumer."""

    def make_consumer(self, max_bytes: int = MiB, max_messages: int = 100) -> Chain:
        """Make and start it."""
        self.observer = MemoryObserver()
        self.rig = Rig(self.observer, max_bytes=max_bytes, max_messages=max_messages)
        return self.rig.chain

    def hold(self) -> None:
        """Hold the disk up."""
        self.rig.threads[0].hold()

    def finish(self) -> None:
        """Let the disk go on."""
        self.rig.threads[0].release()
        self.rig.turns()

    def fail_all(self) -> None:
        """Break the disk."""
        self.observer.store_error = OSError("broken")

    def stored_texts(self) -> list[str]:
        """Look at the disk."""
        return texts(self.observer)


class QueuedChainContractTests(ChainContractTests):
    """A Chain that acknowledges what it has in memory is a consumer too, as long as that has an end."""

    gives_room_back_first = False

    def make_consumer(self, max_bytes: int = MiB, max_messages: int = 100) -> Chain:
        """Make and start it."""
        self.observer = MemoryObserver()
        self.rig = Rig(self.observer, ack="queued", max_bytes=max_bytes, max_messages=max_messages)
        return self.rig.chain

    def test_not_stored(self) -> None:
        """A failure comes after the answer, so it is reported and no more."""
        consumer = self.make_consumer()
        self.fail_all()

        told = self.write(consumer, "one")
        self.finish()

        self.assertEqual([None], told)
        self.assertEqual([("memory", "broken", 1)], self.rig.reports)

    def test_write_all_not_stored(self) -> None:
        """So does a failure of messages that have one acknowledgement."""
        consumer = self.make_consumer()
        self.fail_all()

        told: list[NotStored | None] = []
        consumer.write_all([make_message("one"), make_message("two")], told.append)
        self.finish()

        self.assertEqual(([None], [("memory", "broken", 2)]), (told, self.rig.reports))


class TurnEndTests(SynchronousTestCase):
    """Messages of a turn that is shorter than the reactor's are handed over at its end."""

    def setUp(self) -> None:
        self.turn_end = TurnEnd()
        self.observer = MemoryObserver(promise="written")
        self.rig = Rig(self.observer, ack="written", turn_end=self.turn_end)

    def test_end(self) -> None:
        """They are stored together and acknowledged at its end, without a turn of the reactor."""
        self.turn_end.begin()
        told = self.rig.write("one", "two")
        self.assertEqual(([], []), (told, self.observer.batch_sizes))
        self.turn_end.end()
        self.assertEqual(([None, None], [2]), (told, self.observer.batch_sizes))

    def test_flushed(self) -> None:
        """What a tick has handed over is not handed over again, and what comes after it is."""
        self.turn_end.begin()
        self.rig.write("one")
        self.rig.chain.tick()
        told = self.rig.write("two")
        self.turn_end.end()
        self.rig.turns()
        self.assertEqual(([None], [1, 1]), (told, self.observer.batch_sizes))
        self.turn_end.begin()
        self.rig.write("three")
        self.rig.chain.tick()
        self.turn_end.end()
        self.rig.turns()
        self.assertEqual([1, 1, 1], self.observer.batch_sizes)

    def test_answered_at_the_end(self) -> None:
        """A message that an acknowledgement brings goes with the next turn of the reactor."""
        told: list[NotStored | None] = []
        self.turn_end.begin()
        self.rig.chain.write(make_message("one"), lambda error: self.rig.chain.write(make_message("two"), told.append))
        self.turn_end.end()
        self.assertEqual([], told)
        self.rig.turns()
        self.assertEqual(([None], [1, 1]), (told, self.observer.batch_sizes))

    def test_queued(self) -> None:
        """Messages that only have to be in memory are acknowledged at the end as well, not before."""
        rig = Rig(self.observer, ack="queued", turn_end=self.turn_end)
        rig.threads[0].hold()
        self.turn_end.begin()
        told = rig.write("one")
        self.assertEqual([], told)
        self.turn_end.end()
        self.assertEqual([None], told)

    def test_both_ends(self) -> None:
        """Messages from outside such a turn wait for the reactor's, and take along what comes in one meanwhile."""
        told = self.rig.write("one")
        self.turn_end.begin()
        told_of_turn = self.rig.write("two")
        self.turn_end.end()
        self.assertEqual(([], []), (told, told_of_turn))
        self.rig.turns()
        self.assertEqual(([None], [None], [2]), (told, told_of_turn, self.observer.batch_sizes))


class AcknowledgeTests(SynchronousTestCase):
    """A message is acknowledged when every observer has it safe, and never before."""

    def test_all_observers(self) -> None:
        """The slowest observer decides."""
        fast, slow = MemoryObserver(), MemoryObserver()
        rig = Rig(fast, slow)
        rig.threads[1].hold()
        told = rig.write("one")
        rig.turns()

        self.assertEqual(["one"], texts(fast))
        self.assertEqual([], told)
        rig.threads[1].release()
        rig.turns()

        self.assertEqual([None], told)

    def test_one_failed_batch(self) -> None:
        """An observer that fails makes every message of its batch not stored, and the others still get them all."""
        good, bad = MemoryObserver("good"), MemoryObserver("bad")
        bad.store_error = OSError("disk full")
        for observers in ((good, bad), (bad, good)):
            good.messages.clear()
            rig = Rig(*observers)
            told = rig.write("one", "two")
            rig.turns()

            self.assertEqual(["bad: disk full"] * 2, [str(failure) for failure in told])
            self.assertEqual(["one", "two"], texts(good))
            self.assertEqual([("bad", "disk full", 2)], rig.reports)

    def test_errors_without_words(self) -> None:
        """An exception that can't even say what it is fails its messages like any other, and holds nothing up."""

        class Wordless(Exception):
            def __str__(self) -> str:
                raise ValueError

        observer = MemoryObserver()
        rig = Rig(observer)
        for store_error, judge in ((Wordless(), None), (None, lambda message: Wordless())):
            observer.store_error = store_error
            if judge is not None:
                observer.judge = judge
            told = rig.write("one")
            rig.turns()
            self.assertEqual(["memory: Wordless"], [str(failure) for failure in told])
            self.assertEqual((0, 0), (rig.chain.budget.bytes, rig.chain.budget.messages))
        observer.reopen_error = Wordless()
        rig.chain.reopen()
        rig.turns()
        self.assertEqual(("memory", "Wordless", 0), rig.reports[-1])

    def test_failure_waits_for_the_others(self) -> None:
        """A message that one observer could not store is acknowledged once the others are done with it too."""
        bad, slow = MemoryObserver("bad"), MemoryObserver("slow")
        bad.store_error = OSError("broken")
        rig = Rig(bad, slow)
        rig.threads[1].hold()
        told = rig.write("one")
        rig.turns()
        self.assertEqual([], told)
        rig.threads[1].release()
        rig.turns()

        self.assertEqual([NotStored], [type(failure) for failure in told])

    def test_one_failed_message(self) -> None:
        """An error for one message leaves the rest of its batch safe, also across turns that were joined."""
        observer = MemoryObserver()
        observer.judge = lambda message: ValueError("no") if message.values["MESSAGE"] in ("b", "d") else None
        rig = Rig(observer)
        rig.threads[0].hold()
        first = rig.write("0")
        rig.turns()
        told = rig.write("a", "b")
        rig.turns()
        told_later = rig.write("c", "d")
        rig.turns()
        rig.threads[0].release()
        rig.turns()

        self.assertEqual([1, 4], observer.batch_sizes)
        self.assertEqual([None], first)
        self.assertEqual([None, "memory: no"], [told[0], str(told[1])])
        self.assertEqual([None, "memory: no"], [told_later[0], str(told_later[1])])
        self.assertEqual([("memory", "no", 2)], rig.reports)

    def test_recovers(self) -> None:
        """After a failed batch the next one has its own fate."""
        observer = MemoryObserver()
        rig = Rig(observer)
        observer.store_error = OSError("disk full")
        rig.write("one")
        rig.turns()
        observer.store_error = None
        told = rig.write("two")
        rig.turns()

        self.assertEqual([None], told)
        self.assertEqual(["two"], texts(observer))

    def test_thread_death(self) -> None:
        """Even an observer that raises SystemExit leaves nobody without an answer."""
        observer = MemoryObserver()
        observer.store_error = SystemExit("bye")
        rig = Rig(observer)
        told = rig.write("one")
        rig.turns()

        self.assertEqual(["memory: bye"], [str(failure) for failure in told])

    def test_broken_contract(self) -> None:
        """What store() returns against its contract says nothing about the messages, so none of them is safe."""
        for outcome in (True, object(), [], [None], (None, None, None), "ok"):
            observer = MemoryObserver()
            observer.store = lambda batch, outcome=outcome: outcome
            rig = Rig(observer)
            told = rig.write("one", "two")
            rig.turns()

            self.assertEqual([NotStored] * 2, [type(failure) for failure in told], outcome)
            self.assertEqual(1, len(rig.reports))

    def test_stored_list_is_its_own(self) -> None:
        """An observer that empties the list it was given harms neither the others nor the acknowledgements."""

        class Greedy(MemoryObserver):
            def store(self, batch: object) -> None:
                batch.clear()

        good = MemoryObserver()
        rig = Rig(Greedy(), good)
        told = rig.write("one", "two")
        rig.turns()

        self.assertEqual([None, None], told)
        self.assertEqual(["one", "two"], texts(good))

    def test_failing_waiter(self) -> None:
        """An acknowledgement that raises is logged, and the rest of the batch hears all the same."""
        rig = Rig(MemoryObserver())
        told: list[NotStored | None] = []

        def fail(failure: NotStored | None) -> None:
            raise ZeroDivisionError

        rig.chain.write(make_message("one"), fail)
        rig.chain.write(make_message("two"), told.append)
        rig.turns()

        self.assertEqual([None], told)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
        self.assertEqual((0, 0), (rig.chain.budget.bytes, rig.chain.budget.messages))

    def test_queued(self) -> None:
        """With ack queued the turn's end is enough, and a later failure is reported alone."""
        observer = MemoryObserver()
        observer.store_error = OSError("broken")
        rig = Rig(observer, ack="queued")
        rig.threads[0].hold()
        told = rig.write("one")
        self.assertEqual([], told)
        rig.turns()
        self.assertEqual([None], told)
        self.assertEqual(1, rig.chain.budget.messages)
        rig.threads[0].release()
        rig.turns()

        self.assertEqual([None], told)
        self.assertEqual([("memory", "broken", 1)], rig.reports)
        self.assertEqual(0, rig.chain.budget.messages)


class PrepareTests(SynchronousTestCase):
    """Each message is prepared once for all observers that want it alike."""

    def test_shared(self) -> None:
        """Observers with an equal prepare share its work and its bytes."""
        calls: list[Message] = []

        def render(message: Message) -> bytes:
            calls.append(message)
            return b"12345"

        rig = Rig(LinesObserver(render), LinesObserver(render))
        rig.write("one")

        self.assertEqual(1, len(calls))
        self.assertEqual(5, rig.chain.budget.bytes)

    def test_lines(self) -> None:
        """It tells whether lines of JSON are wanted, and nothing else, of the observers that it has now."""
        lines, others = LinesObserver(encode_line), MemoryObserver()
        rig = Rig(lines)
        for observers, wanted in (
            ([lines], (True, True)),
            ([lines, LinesObserver(encode_line, "more")], (True, True)),
            ([others, lines], (True, False)),
            ([others], (False, False)),
        ):
            rig.replace(*observers)
            rig.turns()
            self.assertEqual(wanted, (rig.chain.takes_lines, rig.chain.takes_only_lines))

    def test_several_ways(self) -> None:
        """Observers that want it differently each get what they prepared, and all of it is counted."""
        first, second, third = LinesObserver(lambda m: b"1"), MemoryObserver(), LinesObserver(lambda m: b"333")
        rig = Rig(first, second, third)
        told = rig.write("one")

        self.assertEqual(4 + size_of(make_message("one")), rig.chain.budget.bytes)
        rig.turns()
        self.assertEqual([b"1"], first.messages)
        self.assertEqual([make_message("one")], second.messages)
        self.assertEqual([b"333"], third.messages)
        self.assertEqual([None], told)

    def test_failure(self) -> None:
        """A prepare that raises fails that message alone, and the other observers still get it."""

        def render(message: Message) -> bytes:
            if message.values["MESSAGE"] == "bad":
                raise ValueError("can't")
            return str(message.values["MESSAGE"]).encode()

        lines, memory = LinesObserver(render), MemoryObserver()
        rig = Rig(lines, memory)
        told = rig.write("one", "bad", "three")
        self.assertEqual([], told)
        rig.turns()

        self.assertEqual([None, "lines: can't", None], [told[0], str(told[1]), told[2]])
        self.assertEqual([b"one", b"three"], lines.messages)
        self.assertEqual(["one", "bad", "three"], texts(memory))
        self.assertEqual([("lines", "can't", 1)], rig.reports)

    def test_exit(self) -> None:
        """Whatever a prepare raises, and however little that has to say, it fails one message and no more."""

        class Silent(BaseException):
            def __str__(self) -> str:
                raise SystemExit

        def render(message: Message) -> bytes:
            if message.values["MESSAGE"] == "bad":
                raise Silent
            return b"good"

        rig = Rig(LinesObserver(render))
        told = rig.write("bad", "good")
        rig.turns()
        self.assertEqual(["lines: Silent", "None"], [str(failure) for failure in told])

    def test_failure_beside_failed_message(self) -> None:
        """Errors that store() gives by place go to the right messages, though one was never prepared."""
        lines = LinesObserver(lambda message: str(message.values["MESSAGE"]).encode() if message.received else 1 / 0)
        lines.judge = lambda line: ValueError("no") if line == b"c" else None
        rig = Rig(lines)
        told: list[str] = []
        for text, received in (("a", 1), ("b", 0), ("c", 1), ("d", 1)):
            rig.chain.write(make_message(text, received=received), lambda failure: told.append(str(failure)))
        rig.turns()

        self.assertEqual(["None", "lines: division by zero", "lines: no", "None"], told)

    def test_nothing_left(self) -> None:
        """A batch of which nothing could be prepared reaches no observer and is acknowledged as not stored."""
        lines = LinesObserver(lambda message: 1 / 0)
        rig = Rig(lines)
        told = rig.write("one")
        rig.turns()

        self.assertEqual([NotStored], [type(failure) for failure in told])
        self.assertEqual([], lines.batch_sizes)
        self.assertEqual(0, rig.chain.budget.messages)

    def test_neither_bytes_nor_message(self) -> None:
        """A prepare that returns something else has failed."""
        rig = Rig(LinesObserver(lambda message: "text"))
        told = rig.write("one")
        rig.turns()

        self.assertIn("not str", str(told[0]))

    def test_failure_with_ack_queued(self) -> None:
        """A message that can't be prepared is no 200, even with ack queued."""
        rig = Rig(LinesObserver(lambda message: 1 / 0), ack="queued")
        told = rig.write("one")
        rig.turns()

        self.assertEqual([NotStored], [type(failure) for failure in told])


class RoomTests(SynchronousTestCase):
    """What does not fit leaves no trace."""

    def test_full_before_preparing(self) -> None:
        """When it is full already, no work is spent on the message."""
        rig = Rig(LinesObserver(lambda message: self.fail("prepared")))
        for _ in range(2):
            rig.chain.budget.admit(MiB // 2)

        self.assertRaises(NoRoom, rig.chain.write, make_message(), self.fail)

    def test_no_room(self) -> None:
        """A message without room is not stored, and what was there is."""
        observer = LinesObserver(lambda message: b"x" * 6)
        rig = Rig(observer, max_bytes=13)
        told = rig.write("zero")
        told += rig.write("one")
        self.assertRaises(NoRoom, rig.chain.write, make_message(), self.fail)
        rig.turns()

        self.assertEqual([b"xxxxxx"] * 2, observer.messages)
        self.assertEqual((0, 0), (rig.chain.budget.bytes, rig.chain.budget.messages))

    def test_other_limits(self) -> None:
        """With lower limits senders are paused at once when too much waits by these, and resumed with higher ones."""
        rig = Rig(MemoryObserver())
        producer = RecordingProducer()
        rig.chain.registerProducer(producer, True)
        rig.threads[0].hold()
        rig.write(*"12345678")
        rig.turns()
        self.assertEqual([], producer.calls)
        rig.chain.set_limits(max_bytes=MiB, max_messages=10, answer_time=30, pause_time=2)
        self.assertEqual(["pause"], producer.calls)
        rig.chain.set_limits(max_bytes=MiB, max_messages=16, answer_time=30, pause_time=2)
        self.assertEqual(["pause", "resume"], producer.calls)

    def test_slow_observer(self) -> None:
        """One that never finishes fills the queue, and then there is no room; the others have got all that fitted."""
        stuck, good = MemoryObserver(), MemoryObserver()
        rig = Rig(stuck, good, max_messages=3)
        rig.threads[0].hold()
        told = rig.write("1", "2", "3")
        rig.turns()

        self.assertRaises(NoRoom, rig.chain.write, make_message(), self.fail)
        self.assertEqual(["1", "2", "3"], texts(good))
        self.assertEqual([], told)

    def test_write_from_resume(self) -> None:
        """A producer may write from resumeProducing."""
        observer = MemoryObserver()
        rig = Rig(observer, max_messages=4)
        told: list[NotStored | None] = []

        class Producer(RecordingProducer):
            def resumeProducing(self) -> None:
                rig.chain.write(make_message("more"), told.append)

        rig.chain.registerProducer(Producer(), True)
        rig.write(*"1234")
        rig.turns()

        self.assertEqual([None], told)
        self.assertEqual([*"1234", "more"], texts(observer))
