"""
Log records of OTLP in both encodings, judged by protobuf's own parsers: both are valid, and equal.
"""

from __future__ import annotations

import json
import struct
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1 import logs_pb2
from twisted.trial.unittest import SynchronousTestCase

from tests.message.test_encoders import VALUES
from webhookrx.message.identity import message_id
from webhookrx.message.message import Message, Value
from webhookrx.observers.http_stores.otlp_json import OTLP_JSON
from webhookrx.observers.http_stores.otlp_protobuf import OTLP_PROTOBUF
from webhookrx.observers.http_stores.otlp_records import DEEPEST, LogRecord, OTLPEncoding, log_record
from webhookrx.testing import RECEIVED, make_message
from webhookrx.yield_point import PIECE, pause_by

HOSTILE = 'a\r\nb\x00\x1b[2J{"x":1} %s "\\ \u2028\u202e\x85 é 😀'
MiB = 1024 * 1024


def router_message(log: dict[str, Value], meta: dict[str, Value] | None = None) -> Message:
    """Make a message of the router form."""
    return Message({"log": log, "meta": {"id": "id 1", **(meta or {})}}, RECEIVED)


def request_of(encoding: OTLPEncoding, *records: LogRecord) -> Any:
    """Encode records, and have protobuf read the request."""
    resource = encoding.resource({"service.name": "x"})
    content = encoding.request({resource: [encoding.record(record, b"") for record in records]})
    if encoding is OTLP_JSON:
        return json_format.Parse(content, ExportLogsServiceRequest())
    return ExportLogsServiceRequest.FromString(content)


