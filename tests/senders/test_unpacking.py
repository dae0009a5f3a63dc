"""
Tests for L{webhookrx.senders.unpacking}.
"""

from __future__ import annotations

import gc
import gzip
from base64 import b64encode
from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import compiled, evidence_of
from webhookrx.intake.json_body import MAX_DEPTH, MAX_ELEMENTS
from webhookrx.senders import unpacking
from webhookrx.senders.definition import BODY_FORMATS
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.unpacking import Unpacked, unpack

LINES = b'{"a": 1}\nplain\n{"a": 2}'
SEVERAL = b'{"a": 1} {"a": 2} plain'


def unpacked(evidence: Evidence, **members: Any) -> Unpacked:
    """Return the body of a request as a definition with those members takes it apart."""
    return unpack(compiled(**members), evidence)


def base64(value: Any) -> str:
    """Return a value as JSON in base64."""
    return b64encode(msgspec.json.encode(value)).decode()


class FormatTests(SynchronousTestCase):
    """What a body is."""

    def test_all(self) -> None:
        """Each format that a data file may name has what reads it."""
        self.assertEqual(sorted(unpacking.READERS), sorted(BODY_FORMATS))

    def test_table(self) -> None:
        """A body that is JSON is read as such by every format but text; others by the format."""
        for body_format, body, whole, event in (
            ("json", {"a": 1}, {"a": 1}, {"a": 1}),
            ("json", [1, {"a": 1}], [1, {"a": 1}], {"a": 1}),
            ("json", [1], [1], None),
            ("json", b"plain", "plain", None),
            ("json", b"17", "17", None),
            ("json", SEVERAL, [{"a": 1}, {"a": 2}], {"a": 1}),
            ("json-stream", SEVERAL, [{"a": 1}, {"a": 2}], {"a": 1}),
            ("json-stream", LINES, [{"a": 1}], {"a": 1}),
            ("ndjson", LINES, [{"a": 1}, "plain", {"a": 2}], {"a": 1}),
            ("ndjson", {"a": 1}, {"a": 1}, {"a": 1}),
            ("ndjson", b"plain", "plain", None),
            ("form", b"a=1&b=2", {"a": "1", "b": "2"}, {"a": "1", "b": "2"}),
            ("form", {"a": 1}, {"a": 1}, {"a": 1}),
            ("form", b"%ff", "%ff", None),
            ("logplex", b"5 plain", [{"message": "plain"}], {"message": "plain"}),
            ("logplex", b"plain", "plain", None),
            ("text", {"a": 1}, '{"a":1}', None),
            ("text", b"plain", "plain", None),
        ):
            found = unpacked(evidence_of(body), format=body_format)
            self.assertEqual((found.whole, found.event), (whole, event), (body_format, body))
        self.assertEqual(unpacked(evidence_of(SEVERAL)).rest, "plain")
        self.assertEqual(unpacked(evidence_of({"a": 1})).rest, "")

    def test_remembered(self) -> None:
        """A body is taken apart once for a definition."""
        evidence = evidence_of(LINES)
        entry = compiled(format="ndjson")
        self.assertIs(unpack(entry, evidence), unpack(entry, evidence))
        self.assertEqual(unpack(compiled(format="text"), evidence).whole, LINES.decode())


class EventTests(SynchronousTestCase):
    """What places are looked up in first."""

    def test_pointer(self) -> None:
        """The first object of the array that C{events} points to, or the object there; else as without it."""
        for body, events, event in (
            ({"a": [7, {"b": 1}, {"b": 2}]}, "/a", {"b": 1}),
            ({"a": {"b": {"c": 1}}}, "/a/b", {"c": 1}),
            ({"a": [[{"c": 1}]]}, "/a/0", {"c": 1}),
            ({"a": 7}, "/a", {"a": 7}),
            ({"a": 7}, "/a/b", {"a": 7}),
            ({"a": []}, "/a", {"a": []}),
            ({}, "/a", {}),
            ([{"a": [{"b": 1}]}], "/a", {"b": 1}),
            ([7], "/a", None),
            (b"plain", "/a", None),
        ):
            self.assertEqual(unpacked(evidence_of(body), events=events).event, event, (body, events))


