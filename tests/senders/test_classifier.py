"""
Tests for L{webhookrx.senders.classifier} and L{webhookrx.senders.index}.
"""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import compiled, entry_of, evidence_of, known_of
from webhookrx.intake.head import Head, HeaderLines, Peer
from webhookrx.query import QueryTooCostly
from webhookrx.senders.classifier import HIGH, LOW, MAX_NAME, MEDIUM, Classifier, attempt_number, delivery_id
from webhookrx.senders.compiled import BadDefinition
from webhookrx.senders.definition import SenderDefinition, When
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.extraction import extract
from webhookrx.senders.index import Index

QUERY = {"token": "v1-secret", "tag": ["x", "y"]}
FORM = "application/x-www-form-urlencoded"


def holds(when: Any, evidence: Evidence) -> bool:
    """Tell whether conditions hold, as the classifier sees it."""
    return Classifier([entry_of(when=when)]).classify(evidence) is not None


def one(name: str, when: Any, **members: Any) -> SenderDefinition:
    """Return a definition."""
    return entry_of(id=name, when=when, **members)


class ConditionTests(SynchronousTestCase):
    """When a definition matches."""

    def test_too_costly(self) -> None:
        """
        Where it would take too long to find out whether an entry matches, nobody is said to be the sender, be there
        others that match or not; but for an entry that wins over it anyway.
        """
        evidence = evidence_of({"a": "a" * 100_000, "b": 1})
        for body in ("a =~ '(a?){1000}b'", "a !~ '(a?){1000}b'"):
            costly = one("costly", {"body_keys": ["a"], "body": body}, priority=9)
            for others in ([], [one("other", {"body_keys": ["b"]})]):
                self.assertRaises(QueryTooCostly, Classifier([costly, *others]).classify, evidence)
            match = Classifier([costly, one("better", {"body_keys": ["b"]}, priority=10)]).classify(evidence)
            self.assertEqual("better", match and match.sender.id)

    def test_table(self) -> None:
        """All conditions must hold."""
        body = {"a": {"b": "x"}, "c": None}
        headers = {
            "X-Event": "push it",
            "X-Empty": "",
            "User-Agent": "Acme-Hook/1.0",
            "Content-Type": "Application/JSON; x=y",
        }
        for when, expected in (
            ({"headers": {"X-EVENT": "*"}}, True),
            ({"headers": {"x-event": "^push"}}, True),
            ({"headers": {"x-event": "it$"}}, True),
            ({"headers": {"x-event": "^it"}}, False),
            ({"headers": {"x-empty": "*"}}, True),
            ({"headers": {"x-empty": "^$"}}, True),
            ({"headers": {"x-event": "*", "x-other": "*"}}, False),
            ({"headers": {"x-event": "*", "user-agent": "^Acme"}}, True),
            ({"headers": {"user-agent": "(?i)^acme"}}, True),
            ({"any_header": ["x-other", "X-Event"]}, True),
            ({"any_header": ["x-other"]}, False),
            ({"headers": {"x-event": "*"}, "any_header": ["x-other"]}, False),
            ({"body_keys": ["a", "c"]}, True),
            ({"body_keys": ["a", "d"]}, False),
            ({"body": "a.b = x"}, True),
            ({"body": "a.b = y"}, False),
            ({"body": "NOT a.b = y"}, True),
            ({"body": "@ANY = x"}, True),
            ({"body": "a.b = y OR d != z"}, True),
            ({"body": "a.b = y OR d = z"}, False),
            ({"body_keys": ["a"], "content_type": "application/JSON"}, True),
            ({"body_keys": ["a"], "content_type": "text/plain"}, False),
            ({"body_keys": ["a"], "content_type": "application/j"}, False),
            ({"body_keys": ["a"], "path": "^/events/[a-z]+$"}, True),
            ({"body_keys": ["a"], "path": "^/hooks"}, False),
            ({"headers": {"x-event": "*"}, "body_keys": ["a"], "body": "c EXISTS"}, True),
            ({"headers": {"x-event": "*"}, "body_keys": ["a"], "body": "d EXISTS"}, False),
            ({"query": {"token": "*"}}, True),
            ({"query": {"Token": "*"}}, False),
            ({"query": {"token": "^v1-", "tag": "^x"}}, True),
            ({"query": {"token": "^v2-"}}, False),
            ({"query": {"tag": "y"}}, False),
            ([{"headers": {"x-other": "*"}}, {"body_keys": ["a"]}], True),
            ([{"headers": {"x-other": "*"}}, {"body_keys": ["d"]}], False),
        ):
            self.assertEqual(holds(when, evidence_of(body, headers, path=b"/events/acme", query=QUERY)), expected, when)

    def test_no_object(self) -> None:
        """Conditions on the body do not hold when there is no object in it."""
        for body in (b"plain", b"", [1, 2], 7):
            for when in (
                {"body_keys": ["a"]},
                {"body": "NOT a EXISTS"},
                {"headers": {"x": "*"}, "body": "NOT a EXISTS"},
            ):
                self.assertFalse(holds(when, evidence_of(body, {"x": "1"})))
        self.assertTrue(holds({"headers": {"x": "*"}}, evidence_of(b"plain", {"x": ""})))

    def test_several_objects(self) -> None:
        """The first object counts, and so do the fields of a form."""
        for body in ([{"a": 1}, {"b": 2}], b'{"a": 1}\n{"b": 2}', b'{"a": 1}{"b": 2}'):
            self.assertTrue(holds({"body_keys": ["a"]}, evidence_of(body)))
            self.assertFalse(holds({"body_keys": ["b"]}, evidence_of(body)))
        self.assertTrue(holds({"body": "a = x"}, evidence_of(b"a=x", {"Content-Type": FORM})))


