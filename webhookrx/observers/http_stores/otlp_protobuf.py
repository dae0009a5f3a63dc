"""
Log records of OpenTelemetry in protobuf, made by C{opentelemetry-proto}.

A request is joined of records that are serialised already: in protobuf a message within another is its bytes behind its
length (U{https://protobuf.dev/programming-guides/encoding/}).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from webhookrx.message.fields import MISSING
from webhookrx.message.message import Value
from webhookrx.observers.http_stores.otlp_records import SCOPE, LogRecord, OTLPEncoding, PartialSuccess, plain
from webhookrx.yield_point import yield_point

# Fields whose values have a length (wire type 2), as their number and type.
_RESOURCE_LOGS: Final = b"\x0a"
"""Field 1 of C{ExportLogsServiceRequest}."""
_RESOURCE: Final = b"\x0a"
"""Field 1 of C{ResourceLogs}."""
_SCOPE_LOGS: Final = b"\x12"
"""Field 2 of C{ResourceLogs}."""
_SCOPE: Final = b"\x0a"
"""Field 1 of C{ScopeLogs}."""
_LOG_RECORDS: Final = b"\x12"
"""Field 2 of C{ScopeLogs}."""


def protobuf_record(record: LogRecord, before: bytes = b"") -> bytes:
    """Return a serialised C{LogRecord}, behind something else."""
    made = logs_pb2.LogRecord(
        time_unix_nano=record.moment,
        observed_time_unix_nano=record.observed,
        severity_number=record.severity_number,  # type: ignore[arg-type]
        severity_text=record.severity_text,
        attributes=_pairs(record.attributes, 0),
    )
    if record.body is not MISSING:
        made.body.CopyFrom(protobuf_value(record.body))
    yield_point()
    return before + made.SerializeToString()


def protobuf_resource(attributes: Mapping[str, str]) -> bytes:
    """Return attributes that are texts as a serialised C{Resource}."""
    return Resource(attributes=_pairs(attributes, 0)).SerializeToString()


def protobuf_request(records: Mapping[bytes, Sequence[bytes]]) -> bytes:
    """Return a serialised C{ExportLogsServiceRequest}."""
    return b"".join(_resource_logs(resource, of_resource) for resource, of_resource in records.items())


def read_protobuf_response(body: bytes) -> PartialSuccess:
    """
    Read an C{ExportLogsServiceResponse}.

    @raise ValueError: it is none.
    """
    try:
        partial = ExportLogsServiceResponse.FromString(body).partial_success
    except DecodeError:
        raise ValueError("it is no ExportLogsServiceResponse") from None
    return PartialSuccess(partial.rejected_log_records, partial.error_message)


def protobuf_value(value: Value, depth: int = 0) -> AnyValue:
    """Return a value as an C{AnyValue}."""
    value = plain(value, depth)
    kind = type(value)
    if kind is str:
        return AnyValue(string_value=value)  # type: ignore[arg-type]
    if kind is bool:
        return AnyValue(bool_value=value)  # type: ignore[arg-type]
    if kind is int:
        return AnyValue(int_value=value)  # type: ignore[arg-type]
    if kind is dict:
        return AnyValue(kvlist_value=KeyValueList(values=_pairs(value, depth + 1)))  # type: ignore[arg-type]
    if kind is list:
        return AnyValue(array_value=ArrayValue(values=_elements(value, depth + 1)))  # type: ignore[arg-type]
    return AnyValue() if value is None else AnyValue(double_value=float(bytes(value)))  # type: ignore[arg-type]


def _pairs(values: Mapping[str, Value], depth: int) -> list[KeyValue]:
    made = []
    for name, value in values.items():
        yield_point()
        made.append(KeyValue(key=name, value=protobuf_value(value, depth)))
    return made


def _elements(values: list[Value], depth: int) -> list[AnyValue]:
    made = []
    for value in values:
        yield_point()
        made.append(protobuf_value(value, depth))
    return made


def _resource_logs(resource: bytes, records: Sequence[bytes]) -> bytes:
    logs = _SCOPE_FIELD + b"".join(_field(_LOG_RECORDS, record) for record in records)
    return _field(_RESOURCE_LOGS, _field(_RESOURCE, resource) + _field(_SCOPE_LOGS, logs))


def _field(tag: bytes, content: bytes) -> bytes:
    return tag + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


_SCOPE_FIELD: Final = _field(_SCOPE, InstrumentationScope(name=SCOPE).SerializeToString())

OTLP_PROTOBUF: Final = OTLPEncoding(
    "application/x-protobuf", protobuf_record, protobuf_resource, protobuf_request, read_protobuf_response
)
