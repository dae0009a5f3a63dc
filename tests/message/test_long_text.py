"""
Tests for L{webhookrx.message.long_text}, and for what is encoded with its help.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.message import escapes
from webhookrx.message import long_text as module
from webhookrx.message.escapes import MISLEADING
from webhookrx.message.json_lines import encode_line
from webhookrx.message.long_text import long_text
from webhookrx.message.message import Message
from webhookrx.message.stored import decode_stored, encode_stored
from webhookrx.yield_point import PIECE

LONG = "x" * (PIECE + 1)


def source_values(text: str) -> dict[str, Any]:
    return {"ISODATE": "now", "HOST": None, "MESSAGE": text, "a\x7f": "\u2028", "n": msgspec.Raw(b"1.50")}


def router_values(text: str) -> dict[str, Any]:
    return {"log": {"body": text, "attributes": {"k": "\x80"}}, "meta": {"id": "1"}}


class LongTextTests(SynchronousTestCase):
    """Which messages have a long text."""

    def test_table(self) -> None:
        """It is the body as it came, in either form, if it is longer than a piece."""
        for values, expected in (
            (source_values(LONG), LONG),
            (source_values(LONG[1:]), None),
            (router_values(LONG), LONG),
            (router_values(LONG[1:]), None),
            ({"log": {"body": {"a": LONG}}, "meta": {}}, None),
            ({"log": LONG}, None),
            ({"MESSAGE": msgspec.Raw(b"1.5")}, None),
            ({}, None),
        ):
            self.assertEqual(expected, long_text(values))


class SameTests(SynchronousTestCase):
    """In pieces, the same comes out."""

    @settings(deadline=None, max_examples=300)
    @given(
        st.lists(st.sampled_from([*MISLEADING, *'ab"\\\n\x00\x1fé…😀', "\u2027", "\u202f"]), max_size=40).map("".join),
        st.sampled_from([source_values, router_values]),
        st.integers(1, 7),
    )
    def test_lines_and_stored(self, text: str, make: Any, piece: int) -> None:
        """Lines and stored messages do not depend on where a text is cut."""
        message = Message(make(text), 5)
        whole, cut = (self.encoded(message, size) for size in (10**6, piece))
        self.assertEqual(whole, cut)

    def encoded(self, message: Message, piece: int) -> tuple[bytes, bytes]:
        for patched in (module, escapes):
            self.patch(patched, "PIECE", piece)
        return encode_line(message), encode_stored(message)

    def test_long(self) -> None:
        """Whatever a long text is full of, the line reads as what it is, and the stored form gives it back."""
        for unit in ("\x01", '"', "\\", "\x7f", "\x80", "\u2028", "é", "😀", "a\x7f\u2028😀", '\\"\u061c'):
            for make in (source_values, router_values):
                message = Message(make(unit * PIECE), 5)
                line = encode_line(message)
                self.assertEqual(1, len(line.decode().splitlines()))
                self.assertFalse(set(MISLEADING) & set(line.decode()), unit)
                read = msgspec.json.decode(line)
                text = read["MESSAGE"] if "MESSAGE" in read else read["log"]["body"]
                self.assertEqual(unit * PIECE, text)
                self.assertEqual(long_text(message.values), long_text(decode_stored(encode_stored(message)).values))

    def test_mark_is_not_guessed(self) -> None:
        """A text of a sender does not stand in for the mark of another run."""
        values = {**source_values(LONG), "z": module._MARK.decode()[1:-1][::-1]}
        self.assertEqual(LONG, msgspec.json.decode(encode_line(Message(values, 0)))["MESSAGE"])

    def test_pauses(self) -> None:
        """Others get their turn several times for each mebibyte."""
        pauses: list[None] = []
        for patched in (module, escapes):
            self.patch(patched, "yield_point", lambda: pauses.append(None))
        encode_line(Message(source_values("\x7f" * 1024 * 1024), 0))
        self.assertGreaterEqual(len(pauses), 16)