class RankTests(SynchronousTestCase):
    """Which of several entries that match is the one."""

    def winner(self, *entries: SenderDefinition) -> str:
        """Return the id of the definition of a request, in whatever order the definitions are."""
        evidence = evidence_of({"a": 1, "b": 2}, {"X-A": "1", "X-B": "2"}, query=QUERY)
        found = set()
        for seed in range(4):
            shuffled = list(entries)
            random.Random(seed).shuffle(shuffled)
            match = Classifier(shuffled).classify(evidence)
            found.add(match.sender.id if match else "")
        self.assertEqual(len(found), 1)
        return found.pop()

    def test_header_first(self) -> None:
        """A header outranks the body, whatever the priority."""
        header, body = one("z", {"headers": {"x-a": "*"}}), one("a", {"body_keys": ["a", "b"]}, priority=100)
        self.assertEqual(self.winner(header, body), "z")
        self.assertEqual(self.winner(one("z", {"any_header": ["x-a"]}), body), "z")

    def test_priority(self) -> None:
        """The higher priority wins over more conditions."""
        low, high = one("a", {"body_keys": ["a", "b"]}), one("z", {"body_keys": ["a"]}, priority=1)
        self.assertEqual(self.winner(low, high), "z")

    def test_conditions(self) -> None:
        """More conditions win over the name."""
        for more in (
            {"body_keys": ["a", "b"]},
            {"body_keys": ["a"], "body": "b EXISTS"},
            {"body_keys": ["a"], "path": "/events"},
            {"body_keys": ["a"], "body": "@ANY = 1"},
            {"body_keys": ["a"], "query": {"token": "*"}},
        ):
            self.assertEqual(self.winner(one("a", {"body_keys": ["a"]}), one("z", more)), "z", more)

    def test_id(self) -> None:
        """At last the first by id wins."""
        self.assertEqual(self.winner(one("b", {"body_keys": ["a"]}), one("a", {"body_keys": ["b"]})), "a")

    def test_best_way(self) -> None:
        """Of a definition with several ways, the best that holds is compared with others."""
        both = one("z", [{"headers": {"x-a": "*"}}, {"body_keys": ["a"]}])
        body = one("a", {"body_keys": ["a", "b"]}, priority=100)
        self.assertEqual(self.winner(both, body), "z")
        only_body = one("z", [{"headers": {"x-missing": "*"}}, {"body_keys": ["a"]}])
        self.assertEqual(self.winner(only_body, body), "a")

    def test_header_beside_body(self) -> None:
        """A header that all requests have leads to nothing, and wins all the same."""
        common = one("z", {"headers": {"user-agent": "^Acme"}})
        evidence = evidence_of({"a": 1}, {"User-Agent": "Acme", "X-A": "1"})
        for others, expected in (
            ([one("a", {"body_keys": ["a"]})], "z"),
            ([one("a", {"headers": {"host": "*"}, "body_keys": ["c"]}, priority=9)], "z"),
            ([one("a", {"headers": {"user-agent": "*"}, "body_keys": ["a"]}, priority=9)], "a"),
            ([one("a", {"headers": {"user-agent": "*"}, "body_keys": ["a"]}, priority=-9)], "z"),
        ):
            match = Classifier([common, *others]).classify(evidence)
            self.assertEqual(match and match.sender.id, expected)

    def test_none(self) -> None:
        """No definition may match."""
        self.assertEqual(self.winner(one("b", {"body_keys": ["c"]})), "")
        self.assertIsNone(Classifier([]).classify(evidence_of({"a": 1})))

    def test_bad_entries(self) -> None:
        """Entries that can't be used, or share an id, are a mistake."""
        self.assertRaises(BadDefinition, Classifier, [one("a", {"path": "/"})])
        self.assertRaises(ValueError, Classifier, [one("a", {"body_keys": ["a"]}), one("a", {"body_keys": ["b"]})])

    def test_matching(self) -> None:
        """All entries that match can be asked for, the winner first."""
        entries = [one("c", {"body_keys": ["a"]}), one("a", {"body_keys": ["x"]}), one("b", {"headers": {"x": "*"}})]
        found = Classifier(entries).matching_senders(evidence_of({"a": 1}, {"X": ""}))
        self.assertEqual([entry.id for entry in found], ["b", "c"])

    def test_holding(self) -> None:
        """Of each definition the best way that holds is told."""
        entry = one("a", [{"body_keys": ["a"]}, {"body_keys": ["a", "b"]}, {"headers": {"x": "*"}}])
        for headers, way in (({"X": ""}, 2), ({}, 1)):
            classifier = Classifier([entry])
            (found,) = classifier.matching_alternatives(evidence_of({"a": 1, "b": 2}, headers))
            self.assertEqual(found.conditions, found.sender.alternatives[way])


