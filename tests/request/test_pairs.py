"""
Tests for L{webhookrx.request.pairs}: what its short cuts give is what the long way gives.

Tests by table are in C{test_payload}.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.message.json_lines import encode_line
from webhookrx.message.macros import canonical, is_reserved, value_text
from webhookrx.message.message import Message, Value
from webhookrx.request import pairs, payload
from webhookrx.request.pairs import LONG, flatten, set_pairs
from webhookrx.request.payload import MAX_DEPTH, PayloadError

NAMES = st.sampled_from(
    [
        *(
            "",
            "a",
            "b",
            ".",
            "a.b",
            "x.webhook.query.a",
            "MSG",
            "MESSAGE",
            "FULLHOST",
            "SOURCEIP",
            "DATE",
            "R_DATE",
            "IP-PROTO",
        ),
        *("webhook", "webhook.", "web", "hook", "query", "query.", "query.a", "headers", "headers.x", "parse_error"),
        *("webhook.query", "webhook.query.", "webhook.query.a", "webhook.headers", "webhook.headers.x", "hook.query.a"),
    ]
)
PREFIXES = NAMES | st.sampled_from(["p.", "SOURCE", "M", "webhook.q", "webhook.query.a."])
MEMBERS: st.SearchStrategy[Any] = st.dictionaries(
    NAMES,
    st.recursive(st.integers(), lambda inner: st.dictionaries(NAMES, inner, max_size=4), max_leaves=8),
    max_size=5,
)


def flattened(members: dict[str, Any], prefix: str, into: dict[str, Any]) -> int:
    """Do what L{flatten} does, as its contract says it, and look at every name."""
    left_out = 0
    for key, member in members.items():
        name = prefix + key
        if is_reserved(name):
            left_out += 1
        elif isinstance(member, dict) and member:
            left_out += flattened(member, name + ".", into)
        else:
            into[canonical(name)] = member
    return left_out


class NamesTests(SynchronousTestCase):
    """Which names are looked at."""

    @settings(deadline=None, max_examples=500)
    @given(MEMBERS, PREFIXES)
    def test_special_names(self, members: dict[str, Any], prefix: str) -> None:
        """However a special name is put together of prefix and keys, it is seen; the order is that of the document."""
        expected: dict[str, Any] = {}
        left_out = flattened(members, prefix, expected)
        into: dict[str, Value] = {}
        self.assertEqual(
            (left_out, list(expected.items())), (flatten(members, prefix, into, 10**6), list(into.items()))
        )


ARRAYS: st.SearchStrategy[Any] = st.lists(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    ),
    max_size=5,
)


class ArrayTextTests(SynchronousTestCase):
    """Arrays of a long body stay text."""

    def pairs(self, body: bytes) -> dict[str, Value]:
        into: dict[str, Value] = {}
        set_pairs(body, "", into)
        return into

    def long(self, member: bytes) -> bytes:
        """Return a long body with one member, C{a}, besides text and an object."""
        return b'{"text":"%s","a":%s,"o":{"n":1.50,"l":[1]}}' % (b"x" * LONG, member)

    def test_as_it_was(self) -> None:
        """Their spelling is the sender's."""
        for text in (b"[1.50,-0, 1e400]", b'["a", "b"]', '[{"é":[]}]'.encode(), b"[%s]" % (b"9" * 5000)):
            into = self.pairs(self.long(text))
            value = into["a"]
            assert isinstance(value, msgspec.Raw)
            self.assertEqual((text, [1]), (bytes(value), into["o.l"]))
            self.assertIn(b'"a":' + text + b',"o.n":1.50', encode_line(Message(into, 0)))

    def test_made_values_of(self) -> None:
        """They are made values of where their text could be no line, or not be what it says."""
        deep = b"[" * (MAX_DEPTH - 2) + b"]" * (MAX_DEPTH - 2)
        for text, expected in (
            (b"[1,\n2]", [1, 2]),
            (b"[1,\r2]", [1, 2]),
            (b"[1,\t2]", [1, 2]),
            (b'["\\ud800"]', ["\ufffd"]),
            (b'["\\/"]', ["/"]),
            (deep, msgspec.json.decode(deep)),
        ):
            self.assertEqual(expected, self.pairs(self.long(text))["a"], text)

    def test_own_memory(self) -> None:
        """A short array keeps no long body in memory."""
        body = self.long(b"[1]")
        before = sys.getrefcount(body)
        into = self.pairs(body)
        self.assertEqual((b"[1]", before), (bytes(into["a"]), sys.getrefcount(body)))  # type: ignore[arg-type]

    def test_refused(self) -> None:
        """What is not JSON is refused, wherever it is not."""
        for text in (b"[01]", b"[tru]", b"[1", b"[1]]", b'["\xff"]', b"[\x00]", b"[1 2]", b'["a"b]', b"[1e]", b"[1.]x"):
            self.assertRaises(PayloadError, self.pairs, self.long(text))
        self.assertRaises(PayloadError, self.pairs, self.long(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH))

    def test_too_many_values(self) -> None:
        """Values in them count."""
        self.patch(payload, "MAX_ELEMENTS", 10)
        self.pairs(self.long(b"[1,2,3]"))
        self.assertRaises(PayloadError, self.pairs, self.long(b"[1,2,3,4,5]"))

    def test_other_texts(self) -> None:
        """Long bodies that are no objects, or hold what the quick decoder refuses, are read all the same."""
        self.assertEqual({"1": "x" * LONG, "2": [1]}, self.pairs(b'["%s",[1]]' % (b"x" * LONG)))
        self.assertEqual([1], self.pairs(b"{a:[1],b:'%s'}" % (b"x" * LONG))["a"])
        self.assertEqual(msgspec.Raw(b"9" * 5000), self.pairs(self.long(b"9" * 5000))["a"])

    @settings(deadline=None, max_examples=300)
    @given(ARRAYS, st.booleans())
    def test_same_values(self, array: list[Any], compact: bool) -> None:
        """The line has the same values either way, and so has the text of a template."""
        self.patch(pairs, "LONG", 0)
        separators = (",", ":") if compact else None
        body = json.dumps({"a": array}, separators=separators, ensure_ascii=False).encode("utf-8", "replace")
        quick = self.pairs(body)
        self.patch(pairs, "LONG", 10**9)
        slow = self.pairs(body)
        lines = [encode_line(Message(each, 0)) for each in (quick, slow)]
        self.assertEqual(json.loads(lines[0]), json.loads(lines[1]))
        self.assertEqual(1, len(lines[0].decode().splitlines()))
        if all(isinstance(element, str) for element in array):
            self.assertEqual(value_text(slow["a"]), value_text(quick["a"]))
        else:
            self.assertEqual(json.loads(value_text(slow["a"])), json.loads(value_text(quick["a"])))

    @settings(deadline=None, max_examples=500)
    @given(
        st.lists(st.sampled_from([*'[]{},:"-+.0129eE x\x00\x7fé', "true", "null", '"a"', '"b":', "[1,2]"]), max_size=14)
    )
    def test_nothing_else_is_taken(self, pieces: list[str]) -> None:
        """An array stays text only if the standard library takes it for JSON."""
        self.patch(pairs, "LONG", 0)
        text = "".join(pieces)
        try:
            value = self.pairs(f'{{"a":{text}}}'.encode()).get("a")
        except PayloadError:
            return
        if isinstance(value, msgspec.Raw) and bytes(value).startswith(b"["):
            json.loads(bytes(value))
