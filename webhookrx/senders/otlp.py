"""
Reads logs of OpenTelemetry in protobuf (OTLP over HTTP, C{application/x-protobuf}) into the values of their JSON form.

It needs the extra C{otlp}: C{opentelemetry-proto} has the messages, C{protobuf} reads them. It is not
needed to recognise which requests hold logs.

One body holds the reactor for less than 20 ms: its size bounds what protobuf does with it, the number of its messages
what is made of them here. Protobuf itself refuses what nests deeper than a hundred levels, and what points beyond its
end.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from webhookrx.errors import WebhookrxError
from webhookrx.message.message import Value
from webhookrx.yield_point import yield_point

try:
    from google.protobuf.internal import api_implementation
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    # Protobuf in pure Python takes fifty times as long, which no bound here allows for.
    AVAILABLE = api_implementation.Type() != "python"
except ImportError:
    AVAILABLE = False

MEDIA_TYPES: Final = ("application/x-protobuf", "application/protobuf")

MAX_BYTES: Final = 320 * 1024
"""A body of nothing but empty records takes protobuf 50 ns a byte."""

MAX_MESSAGES: Final = 16_000
"""
Attributes and values in a body, those within others counted; each costs half a microsecond. A record counts as two, a
resource or a scope as four. An SDK sends 512 records at once, of about 15 each.
"""

MISSING_EXTRA: Final = "the extra otlp is not installed, so Parse leaves the body as it is"
"""What is said of a request that can't be read."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_RECORD_FIELDS: Final = {
    1: _FIXED64,
    2: _VARINT,
    3: _BYTES,
    5: _BYTES,
    6: _BYTES,
    7: _VARINT,
    8: _FIXED32,
    9: _BYTES,
    10: _BYTES,
    11: _FIXED64,
    12: _BYTES,
}
"""Number to wire type of the fields of a C{LogRecord}; spans and metrics have bytes where it has its time."""

_MOST_FIELDS: Final = 100
"""Fields of one message that are looked at to tell what it is."""


class OtlpError(WebhookrxError):
    """A body that holds logs as protobuf can't be read; the text is one sentence without anything of it."""


def holds_logs(body: bytes) -> bool:
    """Tell whether a body is probably an C{ExportLogsServiceRequest}, by its first record."""
    try:
        start, end = _first(body, 0, len(body), 1)
        start, end = _first(body, start, end, 2)
        start, end = _first(body, start, end, 2)
        fields = list(_fields(body, start, end))
    except ValueError:
        return False
    return bool(fields) and all(_RECORD_FIELDS.get(number) == wire for number, wire, _, _ in fields)


def read_logs(body: bytes) -> dict[str, Value]:
    """
    Return what the body would be as JSON: names in lower camel case, 64 bits as text, ids in hexadecimal, other bytes
    in Base64; what has its default is left out (OTLP specification, JSON Protobuf Encoding).

    @raise OtlpError: it can't be read, or not within the bounds.
    """
    if not AVAILABLE:
        raise OtlpError("OTLP as protobuf needs the extra otlp: pip install 'webhookrx[otlp]'.")
    if len(body) > MAX_BYTES:
        raise OtlpError(f"OTLP as protobuf is read up to {MAX_BYTES} bytes; have the sender make smaller batches.")
    request = ExportLogsServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError:
        raise OtlpError("The body is no OTLP as protobuf, or nests too deep.") from None
    return {"resourceLogs": _LogsReader().resources(request.resource_logs)}


