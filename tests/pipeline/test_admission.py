"""Counting what waits, pausing the producer, and when a sender should retry."""

from __future__ import annotations

from math import inf
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.consumer_contract import RecordingProducer
from tests.pipeline.rig import LinesObserver, Rig
from webhookrx.message.message import Message
from webhookrx.pipeline.admission import Budget, DrainRate, ProducerGate, size_of
from webhookrx.testing import make_message

_SIZES = st.one_of(st.integers(0, 60), st.sampled_from([0, 24, 25, 49, 50, 51, 100, 101]))
_CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("admit"), _SIZES),
        st.tuples(st.sampled_from(["has_room", "reserve"]), _SIZES, st.booleans()),
        st.tuples(st.sampled_from(["release", "remove", "recount"]), st.integers(0, 5)),
        st.tuples(st.just("cap"), st.sampled_from([inf, 0, 30, 80])),
        st.tuples(st.just("resize"), st.sampled_from([100, 10, 1]), st.sampled_from([8, 2])),
    ),
    max_size=40,
)


class AmpleTests(SynchronousTestCase):
    """Far from the limits a budget asks less, and answers the same."""

    @given(_CALLS)
    def test_same(self, calls: list[tuple[Any, ...]]) -> None:
        """It answers and counts as one that never has ample room."""
        budgets = Budget(100, 8), Budget(100, 8)
        reserved: list[int] = []
        admitted: list[int] = []
        for name, *arguments in calls:
            answers = []
            for budget in budgets:
                if budget is budgets[1]:
                    budget.ample = -1
                if name in ("has_room", "reserve"):
                    answers.append(getattr(budget, name)(arguments[0], small=arguments[1]))
                elif name == "admit":
                    answers.append(budget.admit(arguments[0]))
                elif name == "release" and len(reserved) > arguments[0]:
                    budget.release(reserved[arguments[0]])
                elif name == "remove" and len(admitted) > arguments[0]:
                    budget.remove(1, admitted[arguments[0]])
                elif name == "recount" and admitted:
                    budget.recount(admitted[-1], arguments[0])
                elif name == "cap":
                    budget.cap = arguments[0]
                elif name == "resize":
                    budget.resize(*arguments)
            self.assertEqual(len(set(answers)), min(1, len(answers)), (name, arguments))
            if name == "reserve" and answers[0]:
                reserved.append(arguments[0])
            elif name == "admit" and answers[0]:
                admitted.append(arguments[0])
            elif name == "release" and len(reserved) > arguments[0]:
                del reserved[arguments[0]]
            elif name == "remove" and len(admitted) > arguments[0]:
                del admitted[arguments[0]]
            elif name == "recount" and admitted:
                admitted[-1] = arguments[0]
            budgets[1].ample = -1
            states = [
                (
                    each.bytes,
                    each.message_bytes,
                    each.messages,
                    each.is_high,
                    each.is_full(),
                    each.is_low(),
                    each._beside,
                )
                for each in budgets
            ]
            self.assertEqual(states[0], states[1], (name, arguments))
            if budgets[0].bytes <= budgets[0].ample and budgets[0].messages < budgets[0]._max_messages:
                self.assertFalse(budgets[0].is_full())


