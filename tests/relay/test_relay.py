"""Tests of webhookrx.relay.relay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from tests.relay.fake_broker import FakeBroker, FakeConsumer
from webhookrx.errors import Rejected, Unavailable
from webhookrx.interfaces import IWaitingObserver, Prepared, Wants
from webhookrx.message.encoders import encode_object
from webhookrx.message.message import Message
from webhookrx.operations.counters import Counters
from webhookrx.relay.consumer import KEEP_ALIVE, Record
from webhookrx.relay.dead_letters import PAIR
from webhookrx.relay.part import FIRST_PAUSE, RelayPart
from webhookrx.relay.relay import DEAD, LOST, RECORDS, REDELIVERED, STORED, TEXTS, Relay
from webhookrx.relay.target import RelayTarget
from webhookrx.testing import RECEIVED, make_message

T = TypeVar("T")


class Inline:
    """Calls that are back at once; C{slow} times the caller does something else meanwhile."""

    def __init__(self) -> None:
        self.busy = 0.0
        self.slow = 0
        self.stopped = False

    def call(self, work: Callable[[], T], meanwhile: Callable[[], None]) -> T:
        for _ in range(self.slow):
            meanwhile()
        return work()

    def stop(self) -> None:
        self.stopped = True


@implementer(IWaitingObserver)
class Memory:
    """
    An observer that keeps messages in memory.

    @ivar answer: returns what C{store} returns for a text.
    """

    promise = "durable"

    def __init__(self, spec: str = "memory") -> None:
        self.spec = spec
        self.stored: list[Message] = []
        self.batches: list[list[str]] = []
        self.calls: list[str] = []
        self.answer: Callable[[str], object] = lambda _: None
        self.returned: object = None

    def open(self) -> None:
        self.calls.append("open")

    def prepare(self, message: Message) -> Prepared:
        if message.values["MESSAGE"] == "bad":
            raise ValueError("can't")
        return message

    def store(self, batch: Sequence[Prepared]) -> Sequence[Exception | None] | None:
        messages = [each for each in batch if isinstance(each, Message)]
        self.batches.append([str(each.values["MESSAGE"]) for each in messages])
        outcomes = [self.answer(str(each.values["MESSAGE"])) for each in messages]
        if not outcomes:
            return None
        if isinstance(outcomes[0], BaseException) and outcomes == outcomes[:1] * len(outcomes):
            raise outcomes[0]
        self.stored += [each for each, outcome in zip(messages, outcomes, strict=True) if outcome is None]
        return self.returned if self.returned is not None else outcomes  # type: ignore[return-value]

    def reopen(self) -> None:
        self.calls.append("reopen")

    def hurry(self) -> None:
        self.calls.append("hurry")

    def close(self) -> None:
        self.calls.append("close")

    @property
    def texts(self) -> list[object]:
        """The texts of what is stored."""
        return [message.values["MESSAGE"] for message in self.stored]


class RelayCase(SynchronousTestCase):
    """A relay between a fake broker and observers in memory; pauses are as long as their bounds."""

    with_dead = True

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(1000)
        self.broker = FakeBroker()
        self.memory, self.dead = Memory(), Memory("dead")
        self.counters = Counters()
        self.consumer = FakeConsumer(self.broker, "g")
        self.beside, self.dead_beside = Inline(), Inline()
        self.relay = self.make_relay()

    def make_relay(self) -> Relay:
        """Make the relay."""
        target = self.target(self.memory, self.beside)
        dead = self.target(self.dead, self.dead_beside) if self.with_dead else None
        return Relay(self.consumer, target, dead, self.counters, lambda: 1.0, self.clock.seconds, lambda: RECEIVED)

    def target(self, observer: Memory, beside: Inline) -> RelayTarget:
        """Make a target of an observer."""
        part = RelayPart(
            f"Observer {observer.spec}", "take messages", "takes messages", lambda: 1.0, self.clock.seconds
        )
        return RelayTarget(observer, beside, part, self.counters, self.clock.seconds)

    def publish(self, *texts: str) -> None:
        """Publish lines with these texts."""
        for text in texts:
            self.broker.publish(encode_object(make_message(text, {"RCPTID": f"id-{text}"})))

    def step(self, times: int = 1) -> float:
        """Step the relay, and return its last pause."""
        for _ in range(times):
            pause = self.relay.step()
        return pause

    def go(self, seconds: float = 0.0) -> None:
        """Step it until nothing is left to do, and go on so for a time."""
        end = self.clock.seconds() + seconds
        for _ in range(10_000):
            pause = self.relay.step()
            if pause == 0.0 and (self.relay.held or (self.broker.waiting("g") and self.broker.away is None)):
                continue
            if self.clock.seconds() >= end:
                return
            self.clock.advance(min(pause or KEEP_ALIVE, end - self.clock.seconds()))
        self.fail("it does not come to rest")

    def count(self, name: str) -> int:
        """Return a count."""
        return self.counters.get(name)


class MovingTests(RelayCase):
    """Records that are stored."""

    def test_stored_then_settled(self) -> None:
        """What the observer has stored is settled, and not before."""
        self.publish("a", "b")

        self.step(2)
        self.assertEqual(["a", "b"], self.memory.texts)
        self.assertEqual([], self.broker.settled("g"))
        self.step()

        self.assertEqual([0, 1], self.broker.settled("g"))
        self.assertEqual((2, 2, 0), (self.count(RECORDS), self.count(STORED), self.relay.held))

    def test_same_message(self) -> None:
        """A line is the same message again; another value is a message with its place as id."""
        self.publish("a")
        self.broker.publish(b"plain", received=RECEIVED)
        self.go()

        first, second = self.memory.stored
        self.assertEqual("id-a", first.values["RCPTID"])
        self.assertEqual(
            ("plain", f"topic/0/1/{RECEIVED // 10**6}"), (second.values["MESSAGE"], second.values["RCPTID"])
        )
        self.assertEqual(1, self.count(TEXTS))

    def test_one_batch_at_a_time(self) -> None:
        """It holds one batch, of a thousand records at most, and fetches nothing while that is not stored."""
        self.publish(*map(str, range(2500)))
        self.memory.answer = lambda _: Unavailable("away")
        for _ in range(50):
            self.clock.advance(self.step())

        self.assertEqual(1000, self.relay.held)
        self.assertEqual([1000], list({len(batch) for batch in self.memory.batches}))
        self.memory.answer = lambda _: None
        self.go(60)

        self.assertEqual(list(map(str, range(2500))), self.memory.texts)
        self.assertEqual(2500, len(self.broker.settled("g")))

    def test_batch_is_bounded_in_bytes(self) -> None:
        """A batch has about a mebibyte; a larger record is a batch of its own."""
        for size in (700_000, 700_000, 3_000_000, 10):
            self.broker.publish(b"x" * size)
        self.go()

        self.assertEqual(
            [[700_000], [700_000], [3_000_000], [10]], [list(map(len, each)) for each in self.memory.batches]
        )

    def test_wanted_batches(self) -> None:
        """An observer that wants larger batches gets them, and waits for that at most as long as it says."""
        self.memory.wants = Wants(4, 10_000_000, 5.0)  # type: ignore[attr-defined]
        self.relay = self.make_relay()
        self.publish("a")
        self.step()
        self.publish("b", "c", "d", "e")
        self.step(2)
        self.assertEqual([["a", "b", "c", "d"]], self.memory.batches)
        self.step(3)
        self.assertEqual(1, len(self.memory.batches))
        self.clock.advance(5)
        self.step(2)

        self.assertEqual([["a", "b", "c", "d"], ["e"]], self.memory.batches)

    def test_small_answers(self) -> None:
        """A broker that gives many records, but few at a time, is asked for more before they are stored; else not."""
        self.publish(*map(str, range(1060)))
        fetch = self.consumer.fetch
        self.consumer.fetch = lambda messages, size, seconds: fetch(min(messages, 100), size, seconds)  # type: ignore[method-assign]
        self.go()

        self.assertEqual([1000, 60], [len(batch) for batch in self.memory.batches])

    def test_redelivered(self) -> None:
        """What the broker delivers again is counted."""
        self.publish("a")
        self.step()
        self.broker.let_go(self.consumer)
        self.step(3)
        self.step(3)

        self.assertEqual((1, 1), (self.count(REDELIVERED), self.count(LOST)))
        self.assertEqual(["a"], self.memory.texts)

    def test_lag(self) -> None:
        """It knows what waits in the broker."""
        self.publish("a", "b")
        self.step()
        self.assertEqual(2, self.relay.lag)
        self.go()
        self.assertEqual(0, self.relay.lag)


class AwayTests(RelayCase):
    """An observer or broker that is away."""

    def test_observer_away(self) -> None:
        """While the observer is away nothing is settled, and the consumer is kept alive at least once a second."""
        self.publish("a")
        self.memory.answer = lambda _: Unavailable("away")
        self.step(2)
        for _ in range(100):
            before = len(self.broker.calls)
            pause = self.step()
            self.assertLessEqual(pause, KEEP_ALIVE)
            if pause:
                self.assertEqual(["keep_alive"], self.broker.calls[before:])
            self.clock.advance(pause)

        self.assertEqual([], self.broker.settled("g"))
        self.assertEqual("away", self.relay.targets[0].part.away)
        self.memory.answer = lambda _: None
        self.go(60)

        self.assertEqual([0], self.broker.settled("g"))
        self.assertIsNone(self.relay.targets[0].part.away)
        warnings = self.flush_log()
        self.assertEqual("Observer memory does not take messages: away", warnings[0])
        self.assertEqual("Observer memory takes messages again", warnings[-1])

    def flush_log(self) -> list[str]:
        """Return the lines of the log."""
        return [text.format(**event) for event in self.events if (text := event.get("log_format"))]

    def setUp(self) -> None:
        """Collect the events of the log."""
        super().setUp()
        from twisted.logger import globalLogPublisher

        self.events: list[dict[str, object]] = []
        globalLogPublisher.addObserver(self.events.append)  # type: ignore[arg-type]
        self.addCleanup(globalLogPublisher.removeObserver, self.events.append)  # type: ignore[arg-type]

    def test_slow_store(self) -> None:
        """The consumer is kept alive while a call of the observer is under way."""
        self.publish("a")
        self.beside.slow = 3
        self.step(2)

        self.assertEqual(["keep_alive"] * 3, self.broker.calls)

    def test_pauses_grow(self) -> None:
        """Tries come further and further apart, up to half a minute, and after a part is stored close again."""
        self.publish("a", "b")
        self.memory.answer = lambda _: Unavailable("away")
        times = []
        for _ in range(2000):
            tries = len(self.memory.batches)
            pause = self.step()
            if len(self.memory.batches) > tries:
                times.append(self.clock.seconds())
            self.clock.advance(pause)
        gaps = [round(after - before, 3) for before, after in pairwise(times)]

        self.assertEqual([FIRST_PAUSE * 2**n for n in range(9)], gaps[:9])
        self.assertEqual({30.0}, set(gaps[9:]))
        self.memory.answer = lambda text: None if text == "a" else Unavailable("away")
        self.clock.advance(30)
        self.step()
        self.assertEqual(0.1, round(self.wait_for_try(), 3))

    def wait_for_try(self) -> float:
        """Return the seconds until the observer is offered something."""
        began, tries = self.clock.seconds(), len(self.memory.batches)
        while len(self.memory.batches) == tries:
            self.clock.advance(self.step())
        return self.clock.seconds() - began

    def test_retry_after(self) -> None:
        """A pause that the observer asks for is kept."""
        self.publish("a")
        self.memory.answer = lambda _: Unavailable("busy", retry_after=20.0)
        self.step(2)
        self.assertEqual(20.0, self.wait_for_try())

    def test_broken_contract(self) -> None:
        """An observer that answers nonsense has stored nothing."""
        self.publish("a", "b")
        for nonsense in ([None], [None] * 3, 7, "ab"):
            self.memory.returned = nonsense
            self.go(1)
            self.assertEqual([], self.broker.settled("g"), nonsense)
        self.memory.returned = [None, "no"]
        self.go(40)
        self.assertEqual([0], self.broker.settled("g"))

    def test_partly_stored(self) -> None:
        """What is stored is settled at once, and only the rest is offered again."""
        self.publish("a", "b", "c")
        self.memory.answer = lambda text: Unavailable("later") if text == "b" else None
        self.step(3)
        self.assertEqual([0, 2], self.broker.settled("g"))
        self.memory.answer = lambda _: None
        self.go(10)

        self.assertEqual([["a", "b", "c"], ["b"]], self.memory.batches)
        self.assertEqual([0, 1, 2], self.broker.settled("g"))

    def test_broker_away(self) -> None:
        """A broker that does not answer is asked again, less and less often; its records come once it is back."""
        self.publish("a")
        self.broker.away = "no route"
        self.go(100)
        self.assertEqual("no route", self.relay.broker.away)
        self.broker.away = None
        self.go(60)

        self.assertEqual(["a"], self.memory.texts)
        self.assertIsNone(self.relay.broker.away)
        lines = self.flush_log()
        self.assertEqual("Broker fake:fake://b/topic does not deliver: no route", lines[0])
        self.assertLess(len(lines), 5)

    def test_not_settled(self) -> None:
        """What could not be settled is settled later, without storing it again; nothing else is fetched until then."""
        self.publish("a", "b")
        self.step(2)
        self.broker.away = "gone"
        self.publish("c")
        self.go(20)
        self.assertEqual(2, self.relay.held)
        self.broker.away = None
        self.go(60)

        self.assertEqual([["a", "b"], ["c"]], self.memory.batches)
        self.assertEqual([0, 1, 2], self.broker.settled("g"))

    def test_lost_before_stored(self) -> None:
        """What another relay has got meanwhile is dropped, and not stored here."""
        self.publish("a")
        self.memory.answer = lambda _: Unavailable("away")
        self.step(2)
        self.broker.let_go(self.consumer)
        other = FakeConsumer(self.broker, "g")
        other.fetch(10, 1000, 0)
        self.memory.answer = lambda _: None
        for _ in range(5):
            self.clock.advance(self.step())

        self.assertEqual([], self.memory.texts)
        self.assertEqual((0, 1), (self.relay.held, self.count(LOST)))
        self.assertIsNone(self.relay.targets[0].part.away)

    def test_lost_after_stored(self) -> None:
        """So is what was stored, and could not be settled before it was lost."""
        self.publish("a")
        self.step(2)
        self.broker.away = "gone"
        self.broker.let_go(self.consumer)
        self.go(1)

        self.assertEqual(0, self.relay.held)

    def test_mistake_of_ours(self) -> None:
        """A consumer that raises anything else does not end the relay."""

        def fail(record: Record) -> bool:
            raise SystemExit("mistake")

        self.publish("a")
        self.step()
        self.consumer.is_ours = fail  # type: ignore[method-assign]
        self.go(5)
        del self.consumer.is_ours  # type: ignore[method-assign]
        self.go(60)

        self.assertEqual(["a"], self.memory.texts)
        self.assertTrue(self.flushLoggedErrors(SystemExit))


class DeadLetterTests(RelayCase):
    """Messages that are refused for good."""

    def setUp(self) -> None:
        super().setUp()
        self.memory.answer = lambda text: Rejected("too odd") if text == "odd" else None

    def test_dead_letter(self) -> None:
        """It goes to the observer of dead letters, with the reason, and is settled once that has stored it."""
        self.publish("a", "odd", "c")
        self.dead.answer = lambda _: Unavailable("full")
        self.step(3)
        self.assertEqual(["a", "c"], self.memory.texts)
        self.assertEqual([0, 2], self.broker.settled("g"))
        self.assertEqual("full", self.relay.targets[1].part.away)
        self.dead.answer = lambda _: None
        self.go(10)

        (letter,) = self.dead.stored
        self.assertEqual([0, 1, 2], self.broker.settled("g"))
        self.assertEqual(("odd", "id-odd"), (letter.values["MESSAGE"], letter.values["RCPTID"]))
        self.assertEqual({"reason": "too odd", "observer": "memory", "origin": "topic/0/1"}, letter.values[PAIR])
        self.assertEqual([["a", "odd", "c"]], self.memory.batches)
        self.assertEqual((2, 1), (self.count(STORED), self.count(DEAD)))

    def test_router_form(self) -> None:
        """A message of the router form keeps its form: the reason is below meta."""
        log = {"body": "x", "observed_time_unix_nano": RECEIVED}
        self.memory.answer = lambda _: Rejected("no")
        self.memory.store = lambda batch: [Rejected("no")]  # type: ignore[method-assign,assignment]
        self.dead.prepare = lambda message: message  # type: ignore[method-assign]
        self.dead.store = lambda batch: self.dead.stored.extend(batch)  # type: ignore[method-assign,arg-type,func-returns-value,return-value]
        self.memory.prepare = lambda message: message  # type: ignore[method-assign]
        self.broker.publish(encode_object(Message({"log": log, "meta": {"id": "i"}}, RECEIVED)))  # type: ignore[dict-item]
        self.go()

        (letter,) = self.dead.stored
        self.assertEqual({"log", "meta"}, set(letter.values))
        self.assertEqual(["id", "dead_letter"], list(letter.values["meta"]))  # type: ignore[arg-type]

    def test_refused_there_too(self) -> None:
        """What the observer of dead letters refuses as well waits for a person, who is told which record it is."""
        self.publish("a", "odd")
        self.dead.answer = lambda _: Rejected("nor I")
        self.go(100)

        self.assertEqual([0], self.broker.settled("g"))
        told = "the dead letter of record topic/0/1 is refused: nor I"
        self.assertEqual(told, self.relay.targets[1].part.away)

    def test_refused_there_among_others(self) -> None:
        """The record that is refused there is named, though others are only not stored yet."""
        self.memory.answer = lambda _: Rejected("too odd")
        self.publish("odd", "odder")
        self.dead.answer = lambda text: Rejected("nor I") if text == "odder" else Unavailable("busy")
        self.go(100)

        self.assertEqual([], self.broker.settled("g"))
        self.assertIn("the dead letter of record topic/0/1 is refused: nor I", str(self.relay.targets[1].part.away))

    def test_not_encoded(self) -> None:
        """A message that the observer can't encode becomes a dead letter."""
        self.publish("a", "bad")
        self.dead.prepare = lambda message: message  # type: ignore[method-assign]
        self.go()

        self.assertEqual([0, 1], self.broker.settled("g"))
        self.assertEqual("it can't be encoded: can't", self.dead.stored[0].values[PAIR]["reason"])  # type: ignore[index,call-overload]

    def test_not_encoded_there_either(self) -> None:
        """One that neither can encode waits for a person."""
        self.publish("a", "bad")
        self.go(100)

        self.assertEqual([0], self.broker.settled("g"))
        told = "the dead letter of record topic/0/1 is refused: ValueError: can't"
        self.assertEqual(told, self.relay.targets[0].part.away)

    def test_long_reason(self) -> None:
        """A reason is cut off after 300 characters."""
        self.publish("odd")
        self.memory.answer = lambda _: Rejected("x" * 1000)
        self.go()

        self.assertEqual("x" * 300, self.dead.stored[0].values[PAIR]["reason"])  # type: ignore[index,call-overload]


