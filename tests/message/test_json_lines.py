"""Tests for L{webhookrx.message.json_lines}."""

from __future__ import annotations

import json

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.message.escapes import encode_json
from webhookrx.message.json_lines import encode_line, encode_object
from webhookrx.message.macros import isodate
from webhookrx.message.message import Message, Value

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

    @settings(deadline=None)
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