def any_value(value: Any) -> Any:
    """Return what an AnyValue holds: lists and dicts for those of its own, and numbers as they are."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [any_value(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return {each.key: any_value(each.value) for each in value.kvlist_value.values}
    return None if kind is None else getattr(value, kind)


class _Case(SynchronousTestCase):
    def judged(self, message: Message) -> logs_pb2.LogRecord:
        """Encode a message both ways, and return the record that protobuf reads; it is the same for both."""
        record = log_record(message, message_id)
        from_json = request_of(OTLP_JSON, record)
        from_protobuf = request_of(OTLP_PROTOBUF, record)
        self.assertEqual(from_json, from_protobuf)
        (read,) = from_json.resource_logs[0].scope_logs[0].log_records
        assert isinstance(read, logs_pb2.LogRecord)
        return read

    def attributes(self, message: Message) -> dict[str, Any]:
        """Return the attributes of its record."""
        read = self.judged(message).attributes
        self.assertEqual(len(read), len({each.key for each in read}))
        return {each.key: any_value(each.value) for each in read}

    def value(self, value: Value) -> Any:
        """Return an attribute of this value."""
        return self.attributes(make_message("", {"v": value}))["v"]


class PlacesTests(_Case):
    """What goes where."""

    def test_source_form(self) -> None:
        """MESSAGE is the body, every other pair an attribute; the time of receipt is that of observation."""
        read = self.judged(make_message("text", {"SOURCE": "default", "n": 5, "RCPTID": "id 1"}))

        self.assertEqual("text", any_value(read.body))
        self.assertEqual((0, RECEIVED), (read.time_unix_nano, read.observed_time_unix_nano))
        self.assertEqual((0, ""), (read.severity_number, read.severity_text))
        self.assertEqual(
            {
                "HOST": "192.0.2.1",
                "SOURCEIP": "192.0.2.1",
                "SOURCE": "default",
                "n": 5,
                "RCPTID": "id 1",
                "log.record.uid": "id 1",
            },
            {each.key: any_value(each.value) for each in read.attributes},
        )

    def test_no_message(self) -> None:
        """Without MESSAGE there is no body; an empty text is one."""
        self.assertFalse(self.judged(Message({"HOST": "h"}, RECEIVED)).HasField("body"))
        self.assertTrue(self.judged(make_message("")).HasField("body"))

    def test_router_form(self) -> None:
        """The members of log are those of the data model, and meta is an attribute."""
        read = self.judged(
            router_message(
                {
                    "body": {"user": "alice", "tries": [1, 2]},
                    "attributes": {"webhook.query.team": "a"},
                    "observed_time_unix_nano": RECEIVED - 5,
                    "time_unix_nano": RECEIVED - 10,
                    "severity_number": 17,
                    "severity_text": "ERROR",
                },
                {"host": {"name": "web-1"}},
            )
        )

        self.assertEqual({"user": "alice", "tries": [1, 2]}, any_value(read.body))
        self.assertEqual((RECEIVED - 10, RECEIVED - 5), (read.time_unix_nano, read.observed_time_unix_nano))
        self.assertEqual((17, "ERROR"), (read.severity_number, read.severity_text))
        self.assertEqual(
            {
                "webhook.query.team": "a",
                "meta": {"id": "id 1", "host": {"name": "web-1"}},
                "log.record.uid": "id 1",
            },
            {each.key: any_value(each.value) for each in read.attributes},
        )

    def test_unknown_time(self) -> None:
        """A time and a severity of 0, which say that they are not known, are left out."""
        message = router_message({"body": "x", "attributes": {}, "time_unix_nano": 0, "severity_number": 0})
        read = self.judged(message)

        self.assertEqual((0, RECEIVED), (read.time_unix_nano, read.observed_time_unix_nano))
        self.assertEqual(["meta", "log.record.uid"], [each.key for each in read.attributes])

    def test_changed_fields(self) -> None:
        """What steps have added to log, or given another type, is in an attribute, and nothing is left out."""
        log: dict[str, Value] = {
            "body": "x",
            "attributes": "none",
            "time_unix_nano": -1,
            "observed_time_unix_nano": "then",
            "severity_number": 25,
            "severity_text": 5,
            "team": "a",
        }
        read = self.judged(router_message(dict(log)))
        attributes = {each.key: any_value(each.value) for each in read.attributes}

        self.assertEqual({name: value for name, value in log.items() if name != "body"}, attributes["log"])
        self.assertEqual((0, RECEIVED), (read.time_unix_nano, read.observed_time_unix_nano))

    def test_booleans_are_no_times(self) -> None:
        """True is neither a time nor a severity."""
        read = self.judged(router_message({"time_unix_nano": True, "severity_number": True}))

        self.assertEqual((0, 0), (read.time_unix_nano, read.severity_number))

    def test_names_of_ours(self) -> None:
        """A sender's attribute with the name of one of ours is kept under another: no sender forges an id."""
        source = self.attributes(make_message("", {"log.record.uid": "forged", "RCPTID": "id 1"}))
        router = self.attributes(
            router_message({"attributes": {"meta": 1, "log": 2, "log.record.uid": 3}, "team": "a"}),
        )

        self.assertEqual("id 1", source["log.record.uid"])
        self.assertEqual("forged", source["webhook.log.record.uid"])
        self.assertEqual(("id 1", 3), (router["log.record.uid"], router["webhook.log.record.uid"]))
        self.assertEqual((1, 2), (router["webhook.meta"], router["webhook.log"]))
        self.assertEqual(({"id": "id 1"}, {"team": "a"}), (router["meta"], router["log"]))

    def test_without_id(self) -> None:
        """A message without an id has no such attribute, though a sender may have written one."""
        attributes = self.attributes(make_message("", {"log.record.uid": "forged"}))

        self.assertNotIn("log.record.uid", attributes)
        self.assertEqual("forged", attributes["webhook.log.record.uid"])

    def test_message_unchanged(self) -> None:
        """The message, which other observers have, too, stays as it was."""
        log: dict[str, Value] = {"body": {"a": [1]}, "attributes": {"log": 1}, "team": "a", "time_unix_nano": 5}
        message = router_message(log)
        before = json.dumps(message.values)

        self.judged(message)

        self.assertEqual(before, json.dumps(message.values))