class MatchTests(SynchronousTestCase):
    """What is said of a sender."""

    def test_why(self) -> None:
        """What was matched is named, and nothing that the sender chose."""
        headers = {"X-A": "secret-1", "X-C": "secret-2", "Content-Type": "application/json"}
        evidence = evidence_of(
            {"b": "secret-3", "a": {"c": "secret-4"}}, headers, path=b"/events/secret-5", query=QUERY
        )
        for when, confidence, why in (
            ({"headers": {"X-A": "*"}}, HIGH, "header x-a"),
            ({"headers": {"x-c": "^secret", "x-a": "*"}}, HIGH, "headers x-a, x-c"),
            ({"any_header": ["x-a", "x-b", "x-c"]}, HIGH, "headers x-a, x-c"),
            ({"headers": {"x-c": "*"}, "any_header": ["x-a", "x-b"]}, HIGH, "headers x-c, x-a"),
            ({"body_keys": ["b", "a"]}, MEDIUM, "body keys a, b"),
            ({"query": {"token": "*"}}, MEDIUM, "query parameter token"),
            ({"query": {"token": "secret", "tag": "*"}}, MEDIUM, "query parameters tag, token"),
            ([{"headers": {"X-B": "*"}}, {"body_keys": ["a"]}], MEDIUM, "body key a"),
            ([{"body_keys": ["a"]}, {"any_header": ["X-A"]}], HIGH, "header x-a"),
            ({"body_keys": ["a"], "body": "a.c EXISTS"}, MEDIUM, "body key a; query a.c EXISTS"),
            (
                {"body_keys": ["a"], "content_type": "application/json", "path": "^/events"},
                MEDIUM,
                "content type application/json; path ^/events; body key a",
            ),
        ):
            match = Classifier([entry_of(when=when)]).classify(evidence)
            assert match is not None
            self.assertEqual((match.confidence, match.why), (confidence, why))

    def test_service(self) -> None:
        """The service is a text with places, of the event."""
        body = {"type": "outer", "events": [{"type": "inner"}], "more": '{"type": "decoded"}'}
        for members, service in (
            ({}, ""),
            ({"service": "fixed"}, "fixed"),
            ({"service": "{header:x-a}.{/type}"}, "A.outer"),
            ({"service": "{/missing}"}, ""),
            ({"service": "/type", "events": "/events"}, "inner"),
            ({"service": "/more/type", "decode": [{"at": "/more"}]}, "decoded"),
            ({"service": "/type", "decode": [{"at": "/more"}]}, "outer"),
            ({"service": ["header:x-b", "/missing", "/more/type", "/type"], "decode": [{"at": "/more"}]}, "decoded"),
            ({"service": ["header:x-a", "/type"], "events": "/events"}, "A"),
            ({"service": []}, ""),
        ):
            entry = entry_of(when={"body_keys": ["events"]}, **members)  # type: ignore[arg-type]
            match = Classifier([entry]).classify(evidence_of(body, {"X-A": "A"}))
            self.assertEqual(match and match.service, service)

    def test_long_service(self) -> None:
        """A service is cut off."""
        match = Classifier([entry_of(service="/a")]).classify(evidence_of({"a": "x" * 1000}))
        self.assertEqual(match and match.service, "x" * MAX_NAME)
        cut_at_blank = "x" * (MAX_NAME - 1)
        match = Classifier([entry_of(service="/a")]).classify(evidence_of({"a": f"{cut_at_blank} y"}))
        self.assertEqual(match and match.service, cut_at_blank)


