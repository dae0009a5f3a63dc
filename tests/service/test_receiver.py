"""
Tests for L{webhookrx.service.receiver}: the ids of messages, and what is joined. The rest is in C{test_service} and
C{tests/system}.
"""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.transport.stepped import World, drain
from webhookrx.service.receiver import LocalReceiver, MessageIds
from webhookrx.settings import Listener, Observer, Settings, Source
from webhookrx.transport.immediate_write import ImmediateWriteServer


class TurnTests(SynchronousTestCase):
    """What the chain and the connections have in common."""

    def test_turn_end(self) -> None:
        """The end of a turn of connections is when the chain hands over their messages."""
        world = World()
        self.addCleanup(world.close)
        source = Source(listeners=(Listener("8181", "tcp:8181"),))
        receiver: Any = LocalReceiver(Settings((source,), (Observer("stdout", "stdout"),)), world.reactor)
        world.poll = receiver._listeners._poll
        done: list[bytes] = []
        ours, theirs = world.pair()
        _, recorder = world.serve(ImmediateWriteServer, ours)
        recorder.on_data = lambda data: receiver.chain._at_turn_end(lambda: done.append(data))
        theirs.send(b"x")
        world.poll.doRead()
        self.assertEqual(([b"x"], b""), (done, drain(theirs)))
        self.assertFalse(receiver.chain._at_turn_end(lambda: None))


class MessageIdsTests(SynchronousTestCase):
    """Times and numbers of messages."""

    def test_ids(self) -> None:
        """Ids are in the order of receipt, also when the clock is set back; times are the clock's."""
        times = iter([5_000_000, 4_000_000])
        receipts = MessageIds(lambda: next(times), "start")
        first, second = receipts(), receipts()
        self.assertEqual((5_000_000, 4_000_000), (first.received, second.received))
        self.assertEqual(("start-0000000001", "start-0000000002"), (first.id, second.id))

    def test_any_start(self) -> None:
        """Any text can begin an id."""
        self.assertEqual("100%-%s-0000000001", MessageIds(lambda: 1, "100%-%s")().id)

    def test_processes(self) -> None:
        """Two processes that start in the same moment give different ids."""
        self.assertNotEqual(MessageIds(lambda: 1)().id, MessageIds(lambda: 1)().id)
