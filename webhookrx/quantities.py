"""
Sizes, durations and flags as people write them: C{"10MiB"} and C{"30s"} to numbers, and back; C{"yes"} and C{"off"}.
"""

from __future__ import annotations

import re
from decimal import Decimal
from math import isfinite
from typing import Final

FLAG_WORDS: Final = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}
"""The words for a flag, in lower case, with their values."""

_SIZE_UNITS: Final = {
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "tb": 1000**4,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
    "tib": 1024**4,
}
_SIZE_NAMES: Final = ("TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "kB", "B")
_DURATION_UNITS: Final = {
    "d": Decimal(86400),
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("0.001"),
}

_READ_UNITS: Final = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))

# ASCII digits only: C{\d} would let other scripts in. Eighteen of them fit in 64 bits.
_SIZE: Final = re.compile(r"([0-9]{1,18}) ?([a-z]*)", re.IGNORECASE | re.ASCII)
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([a-z]*)", re.IGNORECASE | re.ASCII)


def read_flag(text: str) -> bool | None:
    """Return the value of a word of L{FLAG_WORDS}, in any case; None for another text."""
    return FLAG_WORDS.get(text.lower())


def parse_size(text: str) -> int:
    """
    Read a number of bytes: a whole number, alone or with a unit, in any case.

    @return: bytes, zero or more.
    @raise ValueError: one sentence that quotes the text and says what is allowed.
    """
    found = _SIZE.fullmatch(text.strip())
    unit = _SIZE_UNITS.get(found[2].lower() or "b") if found else None
    if found is None or unit is None:
        raise ValueError(
            f"{text!r} is not a size; write a whole number of bytes, or one with a unit: "
            "B, kB, MB, GB, TB, KiB, MiB, GiB or TiB, such as 10MiB."
        )
    return int(found[1]) * unit


def format_size(size: int) -> str:
    """
    Write a number of bytes in the unit that makes the shortest text, so that L{parse_size} gives it back exactly.

    @raise ValueError: it is negative.
    """
    if size < 0:
        raise ValueError(f"{size} is not a size; a size is zero or more.")
    if size == 0:
        return "0B"
    exact = [(size // _SIZE_UNITS[name.lower()], name) for name in _SIZE_NAMES if size % _SIZE_UNITS[name.lower()] == 0]
    return min((f"{number}{name}" for number, name in exact), key=len)


def parse_duration(text: str) -> float:
    """
    Read a length of time: a number of seconds, or one with a unit, in any case.

    @return: seconds, zero or more.
    @raise ValueError: one sentence that quotes the text and says what is allowed.
    """
    found = _DURATION.fullmatch(text.strip())
    unit = _DURATION_UNITS.get(found[2].lower() or "s") if found else None
    # Decimal keeps "0.1s" the float 0.1: the product is rounded once, at the end.
    seconds = float(Decimal(found[1]) * unit) if found is not None and unit is not None else None
    if seconds is None or not isfinite(seconds):
        raise ValueError(
            f"{text!r} is not a duration; write a number of seconds, or one with a unit: ms, s, m, h or d, such as 30s."
        )
    return seconds


def format_duration(seconds: float) -> str:
    """
    Write a length of time in the largest unit that takes it whole, so that L{parse_duration} gives it back exactly.

    @raise ValueError: it is negative, infinite or not a number.
    """
    if not isfinite(seconds) or seconds < 0:
        raise ValueError(f"{seconds} is not a duration; a duration is zero seconds or more.")
    exact = Decimal(repr(float(seconds)))
    if exact:
        for name, unit in _DURATION_UNITS.items():
            number = exact / unit
            if number == number.to_integral_value() and number * unit == exact:
                return f"{number:f}".partition(".")[0] + name
    return f"{exact:f}".removesuffix(".0") + "s"


def readable_span(seconds: float) -> str:
    """Return a length of time for people, by its two largest units, such as C{3 h 20 min}; it is zero or more."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    left = int(seconds)
    parts: list[str] = []
    for unit, size in _READ_UNITS:
        if left >= size or (size == 1 and not parts):
            count, left = divmod(left, size)
            parts.append(f"{count} {unit}")
        elif parts:
            break
        if len(parts) == 2:
            break
    return " ".join(parts)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as C{1 rule} and C{1,000 hosts}."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
