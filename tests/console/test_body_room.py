"""
Tests for L{webhookrx.console.body_room}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.http.wire import Wire
from webhookrx.console.body_room import BodyRoom
from webhookrx.settings import Limits


class BodyRoomTests(SynchronousTestCase):
    """What finds room, and when."""

    def test_small(self) -> None:
        """Large bodies leave room for small ones, which take all of it."""
        room = BodyRoom(100, 30)
        self.assertFalse(room.reserve(71, small=False))
        self.assertTrue(room.reserve(70, small=False))
        self.assertFalse(room.has_room(1, small=False))
        self.assertTrue(room.reserve(30, small=True))
        self.assertFalse(room.reserve(1, small=True))
        room.release(70)
        self.assertTrue(room.has_room(40, small=False))

    def test_slow(self) -> None:
        """Bodies that come slowly are refused once the room is full, and give it back when their senders go."""
        wire = Wire(limits=Limits(body=1 << 20), consumer=BodyRoom(250_000, 50_000))
        head = b"POST /github HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
        senders = [wire.connect() for _ in range(3)]
        for sender in senders:
            sender.send(head)
            sender.send(b"x" * 90_000)
        self.assertEqual([[], [], [503]], [each.statuses() for each in senders])
        small = wire.connect()
        small.send(head.replace(b"100000", b"20000"))
        small.send(b"x" * 10_000)
        self.assertEqual([], small.statuses())
        senders[0].transport.abortConnection()
        fourth = wire.connect()
        fourth.send(head)
        fourth.send(b"x" * 90_000)
        self.assertEqual([], fourth.statuses())
