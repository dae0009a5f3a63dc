"""
Tests for L{webhookrx.senders.otlp}.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import evidence_of
from tests.senders.test_samples import DATA
from webhookrx.senders import classifier, otlp, unpacking
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.extraction import extract
from webhookrx.senders.http_file import read_http_file
from webhookrx.senders.otlp import MAX_BYTES, MAX_MESSAGES, OtlpError, holds_logs, read_logs

PROTOBUF = {"Content-Type": "application/x-protobuf"}
CLASSIFIER = Classifier(builtin_definitions())

_RECORDED = read_http_file((DATA / "samples/otlp-logs-protobuf.http").read_bytes())[2]


def logs(records: int = 1, **members: Any) -> bytes:
    """Return a request with records that have these members."""
    request = ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    for _ in range(records):
        scope.log_records.add(**members)
    return request.SerializeToString()


def first_record(body: bytes) -> Any:
    """Return the first record of a request."""
    read: Any = read_logs(body)
    return read["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]


class TellTests(SynchronousTestCase):
    """What a body is, told without the extra."""

    def test_logs(self) -> None:
        """Logs of a real SDK are told, and those with any field."""
        for body in (_RECORDED, logs(time_unix_nano=1), logs(severity_number=9), logs(body=AnyValue(string_value="x"))):
            self.assertTrue(holds_logs(body))

    def test_others(self) -> None:
        """Traces, other protobuf and other bytes are no logs."""
        trace = ExportTraceServiceRequest()
        trace.resource_spans.add().scope_spans.add().spans.add(trace_id=b"1" * 16, name="x")
        for body in (trace.SerializeToString(), b"", b"{}", b"\n", b"\n\x00", b"\n\xff\xff\xff\xff\xff\xff", logs(0)):
            self.assertFalse(holds_logs(body), body)

    @given(st.binary(max_size=60), st.integers(0, 200), st.integers(0, 255))
    def test_anything(self, body: bytes, place: int, byte: int) -> None:
        """Any bytes are told or not, and read or refused."""
        damaged = bytearray(_RECORDED)
        damaged[place] = byte
        for each in (body, b"\n" + body, bytes(damaged), _RECORDED[:place]):
            self.assertIn(holds_logs(each), (True, False))
            try:
                read_logs(each)
            except OtlpError as error:
                self.assertTrue(str(error))


class ReadTests(SynchronousTestCase):
    """Logs as what their JSON would be."""

    def test_members(self) -> None:
        """Numbers of 64 bits are text, ids are hexadecimal, and what has its default is left out."""
        record = first_record(
            logs(
                time_unix_nano=2**63,
                observed_time_unix_nano=5,
                severity_number=17,
                severity_text="ERROR",
                event_name="e",
                flags=1,
                dropped_attributes_count=2,
                trace_id=b"\x01" * 16,
                span_id=b"\xff" * 8,
            )
        )
        self.assertEqual(record, {
            "timeUnixNano": str(2**63), "observedTimeUnixNano": "5", "severityNumber": 17, "severityText": "ERROR",
            "eventName": "e", "flags": 1, "droppedAttributesCount": 2, "traceId": "01" * 16, "spanId": "ff" * 8,
        })  # fmt: skip
        self.assertEqual(first_record(logs(severity_number=9)), {"severityNumber": 9})

    def test_values(self) -> None:
        """Each kind of value has its own member, empty ones too."""
        for value, expected in (
            (AnyValue(), {}),
            (AnyValue(string_value=""), {"stringValue": ""}),
            (AnyValue(int_value=-(2**63)), {"intValue": str(-(2**63))}),
            (AnyValue(bool_value=False), {"boolValue": False}),
            (AnyValue(double_value=0.5), {"doubleValue": msgspec.Raw(b"0.5")}),
            (AnyValue(double_value=float("nan")), {"doubleValue": "NaN"}),
            (AnyValue(double_value=float("-inf")), {"doubleValue": "-Infinity"}),
            (AnyValue(bytes_value=b"\xff"), {"bytesValue": "/w=="}),
            (AnyValue(array_value=ArrayValue(values=[AnyValue(bool_value=True)])),
             {"arrayValue": {"values": [{"boolValue": True}]}}),
            (AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key="k", value=AnyValue(string_value="v"))])),
             {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}}),
        ):  # fmt: skip
            self.assertEqual(first_record(logs(body=value))["body"], expected)

    def test_sdk(self) -> None:
        """What a real SDK has sent has host, service and message where OTLP as JSON has them."""
        evidence = evidence_of(_RECORDED, PROTOBUF)
        match = CLASSIFIER.classify(evidence)
        assert match is not None
        found = extract(match.sender, evidence)
        self.assertEqual((match.sender.id, match.service, found.host), ("otlp-logs", "shop", "web-1.example.com"))
        self.assertEqual((found.message, found.severity), ("payment 4711 failed", (17, "ERROR")))
        self.assertTrue(found.is_unpacked)

    def test_bounds(self) -> None:
        """Too many bytes, too many values and too deep ones are refused, with a sentence."""
        deep = b"\x2a\x00"
        for _ in range(60):
            deep = _wrapped(_wrapped(deep, 0x0A), 0x2A)
        for body, words in (
            (logs(body=AnyValue(string_value="x" * MAX_BYTES)), "up to 327680 bytes"),
            (logs(MAX_MESSAGES // 2), "more than 16000 values"),
            (_wrapped(_wrapped(_wrapped(deep, 0x12), 0x12), 0x0A), "nests too deep"),
            (b"\n\x05x", "no OTLP"),
        ):
            self.assertIn(words, str(self.assertRaises(OtlpError, read_logs, body)))
        self.assertEqual(len(read_logs(logs(512))["resourceLogs"]), 1)  # type: ignore[arg-type]  # it is a list

    def test_time(self) -> None:
        """The worst bodies within the bounds take no longer than a few times what plain JSON of their size takes."""
        worst = max(map(_seconds, (b"\n\x00" * (MAX_BYTES // 2), logs(MAX_MESSAGES // 2 - 10, severity_number=9))))
        text = msgspec.json.encode([{"a": [1] * 10}] * (MAX_BYTES // 26))
        usual = min(_seconds_of(lambda: msgspec.json.decode(text)) for _ in range(3))
        self.assertLess(worst, 20 * usual)


def _wrapped(body: bytes, key: int) -> bytes:
    """Return a message that has another as one of its fields."""
    size = bytes((len(body),)) if len(body) < 128 else bytes((len(body) & 127 | 128, len(body) >> 7))
    return bytes((key,)) + size + body


def _seconds(body: bytes) -> float:
    def read() -> None:
        with contextlib.suppress(OtlpError):
            read_logs(body)

    return min(_seconds_of(read) for _ in range(3))


def _seconds_of(work: Any) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


class MissingTests(SynchronousTestCase):
    """Without the extra."""

    def setUp(self) -> None:
        for module in (otlp, unpacking):
            self.patch(module, "AVAILABLE", False)
        self.evidence = evidence_of(_RECORDED, PROTOBUF)

    def test_told(self) -> None:
        """The sender is known all the same, and it is said why the body can't be read."""
        match = CLASSIFIER.classify(self.evidence)
        assert match is not None
        self.assertEqual((match.sender.id, match.service), ("otlp-logs", ""))
        self.assertTrue(match.why.endswith("; the extra otlp is not installed, so Parse leaves the body as it is"))
        self.assertIn(
            "pip install 'webhookrx[otlp]'", str(self.assertRaises(OtlpError, extract, match.sender, self.evidence))
        )

    def test_json(self) -> None:
        """OTLP as JSON does without it, and nothing is said."""
        match = CLASSIFIER.classify(evidence_of({"resourceLogs": []}))
        assert match is not None
        self.assertEqual(match.why, "body key resourceLogs")
        self.assertEqual(match.confidence, classifier.MEDIUM)
