"""
Operators on values.

What they do with values of several kinds is FilterX's: C{==} and the other signs compare two texts as texts and all
else as numbers, C{eq} and the other words compare texts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from webhookrx.expressions.limits import CLOCK_EVERY, LONG
from webhookrx.expressions.mistakes import Mistake
from webhookrx.expressions.run import Run
from webhookrx.expressions.values import as_number, as_text, checked_number, long_text, stored, text_number

Operation: TypeAlias = Callable[[Run, Any, Any], Any]


def _comparable(value: Any) -> int | float | None:
    """Return a value as a number for a comparison; None for what is none."""
    if type(value) is str:
        return text_number(value)
    if type(value) is bool or value is None:
        return int(bool(value))
    return as_number(value)


def _by_number(compare: Callable[[Any, Any], Any]) -> Operation:
    def compared(_: Run, left: Any, right: Any) -> bool:
        if type(left) is str and type(right) is str:
            return bool(compare(left, right))
        left, right = _comparable(left), _comparable(right)
        if left is None or right is None:
            return False
        return bool(compare(left, right))

    return compared


def _equal(run: Run, left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    return bool(_EQUAL_NUMBERS(run, left, right))


_EQUAL_NUMBERS: Final = _by_number(operator.eq)


def _not_equal(run: Run, left: Any, right: Any) -> bool:
    return not _equal(run, left, right)


def _kind(value: Any) -> str:
    if type(value) is int:
        return "int"
    return "double" if as_number(value) is not None else type(value).__name__


def _identical(run: Run, left: Any, right: Any) -> bool:
    return _kind(left) == _kind(right) and _equal(run, left, right)


def _not_identical(run: Run, left: Any, right: Any) -> bool:
    return not _identical(run, left, right)


def _by_text(compare: Callable[[str, str], bool]) -> Operation:
    def compared(run: Run, left: Any, right: Any) -> bool:
        if type(left) is not str:
            left = as_text(run, left)
        return compare(left, right if type(right) is str else as_text(run, right))

    return compared


def _is_in(run: Run, left: Any, right: Any) -> bool:
    """Tell whether a list has an element, or an object a member of that name."""
    if type(right) is dict:
        return type(left) is str and left in right
    if type(right) is not list:
        raise Mistake("Behind 'in' stands a list or an object.")
    _check_elements(run, len(right))
    return any(_identical(run, left, element) for element in right)


def add(run: Run, left: Any, right: Any) -> Any:
    """
    Add numbers, or put texts, lists or objects together.

    @raise Mistake: they are not of one kind, or the result is too large.
    """
    kind = type(left)
    if kind is str and type(right) is str:
        size = len(left) + len(right)
        if size > run.limits.text:
            raise Mistake(f"A text is longer than {run.limits.text} characters.")
        return left + right if size <= LONG else long_text(run, left + right)
    if kind is list and type(right) is list:
        _check_elements(run, len(left) + len(right))
        return stored(run, [*left, *right], fresh=False)
    if kind is dict and type(right) is dict:
        _check_elements(run, len(left) + len(right))
        return stored(run, {**left, **right}, fresh=False)
    numbers = as_number(left), as_number(right)
    if numbers[0] is None or numbers[1] is None:
        raise Mistake("'+' adds two numbers, or puts two texts, lists or objects together; string() makes a text.")
    return _finite(operator.add, numbers[0], numbers[1])


def _check_elements(run: Run, count: int) -> None:
    if count > run.limits.elements:
        raise Mistake(f"An object or a list has more than {run.limits.elements} elements.")
    if count > CLOCK_EVERY:
        run.look()


def _finite(work_out: Callable[[Any, Any], Any], left: int | float, right: int | float) -> int | float:
    try:
        return checked_number(work_out(left, right))
    except ZeroDivisionError:
        raise Mistake("There is no division by zero.") from None
    except OverflowError:
        raise Mistake("The number is too large.") from None


def _on_numbers(sign: str, work_out: Callable[[Any, Any], Any]) -> Operation:
    def worked_out(_: Run, left: Any, right: Any) -> int | float:
        left, right = as_number(left), as_number(right)
        if left is None or right is None:
            raise Mistake(f"'{sign}' stands between two numbers; int() and double() make numbers of texts.")
        return _finite(work_out, left, right)

    return worked_out


def _divide(left: int | float, right: int | float) -> int | float:
    """Divide; integers towards zero, as C does."""
    if type(left) is not int or type(right) is not int:
        return left / right
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int | float, right: int | float) -> int | float:
    """Return what L{_divide} leaves: it has the sign of the left side."""
    if type(left) is not int or type(right) is not int:
        raise Mistake("'%' stands between two integers.")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def negate(value: Any) -> int | float:
    """
    Return a number with the other sign.

    @raise Mistake: it is no number.
    """
    number = as_number(value)
    if number is None:
        raise Mistake("'-' stands before a number.")
    return checked_number(-number)


OPERATIONS: Final[dict[str, Operation]] = {
    "==": _equal,
    "!=": _not_equal,
    "<": _by_number(operator.lt),
    "<=": _by_number(operator.le),
    ">": _by_number(operator.gt),
    ">=": _by_number(operator.ge),
    "eq": _by_text(operator.eq),
    "ne": _by_text(operator.ne),
    "lt": _by_text(operator.lt),
    "le": _by_text(operator.le),
    "gt": _by_text(operator.gt),
    "ge": _by_text(operator.ge),
    "===": _identical,
    "!==": _not_identical,
    "in": _is_in,
    "+": add,
    "-": _on_numbers("-", operator.sub),
    "*": _on_numbers("*", operator.mul),
    "/": _on_numbers("/", _divide),
    "%": _on_numbers("%", _remainder),
}
"""All operators between two values, except those that may leave the right one alone."""
