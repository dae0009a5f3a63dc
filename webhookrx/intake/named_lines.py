"""
Lines C{NAME = VALUE} of files with tokens and secrets, whose names may be shown where their values may not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: The blanks tell it from the C{=} at the end of Base64.
_EQUALS: Final = re.compile(r"[ \t]+=(?:[ \t]+|\Z)")

#: Padding of Base64 has nothing behind its equals signs.
_MEANT_NAMED: Final = re.compile(r"[A-Za-z0-9._ -]{1,100}?([ \t]*=|:[ \t])[ \t]*[^= \t].*", re.DOTALL)

MEANT_NAMED: Final = (
    "The whole line is taken for the {}. If it begins with a name, write NAME = VALUE, with blanks around the equals "
    "sign and a name of letters, digits, dots, dashes and underscores."
)
"""What is said of a line as L{is_meant_named} tells, after what it holds."""


class NamedLine(NamedTuple):
    """
    One line that says something.

    @ivar number: of the line, from 1.
    @ivar name: what it is called; without a name, the number of the line.
    @ivar value: what must never be shown; never empty.
    @ivar has_name: whether the line itself gives the name.
    """

    number: int
    name: str
    value: str
    has_name: bool

    def __repr__(self) -> str:
        return f"NamedLine({self.number}, {self.name!r}, ***)"


def is_meant_named(value: str) -> bool:
    """Tell whether a line without a name was probably meant to have one."""
    return _MEANT_NAMED.fullmatch(value) is not None


def lines_in_use(text: str) -> Iterator[tuple[int, str]]:
    """
    Yield lines with their numbers, from 1. Blank lines and lines that begin with C{#} are skipped, and so is a byte
    order mark; white space around is stripped.
    """
    for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        line = raw.strip()
        if line and not line.startswith("#"):
            yield number, line


def named_lines(text: str) -> list[NamedLine]:
    """
    Read lines C{NAME = VALUE}, see L{lines_in_use}. Without C{=} between blanks, the whole line is the value.

    @raise ValueError: a name can't be used, or is there twice, or a value is empty. The text is one sentence that
        names the line and quotes no value.
    """
    lines: list[NamedLine] = []
    numbers: dict[str, int] = {}
    for number, line in lines_in_use(text):
        equals = _EQUALS.search(line)
        name, value = (line[: equals.start()], line[equals.end() :]) if equals else (str(number), line)
        # The text before the sign is not quoted: it may be the value of a line that was meant to have no name.
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"Line {number}: the name before = is up to 64 letters, digits, '.', '_' and '-', beginning with a "
                "letter or digit."
            )
        if not value:
            raise ValueError(f"Line {number}: the value of {name} is empty.")
        if name in numbers:
            raise ValueError(f"Line {number}: the name {name} is that of line {numbers[name]}, too.")
        numbers[name] = number
        lines.append(NamedLine(number, name, value, equals is not None))
    return lines
