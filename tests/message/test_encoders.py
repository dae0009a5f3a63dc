"""Tests for L{webhookrx.message.encoders}."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake.json_body import decode_exactly
from webhookrx.message import encoders as module
from webhookrx.message import escapes
from webhookrx.message.encoders import (
    NotAMessage,
    decode_stored,
    encode_line,
    encode_object,
    encode_stored,
    long_text,
    received_of,
)
from webhookrx.message.escapes import MISLEADING, encode_json
from webhookrx.message.macros import isodate
from webhookrx.message.message import Message, Value
from webhookrx.yield_point import PIECE

MOMENT = 1_795_172_707_123_456_789

DATE = f'"ISODATE":"{isodate(MOMENT)}"'

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]))

VALUES: st.SearchStrategy[Value] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


class EncodeLineTests(SynchronousTestCase):
    """Tests for L{encode_line}."""

    def encoded(self, values: dict[str, Value]) -> str:
        """Return a line as text, having looked that it is one."""
        line = encode_line(Message(values, MOMENT)).decode()
        self.assertEqual([line[:-1]], line.splitlines())
        self.assertEqual(line[:-1], encode_object(Message(values, MOMENT)).decode())
        return line

    def test_flat(self) -> None:
        """The date comes first, then the pairs in their order, one key a name."""
        self.assertEqual(
            "{" + DATE + ',"HOST":"h","MESSAGE":"m","webhook.query.a":["1","2"],"SOURCEPORT":5}\n',
            self.encoded({"HOST": "h", "MESSAGE": "m", "webhook.query.a": ["1", "2"], "SOURCEPORT": 5}),
        )

    def test_no_pairs(self) -> None:
        """A message without pairs still has its date."""
        self.assertEqual("{" + DATE + "}\n", self.encoded({}))

    def test_date_once(self) -> None:
        """A date among the pairs is not written a second time."""
        self.assertEqual('{"a":1,"ISODATE":"x"}\n', self.encoded({"a": 1, "ISODATE": "x"}))

    def test_like_the_router_form(self) -> None:
        """Pairs that are called as the two objects of the router form are pairs all the same."""
        for values in ({"log": "x"}, {"log": {}, "a": 1}, {"log": {}, "meta": 1}, {"log": {}, "meta": {}, "a": 1}):
            self.assertTrue(self.encoded(values).startswith("{" + DATE + ","), values)

    def test_values(self) -> None:
        """Each kind of value is written exactly; numbers keep their text at any depth."""
        huge = b"9" * 10_000
        for value, expected in (
            (None, "null"),
            (True, "true"),
            (10**30, "1" + "0" * 30),
            (msgspec.Raw(b"1.0"), "1.0"),
            (msgspec.Raw(b"1e400"), "1e400"),
            (msgspec.Raw(huge), huge.decode()),
            ([], "[]"),
            ({}, "{}"),
            ([msgspec.Raw(b"-0.0"), {"a": [msgspec.Raw(b"2.50")]}], '[-0.0,{"a":[2.50]}]'),
            ("é😀", '"é😀"'),
            ('\x00\n"\\', '"\\u0000\\n\\"\\\\"'),
        ):
            with self.subTest(expected=expected[:20]):
                self.assertEqual("{" + DATE + ',"a":' + expected + "}\n", self.encoded({"a": value}))

    def test_escapes(self) -> None:
        """Whatever ends a line for some reader, or reorders text, is escaped, in names too; its neighbours are not."""
        for code in (
            *range(0x20),
            *range(0x7F, 0xA0),
            0x61C,
            0x200E,
            0x200F,
            *range(0x2028, 0x202F),
            *range(0x2066, 0x206A),
        ):
            with self.subTest(code=hex(code)):
                line = self.encoded({f"n{chr(code)}": f"v{chr(code)}"})
                self.assertNotIn(chr(code), line[:-1])
                self.assertEqual(f"v{chr(code)}", json.loads(line)[f"n{chr(code)}"])
        for code in (
            0x20,
            0x7E,
            0xA0,
            0xFF,
            0x61B,
            0x61D,
            0x200D,
            0x2010,
            0x2027,
            0x202F,
            0x2065,
            0x206A,
            0xFEFF,
            0x1F600,
        ):
            with self.subTest(code=hex(code)):
                self.assertIn(chr(code), self.encoded({"a": chr(code)}))

    @given(st.dictionaries(TEXT, VALUES, max_size=6))
    def test_reads_back(self, values: dict[str, Value]) -> None:
        """Any pairs come out as one line to every reader, from which JSON reads the same pairs."""
        line = encode_line(Message(values, MOMENT))
        self.assertEqual(1, len(line.decode().splitlines()))
        self.assertEqual({"ISODATE": isodate(MOMENT), **values}, json.loads(line))

    def test_values_alone(self) -> None:
        """A value alone is escaped in the same way as in a line."""
        for text in ("plain", "\x7f", "\u2028", "a\x7f\u202eb", "žluť", "\x00\n"):
            line = encode_line(Message({"ISODATE": text}, MOMENT))
            self.assertEqual(line, b'{"ISODATE":' + encode_json(text) + b"}\n")


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
        """In pure Python others get their turn several times for each mebibyte."""
        pauses: list[None] = []
        self.patch(module, "compiled", None)
        for patched in (module, escapes):
            self.patch(patched, "yield_point", lambda: pauses.append(None))
        encode_line(Message(source_values("\x7f" * 1024 * 1024), 0))
        self.assertGreaterEqual(len(pauses), 16)


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_NUMBER_TEXTS = st.sampled_from([b"1.50", b"-0.0", b"1E400", b"0.1e-7", b"1", b"-7", b"1" + b"0" * 5000, b'["e", 1.5]'])
_LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), _TEXT, _NUMBER_TEXTS.map(msgspec.Raw))
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXT, inner, max_size=3)),
    max_leaves=8,
)
_MESSAGES = st.builds(
    Message, st.dictionaries(_TEXT, _VALUES, max_size=6), st.integers(min_value=-(1 << 63), max_value=(1 << 63) - 1)
)


def spelled(value: Any) -> Any:
    """
    Return a value such that equal means the same kind and order as well. Integers and arrays are the same as values
    and as texts.
    """
    if isinstance(value, dict):
        return ["dict", *((name, spelled(member)) for name, member in value.items())]
    if isinstance(value, list):
        return ["list", *map(spelled, value)]
    if isinstance(value, msgspec.Raw):
        text = bytes(value)
        if text.startswith(b"["):
            return spelled(decode_exactly(text))
        return ("number", text)
    return ("number", msgspec.json.encode(value)) if type(value) is int else (type(value).__name__, value)


class StoredTests(SynchronousTestCase):
    """What goes in comes out."""

    def assert_survives(self, message: Message) -> None:
        """It is the same afterwards, order included."""
        stored = encode_stored(message)
        again = decode_stored(stored)

        self.assertEqual(spelled(message.values), spelled(again.values))
        self.assertEqual(message.received, again.received)
        self.assertEqual(message.received, received_of(stored))

    @given(_MESSAGES)
    def test_any(self, message: Message) -> None:
        """Any message survives."""
        self.assert_survives(message)

    def test_values(self) -> None:
        """So does each kind of value, at the top and within others."""
        for value in (
            None,
            True,
            1,
            "é\u2028\x00😀",
            (1 << 64) - 1,
            1 << 64,
            -(1 << 63) - 1,
            10**4000,
            msgspec.Raw(b"1.0"),
            msgspec.Raw(b"1e5"),
            msgspec.Raw(b"12"),
            msgspec.Raw(b"9" * 6000),
            msgspec.Raw(b"[1, 2]"),
            msgspec.Raw(b'["e"]'),
            {},
            [],
            {"": {"raw": "1"}},
            {"object": {"int": "0x1"}},
        ):
            for whole in (value, [value], {"a": value, "A": [[value]]}):
                self.assert_survives(Message({"z": whole, "a": 1, "": "x"}, 1))

    def test_depth(self) -> None:
        """So does what nests as deep as a payload may."""
        for leaf in (msgspec.Raw(b"1"), "text"):
            value: Any = leaf
            for _ in range(64):
                value = {"a": [value]}
            self.assert_survives(Message({"deep": value}, 1))

    def test_no_message(self) -> None:
        """Anything else is told from a message, and not quoted."""
        whole = encode_stored(Message({"a": "secret"}, 1))
        odd = encode_stored(Message({"a": msgspec.Raw(b"9" * 5000)}, 1))
        for stored in (
            b"",
            whole[:8],
            whole[:-1],
            b"\x03" + whole[1:],
            whole[:9] + b"[]",
            b"\x02" + whole[1:9] + b'{"a":{}}',
            b"\x02" + whole[1:9] + b'{"a":{"int":"secret"}}',
            b"\x02" + whole[1:9] + b'{"a":{"raw":1}}',
            odd[:9] + b'{"a":{"object":[]}}',
        ):
            error = self.assertRaises(NotAMessage, decode_stored, stored)

            self.assertNotIn("secret", str(error))
