"""Bodies with several events are taken apart, and nothing of them is lost."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import compiled, known_of
from tests.senders.test_samples import DATA
from webhookrx.errors import RequestRefused
from webhookrx.senders import split_values
from webhookrx.senders.bodies import LOGPLEX
from webhookrx.senders.bundle import MAX_ENVELOPE, MAX_EVENTS, Bundle, SplitEvent
from webhookrx.senders.compiled import BadDefinition
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.http_file import read_http_file
from webhookrx.senders.otlp import AVAILABLE
from webhookrx.senders.split_definition import Split
from webhookrx.senders.splitting import Splitter, splitter_for

FIREHOSE = Split(at="/records/*/data", decode="base64+gzip", inside="/logEvents/*")
OTLP = Split(at="/resourceLogs/*/scopeLogs/*/logRecords/*")


def split(body: bytes | Any, *ways: Split, media_type: str = "") -> Bundle | None:
    """Take a body apart; one that is no bytes is sent as JSON."""
    return Splitter(ways).split(body if isinstance(body, bytes) else json.dumps(body).encode(), media_type)


def bodies(found: Bundle | None) -> list[bytes]:
    """Return the bodies of all events."""
    assert found is not None, "the body was not taken apart"
    return [event.body for event in found.events]


def envelopes(found: Bundle | None) -> list[Any]:
    """Return the envelopes of all events, None for each that has none."""
    assert found is not None, "the body was not taken apart"
    return [json.loads(event.around.envelope) if event.around.envelope else None for event in found.events]


def wholes(found: Bundle | None) -> list[bytes]:
    """Return bodies like the sender's, one for each event."""
    assert found is not None, "the body was not taken apart"
    return [event.around.whole(event.body, event.is_text) for event in found.events]


def data(text: bytes) -> str:
    """Return a record's data."""
    return b64encode(text).decode()


