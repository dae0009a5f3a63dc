"""
Operators on values, and closures for them.

As in FilterX, C{==} and the other signs compare two texts as texts and all else as numbers; C{eq} and the other words
compare texts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Final, TypeAlias

import msgspec

from webhookrx.diagnostics import Position
from webhookrx.message.fields import MISSING
from webhookrx.message.macros import NANOSECONDS
from webhookrx.router.expressions.moments import Moment
from webhookrx.router.expressions.paths import Evaluate
from webhookrx.router.expressions.run import ELEMENT, MAX_INTEGER, MIN_INTEGER, SHORT, OperationError, Run, located
from webhookrx.router.expressions.values import (
    ADDRESSES,
    LONGEST_NUMBER,
    NETWORKS,
    as_number,
    as_text,
    checked_number,
    ipv4_address,
    long_text,
    stored,
    text_number,
)

Operation: TypeAlias = Callable[[Run, Any, Any], Any]


def _comparable(run: Run, value: Any) -> int | float | None:
    """Return a value as a number for a comparison; None when it has none."""
    kind = type(value)
    if kind is str or kind is msgspec.Raw:
        if _FEW < len(value) <= LONGEST_NUMBER:
            run.spend(len(value) * _DIGIT)
        return text_number(value) if kind is str else as_number(value)
    if kind is bool or value is None:
        return int(bool(value))
    return value.nanoseconds if kind is Moment else as_number(value)


_DIGIT: Final = 10
_FEW: Final = 8
"""Units of a digit of a number, and the digits that are paid for with the operation."""


def _by_number(compare: Callable[[Any, Any], Any]) -> Operation:
    def compared(run: Run, left: Any, right: Any) -> bool:
        kind = type(left)
        if kind is type(right) and (kind is str or kind is bytes):
            if len(left) > SHORT:
                run.spend(min(len(left), len(right)))
            return bool(compare(left, right))
        left, right = _comparable(run, left), _comparable(run, right)
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
    """Return the type of a value for C{===} and C{in}; C{Raw} is a number with a fraction."""
    return "float" if type(value) is msgspec.Raw else type(value).__name__


def identical(run: Run, left: Any, right: Any) -> bool:
    """Tell whether two values are of one type and equal. Objects and lists are never equal."""
    return _kind(left) == _kind(right) and _equal(run, left, right)


def _not_identical(run: Run, left: Any, right: Any) -> bool:
    return not identical(run, left, right)


def _by_text(compare: Callable[[str, str], bool]) -> Operation:
    def compared(run: Run, left: Any, right: Any) -> bool:
        if type(left) is not str:
            left = as_text(run, left)
        if type(right) is not str:
            right = as_text(run, right)
        if len(left) > SHORT:
            run.spend(min(len(left), len(right)))
        return compare(left, right)

    return compared


def _is_in(run: Run, left: Any, right: Any) -> bool:
    """
    Tell whether a list has an element, an object a member of that name, or a network an address.
    """
    kind = type(right)
    if kind is dict:
        return type(left) is str and left in right
    if kind in NETWORKS:
        return _is_in_network(left, right)
    if kind is not list and kind is not tuple:
        raise OperationError("Behind 'in' stands a list, an object or a network.")
    _check_elements(run, len(right))
    return any(identical(run, left, element) for element in right)


def _is_in_network(left: Any, network: IPv4Network | IPv6Network) -> bool:
    if type(left) in ADDRESSES:
        return left in network
    address: IPv4Address | IPv6Address
    if type(left) is not str:
        raise OperationError("Before 'in' and a network stands an address, or the text of one.")
    try:
        address = ipv4_address(left) if type(network) is IPv4Network else IPv6Address(left)
    except (AddressValueError, ValueError):
        raise OperationError("The text before 'in' is no address of the kind that the network has.") from None
    return address in network


def _is_not_in(run: Run, left: Any, right: Any) -> bool:
    return not _is_in(run, left, right)


def add(run: Run, left: Any, right: Any) -> Any:
    """
    Add numbers, or put texts, lists or objects together; a moment and nanoseconds, or seconds with a fraction.

    @raise OperationError: they are not of one kind, or the result is too large.
    """
    kind = type(left)
    if kind is type(right) and (kind is str or kind is bytes):
        size = len(left) + len(right)
        if size > run.limits.text:
            raise run.too_long()
        if size > SHORT:
            run.spend(size if kind is bytes or (left.isascii() and right.isascii()) else 4 * size)
        return left + right
    if kind in (list, tuple) and type(right) in (list, tuple):
        _check_elements(run, len(left) + len(right))
        return stored(run, [*left, *right], fresh=False)
    if kind is dict and type(right) is dict:
        _check_elements(run, len(left) + len(right))
        return stored(run, {**left, **right}, fresh=False)
    numbers = _reckoned(run, left), _reckoned(run, right)
    if kind is Moment and numbers[1] is not None:
        more = numbers[1] if type(numbers[1]) is int else int(numbers[1] * NANOSECONDS)
        return left._replace(nanoseconds=_finite(operator.add, left.nanoseconds, more))
    if numbers[0] is None or numbers[1] is None:
        raise OperationError(
            "'+' adds two numbers, or puts two texts, lists or objects together; string() makes a text."
        )
    return _finite(operator.add, numbers[0], numbers[1])


def _check_elements(run: Run, count: int) -> None:
    if count > run.limits.elements:
        raise run.too_many("An object or a list")
    run.spend(count * ELEMENT)


def _reckoned(run: Run, value: Any) -> int | float | None:
    """Return a number for arithmetic; None for any other value."""
    if type(value) is msgspec.Raw and _FEW < len(value) <= LONGEST_NUMBER:
        run.spend(len(value) * _DIGIT)
    return as_number(value)


def _finite(work_out: Callable[[Any, Any], Any], left: int | float, right: int | float) -> int | float:
    try:
        made: int | float = work_out(left, right)
        if type(made) is int and not (_has_64_bits(left) and _has_64_bits(right)):
            # A sender's number may have more digits; arithmetic with it is exact.
            if abs(made) < _LARGEST:
                return made
            raise OperationError("The number is too large.")
        return checked_number(made)
    except ZeroDivisionError:
        raise OperationError("There is no division by zero.") from None
    except OverflowError:
        raise OperationError("The number is too large.") from None


_LARGEST: Final = 10**400


def _has_64_bits(number: int | float) -> bool:
    return MIN_INTEGER <= number <= MAX_INTEGER


def _on_numbers(sign: str, work_out: Callable[[Any, Any], Any]) -> Operation:
    def worked_out(run: Run, left: Any, right: Any) -> int | float:
        left, right = _reckoned(run, left), _reckoned(run, right)
        if left is None or right is None:
            raise OperationError(f"'{sign}' stands between two numbers; int() and double() make numbers of texts.")
        return _finite(work_out, left, right)

    return worked_out


def _divide(left: int | float, right: int | float) -> int | float:
    """Divide; integers towards zero, as C does."""
    if type(left) is not int or type(right) is not int:
        return left / right
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int | float, right: int | float) -> int | float:
    """Return the remainder of L{_divide}, which has the sign of the left side."""
    if type(left) is not int or type(right) is not int:
        raise OperationError("'%' stands between two integers.")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def negate(value: Any) -> int | float:
    """
    Return a number with the other sign.

    @raise OperationError: the value is not a number.
    """
    number = int(value) if type(value) is bool else as_number(value)
    if number is None:
        raise OperationError("'-' stands before a number.")
    return checked_number(-number)


def sliced(run: Run, text: Any, first: Any, last: Any) -> str:
    """
    Return the characters of a text from C{first} to before C{last}, counted from 0, or from the end when negative. An
    index beyond an end is that end.

    @raise OperationError: the value is not a text, an index is not an integer, or the last is before the first.
    """
    if type(text) is not str:
        raise OperationError("Only texts can be cut with [first..last].")
    if type(first) is not int or type(last) is not int:
        raise OperationError("The ends of a slice are integers.")
    size = len(text)
    start, end = (min(max(index + size if index < 0 else index, 0), size) for index in (first, last))
    if start > end:
        raise OperationError("A slice ends before it begins.")
    return long_text(run, text[start:end])


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
    "===": identical,
    "!==": _not_identical,
    "in": _is_in,
    "not in": _is_not_in,
    "+": add,
    "-": _on_numbers("-", operator.sub),
    "*": _on_numbers("*", operator.mul),
    "/": _on_numbers("/", _divide),
    "%": _on_numbers("%", _remainder),
}
"""Operators between two values, but for those that may not evaluate the right one."""

PREDICATES: Final = frozenset(OPERATIONS) - set("+-*/%") | {"=~", "!~", "and", "or"}
"""Operators with C{true} or C{false} as their value."""


def part_text(run: Run, value: Any) -> str:
    """Return the text of a macro in a text: empty where its field is missing or C{null}."""
    return "" if value is MISSING or value is None else as_text(run, value)


def all_or_any(conditions: list[Callable[[Run], bool]], *, until: bool) -> Evaluate:
    """Return C{or} of conditions, or C{and} of them: the first that is C{until} decides."""
    if len(conditions) == 2:
        left, right = conditions
        return (lambda run: left(run) or right(run)) if until else (lambda run: left(run) and right(run))

    def decided(run: Run) -> bool:
        for condition in conditions:
            if condition(run) is until:
                return until
        return not until

    return decided


def compared_with(first: Evaluate, text: str, *, equal: bool, position: Position) -> Evaluate:
    """Return a comparison with a constant text, the most frequent one."""

    def compared(run: Run) -> bool:
        value = first(run)
        if type(value) is not str:
            try:
                value = as_text(run, value)
            except OperationError as error:
                raise located(position, error) from None
        return (value == text) is equal

    return compared


def applied(first: Evaluate, operation: Operation, position: Position, right: Evaluate) -> Evaluate:
    """Return an operation on two values."""

    def work_out(run: Run) -> Any:
        left_value = first(run)
        right_value = right(run)
        try:
            return operation(run, left_value, right_value)
        except OperationError as error:
            raise located(position, error) from None

    return work_out


def one_after_another(first: Evaluate, steps: list[tuple[Operation, Position, Evaluate]]) -> Evaluate:
    """Return operations on a value, from left to right."""

    def worked_out(run: Run) -> Any:
        value = first(run)
        for operation, position, right in steps:
            operand = right(run)
            try:
                value = operation(run, value, operand)
            except OperationError as error:
                raise located(position, error) from None
        return value

    return worked_out
