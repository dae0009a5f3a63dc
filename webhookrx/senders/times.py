"""
Moments as senders write them, in nanoseconds since the epoch, exactly.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Context, Decimal
from email.utils import parsedate_tz
from typing import Any, Final

import msgspec

from webhookrx.message.macros import NANOSECONDS

_LATEST: Final = 2**63
"""The first moment that a signed number of 64 bits can't hold, in the year 2262. 0 stands for an unknown time."""

_MAX_LENGTH: Final = 64
"""Characters of a text that is looked at."""

_EPOCH: Final = datetime(1970, 1, 1)

#: What follows the seconds: RFC 3339 section 5.6; and a comma, a blank, offsets without a colon, as ISO 8601 has them.
_TAIL: Final = re.compile(
    r"(?:[.,](?P<fraction>[0-9]+))?"
    r"(?:\ ?(?:[Zz]|UTC|GMT|(?P<sign>[+-])(?P<hours>[0-9]{2})(?::?(?P<minutes>[0-9]{2}))?))?",
    re.VERBOSE,
)
_NUMBER: Final = re.compile(r"([0-9]+)(?:\.([0-9]+))?")
_EXACT: Final = Context(prec=200, Emax=1000, Emin=-1000)


def from_rfc3339(value: Any) -> int | None:
    """
    Read C{2024-02-29T23:59:60.123456789+01:00}: also with a blank or a small C{t} in its middle, with C{z}, C{UTC}, or
    no zone, which is UTC. What is finer than nanoseconds is cut off.

    @return: None when it is nothing of this kind, or out of range.
    """
    if type(value) is not str or not 19 <= len(value) <= _MAX_LENGTH:
        return None
    # fromisoformat() would also take weeks, and digits without anything between them.
    if value[4] != "-" or value[7] != "-" or value[10] not in "Tt " or value[13] != ":" or value[16] != ":":
        return None
    if value[11:13] == "24":  # newer Pythons take it for midnight
        return None
    leap = value[17:19] == "60"  # RFC 3339 section 5.7
    try:
        since = datetime.fromisoformat(value[:17] + "59" if leap else value[:19]) - _EPOCH
    except ValueError:
        return None
    seconds = since.days * 86_400 + since.seconds + leap
    tail = value[19:]
    if tail == "Z":
        return _in_range(seconds * NANOSECONDS)
    found = _TAIL.fullmatch(tail)
    if found is None:
        return None
    fraction, sign, hours, minutes = found.groups()
    nanoseconds = int(fraction[:9].ljust(9, "0")) if fraction else 0
    if sign:
        offset = int(hours) * 3600 + int(minutes or 0) * 60
        if offset >= 86_400:
            return None
        seconds -= offset if sign == "+" else -offset
    return _in_range(seconds * NANOSECONDS + nanoseconds)


def from_rfc2822(value: Any) -> int | None:
    """Read C{Thu, 29 Feb 2024 23:59:59 +0100}; None when it is nothing of this kind, or out of range."""
    if type(value) is not str or not 10 <= len(value) <= _MAX_LENGTH:
        return None
    try:
        parts = parsedate_tz(value)
        if parts is None:
            return None
        # timegm() would take the 99th of a month.
        datetime(*parts[:6])
        return _in_range((calendar.timegm((*parts[:6], 0, 1, 0)) - (parts[9] or 0)) * NANOSECONDS)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def from_number(value: Any, unit: int) -> int | None:
    """
    Read a number, or the text of one.

    @param unit: how many nanoseconds one is.
    @return: None when it is not a number, or out of range.
    """
    if type(value) is int:
        return _in_range(value * unit) if 0 < value < _LATEST else None
    text = _number_text(value)
    if text is None:
        return None
    found = _NUMBER.fullmatch(text)
    if found is not None:
        whole, fraction = found.groups()
        nanoseconds = int(whole) * unit
        if fraction:
            nanoseconds += int(fraction) * unit // 10 ** len(fraction)
        return _in_range(nanoseconds)
    try:
        number = _EXACT.create_decimal(text)
        if not number.is_finite() or not 0 < number < _LATEST:
            return None
        return _in_range(int(_EXACT.multiply(number, Decimal(unit))))
    except ArithmeticError:  # it is no number, or its exponent is beyond all bounds
        return None


def _number_text(value: Any) -> str | None:
    if type(value) is msgspec.Raw:
        text = bytes(value).decode("ascii", "replace")
    elif type(value) is str:
        text = value.strip()
    else:
        return None
    return text if 0 < len(text) <= _MAX_LENGTH and text.isascii() else None


def from_anything(value: Any) -> int | None:
    """
    Read whatever L{from_rfc3339}, L{from_rfc2822} or L{from_number} do. A number is one of seconds, milliseconds,
    microseconds or nanoseconds, by its size: what would lie beyond the year 2262 is of a finer unit.
    """
    if type(value) is not int:
        moment = from_rfc3339(value)
        if moment is not None:
            return moment
    for unit in (NANOSECONDS, 1_000_000, 1_000, 1):
        moment = from_number(value, unit)
        if moment is not None:
            return moment
    return from_rfc2822(value)


def _in_range(nanoseconds: int) -> int | None:
    return nanoseconds if 0 < nanoseconds < _LATEST else None


def _number_reader(unit: int) -> Callable[[Any], int | None]:
    return lambda value: from_number(value, unit)


READERS: Final[dict[str, Callable[[Any], int | None]]] = {
    "rfc3339": from_rfc3339,
    "unix": _number_reader(NANOSECONDS),
    "unix-ms": _number_reader(1_000_000),
    "unix-us": _number_reader(1_000),
    "unix-ns": _number_reader(1),
    "rfc2822": from_rfc2822,
    "auto": from_anything,
}
"""Name of a format to what reads it; each takes any value, raises nothing, and returns None for what it can't read."""