def _fields(body: bytes, position: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """
    Yield number, wire type, start and end of the fields of a message.

    @raise ValueError: it is not a message.
    """
    for _ in range(_MOST_FIELDS):
        if position >= end:
            return
        key, position = _varint(body, position)
        wire = key & 7
        if wire == _BYTES:
            size, position = _varint(body, position)
        elif wire == _VARINT:
            size = _varint(body, position)[1] - position
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError
        if position + size > end:
            raise ValueError
        yield key >> 3, wire, position, position + size
        position += size


def _first(body: bytes, position: int, end: int, wanted: int) -> tuple[int, int]:
    """@raise ValueError: there is no such field, or no message."""
    for number, wire, start, stop in _fields(body, position, end):
        if number == wanted and wire == _BYTES:
            return start, stop
        if wire != _BYTES or not 1 <= number <= 3:
            break
    raise ValueError


def _varint(body: bytes, position: int) -> tuple[int, int]:
    """@raise ValueError: there is none."""
    value = 0
    for shift, byte in zip(range(0, 70, 7), body[position : position + 10], strict=False):
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + shift // 7 + 1
    raise ValueError


class _LogsReader:
    """Makes objects of the messages of one body, as many as are allowed."""

    def __init__(self) -> None:
        self._left = MAX_MESSAGES

    def resources(self, messages: Iterable[Any]) -> list[Value]:
        """@raise OtlpError: there are too many."""
        return [self._resource(each) for each in messages]

    def _resource(self, message: Any) -> Value:
        self._counts(4)
        found: dict[str, Value] = {"resource": self._described(message.resource)}
        found["scopeLogs"] = [self._scope(scope) for scope in message.scope_logs]
        return found | _texts(message, ("schema_url", "schemaUrl"))

    def _scope(self, message: Any) -> Value:
        self._counts(4)
        scope = self._described(message.scope) | _texts(message.scope, ("name", "name"), ("version", "version"))
        found: dict[str, Value] = {"scope": scope, "logRecords": [self._record(each) for each in message.log_records]}
        return found | _texts(message, ("schema_url", "schemaUrl"))

    def _described(self, message: Any) -> dict[str, Value]:
        """Return the attributes of a resource or a scope."""
        found: dict[str, Value] = {}
        if message.attributes:
            found["attributes"] = self._pairs(message.attributes)
        if message.dropped_attributes_count:
            found["droppedAttributesCount"] = message.dropped_attributes_count
        return found

    def _record(self, message: Any) -> Value:
        self._counts(2)
        yield_point()
        found: dict[str, Value] = {}
        if message.time_unix_nano:
            found["timeUnixNano"] = str(message.time_unix_nano)
        if message.observed_time_unix_nano:
            found["observedTimeUnixNano"] = str(message.observed_time_unix_nano)
        if message.severity_number:
            found["severityNumber"] = message.severity_number
        found |= _texts(message, ("severity_text", "severityText"), ("event_name", "eventName"))
        if message.HasField("body"):
            found["body"] = self._value(message.body)
        found |= self._described(message)
        if message.flags:
            found["flags"] = message.flags
        if message.trace_id:
            found["traceId"] = message.trace_id.hex()
        if message.span_id:
            found["spanId"] = message.span_id.hex()
        return found

    def _pairs(self, messages: Iterable[Any]) -> list[Value]:
        return [{"key": each.key, "value": self._value(each.value)} for each in messages if self._counts()]

    def _value(self, message: Any) -> Value:
        self._counts()
        kind = message.WhichOneof("value")
        match kind:
            case "string_value":
                return {"stringValue": message.string_value}
            case "int_value":
                return {"intValue": str(message.int_value)}
            case "bool_value":
                return {"boolValue": message.bool_value}
            case "double_value":
                return {"doubleValue": _double(message.double_value)}
            case "bytes_value":
                return {"bytesValue": b64encode(message.bytes_value).decode("ascii")}
            case "array_value":
                return {"arrayValue": {"values": [self._value(each) for each in message.array_value.values]}}
            case "kvlist_value":
                return {"kvlistValue": {"values": self._pairs(message.kvlist_value.values)}}
        return {}

    def _counts(self, as_many: int = 1) -> bool:
        """
        @param as_many: how many attributes cost as much.
        @raise OtlpError: that was one too many.
        """
        self._left -= as_many
        if self._left < 0:
            raise OtlpError(f"The body holds more than {MAX_MESSAGES} values; have the sender make smaller batches.")
        return True


def _texts(message: Any, *names: tuple[str, str]) -> dict[str, Value]:
    """Return texts of a message that are not empty, by their names in JSON."""
    return {name: text for field, name in names if (text := getattr(message, field))}


def _double(value: float) -> Value:
    """Return a number as JSON has it; those that JSON has not are text (ProtoJSON)."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return msgspec.Raw(msgspec.json.encode(value))
