"""
Quotas as people write them: C{messages=100/s,bytes=10MiB/s,burst=10s,per=source}.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from webhookrx.diagnostics import nearest, quoted
from webhookrx.errors import ConfigError
from webhookrx.guard.quota import PER, SourceQuota
from webhookrx.quantities import format_duration, format_size, parse_duration, parse_size

_PERIODS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_NUMBER: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,6})?", re.ASCII)


def quota_members(text: str) -> list[tuple[str, float | str]]:
    """
    Read members of a quota, with commas between them.

    @return: name and value of each; the rates are per second, the burst is in seconds.
    @raise ConfigError: one of them is not a member, or its value is wrong.
    """
    members = []
    for member in text.split(","):
        name, equals, value = (part.strip() for part in member.partition("="))
        if not equals:
            raise ConfigError(f"{quoted(member)} is not of the form NAME=VALUE; write for example messages=100/s.")
        if name not in _MEMBERS:
            near = nearest(name, _MEMBERS)
            raise ConfigError(f"{quoted(name)} is not one of {', '.join(_MEMBERS)}. {near}".strip())
        members.append((name, _MEMBERS[name](value)))
    return members


def quota_of(members: Iterable[tuple[str, float | str]]) -> SourceQuota:
    """
    Make a quota of all its members.

    @raise ConfigError: one is given twice, or the two rates are missing.
    """
    values: dict[str, Any] = {}
    for name, value in members:
        if name in values:
            raise ConfigError(f"{quoted(name)} is given twice.")
        values[name] = value
    if "messages" not in values and "bytes" not in values:
        raise ConfigError("A quota needs messages, bytes or both, such as messages=100/s or bytes=10MiB/s.")
    return SourceQuota(**values)


def show_quota(quota: SourceQuota) -> str:
    """Write a quota so that it can be read again, with all its members."""
    parts = []
    if quota.messages is not None:
        parts.append(f"messages={_written(quota.messages, _plain)}")
    if quota.bytes is not None:
        parts.append(f"bytes={_written(quota.bytes, lambda rate: format_size(int(rate)))}")
    return ",".join((*parts, f"burst={format_duration(quota.burst)}", f"per={quota.per}"))


def _written(rate: float, show: Callable[[float], str]) -> str:
    """Write a rate by the shortest period in which it is a whole number, or nearly one."""
    for period, seconds in _PERIODS.items():
        number = round(rate * seconds, 6)
        if number and number == int(number):
            return f"{show(number)}/{period}"
    return f"{show(round(rate * _PERIODS['d']))}/d"


def _plain(number: float) -> str:
    return str(int(number))


def _messages(text: str) -> float:
    number, period = _divided(text, "100/s")
    if not _NUMBER.fullmatch(number) or not float(number):
        raise ConfigError(f"{quoted(text)} is not a rate of messages; write a number more than 0, such as 100/s.")
    return float(number) / period


def _bytes(text: str) -> float:
    size, period = _divided(text, "10MiB/s")
    try:
        number = parse_size(size)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if not number:
        raise ConfigError(f"{quoted(text)} lets nothing pass; write more than 0, such as 10MiB/s.")
    return number / period


def _divided(text: str, example: str) -> tuple[str, int]:
    """Return what comes in a period, and the seconds of the period."""
    amount, slash, period = (part.strip() for part in text.partition("/"))
    if not slash or period not in _PERIODS:
        raise ConfigError(
            f"{quoted(text)} is not a rate; write an amount and a period, /s, /m, /h or /d, such as {example}."
        )
    return amount, _PERIODS[period]


def _burst(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if not seconds:
        raise ConfigError(f"{quoted(text)} is too short for a burst; write more than 0, such as 10s.")
    return seconds


def _per(text: str) -> str:
    if text not in PER:
        raise ConfigError(f"{quoted(text)} is not one of {', '.join(PER)}. {nearest(text, PER)}".strip())
    return text


_MEMBERS: Final[dict[str, Callable[[str], float | str]]] = {
    "messages": _messages,
    "bytes": _bytes,
    "burst": _burst,
    "per": _per,
}
