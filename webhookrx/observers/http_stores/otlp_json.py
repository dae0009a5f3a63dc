"""
Log records of OpenTelemetry in the JSON of OTLP: the JSON of protobuf, with names in lowerCamelCase and 64-bit integers
as texts (U{https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding}).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from webhookrx.message.escapes import encode
from webhookrx.message.fields import MISSING
from webhookrx.message.message import Value
from webhookrx.observers.http_stores.json_texts import raw_text, text_pieces
from webhookrx.observers.http_stores.otlp_records import SCOPE, LogRecord, OTLPEncoding, PartialSuccess, plain
from webhookrx.yield_point import PIECE, yield_point

_SCOPE: Final = encode({"name": SCOPE})
#: Placeholder for a long text; random, so that no sender can write it.
_MARK: Final = secrets.token_hex(16)


def json_record(record: LogRecord, before: bytes = b"") -> bytes:
    """Return the JSON of a C{LogRecord}, behind something else."""
    made: dict[str, Any] = {"timeUnixNano": str(record.moment)} if record.moment else {}
    made["observedTimeUnixNano"] = str(record.observed)
    if record.severity_number:
        made["severityNumber"] = record.severity_number
    if record.severity_text:
        made["severityText"] = raw_text(record.severity_text)
    is_long = type(record.body) is str and len(record.body) > PIECE
    if record.body is not MISSING:
        made["body"] = {"stringValue": _MARK} if is_long else json_value(record.body)
    made["attributes"] = list(_pairs(record.attributes, 0))
    encoded = encode(made)
    if not is_long:
        return before + encoded
    # Joined once: a copy of tens of megabytes takes long.
    start, _, end = encoded.partition(encode(_MARK))
    return b"".join((before, start, *text_pieces(record.body), end))


def json_resource(attributes: Mapping[str, str]) -> bytes:
    """Return the JSON of a C{Resource}."""
    return encode({"attributes": list(_pairs(attributes, 0))})


def json_request(records: Mapping[bytes, Sequence[bytes]]) -> bytes:
    """Return the JSON of an C{ExportLogsServiceRequest}."""
    logs = (
        b'{"resource":%b,"scopeLogs":[{"scope":%b,"logRecords":[%b]}]}' % (resource, _SCOPE, b",".join(of_resource))
        for resource, of_resource in records.items()
    )
    return b'{"resourceLogs":[%b]}' % b",".join(logs)


def read_json_response(body: bytes) -> PartialSuccess:
    """
    Read an C{ExportLogsServiceResponse}; an empty body says nothing of records that are rejected.

    @raise ValueError: it is none.
    """
    if not body.strip():
        return PartialSuccess()
    try:
        response = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError("it is no JSON") from None
    partial = _member(response, "partialSuccess", "partial_success")
    if partial is None:
        return PartialSuccess()
    rejected = _member(partial, "rejectedLogRecords", "rejected_log_records")
    message = _member(partial, "errorMessage", "error_message")
    if rejected is None:
        rejected = 0
    if type(rejected) is str and rejected.isascii() and rejected.isdecimal() and len(rejected) < 20:
        rejected = int(rejected)
    if type(rejected) is not int or type(message) not in (str, type(None)):
        raise ValueError("it is no ExportLogsServiceResponse")
    return PartialSuccess(rejected, message or "")


def _member(value: Any, name: str, original: str) -> Any:
    """
    Return a member, by its name in JSON or that in protobuf, which readers of that JSON take, too: a server that
    rejects records is to be understood.
    """
    if type(value) is not dict:
        raise ValueError("it is no ExportLogsServiceResponse")
    return value.get(name, value.get(original))


def json_value(value: Value, depth: int = 0) -> dict[str, Any]:
    """
    Return the JSON of an C{AnyValue}.

    @param depth: how many objects and lists the value is in.
    """
    value = plain(value, depth)
    kind = type(value)
    if kind is str:
        return {"stringValue": raw_text(value)}  # type: ignore[arg-type]
    if kind is bool:
        return {"boolValue": value}
    if kind is int:
        return {"intValue": str(value)}
    if kind is dict:
        return {"kvlistValue": {"values": list(_pairs(value, depth + 1))}}  # type: ignore[arg-type]
    if kind is list:
        return {"arrayValue": {"values": list(_elements(value, depth + 1))}}  # type: ignore[arg-type]
    return {} if value is None else {"doubleValue": value}


def _pairs(values: Mapping[str, Value], depth: int) -> Iterator[dict[str, Any]]:
    for name, value in values.items():
        yield_point()
        yield {"key": raw_text(name), "value": json_value(value, depth)}


def _elements(values: list[Value], depth: int) -> Iterator[dict[str, Any]]:
    for value in values:
        yield_point()
        yield json_value(value, depth)


OTLP_JSON: Final = OTLPEncoding("application/json", json_record, json_resource, json_request, read_json_response)