class BudgetTests(SynchronousTestCase):
    """A budget never goes past its limits, and gives back what it counted."""

    def test_reserve(self) -> None:
        """Reservations fit up to the last byte; one that does not fit counts for nothing."""
        budget = Budget(12, 10)

        self.assertEqual((True, False), (budget.has_room(6), budget.has_room(7)))
        self.assertTrue(budget.reserve(6))
        self.assertFalse(budget.reserve(1))
        self.assertEqual(6, budget.bytes)
        budget.release(6)
        self.assertEqual(0, budget.bytes)

    def test_bodies_leave_room(self) -> None:
        """Large bodies get half of the bytes, small ones as far as three quarters, the rest is there for messages."""
        budget = Budget(100, 10)
        self.assertTrue(budget.reserve(50))
        self.assertFalse(budget.reserve(1))
        self.assertEqual((True, False), (budget.has_room(25, small=True), budget.has_room(26, small=True)))
        self.assertTrue(budget.reserve(25, small=True))
        self.assertFalse(budget.reserve(1, small=True))
        self.assertTrue(budget.admit(10))
        self.assertTrue(budget.admit(15))
        self.assertFalse(budget.admit(1))
        budget.release(75)
        self.assertTrue(budget.reserve(50))

    def test_no_body_for_a_message_too_many(self) -> None:
        """With as many messages as may be, a body that would become one more is not begun."""
        budget = Budget(1000, 1)
        self.assertTrue(budget.has_room(1))
        budget.admit(1)
        self.assertFalse(budget.has_room(1))
        self.assertFalse(budget.reserve(1, small=True))

    def test_large_message(self) -> None:
        """One message of more than half of the limit waits beside it: the others have as much room as without it."""
        budget = Budget(10, 10)
        self.assertTrue(budget.admit(5))
        self.assertTrue(budget.admit(11))
        self.assertEqual((16, 16, 2), (budget.bytes, budget.message_bytes, budget.messages))
        self.assertFalse(budget.admit(6))
        self.assertTrue(budget.has_room(5))
        self.assertTrue(budget.admit(5))
        self.assertFalse(budget.admit(1))
        self.assertTrue(budget.is_full())
        self.assertTrue(budget.is_high)
        budget.remove(2, 10)
        self.assertEqual((False, False, True), (budget.is_full(), budget.is_high, budget.is_low()))
        budget.remove(1, 11)
        self.assertTrue(budget.admit(7))
        self.assertTrue(budget.admit(4))
        self.assertFalse(budget.admit(7))

    def test_message_of_any_size(self) -> None:
        """A message finds room when no other waits, whatever has been reserved and however large it is."""
        budget = Budget(10, 10)
        self.assertTrue(budget.reserve(5))
        self.assertTrue(budget.admit(5))
        budget.remove(1, 5)
        self.assertTrue(budget.admit(1000))

    def test_nothing_but_bodies(self) -> None:
        """Bodies that hold more than a limit that was lowered leave room for a message when no other waits."""
        budget = Budget(100, 10)
        budget.reserve(50)
        budget.resize(40, 10)
        self.assertEqual((False, True), (budget.is_full(), budget.admit(1)))
        self.assertEqual((True, False), (budget.is_full(), budget.admit(1)))

    def test_messages(self) -> None:
        """Messages are limited by number and by bytes."""
        cases = [
            # max_bytes, max_messages, sizes, how many fit
            (100, 2, [1, 1, 1], 2),
            (10, 5, [5, 5, 1], 2),
            (10, 5, [11], 1),
            (10, 5, [1, 10], 2),
            (10, 5, [6, 6, 5], 2),
            (10, 5, [0, 0, 0], 3),
        ]
        for max_bytes, max_messages, sizes, fitting in cases:
            budget = Budget(max_bytes, max_messages)

            self.assertEqual(fitting, sum(budget.admit(size) for size in sizes))
            self.assertEqual(fitting, budget.messages)

    def test_is_full(self) -> None:
        """It is full when nothing fits any more, by either limit."""
        by_number, by_bytes = Budget(10, 1), Budget(10, 5)

        self.assertFalse(by_number.is_full())
        by_number.admit(1)
        by_bytes.admit(5)
        by_bytes.admit(5)

        self.assertTrue(by_number.is_full())
        self.assertTrue(by_bytes.is_full())

    def test_marks(self) -> None:
        """The high mark lies above three quarters of either limit, the low mark at half of both."""
        cases = [
            # sizes, above high, below low
            ([], False, True),
            ([50], False, True),
            ([25, 26], False, False),
            ([25, 50], False, False),
            ([26, 50], True, False),
            ([26, 50, 1000], True, False),
            ([1000], False, True),
            ([1] * 4, False, True),
            ([1] * 6, False, False),
            ([1] * 7, True, False),
        ]
        for sizes, high, low in cases:
            budget = Budget(100, 8)
            for size in sizes:
                self.assertTrue(budget.admit(size))

            self.assertEqual((high, low), (budget.is_high, budget.is_low()), sizes)
            budget.recount(0, 0)
            self.assertEqual(high, budget.is_high, sizes)

    def test_marks_ignore_bodies(self) -> None:
        """Reserved bytes move neither mark."""
        budget = Budget(100, 8)
        budget.reserve(75, small=True)

        self.assertEqual((False, True), (budget.is_high, budget.is_low()))

    @given(st.lists(st.tuples(st.booleans(), st.integers(0, 40))))
    def test_nothing_leaks(self, steps: list[tuple[bool, int]]) -> None:
        """Whatever is added, it stays within the limits; and when all is given back, nothing is counted."""
        budget = Budget(100, 5)
        reserved, sizes = 0, []
        for is_message, size in steps:
            if is_message and budget.admit(size):
                sizes.append(size)
            elif not is_message and budget.reserve(size):
                reserved += size
            self.assertEqual(reserved + sum(sizes), budget.bytes)
            self.assertTrue(budget.bytes <= 100 or len(sizes) == 1)
            self.assertLessEqual(budget.messages, 5)
        budget.release(reserved)
        budget.remove(len(sizes), sum(sizes))

        self.assertEqual((0, 0, 0), (budget.bytes, budget.message_bytes, budget.messages))

    def test_cap(self) -> None:
        """Below the cap messages and bodies are admitted, and the last may be larger; at the cap none is."""
        budget = Budget(100, 10)
        budget.cap = 20
        self.assertFalse(budget.is_full())
        self.assertTrue(budget.admit(19))
        self.assertEqual((False, True), (budget.is_full(), budget.has_room(40)))
        self.assertTrue(budget.admit(30))
        self.assertEqual((False, False, False), (budget.admit(1), budget.has_room(1, small=True), budget.reserve(1)))
        self.assertTrue(budget.is_full())
        budget.remove(1, 30)
        self.assertEqual((False, True), (budget.is_full(), budget.reserve(1)))
        budget.admit(1)
        self.assertTrue(budget.is_full())
        budget.cap = inf

        self.assertEqual((False, True), (budget.is_full(), budget.has_room(40)))

    def test_cap_and_large_message(self) -> None:
        """The one large message does not count against the cap."""
        budget = Budget(100, 10)
        budget.cap = 20
        self.assertTrue(budget.admit(60))
        self.assertEqual((False, True), (budget.is_full(), budget.has_room(1)))
        self.assertTrue(budget.admit(20))
        self.assertEqual((True, False), (budget.is_full(), budget.has_room(1)))

    def test_resize(self) -> None:
        """Other limits hold from then on, with their marks; what is there stays counted, though it be more."""
        budget = Budget(100, 10)
        for _ in range(5):
            budget.admit(10)
        budget.resize(40, 8)
        self.assertEqual((50, 5), (budget.bytes, budget.messages))
        self.assertEqual((True, True), (budget.is_full(), budget.is_high))
        self.assertFalse(budget.admit(1))
        budget.remove(4, 40)
        self.assertTrue(budget.is_low())
        budget.resize(1000, 1)
        self.assertEqual((True, False), (budget.is_full(), budget.is_low()))
        budget.resize(1000, 100)

        self.assertTrue(budget.reserve(500))

    def test_recount(self) -> None:
        """A message whose size is known better is counted for that, though there is no room."""
        budget = Budget(100, 10)
        budget.admit(60)
        budget.recount(60, 150)
        self.assertEqual((150, 150, 1), (budget.bytes, budget.message_bytes, budget.messages))
        budget.recount(150, 20)
        self.assertEqual((20, 20, 1), (budget.bytes, budget.message_bytes, budget.messages))

    def test_over_low_mark(self) -> None:
        """What has to leave until the producer is resumed, or until there is room where there is less of it."""
        budget = Budget(100, 10)
        self.assertLess(budget.messages_over_low_mark(), 1)
        self.assertLess(budget.bytes_over_low_mark(), 1)
        for _ in range(8):
            budget.admit(10)
        self.assertEqual((3, 30), (budget.messages_over_low_mark(), budget.bytes_over_low_mark()))
        budget.cap = 15

        self.assertEqual((3, 65), (budget.messages_over_low_mark(), budget.bytes_over_low_mark()))