class DecodeTests(SynchronousTestCase):
    """Texts in a body that are structured themselves."""

    def test_table(self) -> None:
        """What is decoded is put in its place; what is not what the entry says stays as it is."""
        inner = {"x": [1]}
        packed = gzip.compress(b'{"x":[1]}')
        text, cut = b64encode(packed).decode(), b64encode(packed[:-1]).decode()
        for body, decode, expected in (
            ({"a": '{"x": [1]}'}, [{"at": "/a"}], {"a": inner}),
            ({"a": " [1]"}, [{"at": "/a"}], {"a": [1]}),
            ({"a": "17"}, [{"at": "/a"}], {"a": "17"}),
            ({"a": "{17}"}, [{"at": "/a"}], {"a": "{17}"}),
            ({"a": 17}, [{"at": "/a"}], {"a": 17}),
            ({"b": 1}, [{"at": "/a"}], {"b": 1}),
            ({"a": [{"b": "{}"}, {"b": "[]"}, 3, {}]}, [{"at": "/a/*/b"}], {"a": [{"b": {}}, {"b": []}, 3, {}]}),
            ({"a": ["{}", "{}"]}, [{"at": "/a/1"}], {"a": ["{}", {}]}),
            ({"a": ["{}"]}, [{"at": "/a/1"}], {"a": ["{}"]}),
            ({"a": 5}, [{"at": "/a/b"}], {"a": 5}),
            ({"a": base64(inner)}, [{"at": "/a", "what": "base64+json"}], {"a": inner}),
            ({"a": base64(inner)}, [{"at": "/a", "what": "base64"}], {"a": '{"x":[1]}'}),
            ({"a": base64("text")}, [{"at": "/a", "what": "base64+json"}], {"a": '"text"'}),
            ({"a": text}, [{"at": "/a", "what": "base64+gzip+json"}], {"a": inner}),
            ({"a": text}, [{"at": "/a", "what": "base64+json"}], {"a": text}),
            ({"a": cut}, [{"at": "/a", "what": "base64+gzip+json"}], {"a": cut}),
            ({"a": base64(inner)}, [{"at": "/a", "what": "base64+gzip+json"}], {"a": inner}),
            ({"a": "no base64!"}, [{"at": "/a", "what": "base64"}], {"a": "no base64!"}),
            ({"a": "/////w=="}, [{"at": "/a", "what": "base64"}], {"a": "/////w=="}),
            ({"a": "e30=!"}, [{"at": "/a", "what": "base64"}], {"a": "e30=!"}),
            ({"a": '{"b": "{}"}'}, [{"at": "/a"}, {"at": "/a/b"}], {"a": {"b": {}}}),
            ([{"a": "{}"}, {"a": 1}], [{"at": "/*/a"}], [{"a": {}}, {"a": 1}]),
            (b'{"a": "{}"}\n{"a": 1}', [{"at": "/*/a"}], [{"a": {}}, {"a": 1}]),
            (b"plain", [{"at": "/a"}], "plain"),
        ):
            self.assertEqual(unpacked(evidence_of(body), decode=decode).whole, expected, (body, decode))

    def test_evidence_stays(self) -> None:
        """What the evidence holds does not change."""
        evidence = evidence_of({"a": {"b": ["{}"]}, "c": "{}"})
        unpacked(evidence, decode=[{"at": "/a/b/0"}, {"at": "/a/b/*"}, {"at": "/c"}])
        self.assertEqual(evidence.decoded, {"a": {"b": ["{}"]}, "c": "{}"})

    def test_bounds(self) -> None:
        """There are bounds for how many texts are decoded, into how many values, and how deep they nest."""
        self.patch(unpacking, "MAX_UNPACKED", 20)
        packed = b64encode(gzip.compress(b'{"x":[1]}')).decode()
        body = {"a": [packed] * 3}
        decode = [{"at": "/a/*", "what": "base64+gzip+json"}]
        self.assertEqual({"a": [{"x": [1]}, {"x": [1]}, packed]}, unpacked(evidence_of(body), decode=decode).whole)
        self.patch(unpacking, "MAX_DECODED", 3)
        self.assertEqual(unpacked(evidence_of(["{}"] * 5), decode=[{"at": "/*"}]).whole, [{}] * 3 + ["{}"] * 2)
        many = "[" + "0," * (MAX_ELEMENTS // 2) + "0]"
        found: Any = unpacked(evidence_of([many, many, "{}"]), decode=[{"at": "/*"}]).whole
        self.assertEqual([type(each) for each in found], [list, str, str])
        for levels, decoded in ((MAX_DEPTH - 1, list), (MAX_DEPTH, str)):
            found = unpacked(evidence_of({"a": "[" * levels + "]" * levels}), decode=[{"at": "/a"}]).whole
            self.assertEqual(type(found["a"]), decoded)
        wide = "[" + "[]," * 200 + "[]]"
        found = unpacked(evidence_of({"a": wide}), decode=[{"at": "/a"}]).whole
        self.assertEqual(found, {"a": [[]] * 201})

    def test_nothing_stays(self) -> None:
        """A request that was taken apart is forgotten with its evidence: the two do not hold each other."""
        gc.collect()
        before = sum(isinstance(each, Evidence) for each in gc.get_objects())
        for number in range(10):
            unpacked(evidence_of({"events": [{"number": number}]}), events="/events")
        gc.collect()
        self.assertEqual(before, sum(isinstance(each, Evidence) for each in gc.get_objects()))
