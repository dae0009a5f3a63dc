"""
Messages as log records of OpenTelemetry: what goes where, and which of its kinds a value is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from webhookrx.message.escapes import encode
from webhookrx.message.fields import MISSING
from webhookrx.message.identity import MakeID
from webhookrx.message.message import Message, Value
from webhookrx.message.record import is_router_form, own_time

ID_ATTRIBUTE: Final = "log.record.uid"
"""
Records with the same are duplicates of each other, of which all but one can be dropped
(U{https://opentelemetry.io/docs/specs/semconv/general/logs/}).
"""

SCOPE: Final = "webhookrx"
"""The instrumentation scope of all records."""

DEEPEST: Final = 30
"""
Levels of objects and lists in a value; what is deeper is JSON as text. An object is three nested messages of protobuf,
and its parsers take a hundred (U{https://protobuf.dev/programming-guides/proto-limits/}).
"""

_LARGEST: Final = (1 << 63) - 1
_SMALLEST: Final = -(1 << 63)
#: Characters of the longest text that C{repr} makes of a double; a longer number is not surely one.
_LONGEST_DOUBLE: Final = 24
_NUMBER: Final = b"-0123456789"
_INTEGER: Final = re.compile(rb"-?[0-9]+")
_LARGEST_SEVERITY: Final = 24

_decode: Final[Callable[[bytes], Any]] = msgspec.json.Decoder(
    Any, float_hook=lambda number: msgspec.Raw(number.encode("ascii"))
).decode

#: A text, an integer of 64 bits, a double by its text, a flag, a list, an object, or None.
Plain: TypeAlias = "str | int | bool | msgspec.Raw | list[Value] | dict[str, Value] | None"


class PartialSuccess(NamedTuple):
    """
    What a server says of a request that it takes.

    @ivar rejected: how many of its records it drops. It does not say which.
    """

    rejected: int = 0
    message: str = ""


class LogRecord(NamedTuple):
    """
    A message as OpenTelemetry's log data model has it.

    @ivar moment: when it happened, as the message says, in nanoseconds since the epoch; 0 if it does not.
    @ivar observed: when it was received, likewise.
    @ivar severity_number: 1 to 24; 0 if it is unknown.
    @ivar body: L{MISSING} if there is none.
    @ivar attributes: in their order, without equal names.
    """

    moment: int
    observed: int
    severity_number: int
    severity_text: str
    body: Any
    attributes: dict[str, Value]


@dataclass(frozen=True, slots=True)
class OTLPEncoding:
    """
    One of the two encodings of OTLP.

    @ivar record: makes a record, behind some bytes.
    @ivar resource: makes a resource of its attributes.
    @ivar request: makes a request of the records of each resource.
    @ivar read: reads the answer to a request that the server takes; raises C{ValueError} if it is none.
    """

    content_type: str
    record: Callable[[LogRecord, bytes], bytes]
    resource: Callable[[Mapping[str, str]], bytes]
    request: Callable[[Mapping[bytes, Sequence[bytes]]], bytes]
    read: Callable[[bytes], PartialSuccess]


def log_record(message: Message, make_id: MakeID) -> LogRecord:
    """
    Return a message as a record; nothing of it is left out.

    In the source form C{MESSAGE} is the body, and every other pair an attribute. In the router form the members of
    C{log} are where the data model has them, C{meta} is an attribute of that name, and what steps have added to C{log},
    or have given another type, is in an attribute C{log}. An attribute of a sender that has the name of one of ours
    gets C{webhook.} in front of it: no sender can make another's record a duplicate.
    """
    values = message.values
    if is_router_form(values):
        record = _of_router(message)
    else:
        attributes = {name: value for name, value in values.items() if name != "MESSAGE"}
        record = LogRecord(0, message.received, 0, "", values.get("MESSAGE", MISSING), attributes)
    own_id = make_id(message)
    if own_id or ID_ATTRIBUTE in record.attributes:
        _put(record.attributes, ID_ATTRIBUTE, own_id)
    return record


def _put(attributes: dict[str, Value], name: str, value: Value) -> None:
    if name in attributes:
        attributes[f"webhook.{name}"] = attributes.pop(name)
    if value != "":
        attributes[name] = value


def _of_router(message: Message) -> LogRecord:
    rest: dict[str, Any] = dict(message.values["log"])  # type: ignore[arg-type]
    moment = own_time(message.values)
    if moment or _is_int(rest.get("time_unix_nano"), 0, 0):
        rest.pop("time_unix_nano", None)
    observed = message.received
    if _is_int(rest.get("observed_time_unix_nano"), 1, _LARGEST):
        observed = rest.pop("observed_time_unix_nano")
    number = rest.pop("severity_number") if _is_int(rest.get("severity_number"), 0, _LARGEST_SEVERITY) else 0
    text = rest.pop("severity_text") if type(rest.get("severity_text")) is str else ""
    body = rest.pop("body", MISSING)
    attributes = dict(rest.pop("attributes")) if type(rest.get("attributes")) is dict else {}
    if rest:
        _put(attributes, "log", rest)
    _put(attributes, "meta", message.values["meta"])
    return LogRecord(moment, observed, number, text, body, attributes)


def _is_int(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def plain(value: Value, depth: int) -> Plain:
    """
    Return a value as one of the kinds that OTLP has. A number that is neither an integer of 64 bits nor exactly a
    double is its text, digit by digit.

    @param depth: how many objects and lists it is in.
    """
    kind = type(value)
    if kind is int:
        return value if _SMALLEST <= value <= _LARGEST else encode(value).decode()  # type: ignore[operator]
    if kind is msgspec.Raw:
        value = _read(bytes(value))  # type: ignore[arg-type]
        kind = type(value)
    if depth >= DEEPEST and (kind is dict or kind is list):
        return encode(value).decode()
    return value


def _read(text: bytes) -> Value:
    """Return what a L{msgspec.Raw} holds: a number, as C{Raw} only if it is exactly a double, or an array."""
    if text[:1] not in _NUMBER:
        return _decode(text)  # type: ignore[no-any-return]
    if _INTEGER.fullmatch(text) and len(text) < _LONGEST_DOUBLE:
        number = int(text)
        return number if _SMALLEST <= number <= _LARGEST else text.decode()
    return msgspec.Raw(text) if _is_double(text.decode()) else text.decode()


def _is_double(text: str) -> bool:
    if len(text) > _LONGEST_DOUBLE:
        return False
    number = float(text)
    return isfinite(number) and Decimal(text) == Decimal(repr(number))