class ValueTests(SynchronousTestCase):
    """Events at a JSON pointer."""

    def test_exact_bytes(self) -> None:
        """An event is the bytes that were sent: order, spelling of numbers, equal names and white space stay."""
        event = b'{ "b":1.50e+3, "a":12345678901234567890123, "a":"\\u00e9" }'
        self.assertEqual([event, b"[1, 2]"], bodies(split(b"\xef\xbb\xbf [" + event + b" ,[1, 2]]", Split(at="/*"))))

    def test_scalars(self) -> None:
        """Texts and numbers are events by themselves: a text by its content, anything else as it was sent."""
        found = split(b'["a \\"b\\" \\ud800", 1.50, true, null, "{}"]', Split(at="/*"))
        assert found is not None
        self.assertEqual(
            [('a "b" \ufffd'.encode(), True), (b"1.50", True), (b"true", True), (b"null", True), (b"{}", True)],
            [(event.body, event.is_text) for event in found.events],
        )

    def test_envelope(self) -> None:
        """What stands around an event goes along, but for the array, as compact JSON."""
        found = split(b'{"status": "firing", "alerts":[{"a":1},{"a":2}], "n": 1.50}', Split(at="/alerts/*"))
        self.assertEqual(([b'{"a":1}', b'{"a":2}']), bodies(found))
        assert found is not None
        self.assertEqual({b'{"status":"firing","n":1.50}'}, {event.around.envelope for event in found.events})
        self.assertEqual([None], envelopes(split({"alerts": [1]}, Split(at="/alerts/*"))))

    def test_several_depths(self) -> None:
        """Of each array on the way, the one element goes along, in the place of the array."""
        body = {
            "resourceLogs": [
                {
                    "resource": {"r": 1},
                    "scopeLogs": [
                        {"scope": {"s": 1}, "logRecords": [{"n": 1}, {"n": 2}]},
                        {"logRecords": [{"n": 3}]},
                    ],
                    "schemaUrl": "u",
                },
                {"resource": {"r": 2}, "scopeLogs": [{"logRecords": [{"n": 4}]}]},
            ]
        }
        found = split(body, OTLP)
        self.assertEqual([{"n": number} for number in (1, 2, 3, 4)], [json.loads(each) for each in bodies(found)])
        one = {"resourceLogs": {"resource": {"r": 1}, "schemaUrl": "u", "scopeLogs": {"scope": {"s": 1}}}}
        self.assertEqual(
            [
                one,
                one,
                {"resourceLogs": {"resource": {"r": 1}, "schemaUrl": "u"}},
                {"resourceLogs": {"resource": {"r": 2}}},
            ],
            envelopes(found),
        )
        for whole, number in zip(wholes(found), (1, 2, 3, 4), strict=True):
            self.assertEqual([b'{"n": %d}' % number], bodies(split(whole, OTLP)))

    def test_behind_the_array(self) -> None:
        """A pointer may go on into the elements; one that has nothing there is an event as a whole."""
        found = split({"live": "no", "items": [{"x": 1, "item": {"a": 1}}, {"x": 2}, 3]}, Split(at="/items/*/item"))
        self.assertEqual([b'{"a": 1}', b'{"x": 2}', b"3"], bodies(found))
        self.assertEqual([{"live": "no", "items": {"x": 1}}, {"live": "no"}, {"live": "no"}], envelopes(found))

    def test_nothing_is_lost(self) -> None:
        """An element without the next array is an event by itself; an array that is empty or null has none."""
        body = [{"m": 1}, {"logs": [1]}, {"logs": []}, {"logs": None}, 5, {"logs": {"a": 1}}, []]
        self.assertEqual(
            [b'{"m": 1}', b"1", b"5", b'{"logs": {"a": 1}}', b"[]"], bodies(split(body, Split(at="/*/logs/*")))
        )

    def test_equal_names(self) -> None:
        """Where the array is there twice, the events are those of both."""
        self.assertEqual([b"1", b"2"], bodies(split(b'{"a":[1],"a":[2]}', Split(at="/a/*"))))

    def test_empty(self) -> None:
        """An array with nothing in it has no events."""
        self.assertEqual([], bodies(split({"alerts": [], "status": "firing"}, Split(at="/alerts/*"))))
        self.assertEqual([], bodies(split(b" [ ] ", Split(at="/*"))))

    def test_not_of_this_form(self) -> None:
        """A body without the first array is one message, whatever it is."""
        for body in (
            b"",
            b"x",
            b"{}",
            b'{"a":1}',
            b'{"a":{"b":[1]}}',
            b"[1]",
            b'{"a":[1]',
            b'{"a":[1]} x',
            b"[" * 9999,
        ):
            self.assertIsNone(split(body, Split(at="/a/*")), body)

    def test_first_that_fits(self) -> None:
        """Of several ways, the first that fits counts."""
        ways = (Split(at="/*"), Split(at="/logs/*"), Split(by="documents"))
        self.assertEqual([b"1", b"2"], bodies(split([1, 2], *ways)))
        self.assertEqual([b"3"], bodies(split({"logs": [3]}, *ways)))
        self.assertEqual([b'{"a":1}', b'{"b":2}'], bodies(split(b'{"a":1}\n{"b":2}', *ways)))
        self.assertIsNone(split(b"text", *ways))


