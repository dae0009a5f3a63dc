"""A message as bytes and back."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake.json_body import decode_exactly
from webhookrx.message.message import Message
from webhookrx.message.stored import NotAMessage, decode_stored, encode_stored, received_of

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
