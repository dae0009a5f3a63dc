"""
What it costs to look for a regular expression, found from how it is written.

RE2 looks at a byte once, in a nanosecond or two, as long as it can remember all states that the expression may be in.
There may be as many as subsets of the places in it, and then each byte costs time for each of its instructions. With
few places that are more than one certain character, there can't be so many.
"""

from __future__ import annotations

import warnings
from re import _parser  # type: ignore[attr-defined]  # a module of its own until Python 3.11
from typing import Any, Final, NamedTuple

from webhookrx.work import PER_INSTRUCTION

_FEW: Final = 8
"""Places that are no certain character, of which the subsets are few."""

_MOST_LITERALS: Final = 200

_PER_BYTE: Final = 3
"""Units of a byte where the states are few."""


class Cost(NamedTuple):
    """
    What an expression costs.

    @ivar per_byte: units of each byte of a text.
    @ivar ahead: most bytes behind a match that are looked at before it is known to be one; None for all of them.
    """

    per_byte: int
    ahead: int | None


def cost_of(pattern: str, size: int) -> Cost:
    """
    Return what an expression costs.

    @param size: instructions that RE2 made of it.
    """
    worst = Cost(max(_PER_BYTE, size * PER_INSTRUCTION), None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = _parser.parse(pattern)
    except Exception:  # what RE2 alone can read, and what Python gives up on
        return worst
    places, literals = _count(parsed, repeated=False)
    few = places <= _FEW and literals <= _MOST_LITERALS
    return Cost(_PER_BYTE if few else worst.per_byte, _ahead(parsed))


def _count(sequence: Any, *, repeated: bool) -> tuple[int, int]:
    """
    Return how many places there are that are no certain character, and how many that are one.

    @param repeated: it is within a repetition, where what may be left out or chosen is not certain.
    """
    places = literals = 0
    for operation, argument in sequence:
        name = str(operation)
        if name == "LITERAL":
            literals += 1
        elif name == "SUBPATTERN":
            more = _count(argument[-1], repeated=repeated)
            places, literals = places + more[0], literals + more[1]
        elif name == "BRANCH":
            for branch in argument[1]:
                more = _count(branch, repeated=repeated)
                places += sum(more) if repeated else more[0]
                literals += 0 if repeated else more[1]
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, body = argument
            inner = sum(_count(body, repeated=True))
            places += inner * (max(1, least) if most == _parser.MAXREPEAT else most)
        elif name != "AT":
            places += 1
    return places, literals


def _ahead(sequence: Any) -> int | None:
    """Return how far behind the end of a match is looked, at most; None where that is not known."""
    width: tuple[int, int] = sequence.getwidth()
    if width[1] < _parser.MAXREPEAT and width[1] < _FAR:
        return width[1]
    items = list(sequence)
    for operation, argument in items[:-1]:
        if not _is_narrow(operation, argument):
            return None
    name, argument = str(items[-1][0]), items[-1][1]
    if name == "SUBPATTERN":
        inner = _ahead(argument[-1])
        return None if inner is None else inner + _FAR
    if name == "MAX_REPEAT" and len(argument[2]) == 1 and str(argument[2][0][0]) in _CLASSES:
        # As long as it goes on, so does the match.
        return _FAR
    return None


_FAR: Final = 256
_CLASSES: Final = ("LITERAL", "NOT_LITERAL", "IN", "ANY", "CATEGORY")


def _is_narrow(operation: Any, argument: Any) -> bool:
    sequence = _parser.SubPattern(_parser.State(), [(operation, argument)])
    width: tuple[int, int] = sequence.getwidth()
    return width[1] < _FAR
