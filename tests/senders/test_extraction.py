"""
Tests for L{webhookrx.senders.extraction}.
"""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import compiled, evidence_of
from webhookrx.senders.classifier import MAX_NAME
from webhookrx.senders.definition import SEVERITIES
from webhookrx.senders.extraction import Extracted, extract


def extracted(body: Any, headers: dict[str, str] | None = None, **members: Any) -> Extracted:
    """Return what a definition with those members takes from a request."""
    return extract(compiled(**members), evidence_of(body, headers))


class BodyTests(SynchronousTestCase):
    """The new body."""

    def test_table(self) -> None:
        """Objects keep their members; several events are a list; text is the message."""
        for body, members, expected in (
            ({"a": "x"}, {}, {"a": "x"}),
            ({"a": "x"}, {"message": ["/a"]}, {"a": "x", "message": "x"}),
            ({"a": "x"}, {"message": ["/b"]}, {"a": "x"}),
            ({"a": "x", "message": "y"}, {"message": ["/a"]}, {"a": "x", "message": "y"}),
            ({"a": "x", "message": {}}, {"message": ["/a"]}, {"a": "x", "message": {}, "message_text": "x"}),
            (
                {"a": "x", "message": 1, "message_text": 2},
                {"message": ["/a"]},
                {"a": "x", "message": 1, "message_text": 2},
            ),
            ({"a": '{"b": 1}'}, {"decode": [{"at": "/a"}]}, {"a": {"b": 1}}),
            ({"a": [{"b": 1}]}, {"events": "/a", "message": ["/b"]}, {"a": [{"b": 1}], "message": "1"}),
            ([{"a": 1}, 2], {"message": ["/a"]}, {"events": [{"a": 1}, 2], "message": "1"}),
            ([], {}, {"events": []}),
            (b'{"a": 1}\nx', {"format": "ndjson"}, {"events": [{"a": 1}, "x"]}),
            (b'{"a": 1} x', {"message": ["/a"]}, {"events": [{"a": 1}], "rest": "x", "message": "1"}),
            (b"a=1&b=2", {"format": "form", "message": ["/b"]}, {"a": "1", "b": "2", "message": "2"}),
            (b"plain", {}, {"message": "plain"}),
            (b"plain", {"message": ["path"]}, {"text": "plain", "message": "/events"}),
            (b"plain", {"message": ["plain"]}, {"message": "plain"}),
            (b"", {}, {"message": ""}),
            (b"17", {}, {"message": "17"}),
            ({"a": 1}, {"format": "text"}, {"message": '{"a":1}'}),
        ):
            self.assertEqual(extracted(body, **members).body, expected, (body, members))

    def test_evidence_stays(self) -> None:
        """What the evidence holds does not change."""
        evidence = evidence_of({"a": "x"})
        extract(compiled(message=["/a"]), evidence)
        self.assertEqual(evidence.decoded, {"a": "x"})


