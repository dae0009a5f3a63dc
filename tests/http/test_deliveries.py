"""
Guarded sources with a genuine idempotency window: whatever senders and observers do, no claim is left behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
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


class DeliveryMachine(RuleBasedStateMachine):
    """
    Senders of a few deliveries, of which some leave, and observers that are slow, full or fail.
    """

    def __init__(self) -> None:
        super().__init__()
        self.wire = GuardedWire(sender_named("github"), window=WINDOW, rules={"keep_unparsed": False})
        ring = KeyRing(map_memory(None, ring_size(100)), 100)
        ring.epoch = 1_700_000_000.0
        self.wire.clock.advance(1000.0)
        self.window = DeliveryWindow(ring, self.wire.clock.seconds, _Turns(self.wire), ANSWER_TIME)
        self.wire.resource._window = self.window
        self.waiting: list[tuple[bytes, Sender]] = []
        self.stored: set[bytes] = set()
        self.left: set[bytes] = set()  # that may be stored without anybody being told

    @rule(name=st.sampled_from([b"a", b"b"]), kind=st.sampled_from(["small", "large", "bad"]))
    def send(self, name: bytes, kind: str) -> None:
        body = {"small": b"{}", "large": b'{"a":"%s"}' % (b"x" * 2 * DIRECT), "bad": b"{"}[kind]
        sender = self.wire.connect()
        sender.send(post(body, b"/in", b"X-GitHub-Event: push\r\nX-GitHub-Delivery: %s\r\n" % name))
        self.waiting.append((name + kind.encode(), sender))
        self.look()

    @precondition(lambda self: self.waiting)
    @rule(number=st.integers(0, 9))
    def leave(self, number: int) -> None:
        name, sender = self.waiting.pop(number % len(self.waiting))
        sender.leave()
        self.left.add(name)

    @rule()
    def hold(self) -> None:
        self.wire.consumer.hold()

    @rule(fails=st.booleans())
    def acknowledge(self, fails: bool) -> None:
        self.wire.consumer.acknowledge_all(NotStored("disk full") if fails else None)
        self.look()

    @rule(is_full=st.booleans())
    def fill(self, is_full: bool) -> None:
        self.wire.consumer.is_full = is_full

    @rule(seconds=st.sampled_from([0.5, 5.0, 40.0]))
    def pass_time(self, seconds: float) -> None:
        while seconds > 0:
            self.wire.advance(0.5)
            self.window.tick()
            seconds -= 0.5
        self.look()

    def look(self) -> None:
        """Look at all answers."""
        self.wire.settle()
        for each in list(self.waiting):
            name, sender = each
            for answer in sender.responses():
                self.waiting.remove(each)
                assert answer.status in (200, 400, 503), answer
                if b"may still be" in answer.body:
                    self.left.add(name)
                if answer.body == STORED:
                    assert name not in self.stored, "a duplicate"
                    self.stored.add(name)
                elif answer.body == KNOWN:
                    assert name in self.stored or name in self.left, "a loss"

    def teardown(self) -> None:
        self.wire.consumer.is_full = False
        self.wire.consumer.acknowledge_all()
        self.pass_time(2 * ANSWER_TIME)
        assert not self.waiting, "all have an answer"
        assert not (self.window._claims or self.window._lines), "no claim is left"
        assert self.wire.consumer.budget.bytes == 0


class DeliveryMachineTests(SynchronousTestCase):
    """
    Tests for L{webhookrx.http.guarded_resource} with L{webhookrx.idempotency.window}.
    """

    def test_model(self) -> None:
        """Each delivery is stored once, whoever leaves and whatever fails; each sender that stays gets an answer."""
        run_state_machine_as_test(DeliveryMachine)
