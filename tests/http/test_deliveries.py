"""
Guarded sources with a genuine idempotency window: whatever senders and observers do, no claim is left behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.http.guarded_wire import GuardedWire, sender_named
from tests.http.wire import Sender, post
from webhookrx.errors import NotStored
from webhookrx.http.resources import DIRECT
from webhookrx.idempotency.key_ring import KeyRing, ring_size
from webhookrx.idempotency.window import DeliveryWindow
from webhookrx.shared_memory import map_memory

STORED, KNOWN = b'{"status":"received"}', b'{"status":"received","duplicate":true}'
WINDOW = 10_000.0
ANSWER_TIME = 30.0


class _Turns:
    """The clock of a wire as a reactor."""

    def __init__(self, wire: GuardedWire) -> None:
        self.callLater = wire.clock.callLater

    def callFromThread(self, call: Callable[..., object], *args: Any) -> None:
        """See C{IReactorFromThreads.callFromThread}."""
        self.callLater(0, call, *args)


class Story:
    """
    Senders of a few deliveries, of which some leave, and observers that are slow, full or fail.
    """

    def __init__(self) -> None:
        self.wire = GuardedWire(sender_named("github"), window=WINDOW, rules={"keep_unparsed": False})
        ring = KeyRing(map_memory(None, ring_size(100)), 100)
        ring.epoch = 1_700_000_000.0
        self.wire.clock.advance(1000.0)
        self.window = DeliveryWindow(ring, self.wire.clock.seconds, _Turns(self.wire), ANSWER_TIME)
        self.wire.resource._window = self.window
        self.wire.consumer.hold()
        self.waiting: list[tuple[bytes, Sender]] = []
        self.stored: set[bytes] = set()
        self.left: set[bytes] = set()  # that may be stored without anybody being told

    def send(self, number: int) -> None:
        """A sender sends one of a few deliveries."""
        name, body = BODIES[number % len(BODIES)]
        sender = self.wire.connect()
        sender.send(post(body, b"/in", b"X-GitHub-Event: push\r\nX-GitHub-Delivery: %s\r\n" % name))
        self.waiting.append((name + body[-2:], sender))

    def leave(self, number: int) -> None:
        """One of those that wait leaves."""
        if self.waiting:
            name, sender = self.waiting.pop(number % len(self.waiting))
            sender.leave()
            self.left.add(name)

    def store(self, number: int) -> None:
        """The observers store what waits, and then stand still again, or don't."""
        self._acknowledge(None, number)

    def fail(self, number: int) -> None:
        """The observers fail, and then stand still again, or don't."""
        self._acknowledge(NotStored("disk full"), number)

    def _acknowledge(self, failure: NotStored | None, number: int) -> None:
        self.wire.consumer.acknowledge_all(failure)
        if number % 3:
            self.wire.consumer.hold()

    def fill(self, number: int) -> None:
        """The queue is full, or no longer."""
        self.wire.consumer.is_full = bool(number % 2)

    def pass_time(self, number: int) -> None:
        """Time passes, up to twice as long as an answer may take."""
        for _ in range((1, 10, 4 * int(ANSWER_TIME))[number % 3]):
            self.wire.advance(0.5)
            self.window.tick()

    def look(self, case: SynchronousTestCase) -> None:
        """Look at all answers."""
        self.wire.settle()
        for each in list(self.waiting):
            name, sender = each
            for answer in sender.responses():
                self.waiting.remove(each)
                case.assertIn(answer.status, (200, 400, 503))
                if b"may still be" in answer.body:
                    self.left.add(name)
                if answer.body == STORED:
                    case.assertNotIn(name, self.stored, "a duplicate")
                    self.stored.add(name)
                elif answer.body == KNOWN:
                    case.assertIn(name, self.stored | self.left, "a loss")

    def end(self, case: SynchronousTestCase) -> None:
        """All is well again; look at what is left."""
        self.fill(0)
        self.store(0)
        self.pass_time(2)
        self.look(case)
        case.assertEqual([], self.waiting, "all have an answer")
        case.assertEqual((set(), {}), (self.window._claims, self.window._lines), "no claim is left")
        case.assertEqual(0, self.wire.consumer.budget.bytes)


#: Names and bodies of deliveries: most are one and the same.
BODIES = [(b"a", b"{}"), (b"a", b"{}"), (b"b", b"{}"), (b"a", b'{"a":"%s"}' % (b"x" * 2 * DIRECT)), (b"a", b"{")]

STEPS = [Story.send] * 4 + [Story.leave] * 2 + [Story.fail] * 2 + [Story.store, Story.fill, Story.pass_time]


class DeliveryTests(SynchronousTestCase):
    """
    Tests for L{webhookrx.http.guarded_resource} with L{webhookrx.idempotency.window}.
    """

    @given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 11)), min_size=10, max_size=60))
    def test_story(self, steps: list[tuple[Callable[[Story, int], None], int]]) -> None:
        """Each delivery is stored once, whoever leaves and whatever fails; each sender that stays gets an answer."""
        story = Story()
        for step, number in steps:
            step(story, number)
            story.look(self)
        story.end(self)
