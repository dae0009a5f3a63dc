"""
Values: when they are true, as numbers, as text, and as copies of their own.

Inside objects and lists a number with a fraction is C{msgspec.Raw}, as in every message, so that what is only moved
keeps its digits. A C{float} is what arithmetic makes.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from webhookrx.expressions.limits import LONG, MAX_DEPTH, MAX_INTEGER, MIN_INTEGER
from webhookrx.expressions.mistakes import Mistake
from webhookrx.expressions.run import Run

_ELEMENT: Final = 64
"""What an element of an object or a list counts as, in characters."""

_EXACT_DIGITS: Final = 40
"""Texts of numbers up to here are read exactly when they are integers; longer ones would take too long."""

_LONGEST_NUMBER: Final = 4096
"""Characters of a number that is reckoned with; a sender may write one of megabytes."""

_NUMBER: Final = re.compile(r"[+-]?+[0-9]++(?:\.[0-9]*+)?+(?:[eE][+-]?+[0-9]++)?+")

_WORDS: Final = {True: "true", False: "false", None: ""}


def truth(value: Any) -> bool:
    """Tell whether a value counts as true: not empty, not zero, not C{false} or C{null}."""
    if type(value) is msgspec.Raw:
        number = as_number(value)
        return number is None or number != 0
    return bool(value)


def as_number(value: Any) -> int | float | None:
    """Return a number as it is for arithmetic; None for what is no number. C{true} and C{false} are none."""
    kind = type(value)
    if kind is int or kind is float:
        number: int | float = value
        return number
    if kind is not msgspec.Raw or len(value) > _LONGEST_NUMBER:
        return None
    return text_number(bytes(value).decode())


def text_number(text: str) -> int | float | None:
    """
    Return the number that a text is in decimal notation; None when it is none, is longer than L{_LONGEST_NUMBER}, or
    has no finite value.
    """
    if len(text) > _LONGEST_NUMBER or _NUMBER.fullmatch(text) is None:
        return None
    if len(text) <= _EXACT_DIGITS:
        try:
            return int(text)
        except ValueError:
            pass
    number = float(text)
    return number if abs(number) < float("inf") else None


def checked_number(number: int | float) -> int | float:
    """
    Return what arithmetic made.

    @raise Mistake: it does not fit in 64 bits, or is not finite.
    """
    if type(number) is int:
        if MIN_INTEGER <= number <= MAX_INTEGER:
            return number
        raise Mistake("The integer has more than 64 bits.")
    if abs(number) < float("inf"):
        return number
    raise Mistake("The number is too large.")


def as_text(run: Run, value: Any) -> str:
    """
    Return a value as text: numbers by their digits, C{null} as nothing, objects and lists as JSON.

    @raise Mistake: it is too long.
    """
    kind = type(value)
    if kind is str:
        text: str = value
    elif kind is bool or value is None:
        return _WORDS[value]
    elif kind is int or kind is float:
        return repr(value)
    elif kind is msgspec.Raw:
        text = bytes(value).decode()
    else:
        return json_text(run, value)
    return long_text(run, text) if len(text) > LONG else text


def long_text(run: Run, text: str) -> str:
    """
    Take note of a text that an operation takes or made.

    @raise Mistake: it is too long.
    """
    if len(text) > LONG:
        if len(text) > run.limits.text:
            raise Mistake(f"A text is longer than {run.limits.text} characters.")
        run.spend(len(text))
    return text


def json_text(run: Run, value: Any) -> str:
    """
    Return a value as JSON.

    @raise Mistake: it is too large.
    """
    made = msgspec.json.encode(stored(run, value, fresh=False)).decode()
    return long_text(run, made)


def stored(run: Run, value: Any, *, fresh: bool) -> Any:
    """
    Return a value as an object or a list holds it, so that a later change of either is none of the other.

    @param fresh: nothing else holds the value.
    @raise Mistake: it is too large or nests too deep.
    """
    kind = type(value)
    if kind is float:
        return msgspec.Raw(repr(value).encode())
    if (kind is not dict and kind is not list) or fresh:
        return value
    counted = _Counted(run)
    copied = counted.copy(value, MAX_DEPTH)
    counted.spend()
    return copied


class _Counted:
    """A copy of an object or a list that is given up once it is too large."""

    __slots__ = ("_characters", "_elements", "_run")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._elements = 0
        self._characters = 0

    def copy(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is dict:
            self._take(len(value), depth)
            return {self._counted(name): self.copy(member, depth - 1) for name, member in value.items()}
        if kind is list:
            self._take(len(value), depth)
            return [self.copy(element, depth - 1) for element in value]
        if kind is float:
            return msgspec.Raw(repr(value).encode())
        return self._counted(value) if kind is str else value

    def spend(self) -> None:
        """Take note of the whole copy."""
        if self._elements * _ELEMENT + self._characters > LONG:
            self._run.spend(self._elements * _ELEMENT + self._characters)

    def _counted(self, text: str) -> str:
        self._characters += len(text)
        if self._characters > self._run.limits.text:
            raise Mistake(f"An object or a list has texts of more than {self._run.limits.text} characters.")
        return text

    def _take(self, elements: int, depth: int) -> None:
        self._elements += elements
        if self._elements > self._run.limits.elements:
            raise Mistake(f"An object or a list has more than {self._run.limits.elements} elements.")
        if depth == 0:
            raise Mistake(f"An object or a list nests deeper than {MAX_DEPTH} levels.")
