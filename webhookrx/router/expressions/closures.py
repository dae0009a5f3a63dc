"""
Closures of operators, each with the place of what it may find wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webhookrx.diagnostics import Position
from webhookrx.message.fields import MISSING
from webhookrx.router.expressions.mistakes import OperationError, located
from webhookrx.router.expressions.operators import Operation
from webhookrx.router.expressions.paths import Evaluate
from webhookrx.router.expressions.run import Run
from webhookrx.router.expressions.values import as_text


def part_text(run: Run, value: Any) -> str:
    """Return what a macro in a text is filled in with: nothing where it is not there, or C{null}."""
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
    """Return a comparison with a constant text, which most comparisons are."""

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
    """Return operations on a value, the first first."""

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
