"""
Tests for L{webhookrx.trials.differences}.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.trials.differences import differences


class DifferencesTests(SynchronousTestCase):
    """What has changed."""

    def test_table(self) -> None:
        """Fields that are new, gone or other are told, by their paths; what is the same is not."""
        cases: tuple[tuple[Any, Any, list[str]], ...] = (
            ({}, {}, []),
            ({"a": 1}, {"a": 1}, []),
            ({"a": 1}, {"a": 2}, ["~ a = 2 (was 1)"]),
            ({"a": 1}, {"a": True}, ["~ a = true (was 1)"]),
            ({"a": None}, {}, ["- a (was null)"]),
            ({}, {"a": {"b": 1}}, ['+ a = {"b":1}']),
            ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3, "d": 4}}, ["- a.b (was 1)", "~ a.c = 3 (was 2)", "+ a.d = 4"]),
            ({"a": {"b": 1}}, {"a": [1]}, ['~ a = [1] (was {"b":1})']),
            ({"a": [1, 2]}, {"a": [1, 3]}, ["~ a = [1,3] (was [1,2])"]),
            ({"a": {"b.c": {"d e": 1}}}, {"a": {"b.c": {"d e": 2}}}, ['~ a["b.c"]["d e"] = 2 (was 1)']),
            ({"a": Raw(b"1.10")}, {"a": Raw(b"1.10")}, []),
            ({"a": Raw(b"1.10")}, {"a": Raw(b"1.1")}, ["~ a = 1.1 (was 1.10)"]),
        )
        for before, after, expected in cases:
            self.assertEqual(expected, list(map(str, differences(before, after))))

    def test_long(self) -> None:
        """Of a long value the beginning is shown."""
        (found,) = differences({}, {"a": "x" * 1000})
        self.assertEqual(200 + len("+ a = "), len(str(found)))
