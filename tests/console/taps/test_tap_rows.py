"""
Tests for L{webhookrx.console.taps.tap_rows}.
"""

from __future__ import annotations

import json
from timeit import timeit
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests import examples  # noqa: F401
from webhookrx.console.taps.tap_rows import DEEPEST, MOST_ROW, read_row

HEAD = '"row":"message","at":1'
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc\n\u2028<"), inner, max_size=4),
    max_leaves=20,
)


class RowTests(SynchronousTestCase):
    def test_row(self) -> None:
        """A row is what its router has sent, with the name of that router."""
        row = read_row(b'{%s,"output":{"a":1.000}}' % HEAD.encode(), "fra-1")
        self.assertEqual(bytes(row or b""), b'{"router":"fra-1","row":"message","at":1,"output":{"a":1.000}}')

    @given(st.dictionaries(st.sampled_from(["input", "output", "x"]), VALUES), st.sampled_from([None, 1, "\r\n"]))
    def test_one_line(self, values: dict[str, Any], indent: Any) -> None:
        """Any row is one line, which is what the router has sent, however it was written."""
        sent = {"row": "message", "at": 1, **values}
        row = read_row(json.dumps(sent, indent=indent, ensure_ascii=indent is None).encode(), "fra-1")
        assert row is not None
        self.assertEqual(bytes(row).splitlines(), [bytes(row)])
        self.assertEqual(json.loads(bytes(row)), {**sent, "router": "fra-1"})

    def test_time(self) -> None:
        """The worst rows that may come at once do not take long."""
        rows = [
            b"[0.1" + b",0.1" * 125_000 + b"]",
            b"[[]" + b",[]" * 170_000 + b"]",
            b'[{"a":0}' + b',{"a":0}' * 60_000 + b"]",
        ]
        took = []
        for row in rows:
            sent = b'{%s,"output":%s}' % (HEAD.encode(), row)
            self.assertIsNotNone(read_row(sent, "fra-1"))
            took.append(min(timeit(lambda sent=sent: read_row(sent, "fra-1"), number=1) for _ in range(5)))  # type: ignore[misc]
        self.assertLess(max(took), 0.025)

    def test_depth(self) -> None:
        """A row may nest as deep as a message of a body can, and brackets in texts are no levels."""
        texts = json.dumps(["[{" * 300, '"[' * 300, "\\"]).encode()
        for output in (b"[" * (DEEPEST - 1) + b"]" * (DEEPEST - 1), texts, b"[" + b"[]," * 300 + b"{}]"):
            row = b'{%s,"output":%s}' % (HEAD.encode(), output.replace(b" ", b""))
            self.assertIsNotNone(read_row(row, "fra-1"))

    def test_no_row(self) -> None:
        """What is no row is not shown: of other kinds or types, naming its router, not UTF-8, too deep or too long."""
        for row in (
            b'{"router":"ber-1",%s}' % HEAD.encode(),
            b'{%s,"rou\\u0074er":null}' % HEAD.encode(),
            b"1",
            b"[]",
            b"{}",
            b'{"row":"end","at":1}',
            b'{"row":"message"}',
            b'{"row":"message","at":"now"}',
            b'{"row":"message","at":-1}',
            b'{"row":"message","at":1,"id":{}}',
            b'{"row":"message","at":1,"source":1}',
            b'{%s,"output":"\xff"}' % HEAD.encode(),
            b'{%s,"output":"\\ud800"}' % HEAD.encode(),
            b'{%s,"output":%s%s}' % (HEAD.encode(), b"[" * DEEPEST, b"]" * DEEPEST),
            b'{%s,"output":%s"\\\\\\"]]]"%s}' % (HEAD.encode(), b'{"[":' * DEEPEST, b"}" * DEEPEST),
            b'{%s,"output":%s%s}' % (HEAD.encode(), b"[" * 200_000, b"]" * 200_000),
            b'{%s,"output":"%s"}' % (HEAD.encode(), b"x" * MOST_ROW),
        ):
            with self.subTest(row=row[:60]):
                self.assertIsNone(read_row(row, "fra-1"))
