"""
The record of the router form: messages whose values are the two objects C{log} and C{meta}, and the path of each macro
in them.

Steps may have changed any field, so nothing here relies on a field to exist or to have its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from webhookrx.message.fields import MISSING, Path, get_field
from webhookrx.message.message import Message, Value

_MACRO_PATHS: Final[Mapping[str, Path]] = MappingProxyType(
    {
        "HOST": ("meta", "host", "name"),
        "HOST_FROM": ("meta", "connection", "src_ip"),
        "MESSAGE": ("log", "body"),
        "PEERIP": ("meta", "connection", "src_ip"),
        "PEERPORT": ("meta", "connection", "src_port"),
        "PROGRAM": ("meta", "product"),
        "RAWMSG_SIZE": ("meta", "connection", "bytes"),
        "RCPTID": ("meta", "id"),
        "SOURCE": ("meta", "connector", "name"),
        "SOURCEIP": ("meta", "connection", "src_ip"),
        "SOURCEPORT": ("meta", "connection", "src_port"),
        "TRANSPORT": ("meta", "connection", "transport"),
    }
)

_TIME: Final = ("log", "time_unix_nano")
_SEVERITY: Final = ("log", "severity_number")

#: What a line of the source form begins with, and no other.
_FLAT: Final = b'{"ISODATE":'

_LARGEST_TIME: Final = (1 << 63) - 1

_SEVERITY_ENDS: Final = ((8, 7), (9, 6), (12, 5), (16, 4), (20, 3), (21, 2), (23, 1), (24, 0))
"""Where a severity of syslog ends among those of the OpenTelemetry log data model, and its number there."""


def is_router_form(values: Mapping[str, Value]) -> bool:
    """Tell whether these are the values of a message of the router form."""
    return len(values) == 2 and type(values.get("log")) is dict and type(values.get("meta")) is dict


def path_group(name: str, values: Mapping[str, Value]) -> Value:
    """Return the text that a named group of the path pattern has captured; None without such a group."""
    return _or_none(get_field(values, ("log", "attributes", "webhook.path." + name)))


def record_macro(name: str, values: Mapping[str, Value]) -> Any:
    """Return the value of a macro by its path in the record; L{MISSING} when it has no path or no value."""
    path = _MACRO_PATHS.get(name)
    return MISSING if path is None else get_field(values, path)


def field_value(name: str, values: Mapping[str, Value]) -> Value:
    """Return a field by its path, such as C{log.body.user}, or an attribute by its name; None when it is not there."""
    first, *rest = name.split(".")
    path = (first, *rest) if first in values else ("log", "attributes", name)
    return _or_none(get_field(values, path))


def own_time(values: Mapping[str, Value]) -> int:
    """Return when it happened, as the message says, in nanoseconds since the epoch; 0 when that is not known."""
    found = get_field(values, _TIME)
    return found if type(found) is int and 0 < found <= _LARGEST_TIME else 0


def said_or_received(message: Message) -> int:
    """Return when it happened, as a message of the router form says, else when it was received; nanoseconds."""
    if message.line is not None and message.line.startswith(_FLAT):
        return message.received
    values = message.values
    return (own_time(values) if is_router_form(values) else 0) or message.received


def syslog_severity(values: Mapping[str, Value]) -> int | None:
    """Return the severity as a number of syslog, RFC 5424 section 6.2.1; None when it is not known."""
    number = get_field(values, _SEVERITY)
    if type(number) is not int or number < 1:
        return None
    return next((severity for end, severity in _SEVERITY_ENDS if number <= end), None)


def pairs(values: Mapping[str, Value], longest: int) -> Iterator[tuple[str, Value]]:
    """
    Yield all of a message but its body, time and severity as flat pairs: attributes by their names, then what is below
    C{meta} by its path there, such as C{connector.labels.team}.

    @param longest: most characters of a name that count; only those at its end are sure to be right. So deep objects
        with long names cost no more than their members.
    """
    pending: list[tuple[str, Any]] = [("", values["meta"]), ("", get_field(values, ("log", "attributes")))]
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            inner = [(f"{name}.{member}" if name else member, content) for member, content in value.items()]
            pending += [(long[-longest:], content) for long, content in reversed(inner)]
        elif value is not MISSING:
            yield name, value


def _or_none(found: Any) -> Value:
    return None if found is MISSING else found