class SizeOfTests(SynchronousTestCase):
    """What a prepared message counts for."""

    def test_bytes(self) -> None:
        """Bytes count for their length."""
        self.assertEqual(3, size_of(b"abc"))

    def test_message(self) -> None:
        """A message counts for at least the text that it holds, wherever it holds it."""
        text = "x" * 1000
        bare = size_of(make_message(""))
        for value in (text, [text], {"a": text}, {text: None}, [[{"a": [text]}]], msgspec.Raw(b"1" * 1000)):
            self.assertGreaterEqual(size_of(make_message("", {"value": value})), bare + 1000)

    def test_names(self) -> None:
        """Names count too."""
        self.assertGreaterEqual(size_of(Message({"x" * 1000: None}, 0)), 1000)

    def test_something_else(self) -> None:
        """Anything else is refused by name."""
        error = self.assertRaises(TypeError, size_of, "text")
        self.assertIn("not str", str(error))


class BrokenProducer(RecordingProducer):
    """Notes what it was told, then fails."""

    def pauseProducing(self) -> None:
        """Fail."""
        super().pauseProducing()
        raise ValueError("pause")

    def resumeProducing(self) -> None:
        """Fail."""
        super().resumeProducing()
        raise ValueError("resume")


class ProducerGateTests(SynchronousTestCase):
    """The gate tells its producer once each time."""

    def test_broken_producer(self) -> None:
        """A producer that fails is logged, and stops nobody."""
        budget = Budget(100, 4)
        gate = ProducerGate(budget, Clock().seconds, 2.0)
        producer = BrokenProducer()
        gate.register(producer, True)
        for _ in range(4):
            budget.admit(1)
        gate.pause_if_high()
        budget.remove(4, 4)
        gate.resume_if_low()

        self.assertEqual(["pause", "resume"], producer.calls)
        self.assertEqual(2, len(self.flushLoggedErrors(ValueError)))

    def test_between_the_marks(self) -> None:
        """Between the marks nothing changes."""
        budget = Budget(100, 8)
        gate = ProducerGate(budget, Clock().seconds, 2.0)
        producer = RecordingProducer()
        gate.register(producer, True)
        for _ in range(8):
            budget.admit(1)
        gate.pause_if_high()
        budget.remove(2, 2)
        gate.resume_if_low()
        gate.pause_if_high()

        self.assertEqual(["pause"], producer.calls)

    def test_open(self) -> None:
        """It can be opened above the marks; what comes then closes it again, and one that is open is left alone."""
        budget = Budget(100, 4)
        gate = ProducerGate(budget, Clock().seconds, 2.0)
        producer = RecordingProducer()
        gate.resume()
        gate.register(producer, True)
        gate.resume()
        for _ in range(4):
            budget.admit(1)
        gate.pause_if_high()
        gate.resume()
        gate.resume_if_low()
        self.assertEqual(["pause", "resume"], producer.calls)
        gate.pause_if_high()

        self.assertEqual(["pause", "resume", "pause"], producer.calls)

    def test_bounded(self) -> None:
        """Under pressure that goes on it pauses for two seconds in all, and again after a second without any."""
        budget, clock = Budget(100, 4), Clock()
        gate = ProducerGate(budget, clock.seconds, 2.0)
        producer = RecordingProducer()
        gate.register(producer, True)
        for _ in range(8):
            for _ in range(4):
                budget.admit(1)
            gate.pause_if_high()
            clock.advance(0.5)
            budget.remove(4, 4)
            gate.resume_if_low()
        self.assertEqual(["pause", "resume"] * 4, producer.calls)
        clock.advance(1.0)
        for _ in range(4):
            budget.admit(1)
        gate.pause_if_high()
        self.assertEqual(9, len(producer.calls))

    def test_pressure(self) -> None:
        """A time of pressure lasts while pauses, and what comes between them, are less than a second apart."""
        for resumed, again, calls in (
            (1.5, 2.2, ["pause", "resume"]),  # two seconds of the same pressure are over
            (1.5, 2.5, ["pause", "resume", "pause"]),  # a second without any has passed
            (0.5, 1.4, ["pause", "resume", "pause"]),
        ):
            budget, clock = Budget(100, 4), Clock()
            gate = ProducerGate(budget, clock.seconds, 2.0)
            producer = RecordingProducer()
            gate.register(producer, True)
            for _ in range(4):
                budget.admit(1)
            gate.pause_if_high()
            clock.advance(resumed)
            gate.resume()
            clock.advance(again - resumed)
            gate.pause_if_high()

            self.assertEqual(calls, producer.calls, again)

    def test_others(self) -> None:
        """A producer that comes after one that was paused is paused itself, and not resumed without that."""
        for end in ("unregister", "stop"):
            budget = Budget(100, 4)
            gate = ProducerGate(budget, Clock().seconds, 2.0)
            first, second = RecordingProducer(), RecordingProducer()
            gate.register(first, True)
            for _ in range(4):
                budget.admit(1)
            gate.pause_if_high()
            getattr(gate, end)()
            gate.register(second, True)
            self.assertEqual(["pause"], second.calls, end)
            getattr(gate, end)()
            budget.remove(4, 4)
            third = RecordingProducer()
            gate.register(third, True)
            gate.resume_if_low()

            self.assertEqual([], third.calls, end)

    def test_stop(self) -> None:
        """The producer is told once that nothing more is taken, and hears nothing after that."""
        budget = Budget(100, 4)
        gate = ProducerGate(budget, Clock().seconds, 2.0)
        producer = RecordingProducer()
        gate.stop()
        gate.register(producer, True)
        gate.stop()
        gate.stop()
        for _ in range(4):
            budget.admit(1)
        gate.pause_if_high()

        self.assertEqual(["stop"], producer.calls)


