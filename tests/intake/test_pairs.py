"""
Tests for L{webhookrx.intake.pairs}: what its short cuts give is what the long way gives.

Tests by table are in C{test_payload}.
"""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake import pairs
from webhookrx.intake.json_body import PayloadError
from webhookrx.intake.pairs import flatten, set_pairs
from webhookrx.message.encoders import encode_line
from webhookrx.message.macros import PROVENANCE, canonical, is_reserved
from webhookrx.message.message import Message, Value

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
        *("sender", "webhook.sender", "sender.login", "batch", "index", "batch.index", "webhook.batch.index", "client"),
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
        if is_reserved(name) and not (isinstance(member, dict) and member and name in PROVENANCE):
            left_out += 1
        elif isinstance(member, dict) and member:
            left_out += flattened(member, name + ".", into)
        else:
            into[canonical(name)] = member
    return left_out


class NamesTests(SynchronousTestCase):
    """Which names are looked at."""

    @given(MEMBERS, PREFIXES)
    def test_special_names(self, members: dict[str, Any], prefix: str) -> None:
        """However a special name is put together of prefix and keys, it is seen; the order is that of the document."""
        expected: dict[str, Any] = {}
        left_out = flattened(members, prefix, expected)
        into: dict[str, Value] = {}
        self.assertEqual(
            (left_out, list(expected.items())), (len(flatten(members, prefix, into, 10**6)), list(into.items()))
        )


class ArrayTests(SynchronousTestCase):
    """Arrays are values, in short bodies and in long ones."""

    def pairs(self, body: bytes, prefix: str = "") -> dict[str, Value]:
        into: dict[str, Value] = {}
        set_pairs(body, prefix, into)
        return into

    def test_duplicate_members(self) -> None:
        """Of equal names in an object within an array the last wins, however long the body is."""
        for size in (0, 1024, 100_000, 1_000_000):
            body = b'{"a":[{"x":1,"y":2,"x":3}],"t":"%s"}' % (b"t" * size)
            self.assertEqual([{"x": 3, "y": 2}], self.pairs(body)["a"], size)

    def test_numbers(self) -> None:
        """Numbers in them keep their value and their spelling, also in a line."""
        for size in (0, 100_000):
            body = b'{"a":[1.50,-0.0,1e400,12345678901234567890123],"t":"%s"}' % (b"t" * size)
            line = encode_line(Message(self.pairs(body), 0))
            self.assertIn(b'"a":[1.50,-0.0,1e400,12345678901234567890123]', line)

    def test_elements_are_pairs(self) -> None:
        """The elements of an array that is the whole body are pairs by their numbers."""
        self.assertEqual({"p1": "x", "p2": [1], "p3": {"a": 1}}, self.pairs(b'["x",[1],{"a":1}]', "p"))


class BoundTests(SynchronousTestCase):
    """How many pairs a body may become, and how long their names."""

    def problem(self, body: bytes, prefix: str = "") -> str:
        return str(self.assertRaises(PayloadError, set_pairs, body, prefix, {}))

    def test_members(self) -> None:
        """Each body may become some number of pairs, wherever its members are."""
        self.patch(pairs, "MAX_PAIRS", 4)
        set_pairs(b'{"a":1,"b":{"c":{}},"d":[1,2,3,4,5,6]}', "", {})
        set_pairs(b"[1,2,3,4]", "", {})
        for body in (b'{"a":1,"b":2,"c":3,"d":4,"e":5}', b'{"a":{"b":{"c":{"d":{"e":1}}}}}', b"[1,2,3,4,5]"):
            self.assertEqual("The body holds more than 4 members.", self.problem(body))

    def test_prefix(self) -> None:
        """A prefix counts once for each pair, and so do the numbers of elements."""
        self.patch(pairs, "name_budget", lambda body: 30)
        for body in (b'{"a":1,"b":2,"c":3}', b"[1,2,3]"):
            set_pairs(body, "123456789", {})
            self.problem(body, "12345678901")

    def test_growth(self) -> None:
        """
        A message is at most eight times as large as its body, some hundred kibibytes apart, however its names nest and
        its texts are escaped.
        """
        for text in ("x", '\\"', "\x7f", "\x80", "\u061c", "\u2028", "\\n", "\\u0001", "é", "😀"):
            for key in ("k", "\x7f", "\u2028"):
                body = _nested(key, text, 300_000)
                for prefix in ("", "p" * 100):
                    values: dict[str, Value] = {}
                    with contextlib.suppress(PayloadError):
                        set_pairs(body, prefix, values)
                    values["MESSAGE"] = body.decode()
                    line = encode_line(Message(values, 0))
                    self.assertLess(len(line), 8 * len(body) + 150 * 1024, (text, key, prefix))

    def test_full_of_escapes(self) -> None:
        """A body that grows too much by itself does not become pairs at all."""
        self.assertIn("too long", self.problem(b'{"a":"%s"}' % (b"\x7f" * 100_000)))

    def test_small(self) -> None:
        """A small body may have long names around many members."""
        name = "n" * 200
        members = ",".join(f'"{number}":0' for number in range(300))
        set_pairs(f'{{"{name}":{{{members}}}}}'.encode(), "", {})


def _nested(key: str, text: str, size: int) -> bytes:
    """Return an object of objects whose names and texts are made of these."""
    inner = ",".join(f'"{key * 3}{number}":"{text * 5}"' for number in range(30))
    outer = f'"{key * 20}NUMBER":{{{inner}}}'
    count = size // len(outer.encode())
    return ("{" + ",".join(outer.replace("NUMBER", str(number)) for number in range(count)) + "}").encode()
