"""
Tests for L{webhookrx.senders.msgpack}.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import compiled, evidence_of
from webhookrx.intake.json_body import MAX_DEPTH
from webhookrx.senders.msgpack import MAX_BYTES, MAX_VALUES, read_msgpack
from webhookrx.senders.unpacking import unpack

HEADERS = {"Content-Type": "application/msgpack"}


def packed(value: Any) -> bytes:
    """Return a value as MessagePack."""
    return msgspec.msgpack.encode(value)


class ReadTests(SynchronousTestCase):
    """MessagePack as what its JSON would be."""

    def test_table(self) -> None:
        """Every value has its like in JSON."""
        value = {"t": "x", "i": -1, "f": 0.5, "n": None, "b": True, "l": [1], "o": {"a": {}}, "raw": b"\xff"}
        expected = value | {"f": msgspec.Raw(b"0.5"), "raw": "/w=="}
        self.assertEqual(read_msgpack(packed(value)), expected)
        self.assertEqual(read_msgpack(packed([{}, 2])), [{}, 2])
        self.assertEqual(read_msgpack(packed({"a": float("inf")})), {"a": "inf"})
        self.assertEqual(
            read_msgpack(packed({"a": datetime(2026, 1, 1, tzinfo=UTC)})), {"a": "2026-01-01T00:00:00+00:00"}
        )

    def test_refused(self) -> None:
        """What is no object or array, what JSON has not, and too much of it are nothing."""
        deep: Any = []
        for _ in range(MAX_DEPTH + 1):
            deep = [deep]
        for body in (
            b"", packed("x"), packed(5), packed({1: "x"}), packed([msgspec.msgpack.Ext(5, b"x")]), b"\xc1", b"\x81\xa1",
            packed(deep), packed([0] * MAX_VALUES), packed(["x" * MAX_BYTES]), b"\xdd\xff\xff\xff\xff", b"\x91\xa1\xff",
            b"\x91" * 5_000,
        ):  # fmt: skip
            self.assertIsNone(read_msgpack(body), body[:20])
        self.assertIsNotNone(read_msgpack(packed([0] * (MAX_VALUES - 1))))

    @given(st.binary(max_size=80))
    def test_anything(self, body: bytes) -> None:
        """Any bytes are read or not."""
        self.assertIn(type(read_msgpack(body)), (dict, list, type(None)))

    def test_format(self) -> None:
        """A body with its media type is told by its first object; with another it is read as JSON."""
        entry = compiled(format="msgpack")
        evidence = evidence_of(packed([{"a": 1}, {"a": 2}]), HEADERS)
        self.assertEqual(evidence.object, {"a": 1})
        self.assertEqual(unpack(entry, evidence).whole, [{"a": 1}, {"a": 2}])
        self.assertEqual(unpack(entry, evidence_of(b'{"a": 1} {"a": 2}')).whole, [{"a": 1}, {"a": 2}])
        self.assertEqual(unpack(entry, evidence_of(packed({"a": 1}))).event, None)
        self.assertFalse(evidence.is_json)