class LimitTests(SynchronousTestCase):
    """Work, memory and what is repeated have bounds."""

    def refused(self, body: bytes, *ways: Split) -> str:
        """Return the reason of the refusal of a body."""
        with self.assertRaises(RequestRefused) as caught:
            split(body, *ways)
        return caught.exception.reason.word

    def test_too_many_events(self) -> None:
        """There may be ten thousand events, and one more is a refusal, by each way."""
        one = b'{"index":{}}\n{}\n'
        for way, unit, before, after in (
            (Split(at="/*"), b"{},", b"[", b"{}]"),
            (Split(at="/a/*/b/*"), b'{"b":[1]},', b'{"a":[', b'{"b":[1]}]}'),
            (Split(by="lines"), b"{}\n", b"", b"{}"),
            (Split(by="documents"), b"{}", b"", b"{}"),
            (Split(by="bulk"), one, b"", one),
            (Split(by="frames"), b"3 abc", b"", b"3 abc"),
        ):
            self.assertEqual(MAX_EVENTS, len(bodies(split(before + unit * (MAX_EVENTS - 1) + after, way))), way)
            self.assertEqual("too_many_events", self.refused(before + unit * MAX_EVENTS + after, way), way)

    def test_elements_without_events(self) -> None:
        """So is an endless number of elements on the way."""
        body = b'{"a":[' + b'{"b":[]},' * (2 * MAX_EVENTS) + b"{}]}"
        self.assertEqual("too_many_events", self.refused(body, Split(at="/a/*/b/*")))

    def test_long_envelope(self) -> None:
        """An envelope of more than 64 KiB is left out, and counted; the events stay."""
        for size, kept in ((MAX_ENVELOPE - len('{"x":""}'), True), (MAX_ENVELOPE, False), (9 * MAX_ENVELOPE, False)):
            found = split({"x": "a" * size, "a": [1, 2]}, Split(at="/a/*"))
            assert found is not None
            self.assertEqual(([b"1", b"2"], 0 if kept else 2), (bodies(found), found.left_out))
            self.assertEqual([kept] * 2, [envelope is not None for envelope in envelopes(found)])

    def test_all_envelopes(self) -> None:
        """All envelopes of a body together have a bound, since each event has a copy."""
        body = {"x": "a" * 2_000, "a": [{"b": list(range(400))}, {"b": list(range(400))}]}
        found = split(body, Split(at="/a/*/b/*"))
        assert found is not None
        self.assertEqual((800, 400), (len(found.events), found.left_out))
        self.assertEqual(b'{"a":[{"b":[7]}]}', wholes(found)[407].replace(b'"7"', b"7"))

    def test_unpacked(self) -> None:
        """What is packed in a body may unpack to so much in all."""
        self.patch(split_values, "MAX_UNPACKED", 250)
        packed = data(gzip.compress(b"a" * 100))
        self.assertEqual(2, len(bodies(split({"records": [{"data": packed}] * 2}, FIREHOSE))))
        self.assertEqual(
            "body_too_large", self.refused(json.dumps({"records": [{"data": packed}] * 3}).encode(), FIREHOSE)
        )

    def test_nesting(self) -> None:
        """Events that nest without end are events; a way that does is none."""
        deep = b"[" * 100_000
        self.assertIsNone(split(b"[" + deep + b"]" * 100_000 + b"]", Split(at="/*")))
        self.assertEqual([deep], bodies(split(deep, Split(by="lines"))))

    def test_any_way_with_any_body(self) -> None:
        """No way raises for any of these bodies anything but a refusal."""
        ways = [*(Split(by=by) for by in ("lines", "documents", "bulk", "frames")), Split(at="/*"), FIREHOSE, OTLP]
        parts = (b"", b"\xff\xfe", b"{", b"[", b'"', b"1 a", b"\n", b"\\", b'{"records":[{"data":"', b"\x00", b"]}")
        for way in ways:
            for first in parts:
                for second in parts:
                    split(first + second, way)
                    split(first + second, way, media_type="application/msgpack")


