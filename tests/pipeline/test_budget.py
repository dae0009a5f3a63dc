"""Counting what waits."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.message.message import Message
from webhookrx.pipeline.budget import Budget, size_of
from webhookrx.testing import make_message


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
        self.assertTrue(budget.add_message(10))
        self.assertTrue(budget.add_message(15))
        self.assertFalse(budget.add_message(1))
        budget.release(75)
        self.assertTrue(budget.reserve(50))

    def test_no_body_for_a_message_too_many(self) -> None:
        """With as many messages as may be, a body that would become one more is not begun."""
        budget = Budget(1000, 1)
        self.assertTrue(budget.has_room(1))
        budget.add_message(1)
        self.assertFalse(budget.has_room(1))
        self.assertFalse(budget.reserve(1, small=True))

    def test_large_message(self) -> None:
        """One message of more than half of the limit waits beside it: the others have as much room as without it."""
        budget = Budget(10, 10)
        self.assertTrue(budget.add_message(5))
        self.assertTrue(budget.add_message(11))
        self.assertEqual((16, 16, 2), (budget.bytes, budget.message_bytes, budget.messages))
        self.assertFalse(budget.add_message(6))
        self.assertTrue(budget.has_room(5))
        self.assertTrue(budget.add_message(5))
        self.assertFalse(budget.add_message(1))
        self.assertTrue(budget.is_full())
        self.assertTrue(budget.is_above_high_mark())
        budget.remove_messages(2, 10)
        self.assertEqual(
            (False, False, True), (budget.is_full(), budget.is_above_high_mark(), budget.is_below_low_mark())
        )
        budget.remove_messages(1, 11)
        self.assertTrue(budget.add_message(7))
        self.assertTrue(budget.add_message(4))
        self.assertFalse(budget.add_message(7))

    def test_message_of_any_size(self) -> None:
        """A message finds room when no other waits, whatever has been reserved and however large it is."""
        budget = Budget(10, 10)
        self.assertTrue(budget.reserve(5))
        self.assertTrue(budget.add_message(5))
        budget.remove_messages(1, 5)
        self.assertTrue(budget.add_message(1000))

    def test_nothing_but_bodies(self) -> None:
        """Bodies that hold more than a limit that was lowered leave room for a message when no other waits."""
        budget = Budget(100, 10)
        budget.reserve(50)
        budget.resize(40, 10)
        self.assertEqual((False, True), (budget.is_full(), budget.add_message(1)))
        self.assertEqual((True, False), (budget.is_full(), budget.add_message(1)))

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

            self.assertEqual(fitting, sum(budget.add_message(size) for size in sizes))
            self.assertEqual(fitting, budget.messages)

    def test_is_full(self) -> None:
        """It is full when nothing fits any more, by either limit."""
        by_number, by_bytes = Budget(10, 1), Budget(10, 5)

        self.assertFalse(by_number.is_full())
        by_number.add_message(1)
        by_bytes.add_message(5)
        by_bytes.add_message(5)

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
                self.assertTrue(budget.add_message(size))

            self.assertEqual((high, low), (budget.is_above_high_mark(), budget.is_below_low_mark()), sizes)

    def test_marks_ignore_bodies(self) -> None:
        """Reserved bytes move neither mark."""
        budget = Budget(100, 8)
        budget.reserve(75, small=True)

        self.assertEqual((False, True), (budget.is_above_high_mark(), budget.is_below_low_mark()))

    @settings(deadline=None)
    @given(st.lists(st.tuples(st.booleans(), st.integers(0, 40))))
    def test_nothing_leaks(self, steps: list[tuple[bool, int]]) -> None:
        """Whatever is added, it stays within the limits; and when all is given back, nothing is counted."""
        budget = Budget(100, 5)
        reserved, sizes = 0, []
        for is_message, size in steps:
            if is_message and budget.add_message(size):
                sizes.append(size)
            elif not is_message and budget.reserve(size):
                reserved += size
            self.assertEqual(reserved + sum(sizes), budget.bytes)
            self.assertTrue(budget.bytes <= 100 or len(sizes) == 1)
            self.assertLessEqual(budget.messages, 5)
        budget.release(reserved)
        budget.remove_messages(len(sizes), sum(sizes))

        self.assertEqual((0, 0, 0), (budget.bytes, budget.message_bytes, budget.messages))

    def test_narrow(self) -> None:
        """While there is less room, messages and bodies are taken until it is used, and the last may be larger."""
        budget = Budget(100, 10)
        budget.narrow(20)
        self.assertFalse(budget.is_full())
        self.assertTrue(budget.add_message(19))
        self.assertEqual((False, True), (budget.is_full(), budget.has_room(40)))
        self.assertTrue(budget.add_message(30))
        self.assertEqual((True, False, False), (budget.is_full(), budget.has_room(1, small=True), budget.reserve(1)))
        budget.remove_messages(1, 30)
        self.assertEqual((False, True), (budget.is_full(), budget.reserve(1)))
        budget.add_message(1)
        self.assertTrue(budget.is_full())
        budget.narrow(float("inf"))

        self.assertEqual((False, True), (budget.is_full(), budget.has_room(40)))

    def test_resize(self) -> None:
        """Other limits hold from then on, with their marks; what is there stays counted, though it be more."""
        budget = Budget(100, 10)
        for _ in range(5):
            budget.add_message(10)
        budget.resize(40, 8)
        self.assertEqual((50, 5), (budget.bytes, budget.messages))
        self.assertEqual((True, True), (budget.is_full(), budget.is_above_high_mark()))
        self.assertFalse(budget.add_message(1))
        budget.remove_messages(4, 40)
        self.assertTrue(budget.is_below_low_mark())
        budget.resize(1000, 1)
        self.assertTrue(budget.is_full())
        self.assertFalse(budget.is_below_low_mark())
        budget.resize(1000, 100)

        self.assertTrue(budget.reserve(500))

    def test_recount(self) -> None:
        """A message whose size is known better is counted for that, though there is no room."""
        budget = Budget(100, 10)
        budget.add_message(60)
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
            budget.add_message(10)
        self.assertEqual((3, 30), (budget.messages_over_low_mark(), budget.bytes_over_low_mark()))
        budget.narrow(15)

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