class IndexTests(SynchronousTestCase):
    """Which entries are looked at."""

    def candidates(self, body: Any, headers: dict[str, str], *whens: dict[str, Any]) -> list[int]:
        """Return the places of the ways that are looked at."""
        index = Index([compiled(when=when).alternatives[0] for when in whens])
        evidence = evidence_of(body, headers, query=QUERY)
        return [*index.by_headers(evidence.header_names()), *index.by_body(evidence.object, evidence.query)]

    def test_rarest(self) -> None:
        """A definition is found by what fewest others have, and not by what everybody has."""
        body, headers = {"id": 1, "a": 2, "b": 3}, {"User-Agent": "x", "X-A": "1"}
        for whens, expected in (
            (({"body_keys": ["id", "zz"]}, {"body_keys": ["id"]}), [1]),
            (({"body_keys": ["a", "b"]}, {"body_keys": ["a", "c"]}, {"body_keys": ["a", "d"]}), [0]),
            (({"headers": {"user-agent": "*"}, "body_keys": ["c"]},), []),
            (({"headers": {"user-agent": "*"}, "body_keys": ["a"]},), [0]),
            (({"headers": {"x-a": "*", "x-b": "*"}}, {"headers": {"x-a": "*"}}), [1]),
            (({"any_header": ["x-a", "x-b"]},), [0]),
            (({"any_header": ["x-b"]},), []),
            (({"headers": {"x-a": "*"}, "body_keys": ["zz"]},), [0]),
            (({"query": {"token": "*"}}, {"query": {"other": "*"}}), [0]),
            (({"query": {"token": "*"}, "body_keys": ["zz"]}, {"query": {"other": "*"}, "body_keys": ["a"]}), [1]),
        ):
            self.assertEqual(self.candidates(body, headers, *whens), expected, whens)

    def test_queries(self) -> None:
        """Queries lead to members that must be there, if there are such."""
        for query, expected in {
            "a EXISTS": [0],
            "c EXISTS": [],
            "a.x = 1 AND id = 2": [0],
            "a.x = 1 AND c = 2": [],
            "c = 1 OR a.x = 2": [0],
            "c = 1 OR d.x = 2": [],
            "(c = 1 OR d = 2) AND id = 1": [],
            "c != 1": [0],
            "NOT c EXISTS": [0],
            "@ANY = 1": [0],
            "c = 1 OR d != 2": [0],
        }.items():
            self.assertEqual(sorted(set(self.candidates({"a": 1, "id": 2}, {}, {"body": query}))), expected, query)

    def test_dotted_names(self) -> None:
        """A member whose name has dots is found too."""
        self.assertTrue(holds({"body": "a.b.c = x"}, evidence_of({"a.b.c": "x"})))
        self.assertTrue(holds({"body": "a.b.c = x"}, evidence_of({"a": {"b.c": "x"}})))

    def test_few(self) -> None:
        """Of the entries of the package, few are looked at, and none without a lead."""
        index = Index([way.conditions for way in Classifier(builtin_definitions()).alternatives])
        self.assertEqual((index.by_headers([]), index.by_body({}, {}), index.by_body(None, {})), ([], [], []))
        names = [b"content-type", b"user-agent", b"authorization", b"content-length", b"host", b"accept"]
        keys = ["id", "type", "data", "time", "message", "event", "name", "source", "timestamp", "action", "text"]
        self.assertLessEqual(len({*index.by_headers(names), *index.by_body(dict.fromkeys(keys), {})}), 9)