class EncodedTests(SynchronousTestCase):
    """Records whose data is encoded, as Firehose sends them."""

    def test_data(self) -> None:
        """Data is decoded: JSON is an event as it is, any other text is a text; a line end behind it is left out."""
        records = [{"data": data(each)} for each in (b'{"a": 1}\n', b"plain text\r\n", b"\xff", b"12", b"[1]")]
        found = split({"requestId": "r", "records": records}, FIREHOSE)
        assert found is not None
        self.assertEqual([b'{"a": 1}', b"plain text", b"\xff", b"12", b"[1]"], bodies(found))
        self.assertEqual([False, True, True, True, False], [event.is_text for event in found.events])
        self.assertEqual([{"requestId": "r"}] * 5, envelopes(found))

    def test_cloudwatch(self) -> None:
        """Packed records of CloudWatch Logs have several events each; what they have in common goes along."""
        packed = gzip.compress(
            json.dumps({"logGroup": "g", "logEvents": [{"message": "a"}, {"message": "b"}]}).encode()
        )
        records = [{"data": data(packed), "n": 1}, {"data": data(gzip.compress(b"plain"))}]
        found = split({"requestId": "r", "records": records}, FIREHOSE)
        self.assertEqual([b'{"message": "a"}', b'{"message": "b"}', b"plain"], bodies(found))
        around = {"requestId": "r", "records": {"n": 1, "data": {"logGroup": "g"}}}
        self.assertEqual([around, around, {"requestId": "r"}], envelopes(found))

    def test_undecodable(self) -> None:
        """What is not encoded as the sender should encode it is an event as it is."""
        broken = data(gzip.compress(b"a" * 999)[:-9])
        records = [{"data": "*"}, {"data": broken}, {"data": {"a": 1}}, {"other": 1}, {"data": None}]
        self.assertEqual(
            [b"*", broken.encode(), b'{"a": 1}', b'{"other": 1}', b"null"],
            bodies(split({"records": records}, FIREHOSE)),
        )

    def test_wholes(self) -> None:
        """A body of one event is encoded as the sender's was where it is a text."""
        found = split({"records": [{"data": data(b"YWJj")}, {"data": data(b'{"a":1}')}]}, FIREHOSE)
        self.assertEqual([b'{"records":[{"data":"WVdKag=="}]}', b'{"records":[{"data":{"a":1}}]}'], wholes(found))


class OtherWayTests(SynchronousTestCase):
    """Lines, documents, pairs of lines, frames."""

    def test_lines(self) -> None:
        """Each line is an event, however it ends; blank ones are none. Text keeps its indentation."""
        body = b'\xef\xbb\xbf{"a": 1}\r\n\n  \t\r\n  at main.py\nno end'
        self.assertEqual([b'{"a": 1}', b"  at main.py", b"no end"], bodies(split(body, Split(by="lines"))))
        self.assertEqual([], bodies(split(b"", Split(by="lines"))))
        long = [b"a" * 100_000, b"b", b"c" * 20_000]
        self.assertEqual(long, bodies(split(b"\n".join(long), Split(by="lines"))))

    def test_scalar_lines(self) -> None:
        """A line that is a text or number of JSON is one; another one that only begins so is a line."""
        found = split(b'"a\\nb"\n12\n12 monkeys\n', Split(by="lines"))
        assert found is not None
        self.assertEqual(
            [SplitEvent(b"a\nb", True), SplitEvent(b"12", True), SplitEvent(b"12 monkeys")], list(found.events)
        )

    def test_documents(self) -> None:
        """Documents one after another are events; what follows that is none is one more, so that it is not lost."""
        self.assertEqual(
            [b'{"a": 1}', b"[2]", b'{\n"b": 3}', b"rest {}"],
            bodies(split(b' {"a": 1}[2]\n{\n"b": 3} rest {}', Split(by="documents"))),
        )
        self.assertEqual([], bodies(split(b" \n", Split(by="documents"))))
        self.assertIsNone(split(b"text {}", Split(by="documents")))

    def test_carry(self) -> None:
        """Members hold for the documents behind theirs, until one has its own."""
        body = b'{"event":1,"host":"a","time":1.50}{"event":2}[3]{"event":4,"host":"b"}{"event":5}'
        found = split(body, Split(by="documents", carry=("time", "host")))
        self.assertEqual(
            [None, {"host": "a", "time": 1.5}, None, {"time": 1.5}, {"host": "b", "time": 1.5}], envelopes(found)
        )
        self.assertEqual({"event": 5, "host": "b", "time": 1.5}, json.loads(wholes(found)[4]))
        self.assertEqual(b'{"event":2}', bodies(found)[1])

    def test_bulk(self) -> None:
        """An action is the envelope of its document. What deletes has none; what is no action is not lost."""
        body = b'{"index":{"_index":"x"}}\n{"a":1}\n{"delete":{"_id":1}}\nstray\n{"create":{}}\n{"b":2}\n{"index":{}}\n'
        found = split(body, Split(by="bulk"))
        self.assertEqual([b'{"a":1}', b'{"delete":{"_id":1}}', b"stray", b'{"b":2}', b'{"index":{}}'], bodies(found))
        self.assertEqual([{"index": {"_index": "x"}}, None, None, {"create": {}}, None], envelopes(found))
        self.assertIsNone(split(b'{"a":1}\n{"b":2}\n', Split(by="bulk")))

    def test_frames(self) -> None:
        """Frames are texts; what is behind the last one is an event, too."""
        body = b"7 <13>1 a\n5 <13>\n rest"
        found = split(body, Split(by="frames"), media_type="application/logplex-1")
        self.assertEqual([b"<13>1 a", b"<13>", b"rest"], [each.strip() for each in bodies(found)])
        self.assertEqual(b"7 <13>1 a", wholes(found)[0])
        self.assertIsNone(split(b"text", Split(by="frames")))

    def test_msgpack(self) -> None:
        """MessagePack is taken apart as the same JSON."""
        body = msgspec.msgpack.encode([{"a": 1}, "b"])
        self.assertEqual([b'{"a":1}', b"b"], bodies(split(body, Split(at="/*"), media_type="application/msgpack")))


