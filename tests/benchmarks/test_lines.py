"""Tests for L{benchmarks.lines}; those for flat lines are in C{test_verify}, too."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.lines import Nested, flattened

BODY = '{"n":1,"amount":12.50,"user":"u7"}'
LINES = Nested(rule="github", fields=(("meta.team", "payments"),), copies=(("log.attributes.user", "user"),))


def line(**changes: Any) -> dict[str, Any]:
    """Return a good line; a name is a path with C{__} for a dot, None takes what is there away."""
    values: dict[str, Any] = {
        "log": {
            "body": json.loads(BODY),
            "attributes": {"user": "u7"},
            "observed_time_unix_nano": 1,
            "time_unix_nano": 0,
            "severity_number": 0,
            "severity_text": "",
        },
        "meta": {
            "connector": {"type": "webhook", "name": "a-b-b", "port": 8181, "labels": {"product": "webhook"}},
            "connection": {"src_ip": "127.0.0.1", "src_port": 40000, "transport": "http", "bytes": len(BODY) - 1},
            "router": {"name": "a", "labels": {}},
            "host": {"name": "127.0.0.1"},
            "id": "an id",
            "classify": {"rule": "github", "confidence": "high", "why": "header x-github-event"},
            "team": "payments",
        },
    }
    for name, value in changes.items():
        *way, last = name.split("__")
        place = values
        for step in way:
            place = place[step]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return values


class NestedTests(SynchronousTestCase):
    """The router form."""

    def read(self, values: dict[str, Any], lines: Nested = LINES) -> tuple[str, str]:
        """Read a line."""
        return lines.read(json.dumps(values, separators=(",", ":")).encode())

    def test_read(self) -> None:
        """The body comes as it was sent, numbers with their spelling; the id with it."""
        text = json.dumps(line(log__body="BODY"), separators=(",", ":")).replace('"BODY"', BODY)
        self.assertEqual((BODY, "an id"), LINES.read(text.encode()))

    def test_text(self) -> None:
        """A body that was passed on as text is not the one that was sent."""
        self.assertNotEqual(BODY, self.read(line(log__body=BODY))[0])

    def test_wrong_lines(self) -> None:
        """What no line may miss is looked for in each."""
        for wrong in (
            line(meta__id=None),
            line(meta=None),
            line(log=None),
            line(log__body=None),
            line(meta__classify=None),
            line(meta__classify__rule=None),
            line(meta__classify__rule="gitlab"),
        ):
            self.assertRaises(ValueError, self.read, wrong)

    def test_not_classified(self) -> None:
        """Who does not classify must not say who sent it."""
        self.assertEqual("an id", self.read(line(meta__classify=None), Nested())[1])
        self.assertRaises(ValueError, self.read, line(), Nested())

    def test_look(self) -> None:
        """In a sample, all is looked at; what is wrong is told."""
        LINES.look_at(line())
        for changes, text in (
            ({"log__attributes": None}, "log has no attributes"),
            ({"log__time_unix_nano": None}, "log has no time_unix_nano"),
            ({"meta__router": None}, "meta has no router"),
            ({"meta__connector__labels": None}, "meta.connector has no labels"),
            ({"meta__connection": None}, "meta has no connection"),
            ({"meta__connection": 5}, "meta.connection is no object"),
            ({"meta__connection__src_port": None}, "meta.connection has no src_port"),
            ({"meta__connection__bytes": 5}, "meta.connection.bytes is wrong"),
            ({"meta__team": "others"}, "meta.team is 'others', not 'payments'"),
            ({"meta__team": None}, "it has no meta.team"),
            ({"log__attributes__user": "U7"}, "log.attributes.user is 'U7', not 'u7'"),
        ):
            error = self.assertRaises(ValueError, LINES.look_at, line(**changes))
            self.assertIn(text, str(error))


class FlatTests(SynchronousTestCase):
    """Names of members."""

    def test_flattened(self) -> None:
        """Names are joined by dots; an empty object and a list stay what they are."""
        self.assertEqual(
            {"a": 1, "b.c.d": [{"e": 2}], "b.f": {}}, flattened({"a": 1, "b": {"c": {"d": [{"e": 2}]}, "f": {}}})
        )