class ValuesTests(_Case):
    """Which kind a value is."""

    def test_kinds(self) -> None:
        """Texts, flags, null, lists and objects are what they are."""
        value: Value = {"t": True, "f": False, "n": None, "s": "", "l": [], "o": {}, "m": ["a", ["b", None], {"c": 1}]}

        self.assertEqual(value, self.value(value))

    def test_integers(self) -> None:
        """An integer of 64 bits is one; a larger one is its text, digit by digit."""
        for number in (0, -1, (1 << 63) - 1, -(1 << 63)):
            self.assertEqual(number, self.value(number))
        for number in (1 << 63, -(1 << 63) - 1, int("7" * 40), -int("7" * 40)):
            self.assertEqual(str(number), self.value(number))

    def test_doubles(self) -> None:
        """A number with a fraction is a double if no digit is lost, else its text."""
        for text in ("1e-7", "0.1", "-2.50", "1e300", "1.7976931348623157e308", "5e-324", "0.0"):
            self.assertEqual(float(text), self.value(msgspec.Raw(text.encode())), text)
        for text in (
            "0.12345678901234567890",
            "1e999",
            "-1e999",
            "1e-999",
            "9007199254740993.0",
            "0." + "1" * 40,
            "1" * 5000,
            "1e" + "9" * 15,
        ):
            self.assertEqual(text, self.value(msgspec.Raw(text.encode())), text)

    def test_raw_integers(self) -> None:
        """An integer that is kept as its text is one as any other."""
        self.assertEqual(5, self.value(msgspec.Raw(b"5")))
        self.assertEqual("7" * 40, self.value(msgspec.Raw(b"7" * 40)))
        for number in (-(1 << 63), (1 << 63) - 1):
            self.assertEqual(number, self.value(msgspec.Raw(str(number).encode())))
        for number in (-(1 << 63) - 1, 1 << 63):
            self.assertEqual(str(number), self.value(msgspec.Raw(str(number).encode())))

    def test_raw_arrays(self) -> None:
        """The text of an array is an array."""
        self.assertIs(True, self.value(msgspec.Raw(b"true")))
        raw = msgspec.Raw(b'[1, 2.5, "a", [null, %b], {"b": true}]' % (b"7" * 40))

        self.assertEqual([1, 2.5, "a", [None, "7" * 40], {"b": True}], self.value(raw))

    def test_hostile_text(self) -> None:
        """Texts with line ends, controls and format characters come back as they were, in names too."""
        read = self.judged(make_message(HOSTILE, {HOSTILE: HOSTILE}))

        self.assertEqual(HOSTILE, any_value(read.body))
        self.assertEqual(HOSTILE, {each.key: any_value(each.value) for each in read.attributes}[HOSTILE])

    def test_deep(self) -> None:
        """What is deeper than protobuf's parsers follow is JSON as text; all above it is as it was."""
        for wrap in (lambda inner: [inner], lambda inner: {"a": inner}):
            value: Any = "end"
            for _ in range(128):
                value = wrap(value)
            read = self.value(value)
            for _ in range(DEEPEST):
                self.assertNotIsInstance(read, str)
                read = read[0] if isinstance(read, list) else read["a"]
                value = value[0] if isinstance(value, list) else value["a"]

            self.assertEqual(value, json.loads(read))

    def test_deep_in_router_form(self) -> None:
        """So it is in the body and in meta, which is deepest in a request."""
        deep: Any = {}
        for _ in range(128):
            deep = {"a": [deep]}

        read = self.judged(router_message({"body": deep, "attributes": {"x": deep}, "more": deep}, {"x": deep}))

        self.assertTrue(read.HasField("body"))

    def test_large_text(self) -> None:
        """A text of 10 MiB, in which each character is an escape or more than a byte, comes back as it was."""
        text = "\n\x00é😀" * (10 * MiB // 4)

        self.assertTrue(text == any_value(self.judged(make_message(text)).body))
        self.assertTrue(text == any_value(self.judged(router_message({"body": text})).body))

    @given(st.dictionaries(st.text(), VALUES, max_size=5), st.dictionaries(st.text(), VALUES, max_size=5))
    def test_any_message(self, log: dict[str, Value], meta: dict[str, Value]) -> None:
        """Whatever a message holds, both encodings are valid and equal."""
        self.judged(Message(log, RECEIVED))
        self.judged(Message({"log": log, "meta": meta}, RECEIVED))


class YieldTests(SynchronousTestCase):
    """Long work lets others go first."""

    def test_values(self) -> None:
        """Each member of an object, each element of a list and each piece of a long text is a place to do so."""
        value: Value = {"list": [0] * 1000, "object": {str(number): 0 for number in range(1000)}}
        record = log_record(make_message("x" * 10 * PIECE, {"v": value}), message_id)
        for encoding, least in ((OTLP_JSON, 2010), (OTLP_PROTOBUF, 2000)):
            pauses: list[None] = []

            def encode(encoding: OTLPEncoding = encoding, pauses: list[None] = pauses) -> None:
                pause_by(lambda: pauses.append(None))
                encoding.record(record, b"")

            # A pause belongs to a thread, and ends with it.
            with ThreadPoolExecutor(1) as thread:
                thread.submit(encode).result()

            self.assertGreater(len(pauses), least)


class RequestTests(_Case):
    """Requests of several records."""

    def test_order_and_resources(self) -> None:
        """Records of one resource stay together, in their order."""
        records = [log_record(make_message(text), message_id) for text in "abcd"]
        requests = []
        for encoding in (OTLP_JSON, OTLP_PROTOBUF):
            first, second = (encoding.resource({"host.name": name}) for name in ("one", HOSTILE))
            made = [encoding.record(record, b"") for record in records]
            content = encoding.request({first: made[:3], second: made[3:]})
            if encoding is OTLP_JSON:
                requests.append(json_format.Parse(content, ExportLogsServiceRequest()))
            else:
                requests.append(ExportLogsServiceRequest.FromString(content))

        self.assertEqual(*requests)
        self.assertEqual(
            [("one", ["a", "b", "c"]), (HOSTILE, ["d"])],
            [
                (
                    logs.resource.attributes[0].value.string_value,
                    [any_value(record.body) for record in logs.scope_logs[0].log_records],
                )
                for logs in requests[0].resource_logs
            ],
        )
        self.assertEqual("webhookrx", requests[0].resource_logs[0].scope_logs[0].scope.name)

    def test_lengths(self) -> None:
        """Lengths of one byte and of several are written as protobuf has them."""
        for size in (0, 1, 127, 128, 16_383, 16_384, 2_097_152):
            read = self.judged(make_message("x" * size))
            self.assertEqual(size, len(any_value(read.body)))

    def test_json_rules(self) -> None:
        """Names are in lowerCamelCase, and integers of 64 bits are texts, as OTLP asks for."""
        record = log_record(
            router_message({"time_unix_nano": 5, "severity_number": 9, "attributes": {"n": 1}}), message_id
        )
        made = json.loads(OTLP_JSON.record(record, b""))

        self.assertEqual(("5", str(RECEIVED), 9), tuple(made[name] for name in list(made)[:3]))
        self.assertEqual(["timeUnixNano", "observedTimeUnixNano", "severityNumber", "attributes"], list(made))
        self.assertEqual({"intValue": "1"}, made["attributes"][0]["value"])


class ResponseTests(SynchronousTestCase):
    """What a server says of a request that it takes."""

    def test_json(self) -> None:
        """The number and the message of a partial success, by either name, and as number or text."""
        for body, rejected, message in (
            (b"", 0, ""),
            (b" \n", 0, ""),
            (b"{}", 0, ""),
            (b'{"partialSuccess":{}}', 0, ""),
            (b'{"partialSuccess":null,"more":[]}', 0, ""),
            (b'{"partialSuccess":{"errorMessage":"slow down"}}', 0, "slow down"),
            (b'{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"too old"}}', 3, "too old"),
            (b'{"partialSuccess":{"rejectedLogRecords":3}}', 3, ""),
            (b'{"partial_success":{"rejected_log_records":3,"error_message":"x"}}', 3, "x"),
        ):
            self.assertEqual((rejected, message), OTLP_JSON.read(body), body)

    def test_protobuf(self) -> None:
        """The same in protobuf; an empty body is a response."""
        self.assertEqual((0, ""), OTLP_PROTOBUF.read(b""))
        self.assertEqual((3, "x"), OTLP_PROTOBUF.read(b"\x0a\x05\x08\x03\x12\x01x"))

    def test_nonsense(self) -> None:
        """Anything else is none."""
        for body in (
            b"ok",
            b"<html>",
            b"[]",
            b"null",
            b'{"partialSuccess":3}',
            b'{"partialSuccess":{"rejectedLogRecords":"many"}}',
            b'{"partialSuccess":{"rejectedLogRecords":true}}',
            b'{"partialSuccess":{"rejectedLogRecords":1.5}}',
            b'{"partialSuccess":{"errorMessage":[]}}',
            b'{"partialSuccess":',
            b"\xff",
            b"[" * 100_000,
        ):
            self.assertRaises(ValueError, OTLP_JSON.read, body)
        for body in (b"ok", b"{}", b"<html>", struct.pack(">I", 1 << 31), b"\x0a\x05\x08"):
            self.assertRaises(ValueError, OTLP_PROTOBUF.read, body)