class OptionTests(SynchronousTestCase):
    """What an option asks for."""

    def test_words(self) -> None:
        """There are words, pointers to an array, and pointers to its elements."""
        self.assertIsNone(splitter_for("no", None))
        for text, body, count in (
            ("lines", b"a\nb", 2),
            ("documents", b"{}[]", 2),
            ("/a", b'{"a":[1,2]}', 2),
            ("/a/*", b'{"a":[1,2]}', 2),
            ("/*", b"[1,2]", 2),
            ("/*/a~1b/*", b'[{"a/b":[1]},{"a/b":[2]}]', 2),
        ):
            splitter = splitter_for(text, None)
            assert splitter is not None
            self.assertEqual(count, len(bodies(splitter.split(body))), text)

    def test_own_way(self) -> None:
        """C{yes} stands for the way of the sender."""
        splitter = splitter_for("yes", compiled(split={"at": "/a/*"}))
        assert splitter is not None
        self.assertEqual([b"1"], bodies(splitter.split(b'{"a":[1]}')))


class DefinitionTests(SynchronousTestCase):
    """C{split} in a data file."""

    def test_mistakes(self) -> None:
        """What can't be taken apart so is an error at its place."""
        for bad, path in (
            ({"by": "words"}, ("split", "by")),
            ({}, ("split", "at")),
            ({"at": "/a"}, ("split", "at")),
            ({"at": "a/*"}, ("split", "at")),
            ({"at": "/*", "decode": "rot13"}, ("split", "decode")),
            ({"at": "/*", "inside": "/a/*"}, ("split", "inside")),
            ({"by": "lines", "at": "/*"}, ("split", "at")),
            ({"by": "bulk", "carry": ["a"]}, ("split", "carry")),
            ([{"by": "lines"}, {"at": "/*"}], ("split", 0, "by")),
        ):
            with self.assertRaises(BadDefinition, msg=str(bad)) as caught:
                compiled(split=bad)
            self.assertIn(path, [problem.path for problem in caught.exception.problems], bad)


