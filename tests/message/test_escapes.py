"""
Tests for L{webhookrx.message.escapes}: what is escaped, however much of it there is.
"""

from __future__ import annotations

import json
import sys

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.message import escapes
from webhookrx.message.encoders import encode_line
from webhookrx.message.escapes import JSON_ESCAPES, MISLEADING, TEXT_ESCAPES, encode_json, escape
from webhookrx.message.message import Message
from webhookrx.yield_point import PIECE

#: All characters but halves of pairs.
ALL = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]

PIECES = st.lists(
    st.tuples(st.sampled_from([*MISLEADING[::5], *"a\"\\'\n\x00\x1fé…😀\u2027"]), st.integers(1, 3)), max_size=30
).map(lambda parts: "".join(char * times for char, times in parts))


class JSONTests(SynchronousTestCase):
    """JSON in one line, without what misleads people."""

    def test_each_character(self) -> None:
        """Each misleading character is an escape, and each other one is as the encoder leaves it."""
        for start in range(0, len(ALL), 100):
            chars = ALL[start : start + 100]
            expected = [JSON_ESCAPES.get(char) or escapes.encode(char)[1:-1].decode() for char in chars]
            self.assertEqual(f'"{"".join(expected)}"', encode_json("".join(chars)).decode())

    @given(PIECES, st.integers(0, 3))
    def test_many(self, text: str, few: int) -> None:
        """Many different ones in one piece make no difference."""
        self.patch(escapes, "compiled", None)
        encoded = encode_json([text, {text: 1}])
        self.patch(escapes, "_FEW", few)
        self.assertEqual(encoded, encode_json([text, {text: 1}]))
        self.assertEqual([text, {text: 1}], json.loads(encoded))
        self.assertFalse(set(MISLEADING) & set(encoded.decode()))

    def test_line_ends(self) -> None:
        """A line ends where it should, however many characters are escapes in it."""
        for char in ("\x7f", "\x85", "\u200e", "\u2028", "é"):
            for number in (1, 255, 256, 257, PIECE - 60, PIECE, 2 * PIECE):
                line = encode_line(Message({"ISODATE": "now", "a": char * number}, 0))
                self.assertEqual((b"\n", 1), (line[-1:], line.count(b"\n")), (char, number))
                self.assertEqual(char * number, json.loads(line)["a"])

    def test_pieces(self) -> None:
        """No character of a long text is cut in two."""
        for before in range(4):
            text = "x" * (PIECE - before) + "é…😀\u2028" * 30_000
            self.assertEqual(text, json.loads(encode_json(text)))


class TextTests(SynchronousTestCase):
    """Plain text in one line."""

    def test_each_character(self) -> None:
        """What ends a line or moves a cursor is an escape; all else stays, backslashes and quotes too."""
        for start in range(0, len(ALL), 100):
            chars = ALL[start : start + 100]
            self.assertEqual("".join(TEXT_ESCAPES.get(char, char) for char in chars), escape("".join(chars)))

    @given(PIECES, st.integers(0, 3))
    def test_many(self, text: str, few: int) -> None:
        """In a piece with many different ones, the same characters are the same escapes, and what can be seen stays."""
        self.patch(escapes, "_FEW", few)
        self.assertEqual("".join(TEXT_ESCAPES.get(char, char) for char in text), escape(text))

    def test_very_many(self) -> None:
        """Where there are very many, all other characters stay as they are, whether they can be seen or not."""
        others = "".join(char for char in ALL if char not in TEXT_ESCAPES)
        self.assertEqual("\\x01" * 1000 + others + "\\u2028" * 1000, escape("\x01" * 1000 + others + "\u2028" * 1000))