class DrainRateTests(SynchronousTestCase):
    """The rate is taken from tick to tick, whenever there is something to do."""

    def flowing(self, messages: int = 50, size: int = 5_000) -> DrainRate:
        """Let so much leave each half second, for ten of them."""
        rate = DrainRate(100.0)
        for number in range(1, 21):
            rate.left(messages, size)
            rate.tick(100 + number / 2, waiting=1)
        return rate

    def test_rate(self) -> None:
        """The slower of bytes and messages decides; seconds are whole, from 1 to 60."""
        rate = self.flowing()
        for messages, size, seconds in (
            (0, 0, 1),
            (-5, -5, 1),
            (10, 0, 1),
            (150, 0, 2),
            (0, 25_000, 3),
            (150, 25_000, 3),
            (500, 25_000, 5),
            (10**9, 0, 60),
        ):
            self.assertEqual(seconds, rate.seconds_for(110.0, messages, size), (messages, size))

    def test_change(self) -> None:
        """The rate follows within seconds."""
        rate = self.flowing()
        for number in range(1, 11):
            rate.left(5, 500)
            rate.tick(110 + number / 2, waiting=1)

        self.assertIn(rate.seconds_for(115.0, 100, 0), (6, 7, 8, 9, 10))

    def test_idle(self) -> None:
        """Time in which there is nothing to do says nothing about the rate."""
        rate = self.flowing()
        for number in range(1, 100):
            rate.tick(110 + number, waiting=0)

        self.assertEqual(2, rate.seconds_for(209.0, 150, 0))

    def test_nothing_drains(self) -> None:
        """When nothing leaves, it is guessed to last as long again as it has lasted."""
        rate = self.flowing()
        for number, seconds in ((1, 1), (5, 5), (20, 20), (300, 60)):
            rate.tick(110.0 + number, waiting=10)

            self.assertEqual(seconds, rate.seconds_for(110.0 + number, 10, 0))
        self.assertEqual(1, rate.seconds_for(410.0, 0, 0))

    def test_first(self) -> None:
        """The first tick alone says how fast it is, for want of others."""
        rate = DrainRate(100.0)
        rate.left(10, 1000)
        rate.tick(101.0, waiting=1)
        self.assertEqual((10, 20), (rate.seconds_for(101.0, 100, 0), rate.seconds_for(101.0, 0, 20_000)))

    def test_nothing_yet(self) -> None:
        """Before the first tick it is a second, and a tick that comes twice harms nothing."""
        rate = DrainRate(100.0)
        self.assertEqual(1, rate.seconds_for(100.0, 10, 10))
        rate.tick(100.0, waiting=5)

        self.assertEqual(1, rate.seconds_for(100.0, 10, 10))


class RetryAfterTests(SynchronousTestCase):
    """The chain tells seconds by what has left it, and what has to leave until senders are read from again."""

    def test_draining(self) -> None:
        """A full queue that drains is expected to be half full by then."""
        rig = Rig(LinesObserver(lambda message: b"x"), max_messages=100, max_batch_bytes=2)
        self.assertEqual(1, rig.chain.retry_after())
        for _ in range(20):
            rig.write(*"12345")
            rig.turns()
            rig.wait(0.5)
        rig.threads[0].hold()
        rig.write(*("x" * 100))

        self.assertEqual(5, rig.chain.retry_after())

    def test_standing(self) -> None:
        """A queue that does not drain at all says so for longer and longer."""
        rig = Rig(LinesObserver(lambda message: b"x"), max_messages=4)
        rig.threads[0].hold()
        rig.write(*"1234")
        rig.turns()
        told = []
        for _ in range(5):
            rig.wait(4)
            told.append(rig.chain.retry_after())

        self.assertEqual([4, 8, 12, 16, 20], told)
