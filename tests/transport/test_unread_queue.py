"""Tests for L{webhookrx.transport.unread_queue}."""

from __future__ import annotations

from random import Random
from unittest import mock

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.transport import unread_queue
from webhookrx.transport.unread_queue import UnreadQueue


class UnreadQueueTests(SynchronousTestCase):
    """Connections in the order in which what is unread came."""

    def setUp(self) -> None:
        self.queue = UnreadQueue()

    def put(self, *came: float) -> None:
        """Put in connections 1, 2, 3 and so on."""
        for fd, each in enumerate(came, 1):
            self.queue.put(fd, each)

    def test_empty(self) -> None:
        """There is nothing in it."""
        self.assertEqual((0, None, []), (len(self.queue), self.queue.oldest(), self.queue.take_all()))
        self.assertFalse(self.queue)
        self.assertNotIn(1, self.queue)
        self.assertRaises(IndexError, self.queue.take_oldest)
        self.assertRaises(IndexError, self.queue.take_youngest)

    def test_ends(self) -> None:
        """It is taken from at either end, whatever the order in which it was put in."""
        self.put(5.0, 1.0, 9.0, 3.0)
        self.assertEqual(1.0, self.queue.oldest())
        self.assertEqual((3, 9.0), self.queue.take_youngest())
        self.assertEqual(2, self.queue.take_oldest())
        self.assertEqual((3.0, 2), (self.queue.oldest(), len(self.queue)))
        self.assertEqual((1, 5.0), self.queue.take_youngest())
        self.assertEqual((4, 3.0), self.queue.take_youngest())
        self.assertFalse(self.queue)

    def test_forget(self) -> None:
        """Who is forgotten is not taken, at either end, and may come again."""
        self.put(1.0, 2.0, 3.0, 4.0)
        self.queue.forget(1)
        self.queue.forget(4)
        self.queue.forget(77)
        self.assertEqual((2.0, 2), (self.queue.oldest(), len(self.queue)))
        self.assertNotIn(1, self.queue)
        self.assertIn(2, self.queue)
        self.queue.put(1, 2.5)
        self.assertEqual((3, 3.0), self.queue.take_youngest())
        self.assertEqual((1, 2.5), self.queue.take_youngest())
        self.assertEqual(2, self.queue.take_oldest())
        self.assertIsNone(self.queue.oldest())
        self.assertRaises(IndexError, self.queue.take_oldest)

    def test_again(self) -> None:
        """Who comes again counts by that alone, though it had come later before."""
        self.put(9.0, 7.0)
        self.queue.forget(1)
        self.queue.put(1, 5.0)
        self.assertEqual((2, 7.0), self.queue.take_youngest())
        self.assertEqual((1, 5.0), self.queue.take_youngest())
        self.assertFalse(self.queue)

    def test_many_forgotten(self) -> None:
        """Of those that are forgotten few are kept, also where they are between others."""
        self.put(0.0, 1_000_000.0)
        with mock.patch.object(unread_queue, "_MOST_STALE", 10):
            for step in range(1_000):
                self.queue.put(3, float(step))
                self.queue.forget(3)
                self.assertLessEqual(len(self.queue._entries), 20)
        self.assertEqual((1, 2), (self.queue.take_oldest(), self.queue.take_oldest()))

    def test_all(self) -> None:
        """All can be taken at once."""
        self.put(2.0, 1.0)
        self.assertEqual([1, 2], sorted(self.queue.take_all()))
        self.assertEqual((0, None), (len(self.queue), self.queue.oldest()))

    def test_as_a_list(self) -> None:
        """It does what a sorted list of pairs does, and keeps few of those that are forgotten."""
        chance = Random(11)
        known: dict[int, float] = {}
        with mock.patch.object(unread_queue, "_MOST_STALE", 10):
            for step in range(5_000):
                what = chance.randrange(4)
                fd = chance.randrange(50)
                if what == 0 and known:
                    oldest = self.queue.take_oldest()
                    self.assertEqual(min(known.values()), known.pop(oldest))
                elif what == 1 and known:
                    youngest, came = self.queue.take_youngest()
                    self.assertEqual(max(known.values()), came)
                    self.assertEqual(came, known.pop(youngest))
                elif what == 2:
                    self.queue.forget(fd)
                    known.pop(fd, None)
                elif fd not in known:
                    known[fd] = chance.random() + step / 10
                    self.queue.put(fd, known[fd])
                self.assertEqual(len(known), len(self.queue))
                self.assertEqual(min(known.values(), default=None), self.queue.oldest())
                self.assertLessEqual(len(self.queue._entries), 2 * 50 + 10 + 1)
