"""Tests for L{webhookrx.guard.bundle_judge}: messages of the events of one body."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.guard import bundle_judge
from webhookrx.guard.bundle_judge import BundleJudge, JudgedBundle
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.judge import Admission, Judge, Receipt, Refused, SourceRules
from webhookrx.intake.provenance import Provenance
from webhookrx.message.encoders import encode_line
from webhookrx.router.connector_intake import ConnectorRules, judge_connector, judge_connector_for_lines
from webhookrx.router.steps.processing import Processing
from webhookrx.router.steps.step import Preprocessing, Step
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.split_definition import Split
from webhookrx.senders.splitting import Splitter

RECEIVED = 1_767_323_045_678_901_234
HEAD = Head(b"POST", b"/in", None, (), Peer("192.0.2.1", 40000, False))


class BundleCase(SynchronousTestCase):
    def judged(
        self,
        body: bytes,
        split: Split,
        rules: SourceRules | None = None,
        judge: Judge | None = None,
        for_lines: Judge | None = None,
        *,
        by_lines: bool = True,
        media_type: str = "",
        head: Head = HEAD,
    ) -> JudgedBundle | Refused:
        """Judge the events of a body."""
        bundle = Splitter((split,)).split(body, media_type)
        assert bundle is not None, "the body was not taken apart"
        rules = rules or self.rules()
        admission = Admission(rules, {}, {"q": "1"}, [], Provenance("acme", "token", delivery_id="d"))
        receipt = Receipt(RECEIVED, "id")
        bundles = BundleJudge(rules, judge, for_lines)
        return bundles.judge(bundle, head, admission, receipt, encode_line, by_lines=by_lines)

    def rules(self, **options: Any) -> SourceRules:
        """Return the rules of a source."""
        return SourceRules(**{"name": "in", "parse_json": True, "body_limit": 1000, "unpack_ratio": 100, **options})

    def lines(self, *args: Any, **options: Any) -> list[dict[str, Any]]:
        """Return the lines of all messages, as values; both ways make the same."""
        both = []
        for by_lines in (True, False):
            judged = self.judged(*args, by_lines=by_lines, **options)
            assert isinstance(judged, JudgedBundle)
            self.assertEqual([encode_line(message) for message in judged.messages], list(judged.prepared))
            both.append([json.loads(bytes(line)) for line in judged.prepared])  # type: ignore[arg-type]
        self.assertEqual(both[0], both[1])
        return both[0]


class SourceFormTests(BundleCase):
    """Messages of the source form."""

    def test_messages(self) -> None:
        """Each event is judged as a body of its own: its place, its envelope, its own id, its own size."""
        first, second = self.lines(b'{"s":"x","a":[{"n": 1},{"n": 22}]}', Split(at="/a/*"))
        common = {"ISODATE", "HOST", "SOURCE", "TAGS", "TRANSPORT", "SOURCEIP", "SOURCEPORT"}
        self.assertEqual(
            {
                "MESSAGE": '{"n": 1}',
                "n": 1,
                "RAWMSG_SIZE": 8,
                "RCPTID": "id-1",
                "webhook.query.q": "1",
                "webhook.sender": "acme",
                "webhook.verified": "token",
                "webhook.delivery_id": "d",
                "webhook.batch.index": 1,
                "webhook.batch.count": 2,
                "webhook.batch.envelope": '{"s":"x"}',
            },
            {name: value for name, value in first.items() if name not in common},
        )
        self.assertEqual(
            ("id-2", 2, 2, 22),
            tuple(second[name] for name in ("RCPTID", "webhook.batch.index", "webhook.batch.count", "n")),
        )

    def test_texts(self) -> None:
        """A text or number is a message whose text it is, and no body that fails to be JSON."""
        for rules in (self.rules(), self.rules(keep_unparsed=False), self.rules(parse_json=False)):
            lines = self.lines(b'["a \\"b\\"", 1.50, "{\\"a\\":1}", null]', Split(at="/*"), rules)
            self.assertEqual(['a "b"', "1.50", '{"a":1}', "null"], [line["MESSAGE"] for line in lines])
            self.assertFalse(any("webhook.parse_error" in line or "a" in line for line in lines))

    def test_raw_source(self) -> None:
        """With a source that reads no JSON, the bytes of each event are its text."""
        lines = self.lines(b'[ {"a" : 1.0} ,[1,  2]]', Split(at="/*"), self.rules(parse_json=False))
        self.assertEqual(['{"a" : 1.0}', "[1,  2]"], [line["MESSAGE"] for line in lines])

    def test_counts(self) -> None:
        """What is worth counting is counted for all of them together."""
        body = b'{"a":1,"SOURCEIP":2}\nplain\n{"webhook.batch.index":3,"RCPTID":4}\n'
        judged = self.judged(body, Split(by="lines"))
        assert isinstance(judged, JudgedBundle)
        self.assertEqual(
            (3, Counter({"unparsed_payload": 1}), 3, 0), (judged.events, judged.notes, judged.left_out, judged.bare)
        )
        self.assertEqual(3, len(judged.messages))

    def test_all_or_none(self) -> None:
        """When one event is refused, all are."""
        judged = self.judged(b'{"a":1}\nplain\n', Split(by="lines"), self.rules(keep_unparsed=False))
        assert isinstance(judged, Refused)
        self.assertEqual(("bad_payload", "in"), (judged.reason.word, judged.source))

    def test_none(self) -> None:
        """No events make no messages."""
        self.assertEqual([], self.lines(b"[]", Split(at="/*")))

    def test_too_much(self) -> None:
        """What all messages take in all has a bound: headers, queries and envelopes go along with each."""
        self.patch(bundle_judge, "MAX_PREPARED", 5_000)
        head = Head(b"POST", b"/in", None, ((b"x-long", b"a" * 1_000),), HEAD.peer)
        rules = self.rules(include_request_headers=True)
        self.assertIsInstance(self.judged(b"[1,2,3]", Split(at="/*"), rules, head=head), JudgedBundle)
        judged = self.judged(b"[1,2,3,4]", Split(at="/*"), rules, head=head)
        assert isinstance(judged, Refused)
        self.assertEqual("too_many_events", judged.reason.word)


CLASSIFIER = Classifier(builtin_definitions())


class RouterFormTests(BundleCase):
    """Messages of the router form."""

    def records(self, body: bytes, split: Split, *steps: Step, media_type: str = "", **options: Any) -> list[Any]:
        """Return the records of all messages."""
        rules = ConnectorRules(
            "c",
            port=80,
            labels={},
            router="r",
            router_labels={},
            processing=Processing(Preprocessing(steps=steps, **options), CLASSIFIER),
            body_limit=1000,
            unpack_ratio=100,
        )
        head = Head(b"POST", b"/in", None, ((b"content-type", media_type.encode()),), HEAD.peer)
        return self.lines(
            body, split, rules, judge_connector, judge_connector_for_lines, media_type=media_type, head=head
        )

    def test_records(self) -> None:
        """Each event is a C{log.body}; its place is C{meta.batch}, with the envelope as an object."""
        first, second = self.records(b'{"s":1.50,"a":[{"n":1},"{\\"n\\":2}"]}', Split(at="/a/*"))
        self.assertEqual(({"n": 1}, '{"n":2}'), (first["log"]["body"], second["log"]["body"]))
        self.assertEqual(
            [{"index": number, "count": 2, "envelope": {"s": 1.5}} for number in (1, 2)],
            [first["meta"]["batch"], second["meta"]["batch"]],
        )
        self.assertEqual(("id-1", "id-2"), (first["meta"]["id"], second["meta"]["id"]))

    def test_classify(self) -> None:
        """Classify and Parse see each event in its place, and C{log.body} stays the event."""
        body = (
            b'{"receiver":"team","status":"firing","version":"4","groupKey":"{}","alerts":['
            b'{"status":"firing","labels":{"alertname":"A","severity":"critical"},"annotations":{"summary":"Hot"},'
            b'"startsAt":"2026-11-20T11:05:07Z","endsAt":"0001-01-01T00:00:00Z","fingerprint":"f"},'
            b'{"status":"resolved","labels":{"alertname":"B","severity":"critical"},"annotations":{},'
            b'"startsAt":"2026-11-20T11:05:08Z","endsAt":"2026-11-20T11:06:00Z","fingerprint":"g"}],"groupLabels":{},'
            b'"commonLabels":{},"commonAnnotations":{},"externalURL":"","truncatedAlerts":0}'
        )
        first, second = self.records(body, Split(at="/alerts/*"), classify=True, parse=True)
        for record in (first, second):
            self.assertEqual("alertmanager", record["meta"]["classify"]["rule"])
        self.assertEqual(("A", "B"), tuple(each["log"]["body"]["labels"]["alertname"] for each in (first, second)))
        self.assertNotIn("alerts", first["log"]["body"])
        self.assertIn("message", first["log"]["body"])
        self.assertEqual([21, 9], [record["log"]["severity_number"] for record in (first, second)])
        self.assertNotEqual(first["log"]["time_unix_nano"], second["log"]["time_unix_nano"])

    def test_classify_texts(self) -> None:
        """So do those of texts: frames of logplex, and arrays."""
        frames = b"".join(
            b"%d %s" % (len(each), each)
            for each in (
                b"<190>1 2026-03-02T08:15:00.123456+00:00 host app web.1 - Hot\n",
                b"<187>1 2026-03-02T08:15:01+00:00 host app web.1 - Cold\n",
            )
        )
        first, second = self.records(
            frames, Split(by="frames"), media_type="application/logplex-1", classify=True, parse=True
        )
        self.assertEqual(("Hot", "Cold"), (first["log"]["body"]["message"], second["log"]["body"]["message"]))
        self.assertGreater(second["log"]["severity_number"], first["log"]["severity_number"])
        values = b'["1795380906958422784","hot"],["1795380906958422785","cold"]'
        body = b'{"streams":[{"stream":{"job":"shop"},"values":[' + values + b"]}]}"
        first, second = self.records(body, Split(at="/streams/*/values/*"), classify=True, parse=True)
        self.assertEqual("loki-push", first["meta"]["classify"]["rule"])
        self.assertEqual(
            [1795380906958422784, 1795380906958422785],
            [int(each["log"]["time_unix_nano"]) for each in (first, second)],
        )
        self.assertEqual(("hot", "cold"), (first["log"]["body"]["message"], second["log"]["body"]["message"]))

    def test_changed_before(self) -> None:
        """A step before Parse that removes something from an event has it removed for good."""
        remove = Step(unset="log.body.secret")
        body = b'{"secret":"x","message":"a","level":"error"}\n{"message":"b"}\n'
        (first, second) = self.records(
            body, Split(by="documents", carry=("level",)), remove, Step(classify=True), Step(parse=True)
        )
        self.assertEqual({"message": "a", "level": "error"}, first["log"]["body"])
        self.assertEqual({"message": "b", "level": "error"}, second["log"]["body"])

    def test_dropped(self) -> None:
        """A step may drop some events: the others keep their numbers, and it is counted once for each."""
        select = Step(select="log.body.n > 1")
        rules = ConnectorRules(
            "c",
            port=80,
            labels={},
            router="r",
            router_labels={},
            processing=Processing(Preprocessing(steps=(select,)), CLASSIFIER),
            body_limit=1000,
            unpack_ratio=100,
        )
        judged = self.judged(b'[{"n":1},{"n":2},{"n":0},{"n":3}]', Split(at="/*"), rules, judge_connector)
        assert isinstance(judged, JudgedBundle)
        self.assertEqual(4, judged.events)
        self.assertEqual(2, sum(count for (word, _), count in judged.steps.items() if word == "dropped"))
        self.assertEqual(
            [2, 4],
            [json.loads(encode_line(message))["meta"]["batch"]["index"] for message in judged.messages],
        )
