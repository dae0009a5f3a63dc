"""
Functions on moments: nanoseconds since the epoch, as C{log.time_unix_nano} has them.

They ask neither a clock nor a time zone nor a locale: what is not in the text is UTC, and names are English.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

from webhookrx.expressions.function import MANY, Function, text_argument
from webhookrx.expressions.limits import MAX_INTEGER, MIN_INTEGER
from webhookrx.expressions.mistakes import Mistake
from webhookrx.expressions.run import Run
from webhookrx.message.macros import MONTHS, NANOSECONDS, WEEK_DAYS

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_MONTH_OF: Final = {name[:3].lower(): number for number, name in enumerate(MONTHS, 1)}
_MAX_FORMAT: Final = 256

_DIRECTIVE: Final = re.compile(r"%([369]?f|.)|(\s+)|([^%\s]+)", re.DOTALL)
_COMPOSED: Final = {"%T": "%H:%M:%S", "%R": "%H:%M", "%D": "%m/%d/%y", "%F": "%Y-%m-%d"}
_COMPOSITION: Final = re.compile("%[%TRDF]")


def _names(names: list[str]) -> str:
    return "|".join(f"{name[:3]}(?:{name[3:]})?+" for name in names)


# Possessive throughout: a format that fits in many ways is tried in one.
_READ: Final = {
    "Y": r"\d{4}",
    "y": r"\d{2}",
    "m": r"\d{1,2}+",
    "d": r"\s?+\d{1,2}+",
    "e": r"\s?+\d{1,2}+",
    "H": r"\s?+\d{1,2}+",
    "I": r"\s?+\d{1,2}+",
    "M": r"\d{1,2}+",
    "S": r"\d{1,2}+",
    "f": r"\d{1,9}+",
    "j": r"\d{1,3}+",
    "s": r"-?+\d{1,10}+",
    "p": r"(?i:AM|PM)",
    "z": r"(?>Z|UTC|GMT|[+-]\d{2}:?+\d{2})",
    "b": f"(?>(?i:{_names(MONTHS)}))",
    "a": f"(?>(?i:{_names(WEEK_DAYS)}))",
}
_SAME: Final = {"B": "b", "h": "b", "A": "a", "Z": "z", "3f": "f", "6f": "f", "9f": "f"}


class _Format(NamedTuple):
    """What reads a moment: an expression, and for each of its groups the letter of the directive."""

    expression: re.Pattern[str]
    letters: list[str]


def _whole_format(text: str) -> str:
    if len(text) > _MAX_FORMAT:
        raise Mistake(f"The format is longer than {_MAX_FORMAT} characters.")
    return _COMPOSITION.sub(lambda found: _COMPOSED.get(found[0], found[0]), text)


def _reading_format(text: str) -> _Format:
    parts, letters = [], []
    for found in _DIRECTIVE.finditer(_whole_format(text)):
        if found[1] in ("%", "n", "t"):
            parts.append("%" if found[1] == "%" else r"\s*+")
        elif found[1]:
            letter = _SAME.get(found[1], found[1])
            if letter not in _READ:
                raise Mistake(f"There is no %{found[1]} in a format that reads; there are {', '.join(_READ)}.")
            letters.append(letter)
            parts.append(f"({_READ[letter]})")
        else:
            parts.append(r"\s*+" if found[2] else re.escape(found[3]))
    if "s" not in letters and not ({"Y", "y"} & set(letters) and ({"m", "b"} & set(letters) or "j" in letters)):
        raise Mistake("The format has no date: %Y-%m-%d, %b %d %Y or %s. There is no clock that would tell the year.")
    return _Format(re.compile("".join(parts), re.ASCII), letters)


def _strptime(constants: tuple[Any, ...]) -> Callable[[Run, Any], int | None]:
    formats = []
    for each in constants:
        if not isinstance(each, str):
            raise Mistake("A format is a text.")
        formats.append(_reading_format(each))

    def read(run: Run, value: Any) -> int | None:
        text = text_argument(run, value)
        for expression, letters in formats:
            found = expression.fullmatch(text)
            moment = _moment(dict(zip(letters, found.groups(), strict=True))) if found else None
            if moment is not None:
                return moment
        return None

    return read


def _moment(parts: dict[str, str]) -> int | None:
    """Return nanoseconds since the epoch; None when there is no such moment."""
    nanoseconds = int(parts.get("f", "0").ljust(9, "0"))
    if "s" in parts:
        return int(parts["s"]) * NANOSECONDS + nanoseconds
    hour, minute, second = (int(parts.get(letter, "0")) for letter in "HMS")
    if "I" in parts:
        hour = int(parts["I"]) % 12 + (12 if parts.get("p", "").upper() == "PM" else 0)
    try:
        day = _day(parts)
    except ValueError:
        return None
    # 60 is a leap second, which the epoch does not count.
    if hour > 23 or minute > 59 or second > 60 or ("I" in parts and not 1 <= int(parts["I"]) <= 12):
        return None
    seconds = (day - _EPOCH_DAY) * 86_400 + hour * 3_600 + minute * 60 + second - _offset(parts.get("z", "Z"))
    made = seconds * NANOSECONDS + nanoseconds
    return made if MIN_INTEGER <= made <= MAX_INTEGER else None


def _day(parts: dict[str, str]) -> int:
    year = int(parts["Y"] if "Y" in parts else parts["y"])
    if "Y" not in parts:
        # POSIX: 69 to 99 are of the 20th century.
        year += 1900 if year >= 69 else 2000
    if "j" in parts:
        return date(year, 1, 1).toordinal() + _in_year(int(parts["j"]), year)
    month = int(parts["m"]) if "m" in parts else _MONTH_OF[parts["b"][:3].lower()]
    return date(year, month, int(parts.get("d", parts.get("e", "1")))).toordinal()


def _in_year(day: int, year: int) -> int:
    if not 1 <= day <= date(year, 12, 31).timetuple().tm_yday:
        raise ValueError
    return day - 1


def _offset(text: str) -> int:
    if text[0] not in "+-":
        return 0
    digits = text[1:].replace(":", "")
    seconds = int(digits[:2]) * 3_600 + int(digits[2:]) * 60
    return -seconds if text[0] == "-" else seconds


_WRITE: Final[dict[str, Callable[[datetime, int], str]]] = {
    "Y": lambda at, _: f"{at.year:04}",
    "y": lambda at, _: f"{at.year % 100:02}",
    "C": lambda at, _: f"{at.year // 100:02}",
    "m": lambda at, _: f"{at.month:02}",
    "d": lambda at, _: f"{at.day:02}",
    "e": lambda at, _: f"{at.day:2}",
    "H": lambda at, _: f"{at.hour:02}",
    "I": lambda at, _: f"{(at.hour + 11) % 12 + 1:02}",
    "M": lambda at, _: f"{at.minute:02}",
    "S": lambda at, _: f"{at.second:02}",
    "f": lambda _, nanosecond: f"{nanosecond // 1_000:06}",
    "3f": lambda _, nanosecond: f"{nanosecond // 1_000_000:03}",
    "6f": lambda _, nanosecond: f"{nanosecond // 1_000:06}",
    "9f": lambda _, nanosecond: f"{nanosecond:09}",
    "j": lambda at, _: f"{at.timetuple().tm_yday:03}",
    "p": lambda at, _: "PM" if at.hour >= 12 else "AM",
    "u": lambda at, _: str(at.isoweekday()),
    "w": lambda at, _: str(at.isoweekday() % 7),
    "a": lambda at, _: WEEK_DAYS[at.weekday()][:3],
    "A": lambda at, _: WEEK_DAYS[at.weekday()],
    "b": lambda at, _: MONTHS[at.month - 1][:3],
    "h": lambda at, _: MONTHS[at.month - 1][:3],
    "B": lambda at, _: MONTHS[at.month - 1],
    "s": lambda at, _: str(int(at.timestamp())),
    "z": lambda at, _: "+0000",
    "Z": lambda at, _: "+00:00",
    "n": lambda at, _: "\n",
    "t": lambda at, _: "\t",
    "%": lambda at, _: "%",
}

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _strftime(constants: tuple[Any, ...]) -> Callable[[Run, Any], str]:
    if not isinstance(constants[0], str):
        raise Mistake("A format is a text.")
    parts: list[str | Callable[[datetime, int], str]] = []
    for found in _DIRECTIVE.finditer(_whole_format(constants[0])):
        if found[1] and found[1] not in _WRITE:
            raise Mistake(f"There is no %{found[1]} in a format that writes; there are {', '.join(_WRITE)}.")
        parts.append(_WRITE[found[1]] if found[1] else found[0])

    def written(_: Run, value: Any) -> str:
        if type(value) is not int:
            raise Mistake("The moment is no integer: nanoseconds since the epoch, as strptime() makes them.")
        seconds, nanosecond = divmod(value, NANOSECONDS)
        try:
            at = _EPOCH + timedelta(seconds=seconds)
        except OverflowError:
            raise Mistake("The moment is not within the years 1 to 9999.") from None
        return "".join([part if isinstance(part, str) else part(at, nanosecond) for part in parts])

    return written


TIME_FUNCTIONS: Final = (
    Function(
        "strptime",
        'text, "format", …',
        "The moment in a text, in nanoseconds since the epoch, by the first format that fits, or `null`. Without a "
        "zone it is UTC.",
        _strptime,
        2,
        MANY,
        constants=range(1, MANY),
    ),
    Function(
        "strftime",
        '"format", moment',
        "Nanoseconds since the epoch as text, in UTC.",
        _strftime,
        2,
        2,
        constants=range(1),
    ),
)
