"""
Tests for L{webhookrx.yield_point}.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from twisted.trial.unittest import SynchronousTestCase

from webhookrx import yield_point as module
from webhookrx.yield_point import (
    LONG_CALL,
    PIECE,
    count_byte,
    count_up_to,
    encode_utf_8,
    map_pieces,
    pause_by,
    run_unlocked,
    yield_point,
)

Result = TypeVar("Result")


class YieldPointTests(SynchronousTestCase):
    """Pauses belong to a thread."""

    def test_none(self) -> None:
        """Where nobody pauses the work, nothing happens."""
        yield_point()

    def test_of_one_thread(self) -> None:
        """Only the thread that asked for it is paused."""
        paused: list[str] = []

        def work() -> None:
            pause_by(lambda: paused.append(threading.current_thread().name))
            yield_point()
            yield_point()

        thread = threading.Thread(target=work, name="other")
        thread.start()
        thread.join()
        yield_point()
        self.assertEqual(["other", "other"], paused)


class RunUnlockedTests(SynchronousTestCase):
    """Calls that need no lock are made by what makes them in this thread."""

    def test_aside(self) -> None:
        """Long ones are, after others had their turn; short ones, and those of other threads, are made at once."""
        seen: list[str] = []

        def aside(call: Callable[[], Result]) -> Result:
            seen.append("aside")
            return call()

        def work() -> None:
            pause_by(lambda: seen.append("pause"), aside)
            for size in (LONG_CALL, LONG_CALL + 1):
                seen.append(run_unlocked(size, "{}-{more}".format, size, more=1))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        seen.append(run_unlocked(LONG_CALL + 1, "here".strip))
        short, long = f"{LONG_CALL}-1", f"{LONG_CALL + 1}-1"
        self.assertEqual(["pause", short, "pause", "aside", long, "here"], seen)


class PiecesTests(SynchronousTestCase):
    """Work that is done in pieces gives what it would give in one go, and pauses often."""

    def setUp(self) -> None:
        self.pauses = 0
        self.patch(module, "yield_point", self._count)

    def _count(self) -> None:
        self.pauses += 1

    def test_map_pieces(self) -> None:
        """Each piece is mapped once."""
        for text in ("", "ab", "aé😀" * PIECE):
            self.assertEqual(text.upper(), map_pieces(str.upper, text))
        self.assertEqual(3, self.pauses)

    def test_encode(self) -> None:
        """Texts are put together, whatever their characters; lone surrogates are escapes, or an error."""
        for texts in ((), ("a", "é"), ("\udc00", "x" * PIECE), ("😀" * (PIECE - 1) + "a😀", "", "é" * PIECE, "\n")):
            self.assertEqual("".join(texts).encode("utf-8", "backslashreplace"), encode_utf_8(*texts))
        self.assertEqual(2 + 4, self.pauses)
        for text in ("\udc00", "x" * PIECE + "\udc00"):
            self.assertRaises(UnicodeEncodeError, encode_utf_8, text, errors="strict")

    def test_count(self) -> None:
        """Each count is a piece of its own."""
        self.assertEqual((2, 0), (count_byte(b"a,b,", b","), count_byte(b"", b",")))
        self.assertEqual(2, self.pauses)

    def test_count_up_to(self) -> None:
        """Counts are exact up to a bound, and go on behind it for no more than a piece."""
        text = b"a,b,[" * PIECE
        for size in (0, 5, len(text)):
            for which in ((b",",), (b",", b"["), (b"x", b"[")):
                expected = sum(text[:size].count(byte) for byte in which)
                self.assertEqual(expected, count_up_to(expected, text[:size], *which))
                self.assertEqual(expected, count_up_to(len(text), text[:size], *which))
                if expected:
                    self.assertGreater(count_up_to(expected - 1, text[:size], *which), expected - 1)
        self.pauses = 0
        count_up_to(len(text), text, b",")
        self.assertEqual(5, self.pauses)
        count_up_to(10, text, b",")
        self.assertEqual(5, self.pauses)
