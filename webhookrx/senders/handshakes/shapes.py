"""
The shapes of what a question holds: which texts are answered at all, and which ones are never part of a signed text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhookrx.regex import LinearRegex, RegexTooCostly
from webhookrx.senders.handshake_definition import HARMLESS

LONGEST: Final = 1_024
"""Characters of a value that is answered."""

_USUAL: Final = re.compile(rf"[ -~]{{1,{LONGEST}}}")

#: One element of a shape for proofs: a class or a character, and how often it is there.
_ELEMENT: Final = re.compile(
    r"(?:\[(?P<items>[^\[\]\\^]+)\]|(?P<plain>[^\[\]\\^$.|?*+(){}]))(?:\{(?P<count>[0-9,]+)\})?"
)
_COUNT: Final = re.compile(r"(?:[0-9]{1,4},)?([0-9]{1,4})")


class Shape:
    """
    What a value must be like, from its first character to its last.

    @param pattern: a regular expression; empty for 1 to 1,024 printable characters of ASCII.
    @raise ValueError: it can't be used; the text is one sentence.
    """

    __slots__ = ("_expression", "pattern")

    def __init__(self, pattern: str = "") -> None:
        self.pattern = pattern
        self._expression: LinearRegex | None = None
        if pattern:
            LinearRegex(pattern)  # by itself, so that no bracket closes one of ours
            self._expression = LinearRegex(rf"\A(?:{pattern})\Z")

    def fits(self, value: str) -> bool:
        """Tell whether a value may be answered."""
        if len(value) > LONGEST:
            return False
        if self._expression is None:
            return _USUAL.fullmatch(value) is not None
        try:
            return self._expression.search(value)
        except RegexTooCostly:  # pragma: no cover  # not for so few characters
            return False


def why_not_for_proofs(pattern: str) -> str | None:
    """
    Say why texts of a shape may be part of a signed text; None if none of them can be.

    It is told by the pattern itself, which is a row of characters and classes, such as C{^[A-Za-z0-9_-]{1,128}$}: each
    character that it allows is a letter, a digit, or one of C{_ - + /}.
    """
    inner = pattern.removeprefix("^").removesuffix("$")
    end = longest = 0
    while end < len(inner):
        found = _ELEMENT.match(inner, end)
        if found is None:
            return (
                "A shape for a proof is a row of characters and classes, each with a count, such as "
                "^[A-Za-z0-9_-]{1,128}$."
            )
        end = found.end()
        for character in _characters(found["items"]) if found["items"] else found["plain"]:
            if character not in HARMLESS:
                return f"A shape for a proof allows letters, digits, _, -, + and / alone, and this one {character!r}."
        count = _COUNT.fullmatch(found["count"] or "1")
        if count is None:
            return "A count in a shape for a proof is {N} or {M,N}."
        longest += int(count[1])
    if not longest:
        return "What a proof is made of needs a shape."
    return None if longest <= LONGEST else f"A shape for a proof allows {LONGEST:,} characters at most."


def _characters(items: str) -> Iterator[str]:
    """Yield the characters of a class; a range that goes backwards has none, and does not compile."""
    index = 0
    while index < len(items):
        first = items[index]
        if items[index + 1 : index + 2] == "-" and index + 2 < len(items):
            # Far enough to meet one that is not harmless, whatever the range.
            yield from map(chr, range(ord(first), min(ord(items[index + 2]), 0x7F) + 1))
            yield items[index + 2]
            index += 3
        else:
            yield first
            index += 1