class EverythingTests(SynchronousTestCase):
    """Whatever senders send."""

    classifier = Classifier(builtin_definitions())
    ways = tuple(way for entry in builtin_definitions() for way in entry.alternatives)
    names = sorted({key for way in ways for key in way.body_keys} | {"message", "a"})
    header_names = sorted({name for way in ways for name in (*way.headers, *way.any_header)} | {"content-type"})

    @given(st.data())
    def test_anything(self, data: st.DataObject) -> None:
        """Classify and Parse raise nothing, for any head and any body; the short way finds what the long way does."""
        values = st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(self.names), inner, max_size=4),
            max_leaves=12,
        )
        body = data.draw(st.binary(max_size=40) | values)
        headers = data.draw(
            st.dictionaries(st.sampled_from(self.header_names), st.text("az019:/.+-T ", max_size=20), max_size=4)
        )
        query = data.draw(st.dictionaries(st.just("validationToken"), st.text(max_size=3)))
        evidence = evidence_of(body, headers, query=query)
        match = self.classifier.classify(evidence)
        holding = self.classifier.matching_alternatives(evidence)
        self.assertEqual(match and match.sender, holding[0].sender if holding else None)
        if match is not None:
            sure = HIGH if holding[0].conditions.by_header else MEDIUM
            self.assertEqual(match.confidence, LOW if match.sender.definition.last_resort else sure)
        for way in self.classifier.alternatives:
            extract(way.sender, evidence)

    @given(st.binary(max_size=60), st.lists(st.tuples(st.binary(max_size=8), st.binary(max_size=8)), max_size=4))
    def test_any_bytes(self, block: bytes, pairs: list[tuple[bytes, bytes]]) -> None:
        """Heads may be any bytes."""
        for headers in (HeaderLines(block), pairs):
            evidence = known_of(Head(b"POST", b"/", b"", headers, Peer("", None, False)), {}, b"")
            match = self.classifier.classify(evidence)
            self.assertEqual(match and match.sender, next(iter(self.classifier.matching_senders(evidence)), None))

    def test_many_names(self) -> None:
        """Requests with ever other names of headers are told apart, and do not fill the memory."""
        names = [f"x-{number}" for number in range(40)]
        classifier = Classifier([one(name, {"headers": {name: "*"}}) for name in names])
        chance = random.Random(0)
        for _ in range(2000):
            some = chance.sample(names, 3)
            found = classifier.classify(evidence_of(b"", dict.fromkeys(some, "1")))
            assert found is not None
            self.assertEqual(found.sender.id, min(some))
        self.assertLessEqual(classifier.known_leads, 256)

    def test_order(self) -> None:
        """The order of the entries makes no difference."""
        reversed_order = Classifier(reversed(builtin_definitions()))
        self.assertEqual(
            [(way.sender.id, way.conditions.describe([])) for way in reversed_order.alternatives],
            [(way.sender.id, way.conditions.describe([])) for way in self.classifier.alternatives],
        )

    def test_type(self) -> None:
        """A definition without anything in C{when} is refused."""
        self.assertRaises(BadDefinition, Classifier, [SenderDefinition(id="a", vendor="a", product="a", when=When())])


class DeliveryTests(SynchronousTestCase):
    """Which delivery a request is."""

    def test_table(self) -> None:
        """The first place that yields something counts, in the headers or the body; a long one is cut off."""
        entry = compiled(delivery=["header:x-first", "header:x-second", "/event/id"])
        for headers, body, expected in (
            ({"X-Second": "2", "X-First": "1"}, {"event": {"id": "3"}}, "1"),
            ({"X-Second": "2", "X-First": " "}, {}, "2"),
            ({}, {"event": {"id": "3"}}, "3"),
            ({}, {"event": {"id": 3}}, "3"),
            ({}, {"event": {"id": ["3"]}}, ""),
            ({}, b"text", ""),
            ({"X-First": "x" * 300}, {}, "x" * 255),
        ):
            self.assertEqual(expected, delivery_id(entry, evidence_of(body, headers)))
        self.assertEqual("", delivery_id(compiled(), evidence_of({"event": {"id": "3"}})))

    def test_attempt(self) -> None:
        """Which attempt it is may be in a header, or a number in the body; most senders do not say it."""
        by_header, by_body = compiled(attempt="header:x-try"), compiled(attempt="/try")
        self.assertEqual("2", attempt_number(by_header, evidence_of({"try": 3}, {"X-Try": "2"})))
        self.assertEqual("3", attempt_number(by_body, evidence_of({"try": 3}, {"X-Try": "2"})))
        self.assertEqual("", attempt_number(by_header, evidence_of()))
        self.assertEqual("", attempt_number(compiled(), evidence_of({"try": 3}, {"X-Try": "2"})))

    def test_bad_place(self) -> None:
        """A place that can't be read is told where it is."""
        with self.assertRaises(BadDefinition) as caught:
            compiled(delivery=["/id", "id"])
        (problem,) = caught.exception.problems
        self.assertEqual(("entry-place", ("delivery", 1)), (problem.code, problem.path))
