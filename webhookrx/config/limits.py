"""
The table of limits, with unit, meaning and reason, and C{NAME=VALUE} texts read by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from webhookrx.config.option_reader import NOWHERE, Effective, OptionReader
from webhookrx.diagnostics import quoted, suggestion
from webhookrx.errors import ConfigError
from webhookrx.quantities import format_duration, format_size, parse_duration, parse_size
from webhookrx.settings import Limits, largest_body
from webhookrx.text import table

Number = int | float


@dataclass(frozen=True, slots=True)
class Unit:
    """How the values of a limit are parsed and shown."""

    parse: Callable[[str], Number]
    show: Callable[[Number], str]
    example: str


def _parse_count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)


SIZE = Unit(parse_size, lambda size: format_size(int(size)), "a size such as 512KiB or 10MiB")
TIME = Unit(parse_duration, format_duration, "a time such as 500ms, 30s or 2m")
COUNT = Unit(_parse_count, str, "a whole number such as 1000")

#: By the field of L{Limits}: its unit, what it bounds, and the reason with which requests beyond it are refused.
LIMITS: dict[str, tuple[Unit, str, str]] = {
    "body": (SIZE, "one body, on the wire and unpacked", "body_too_large"),
    "unpack_ratio": (
        COUNT,
        "unpacked size of a body beyond 128 KiB, as a multiple of its size on the wire",
        "unpack_ratio",
    ),
    "header_block": (SIZE, "request line and headers together", "headers_too_large"),
    "headers": (COUNT, "header lines in one request", "headers_too_large"),
    "target": (SIZE, "the request target: path and query", "target_too_long"),
    "connections": (COUNT, "open connections on all endpoints", "too_many_connections"),
    "connections_per_peer": (
        COUNT,
        "open connections from one IPv4 address, or IPv6 network of 64 bits",
        "too_many_connections",
    ),
    "queue": (
        SIZE,
        "bytes in memory for senders, from the first byte of a body to the last acknowledgement",
        "no_room",
    ),
    "queue_messages": (COUNT, "messages that wait for an acknowledgement", "no_room"),
    "header_time": (TIME, "from the first byte of a request to the end of its headers; TLS handshakes too", "timeout"),
    "body_time": (TIME, "from the end of the headers to the end of the body", "timeout"),
    "answer_time": (
        TIME,
        "for the observers to make a message safe, and for a sender to take its answer",
        "not_stored",
    ),
    "idle_time": (TIME, "between two requests on one connection; then it is closed", ""),
    "pause_time": (
        TIME,
        "for which reading may pause because the queue is almost full; then senders are refused",
        "no_room",
    ),
    "recorded_requests": (COUNT, "requests that `--record` stores in its directory", ""),
    "recorded_bytes": (SIZE, "bytes of these requests together", ""),
}

DEFAULTS: dict[str, Number] = {field.name: getattr(Limits(), field.name) for field in fields(Limits)}


def parse_limit(text: str) -> tuple[str, Number]:
    """
    Read C{NAME=VALUE}.

    @return: the name with C{_}, and the value as bytes, seconds or a count.
    @raise ConfigError: the form, the name or the value is wrong.
    """
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"{quoted(text)} is not of the form NAME=VALUE, such as body=10MiB.")
    name = key.strip().replace("-", "_")
    if name not in LIMITS:
        raise ConfigError(f"There is no limit {quoted(name)}. {suggestion(name, LIMITS)}")
    unit = LIMITS[name][0]
    try:
        number = unit.parse(value.strip())
    except ValueError:
        number = 0
    if not number > 0:
        raise ConfigError(f"{name} can't be {quoted(value.strip())}; it takes {unit.example}, more than 0.")
    return name, number


def show_limit(name: str, number: Number) -> str:
    """Return the value of a limit as people write it."""
    return LIMITS[name][0].show(number)


def read_limits(options: OptionReader) -> Limits:
    """Return the limits of a service, each name from the highest layer that has it. Mistakes are noted."""
    values: dict[str, Any] = dict(DEFAULTS)
    origins = dict.fromkeys(values, NOWHERE)
    for layer in reversed(options.layers):
        found: set[str] = set()
        for value in layer.get("limit", ()):
            limit = options.problems.attempt(value.origin, parse_limit, value.text)
            if limit is None:
                continue
            name, values[name] = limit
            origins[name] = value.origin
            if name in found:
                options.problems.error(f"The limit {name} is given twice.", value.origin)
            found.add(name)
    for name, number in values.items():
        options.effective.append(Effective("", f"limit {name}", show_limit(name, number), str(origins[name])))
    limits = Limits(**values)
    if limits.body > largest_body(limits.queue):
        options.error(
            "limit",
            f"The queue of {show_limit('queue', limits.queue)} never has room for a body of "
            f"{show_limit('body', limits.body)}: bodies may take half of it.",
        )
    return limits


def limit_table() -> str:
    """Return the limits as a Markdown table."""
    rows = (
        (f"`{name}`", show_limit(name, DEFAULTS[name]), meaning, f"`{reason}`" if reason else "")
        for name, (_, meaning, reason) in LIMITS.items()
    )
    return table(("limit", "default", "bounds", "reason beyond it"), rows)