EVENTS: dict[str, int | None] = {
    "adyen-authorisation": 2,
    "alertmanager-firing": 2,
    "alertmanager-mixed": 3,
    "alertmanager-mixed-one-host": 3,
    "alertmanager-resolved": 1,
    "asana-task": 1,
    "auth0-array": 2,
    "auth0-lines": 2,
    "auth0-object": 1,
    "aws-cloudtrail-records": 1,
    "aws-firehose-cloudwatch": 2,
    "aws-firehose-json": 2,
    "aws-firehose-text": 2,
    "axiom-python": 1,
    "axiom-winston": 1,
    "azure-event-grid-blob-created": 1,
    "azure-event-grid-cloudevents": None,
    "azure-event-grid-validation": 1,
    "better-stack-json": 2,
    "better-stack-node": 1,
    "better-stack-python": 1,
    "cloudevents-batch": 2,
    "cloudevents-structured": None,
    "cloudflare-logpush-audit-logs": 1,
    "cloudflare-logpush-firewall-events": 1,
    "cloudflare-logpush-gateway-dns": 1,
    "cloudflare-logpush-http-requests": 2,
    "datadog-logs-agent": 2,
    "datadog-logs-client": 1,
    "elasticsearch-bulk-lines": 1,
    "elasticsearch-bulk-python": 2,
    "grafana-firing": 2,
    "grafana-legacy": None,
    "grafana-legacy-paused": None,
    "grafana-mixed": 2,
    "grafana-resolved": 1,
    "grafana-signed": None,
    "grafana-timed": 1,
    "heroku-app": 5,
    "heroku-router": 3,
    "hubspot-contact": 2,
    "kubernetes-audit-forbidden": 1,
    "kubernetes-audit-list": 2,
    "line-message": 1,
    "logdna-lines": 1,
    "logdna-node": 1,
    "logdna-python": 1,
    "loki-push-pino": 1,
    "loki-push-python": 1,
    "loki-push-winston": 1,
    "meta-page-feed": 1,
    "meta-whatsapp-status": 1,
    "microsoft-graph-lifecycle": 1,
    "microsoft-graph-rich": 1,
    "microsoft-graph-security-alert": 1,
    "microsoft-graph-validation": None,
    "new-relic-logs-common": 2,
    "new-relic-logs-sdk": 1,
    "okta-account-locked": 1,
    "okta-failed-login": 1,
    "otlp-logs-protobuf": 2,
    "otlp-logs-sdk": 2,
    "pino-lines": 2,
    "pino-logs": 2,
    "sendgrid-batch": 6,
    "sendgrid-bounce": 2,
    "seq-clef": 1,
    "seq-raw": 1,
    "seq-serilog": 2,
    "signalfx-anomalous": None,
    "signalfx-event": 1,
    "splunk-hec-concatenated": 4,
    "splunk-hec-single": 1,
    "splunk-hec-time-formats": 4,
    "tailscale-batch": 2,
    "terraform-created": 1,
    "terraform-drifted": None,
    "terraform-errored": 1,
    "vercel-array": 3,
    "vercel-ndjson": 3,
    "xero-intent-to-receive": 0,
    "xero-invoice": 1,
    "zabbix-alert": 1,
    "zabbix-events": 2,
    "zabbix-values": 1,
    "zabbix-webhook": 1,
}
"""
How many events the samples have of senders that put several into a body; None for one that is one message.
"""


class SampleTests(SynchronousTestCase):
    """The samples of each sender with a way of its own."""

    def test_samples(self) -> None:
        """Each has as many events as it has; a body like it with one of them is taken apart into that one again."""
        found: dict[str, int | None] = {}
        for definition in builtin_definitions():
            splitter = Splitter(definition.splits)
            for sample in definition.samples if definition.splits else ():
                evidence = known_of(*read_http_file((DATA / sample).read_bytes()))
                if not AVAILABLE and "protobuf" in sample:
                    continue
                bundle = splitter.split(evidence.body, evidence.media_type)
                name = sample.removeprefix("samples/").removesuffix(".http")
                found[name] = None if bundle is None else len(bundle.events)
                for event in () if bundle is None else bundle.events:
                    whole = event.around.whole(event.body, event.is_text)
                    media_type = evidence.media_type if evidence.media_type == LOGPLEX else ""
                    again = bodies(splitter.split(whole, media_type))
                    # Only members that were carried there are in it, too.
                    self.assertEqual([event.body] if not event.around.opens else [whole], again, sample)
        self.assertEqual(EVENTS, {name: count for name, count in found.items() if name in EVENTS})