class PlaceTests(SynchronousTestCase):
    """Time, severity, message, host."""

    def test_latest(self) -> None:
        """Of several times at one place the latest counts."""
        body = {"a": [{"t": 5}, {"t": 9}, {"t": "soon"}, {"t": 7}]}
        self.assertEqual(extracted(body, time=[{"at": "/a/*/t", "format": "unix-ns"}]).time_unix_nano, 9)

    def test_condition(self) -> None:
        """A time with a condition counts only where the event is like that."""
        times = [{"at": "/a", "format": "unix-ns", "condition": "k = new"}, {"at": "/b", "format": "unix-ns"}]
        for body, expected in (
            ({"a": 5, "b": 6, "k": "new"}, 5),
            ({"a": 5, "b": 6, "k": "gone"}, 6),
            ({"a": 5, "k": "gone"}, None),
            ([{"a": 5, "k": "new"}, {"k": "gone"}], 5),
            (b"plain", None),
        ):
            self.assertEqual(extracted(body, time=times).time_unix_nano, expected, body)
        inside = {"o": [{"a": 5, "k": "new"}], "k": "gone"}
        self.assertEqual(extracted(inside, events="/o", time=times).time_unix_nano, 5)

    def test_message_condition(self) -> None:
        """A message with a condition counts only where the event is like that."""
        messages = [{"text": "{/a} is gone", "condition": "k = gone"}, {"text": "new", "condition": "k = new"}, "{/a}"]
        for body, expected in (
            ({"a": 1, "k": "gone"}, "1 is gone"),
            ({"k": "gone"}, None),
            ({"a": 1, "k": "new"}, "new"),
            ({"a": 1}, "1"),
            (b"plain", None),
        ):
            self.assertEqual(extracted(body, message=messages).message, expected, body)

    def test_port(self) -> None:
        """A port is taken off a host, and nothing else; those of all elements are compared without."""
        for host, expected in {
            "h1:9100": "h1",
            "192.0.2.1:80": "192.0.2.1",
            "[2001:db8::1]:80": "2001:db8::1",
            "2001:db8::1": "2001:db8::1",
            "https://h1:9100": "https://h1:9100",
            "h1:9100/metrics": "h1:9100/metrics",
            "h1:http": "h1:http",
            "h1:123456": "h1:123456",
            "h1": "h1",
        }.items():
            self.assertEqual(extracted({"a": host}, host=["/a"]).host, expected)
        body = {"e": [{"h": "h1:1"}, {"h": "h1:2"}]}
        self.assertEqual(extracted(body, host=["same:/e/*/h"]).host, "h1")

    def test_time(self) -> None:
        """The first place with a time that can be read counts."""
        times = [{"at": "/a", "format": "rfc3339"}, {"at": "header:x-time", "format": "unix"}, {"at": "/b/c"}]
        for body, headers, expected, where in (
            ({"a": "2024-02-29T12:00:00Z", "b": {"c": 5}}, {}, 1_709_208_000_000_000_000, "/a"),
            ({"a": 1_709_208_000, "b": {"c": 5}}, {}, 5_000_000_000, "/b/c"),
            ({"a": "soon"}, {"X-Time": "7"}, 7_000_000_000, "header:x-time"),
            ({"a": None}, {"X-Time": "x"}, None, None),
            (b"plain", {}, None, None),
        ):
            found = extracted(body, headers, time=times)
            self.assertEqual((found.time_unix_nano, found.taken.get("time")), (expected, where))

    def test_severity(self) -> None:
        """The first place with a severity that is known counts; the default otherwise."""
        severities = [{"at": "/a", "map": {"P1": "critical"}}, {"at": "/b/*/c"}, {"at": "header:x-level"}]
        for body, headers, default, name, where in (
            ({"a": "p1", "b": [{"c": "error"}]}, {}, "info", "critical", "/a"),
            ({"a": "p9", "b": [{"c": "?"}, {"c": "error"}]}, {}, "info", "error", "/b/*/c"),
            ({"a": "p9"}, {"X-Level": "Warning"}, "info", "warn", "header:x-level"),
            ({"a": "p9"}, {}, "info", "info", "default_severity"),
        ):
            found = extracted(body, headers, severity=severities, default_severity=default)
            self.assertEqual((found.severity, found.taken["severity"]), (SEVERITIES[name], where))
        found = extracted({"a": 1})
        self.assertEqual((found.severity, found.taken), (None, {}))

    def test_highest_severity(self) -> None:
        """Of all values that a place with a star leads to, the highest counts that is known."""
        place = {"at": "/a/*/b", "map": {"p1": "critical"}}
        for body, name in (
            ({"a": [{"b": "info"}, {"b": "p1"}, {"b": "error"}, {"b": "?"}]}, "critical"),
            ({"a": [{"b": "debug"}, {}, {"b": None}]}, "debug"),
            ({"a": [{"b": "?"}]}, "notice"),
            ({"a": []}, "notice"),
            ({"c": 1}, "notice"),
        ):
            found = extracted(body, severity=[place], default_severity="notice")
            self.assertEqual(found.severity, SEVERITIES[name], body)
        found = extracted({"e": [{"a": 1}], "a": [{"b": "info"}, {"b": "warn"}]}, events="/e", severity=[place])
        self.assertEqual(found.severity, SEVERITIES["warn"])

    def test_white_space(self) -> None:
        """What is taken has no white space around it, cut off or not."""
        members = {"message": [" {/a}: "], "host": ["/a"]}
        found = extracted({"a": " x" + " " * MAX_NAME + "y"}, **members)
        self.assertEqual((found.message, found.host), ("x" + " " * MAX_NAME + "y:", "x"))

    def test_texts(self) -> None:
        """Message and host are texts with places."""
        members = {"message": ["{/x}", "{/a}: {/b}"], "host": ["/host", "header:x-host"]}
        found = extracted({"a": "A", "b": "B"}, {"X-Host": "h" * 1000}, **members)
        self.assertEqual((found.message, found.host), ("A: B", "h" * MAX_NAME))
        self.assertEqual(found.taken, {"message": "/a, /b", "host": "header:x-host"})
        found = extracted({"c": 1}, {}, **members)
        self.assertEqual((found.message, found.host, found.taken), (None, None, {}))

    def test_batch(self) -> None:
        """Of several events the first object counts, and what is around them after it."""
        body = {"at": "2024-02-29T12:00:00Z", "level": "info", "items": [1, {"level": "error"}, {"level": "debug"}]}
        found = extracted(body, events="/items", time=[{"at": "/at"}], severity=[{"at": "/level"}])
        self.assertEqual((found.time_unix_nano, found.severity), (1_709_208_000_000_000_000, SEVERITIES["error"]))
