"""
Moments, and the formats by which they are read and written: the directives of FilterX's strptime and strftime, such as
C{%Y}, with English names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, Final, NamedTuple

from webhookrx.message.macros import MONTHS, NANOSECONDS, WEEK_DAYS
from webhookrx.router.expressions.run import MAX_INTEGER, MIN_INTEGER, OperationError

PARSED: Final = "parsed"
ASSUMED: Final = "assumed"
FIXED: Final = "fixed"
GUESSED: Final = "guessed"
"""Sources of the zone of a moment."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Moment(NamedTuple):
    """
    A moment in a zone.

    @ivar nanoseconds: since the epoch, as in C{log.time_unix_nano}.
    @ivar offset: of its zone, in seconds east of UTC.
    @ivar source: of the zone, one of the words above.
    """

    nanoseconds: int
    offset: int = 0
    source: str = ASSUMED

    def __str__(self) -> str:
        """Return the seconds since the epoch, with six decimals, or nine where six are too few."""
        sign = "-" if self.nanoseconds < 0 else ""
        seconds, rest = divmod(abs(self.nanoseconds), NANOSECONDS)
        return f"{sign}{seconds}.{rest:09}" if rest % 1000 else f"{sign}{seconds}.{rest // 1000:06}"

    def wall_clock(self) -> datetime:
        """
        Return what a clock in its zone shows, to the second.

        @raise OperationError: it is not within the years 1 to 9999.
        """
        try:
            return (_EPOCH + timedelta(seconds=self.nanoseconds // NANOSECONDS)).astimezone(
                timezone(timedelta(seconds=self.offset))
            )
        except (OverflowError, ValueError):
            raise OperationError("The moment is not within the years 1 to 9999.") from None


def seconds_of(wall_clock: datetime) -> int:
    """Return the seconds since the epoch of a time with a zone."""
    return (wall_clock - _EPOCH) // timedelta(seconds=1)


_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_MAX_FORMAT: Final = 256

_DIRECTIVE: Final = re.compile(r"%([EO]?.)|(\s+)|([^%\s]+)", re.DOTALL)
_COMPOSED: Final = {
    "%T": "%H:%M:%S",
    "%X": "%H:%M:%S",
    "%R": "%H:%M",
    "%r": "%I:%M:%S %p",
    "%D": "%m/%d/%y",
    "%x": "%m/%d/%y",
    "%F": "%Y-%m-%d",
    "%c": "%a %b %e %H:%M:%S %Y",
}
_COMPOSITION: Final = re.compile("%[%TXRrDxFc]")


def _names(names: list[str]) -> str:
    return "|".join(f"{name[:3]}(?:{name[3:]})?+" for name in names)


_ZONES: Final = {"EST": -5, "CST": -6, "MST": -7, "PST": -8, "EDT": -4, "CDT": -5, "MDT": -6, "PDT": -7}
_ZONE: Final = (
    r"(?>Z(?![A-Za-z])|UTC?|GMT|[+-]\d{2}(?::?\d{2})?+(?!:?\d)"
    r"|(?:[ECMPecmp][SDsd][Tt])(?![A-Za-z])|[A-IL-Y](?![A-Za-z]))"
)

# A number takes another digit as long as its largest value leaves room for one, whatever that digit is.
_TWO: Final = {digit: rf"([0-{digit}]\d|\d)" for digit in "12356"}
_READ: Final = {
    "Y": r"(\d{1,4})",
    "C": r"(\d{1,2})",
    "y": r"(\d{1,2})",
    "m": _TWO["1"],
    "d": _TWO["3"],
    "H": _TWO["2"],
    "I": _TWO["1"],
    "M": _TWO["5"],
    "S": _TWO["6"],
    "j": r"([0-2]\d\d|3[0-6]\d|\d\d?)",
    "f": r"(?:\.?+(\d++))?+",
    "s": r"(\d{1,19})",
    "p": r"((?i:AM|PM))",
    "z": rf"\s*+({_ZONE})",
    "Z": rf"({_ZONE})?+",
    "b": f"((?i:{_names(MONTHS)}))",
    "a": f"((?i:{_names(WEEK_DAYS)}))",
    "w": r"(\d)",
    "u": r"(\d)",
    "U": _TWO["5"],
    "W": _TWO["5"],
    "V": _TWO["5"],
    "g": r"(\d{1,2})",
    "G": r"(\d++)",
}
_RANGES: Final = {
    "m": (1, 12),
    "d": (1, 31),
    "H": (0, 23),
    "I": (1, 12),
    "M": (0, 59),
    "S": (0, 61),
    "j": (1, 366),
    "w": (0, 6),
    "u": (1, 7),
    "U": (0, 53),
    "W": (0, 53),
    "V": (0, 53),
}
_SAME: Final = {"e": "d", "B": "b", "h": "b", "A": "a", "k": "H", "l": "I"}


class Reader:
    """
    A format that reads the beginning of a text.

    @raise OperationError: there is no such format.
    """

    def __init__(self, text: str) -> None:
        parts, self._letters = [], []
        for found in _DIRECTIVE.finditer(whole_format(text)):
            if found[1] in ("%", "n", "t"):
                parts.append("%" if found[1] == "%" else r"\s*+")
            elif found[1]:
                letter = _SAME.get(found[1][-1], found[1][-1])
                if letter not in _READ:
                    raise OperationError(
                        f"There is no %{found[1]} in a format that reads; there are {', '.join(_READ)}."
                    )
                self._letters.append(letter)
                parts.append(f"(?>{_READ[letter]})")
            else:
                parts.append(r"\s*+" if found[2] else re.escape(found[3]))
        self._expression = re.compile("".join(parts), re.ASCII)

    def read(self, text: str, now: datetime) -> Moment | None:
        """
        Return the moment in a text; None when the text does not match the format.

        @param now: the source of parts that are missing in the text, such as the year.
        """
        found = self._expression.match(text)
        if found is None:
            return None
        parts = {letter: part for letter, part in zip(self._letters, found.groups(), strict=True) if part is not None}
        for letter, (least, most) in _RANGES.items():
            if letter in parts and not least <= int(parts[letter]) <= most:
                return None
        try:
            return _moment(parts, now)
        except (ValueError, OverflowError):
            return None


def whole_format(text: str) -> str:
    """
    Return a format with directives such as C{%T} replaced by those that they stand for.

    @raise OperationError: the format is too long.
    """
    if len(text) > _MAX_FORMAT:
        raise OperationError(f"The format is longer than {_MAX_FORMAT} characters.")
    return _COMPOSITION.sub(lambda found: _COMPOSED.get(found[0], found[0]), text)


def _moment(parts: dict[str, str], now: datetime) -> Moment | None:
    nanoseconds = int(parts.get("f", "0")[:9].ljust(9, "0"))
    offset, source = 0, ASSUMED
    if "z" in parts or "Z" in parts:
        offset, source = _offset(parts.get("z") or parts.get("Z") or ""), PARSED
    if "s" in parts:
        made = int(parts["s"]) * NANOSECONDS + nanoseconds
    else:
        hour, minute, second = (int(parts.get(letter, "0")) for letter in "HMS")
        if "I" in parts:
            hour = int(parts["I"]) % 12
        if parts.get("p", "").upper() == "PM":
            if hour > 11:
                return None
            hour += 12
        seconds = (_day(parts, now) - _EPOCH_DAY) * 86_400 + hour * 3_600 + minute * 60 + second - offset
        made = seconds * NANOSECONDS + nanoseconds
    return Moment(made, offset, source) if MIN_INTEGER <= made <= MAX_INTEGER else None


def _day(parts: dict[str, str], now: datetime) -> int:
    """
    Return the number of a day. Without a date it is that of now; without a year it is the one that is nearest, where
    the months of a turn of the year are; the 31st of a shorter month is in the next one.
    """
    year = _year(parts)
    month = int(parts["m"]) if "m" in parts else _MONTH_OF[parts["b"][:3].lower()] if "b" in parts else 0
    if year is None and not month and "d" not in parts:
        return now.toordinal()
    if year is None:
        turn = {(12, 1): -1, (1, 12): 1}.get((month, now.month), 0) if "d" in parts else 0
        year = now.year + turn
    if "j" in parts and not month:
        return date(year, 1, 1).toordinal() + int(parts["j"]) - 1
    week_day = _week_day(parts)
    if not month and week_day is not None and ("U" in parts or "W" in parts):
        return _day_of_week(year, week_day, "U" in parts, int(parts.get("U") or parts.get("W") or "0"))
    return date(year, month or 1, 1).toordinal() + int(parts.get("d", "1")) - 1


def _year(parts: dict[str, str]) -> int | None:
    if "Y" in parts:
        return int(parts["Y"])
    if "y" not in parts:
        return int(parts["C"]) * 100 if "C" in parts else None
    year = int(parts["y"])
    if "C" in parts:
        return int(parts["C"]) * 100 + year
    # POSIX: 69 to 99 are of the 20th century.
    return year + (1900 if year >= 69 else 2000)


_MONTH_OF: Final = {name[:3].lower(): number for number, name in enumerate(MONTHS, 1)}
_DAY_OF: Final = {name[:3].lower(): number for number, name in enumerate(WEEK_DAYS, 1)}


def _week_day(parts: dict[str, str]) -> int | None:
    """Return the number of a day of the week, from 0 for Sunday."""
    if "w" in parts:
        return int(parts["w"])
    if "u" in parts:
        return int(parts["u"]) % 7
    return _DAY_OF[parts["a"][:3].lower()] % 7 if "a" in parts else None


def _day_of_week(year: int, week_day: int, from_sunday: bool, week: int) -> int:
    first = date(year, 1, 1)
    start = 0 if from_sunday else 1
    behind = (first.isoweekday() - start) % 7
    return first.toordinal() - behind + (7 if behind else 0) + (week - 1) * 7 + (week_day - start) % 7


def _offset(zone: str) -> int:
    """Return the seconds east of UTC of a zone."""
    if zone[0] not in "+-":
        if len(zone) == 1:
            return _military(zone)
        return _ZONES.get(zone.upper(), 0) * 3_600
    digits = zone[1:].replace(":", "")
    minutes = int(digits[2:] or "0")
    if minutes >= 60:
        raise ValueError(zone)
    seconds = int(digits[:2]) * 3_600 + minutes * 60
    if seconds >= 86_400:
        raise ValueError(zone)
    return -seconds if zone[0] == "-" else seconds


def _military(letter: str) -> int:
    """Return the offset of a letter by RFC 822, whose signs are wrong, as FilterX has it."""
    if letter == "Z":
        return 0
    number = ord(letter) - ord("A") + 1
    if letter <= "I":
        return -number * 3_600
    return -(number - 1) * 3_600 if letter <= "M" else (number - 13) * 3_600


_WRITE: Final[dict[str, Callable[[datetime, int], int | str]]] = {
    "Y": lambda at, _: f"{at.year:04}",
    "y": lambda at, _: at.year % 100,
    "C": lambda at, _: at.year // 100,
    "m": lambda at, _: at.month,
    "d": lambda at, _: at.day,
    "e": lambda at, _: at.day,
    "H": lambda at, _: at.hour,
    "I": lambda at, _: (at.hour + 11) % 12 + 1,
    "M": lambda at, _: at.minute,
    "S": lambda at, _: at.second,
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
    "g": lambda at, _: at.isocalendar()[0] % 100,
    "G": lambda at, _: str(at.isocalendar()[0]),
    "V": lambda at, _: at.isocalendar()[1],
    "U": lambda at, _: (at.timetuple().tm_yday + 6 - at.isoweekday() % 7) // 7,
    "W": lambda at, _: (at.timetuple().tm_yday + 6 - at.weekday()) // 7,
    "s": lambda at, _: str(int(at.timestamp())),
    "z": lambda at, _: _written_offset(at, ""),
    "Z": lambda at, _: _written_offset(at, ":"),
    "n": lambda at, _: "\n",
    "t": lambda at, _: "\t",
    "%": lambda at, _: "%",
}
_WRITTEN: Final = re.compile(r"%([-_0]?)([369]?f|[EO]?.)|([^%]+|%\Z)", re.DOTALL)


def _written_offset(at: datetime, between: str) -> str:
    offset = at.utcoffset()
    minutes = int(offset.total_seconds()) // 60 if offset is not None else 0
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{between}{abs(minutes) % 60:02}"


class Writer:
    """
    A format that writes.

    @raise OperationError: there is no such format.
    """

    def __init__(self, text: str) -> None:
        self._parts: list[str | tuple[Callable[[datetime, int], int | str], str]] = []
        for found in _WRITTEN.finditer(whole_format(text)):
            letter = (found[2] or "").lstrip("EO") or found[2]
            if found[2] is None:
                self._parts.append(found[3])
            elif letter in _WRITE:
                self._parts.append((_WRITE[letter], found[1] or ("_" if letter == "e" else "0")))
            else:
                raise OperationError(f"There is no %{found[2]} in a format that writes; there are {', '.join(_WRITE)}.")

    def write(self, moment: Moment) -> str:
        """
        Return a moment in its zone as text.

        @raise OperationError: the moment is not within the years 1 to 9999.
        """
        at, nanosecond = moment.wall_clock(), moment.nanoseconds % NANOSECONDS
        return "".join(
            [part if isinstance(part, str) else _padded(part[0](at, nanosecond), part[1]) for part in self._parts]
        )


def _padded(value: Any, padding: str) -> str:
    if isinstance(value, str):
        return value
    return str(value) if padding == "-" else f"{value:2}" if padding == "_" else f"{value:02}"