class WithoutDeadTests(RelayCase):
    """A relay without an observer of dead letters: its observer is a spool, which keeps them itself."""

    with_dead = False

    def test_refused(self) -> None:
        """Should it refuse something nevertheless, that waits, and is not settled."""
        self.publish("a", "bad")
        self.memory.answer = lambda _: Rejected("no")
        self.go(100)

        self.assertEqual([], self.broker.settled("g"))
        told = "the message of record topic/0/0 is refused: no"
        self.assertEqual(told, self.relay.targets[0].part.away)
        self.memory.answer = lambda _: None
        self.go(60)
        self.assertEqual([0], self.broker.settled("g"))


class LifeTests(RelayCase):
    """Reopening and the end."""

    def test_reopen(self) -> None:
        """Consumer and observers are reopened before the next batch, whatever one of them raises."""
        self.relay.reopen()

        def fail() -> None:
            raise ValueError("no")

        self.consumer.reopen = fail  # type: ignore[method-assign]
        self.memory.reopen = fail  # type: ignore[method-assign]
        self.step()

        self.assertEqual(["reopen"], self.dead.calls)

    def test_finished(self) -> None:
        """At the end it stores and settles what it holds, and fetches nothing more."""
        self.memory.wants = Wants(10, 10_000_000, 500.0)  # type: ignore[attr-defined]
        self.relay = self.make_relay()
        self.publish("a")
        self.step()
        self.relay.finish()
        self.publish("b")
        self.assertFalse(self.relay.is_finished)
        for _ in range(10):
            if self.relay.is_finished:
                break
            self.step()
        self.relay.close()

        self.assertEqual([0], self.broker.settled("g"))
        self.assertEqual((["hurry", "close"], ["hurry", "close"]), (self.memory.calls, self.dead.calls))
        self.assertEqual("close", self.broker.calls[-1])
        self.assertTrue(self.beside.stopped and self.dead_beside.stopped)

    def test_finished_while_away(self) -> None:
        """It does not wait at the end for an observer that is away: other relays get what it holds."""
        self.publish("a")
        self.memory.answer = lambda _: Unavailable("away")
        self.step(2)
        self.relay.finish()

        self.assertTrue(self.relay.is_finished)
        self.relay.close()
        self.assertEqual(1, len(FakeConsumer(self.broker, "g").fetch(10, 100, 0)))

    def test_close_fails(self) -> None:
        """Whatever can't be closed, everything else is."""

        def fail() -> None:
            raise ValueError("no")

        self.memory.close = self.consumer.close = fail  # type: ignore[method-assign]
        self.relay.finish()
        self.relay.close()

        self.assertEqual(["hurry", "close"], self.dead.calls)
