"""
Functions on moments.

No function reads a clock: the moment when the message came supplies the parts that a text lacks.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from webhookrx.message.macros import NANOSECONDS
from webhookrx.router.expressions.function import MANY, Function, one_of, text_argument
from webhookrx.router.expressions.moments import FIXED, GUESSED, Moment, Reader, Writer, seconds_of
from webhookrx.router.expressions.run import CALL, MAX_INTEGER, MIN_INTEGER, OperationError, Run
from webhookrx.router.expressions.values import as_number

_ISO: Final = (Reader("%Y-%m-%dT%H:%M:%S%f%z"), Reader("%Y-%m-%dT%H:%M:%S%f"))
_ISO_WRITER: Final = Writer("%Y-%m-%dT%H:%M:%S.%f%Z")
_LONGEST: Final = 256
"""Characters of a text that are searched for a moment."""

_STAMPS: Final = {"stamp": "time_unix_nano", "recvd": "observed_time_unix_nano"}


def _received(run: Run) -> datetime:
    """Return when the message came."""
    observed = run.record.get("log", {}).get("observed_time_unix_nano")
    return Moment(observed if type(observed) is int else 0).wall_clock()


def _strptime(constants: tuple[Any, ...]) -> Callable[[Run, Any], Moment | None]:
    if not all(isinstance(each, str) for each in constants):
        raise OperationError("A format is a text.")
    readers = [Reader(each) for each in constants]

    def read(run: Run, value: Any) -> Moment | None:
        text = text_argument(run, value)[:_LONGEST]
        now = _received(run)
        for reader in readers:
            run.spend(CALL * 3)
            moment = reader.read(text, now)
            if moment is not None:
                return moment
        return None

    return read


def _strftime(constants: tuple[Any, ...]) -> Callable[[Run, Any], str | None]:
    if not isinstance(constants[0], str):
        raise OperationError("A format is a text.")
    writer = Writer(constants[0])

    def written(run: Run, value: Any) -> str | None:
        run.spend(CALL * 3)
        return writer.write(_moment(value)) or None

    return written


def _moment(value: Any) -> Moment:
    if type(value) is Moment:
        return value
    if type(value) is not int:
        raise OperationError("The argument is no moment; datetime() and strptime() make one.")
    return Moment(value)


def _checked(nanoseconds: int) -> int:
    if not MIN_INTEGER <= nanoseconds <= MAX_INTEGER:
        raise OperationError("The moment is not within the years 1677 to 2262.")
    return nanoseconds


def _datetime(run: Run, value: Any) -> Moment:
    kind = type(value)
    if kind is Moment:
        moment: Moment = value
        return moment
    if kind is str:
        return _isodate(run, value)
    number = as_number(value)
    if number is None:
        raise OperationError("The argument is no moment: nanoseconds, seconds with a fraction, or a text of ISO 8601.")
    return Moment(number if type(number) is int else _checked(round(number * 1_000_000) * 1_000))


def _isodate(run: Run, value: Any) -> Moment:
    text = text_argument(run, value)
    run.spend(CALL * 3)
    for reader in _ISO:
        moment = reader.read(text, _received(run)) if len(text) <= _LONGEST else None
        if moment is not None and _is_all_of(text, moment):
            return moment
    raise OperationError("The text is no moment of ISO 8601, such as 2026-01-31T08:09:10Z.")


def _is_all_of(text: str, moment: Moment) -> bool:
    """Tell whether a text ends with its moment."""
    tail = text[19:].lstrip(".0123456789")
    return not tail or (tail[0] in "Zz+-" and len(tail) <= len("+00:00") and moment.source == "parsed")


def _format_isodate(run: Run, value: Any) -> str:
    run.spend(CALL * 3)
    if type(value) is not Moment:
        raise OperationError("The argument is no moment; datetime() and strptime() make one.")
    return _ISO_WRITER.write(value)


def _zone(name: Any) -> zoneinfo.ZoneInfo:
    try:
        if not isinstance(name, str):
            raise ValueError
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise OperationError("There is no time zone of that name, such as Europe/Berlin.") from None


def _in_zone(constants: tuple[Any, ...], *, fix: bool) -> Callable[[Run, Any], Moment]:
    zone = _zone(constants[0])

    def moved(run: Run, value: Any) -> Moment:
        run.spend(CALL * 3)
        moment = _moment(value)
        shown = moment.wall_clock()
        if fix:
            # The time of day was meant in that zone; one that no clock shows there is an hour later.
            shown = shown.replace(tzinfo=zone).astimezone(UTC)
        inside = shown.astimezone(zone)
        offset = inside.utcoffset()
        seconds = int(offset.total_seconds()) if offset is not None else 0
        rest = moment.nanoseconds % NANOSECONDS
        return Moment(_checked(seconds_of(inside) * NANOSECONDS + rest), seconds, FIXED)

    return moved


def _fix_timezone(constants: tuple[Any, ...]) -> Callable[[Run, Any], Moment]:
    return _in_zone(constants, fix=True)


def _set_timezone(constants: tuple[Any, ...]) -> Callable[[Run, Any], Moment]:
    return _in_zone(constants, fix=False)


_QUARTER: Final = 15 * 60
_WIDEST: Final = 14 * 3_600


def _guess_timezone(run: Run, value: Any) -> Moment:
    """Set the zone, in quarters of an hour, in which the moment is nearest to the arrival of the message."""
    run.spend(CALL)
    moment = _moment(value)
    apart = (moment.nanoseconds - int(_received(run).timestamp()) * NANOSECONDS) // NANOSECONDS
    offset = round(apart / _QUARTER) * _QUARTER
    if abs(offset) > _WIDEST:
        return moment._replace(source=GUESSED)
    return Moment(_checked(moment.nanoseconds - offset * NANOSECONDS), moment.offset + offset, GUESSED)


def _timezone_source(_: Run, value: Any) -> str:
    if type(value) is not Moment:
        raise OperationError("The argument is no moment; datetime() and strptime() make one.")
    return value.source


def _get_timestamp(run: Run, *, stamp: str = "stamp") -> Moment:
    found = run.record.get("log", {}).get(_STAMPS[stamp])
    if type(found) is not int:
        raise OperationError("The time of the message is no integer.")
    return Moment(found)


def _set_timestamp(run: Run, value: Any, *, stamp: str = "stamp") -> bool:
    if type(value) is not Moment:
        raise OperationError("The argument is no moment; datetime() and strptime() make one.")
    log = run.record.get("log")
    if type(log) is not dict:
        raise OperationError("The message has no place for a time.")
    run.undo_log.set_member(log, _STAMPS[stamp], max(value.nanoseconds, 0))
    return True


_ONE_CONSTANT: Final = range(1, 2)

TIME_FUNCTIONS: Final = (
    Function(
        "strptime",
        'text, "format", …',
        "The moment that a text begins with, by the first format that fits, or `null`.",
        _strptime,
        2,
        MANY,
        constants=range(1, MANY),
    ),
    Function("strftime", '"format", moment', "A moment as text, in its zone.", _strftime, 2, 2, constants=range(1)),
    Function(
        "datetime",
        "value",
        "The moment of nanoseconds, of seconds with a fraction, or of ISO 8601.",
        _datetime,
        folds=True,
    ),
    Function("isodate", "text", "The moment in a text of ISO 8601.", _isodate, folds=True),
    Function("format_isodate", "moment", "A moment as ISO 8601, with microseconds and zone.", _format_isodate),
    Function(
        "get_timestamp",
        'stamp="stamp"',
        '`log.time_unix_nano` as a moment; with `stamp="recvd"` `log.observed_time_unix_nano`.',
        _get_timestamp,
        0,
        0,
        checks={"stamp": one_of(*_STAMPS)},
    ),
    Function(
        "set_timestamp",
        'moment, stamp="stamp"',
        "Sets the same to a moment. Returns true.",
        _set_timestamp,
        checks={"stamp": one_of(*_STAMPS)},
    ),
    Function(
        "set_timezone",
        'moment, "zone"',
        "The same moment in a zone such as `Europe/Berlin`.",
        _set_timezone,
        2,
        2,
        constants=_ONE_CONSTANT,
    ),
    Function(
        "fix_timezone",
        'moment, "zone"',
        "The moment at which a clock in that zone shows the same.",
        _fix_timezone,
        2,
        2,
        constants=_ONE_CONSTANT,
    ),
    Function(
        "guess_timezone",
        "moment",
        "The moment in the zone in which it is nearest to the time of receipt.",
        _guess_timezone,
    ),
    Function(
        "get_timezone_source",
        "moment",
        "The origin of its zone: `parsed`, `assumed`, `fixed` or `guessed`.",
        _timezone_source,
    ),
)
