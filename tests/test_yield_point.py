"""
Tests for L{webhookrx.yield_point}.
"""

from __future__ import annotations

import threading

from twisted.trial.unittest import SynchronousTestCase

from webhookrx import yield_point as module
from webhookrx.yield_point import PIECE, count_byte, encode_utf_8, map_pieces, pause_by, yield_point


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
        """Texts are put together, whatever their characters; lone surrogates are escapes."""
        for texts in ((), ("a", "é"), ("\udc00", "x" * PIECE), ("😀" * (PIECE - 1) + "a😀", "", "é" * PIECE, "\n")):
            self.assertEqual("".join(texts).encode("utf-8", "backslashreplace"), encode_utf_8(*texts))
        self.assertEqual(2 + 4, self.pauses)

    def test_count(self) -> None:
        """Each count is a piece of its own."""
        self.assertEqual((2, 0), (count_byte(b"a,b,", b","), count_byte(b"", b",")))
        self.assertEqual(2, self.pauses)
