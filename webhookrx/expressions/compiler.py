"""
From expressions of the tree to closures that take a L{Run}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from webhookrx.expressions.calls import compiled_call, has_patterns
from webhookrx.expressions.limits import CLOCK_EVERY, MAX_NESTING, MAX_PATTERNS, Limits
from webhookrx.expressions.mistakes import Failed, Mistake, located
from webhookrx.expressions.operators import OPERATIONS, negate
from webhookrx.expressions.paths import BEHIND_LAST, Evaluate, FieldPath, key_of, path_of
from webhookrx.expressions.patterns import matcher
from webhookrx.expressions.places import find
from webhookrx.expressions.run import Run
from webhookrx.expressions.tree import (
    Call,
    Chain,
    Choice,
    Expression,
    ListOf,
    Literal,
    Member,
    Name,
    ObjectOf,
    Unary,
    start,
)
from webhookrx.expressions.values import as_text, stored, truth
from webhookrx.findings import Position
from webhookrx.message.fields import MISSING

_TRUE_OR_FALSE: Final = frozenset(
    ["==", "!=", "===", "!==", "<", "<=", ">", ">=", "eq", "ne", "lt", "le", "gt", "ge", "=~", "!~", "in", "and", "or"]
)
"""Operators that make nothing but C{true} and C{false}."""


class Compiler:
    """
    Compiles the expressions of one program.

    @ivar names: the local variables that something sets.
    """

    def __init__(self, names: frozenset[str], limits: Limits) -> None:
        self.names = names
        self._limits = limits
        self._operations = 0
        self._depth = 0
        self._patterns = 0

    def value(self, expression: Expression) -> Evaluate:
        """
        Return what works an expression out.

        @raise ExpressionError: it can't be.
        """
        position = expression.position
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise located(position, Mistake(f"This nests deeper than {MAX_NESTING} levels."))
        evaluate = self.counted(position, self._value(expression))
        self._depth -= 1
        return evaluate

    def counted(self, position: Position, evaluate: Evaluate) -> Evaluate:
        """
        Count an operation, and return what does it. There are no loops, so that nothing has to be counted when it runs;
        each few operations there is one that looks at the clock first.

        @raise ExpressionError: there are too many.
        """
        self._operations += 1
        if self._operations > self._limits.operations:
            raise located(position, Mistake(f"The program has more than {self._limits.operations} operations."))
        if self._operations % CLOCK_EVERY:
            return evaluate

        def watched(run: Run) -> Any:
            try:
                run.look()
            except Mistake as mistake:
                raise located(position, mistake) from None
            return evaluate(run)

        return watched

    def _count_pattern(self, position: Position) -> None:
        """Count what takes time and memory to compile."""
        self._patterns += 1
        if self._patterns > MAX_PATTERNS:
            raise located(
                position, Mistake(f"The program has more than {MAX_PATTERNS} regular expressions and formats.")
            )

    def peek(self, expression: Expression) -> Evaluate:
        """Return what works an expression out, or returns L{MISSING} when that fails."""
        path = self.path(expression)
        if path is not None:
            return self.counted(expression.position, path.peeked())
        evaluate = self.value(expression)

        def peek(run: Run) -> Any:
            try:
                return evaluate(run)
            except Failed:
                return MISSING

        return peek

    def path(self, expression: Expression, *, is_target: bool = False) -> FieldPath | None:
        """
        Return the path that an expression is; None when it is something else.

        @param is_target: it is what an assignment sets.
        @raise ExpressionError: it begins with a variable that nothing sets.
        """
        path = path_of(expression, self.value)
        if path is not None:
            path.check(self.names, is_target=is_target)
        return path

    def condition(self, expression: Expression) -> Callable[[Run], bool]:
        """Return what tells whether an expression is true."""
        evaluate = self.value(expression)
        if isinstance(expression, Unary) and expression.operator == "not":
            return evaluate
        if isinstance(expression, Chain) and expression.rest[-1][0] in _TRUE_OR_FALSE:
            return evaluate
        return lambda run: truth(evaluate(run))

    def fresh(self, expression: Expression) -> Evaluate:
        """Return what works an expression out as objects and lists hold it; nothing else holds the value."""
        evaluate, position = self.value(expression), start(expression)
        if isinstance(expression, Literal) and type(expression.value) is not float:
            return evaluate
        is_fresh = _is_fresh(expression)

        def freshly(run: Run) -> Any:
            value = evaluate(run)
            if type(value) is str:
                return value
            try:
                return stored(run, value, fresh=is_fresh)
            except Mistake as mistake:
                raise located(position, mistake) from None

        return freshly

    def _value(self, expression: Expression) -> Evaluate:
        if isinstance(expression, Literal):
            constant = expression.value
            return lambda run: constant
        if isinstance(expression, (Name, Member)):
            path = self.path(expression)
            return path.read() if path is not None else self._member(expression)
        if isinstance(expression, Chain):
            return self._chain(expression)
        if isinstance(expression, Call):
            if has_patterns(expression):
                self._count_pattern(expression.position)
            return compiled_call(expression, self.value, self.peek, self.path)
        if isinstance(expression, Unary):
            return self._unary(expression)
        if isinstance(expression, Choice):
            return self._choice(expression)
        return self._list(expression) if isinstance(expression, ListOf) else self._object(expression)

    def _member(self, expression: Any) -> Evaluate:
        """Compile C{.name} or C{[key]} behind what is no path, such as a call."""
        position = expression.position
        if expression.key is None:
            raise located(start(expression), Mistake(BEHIND_LAST))
        of, key = self.value(expression.of), self.value(expression.key)

        def member(run: Run) -> Any:
            holder, wanted = of(run), key(run)
            try:
                found = find(holder, (key_of(wanted),))
                if found is MISSING:
                    raise Mistake("There is no such member or element.")
            except Mistake as mistake:
                raise located(position, mistake) from None
            return found

        return member

    def _unary(self, expression: Unary) -> Evaluate:
        if expression.operator == "not":
            condition = self.condition(expression.operand)
            return lambda run: not condition(run)
        operand, position = self.value(expression.operand), expression.position

        def negative(run: Run) -> int | float:
            value = operand(run)
            try:
                return negate(value)
            except Mistake as mistake:
                raise located(position, mistake) from None

        return negative

    def _choice(self, expression: Choice) -> Evaluate:
        condition, yes, no = self.condition(expression.condition), self.value(expression.yes), self.value(expression.no)
        return lambda run: yes(run) if condition(run) else no(run)

    def _list(self, expression: ListOf) -> Evaluate:
        elements = [self.fresh(element) for element in expression.elements]
        return lambda run: [element(run) for element in elements]

    def _object(self, expression: ObjectOf) -> Evaluate:
        members = [(self.value(name), start(name), self.fresh(value)) for name, value in expression.members]

        def made(run: Run) -> dict[str, Any]:
            made = {}
            for name, position, value in members:
                key = name(run)
                if type(key) is not str:
                    raise located(position, Mistake("The name of a member is a text."))
                made[key] = value(run)
            return made

        return made

    def _chain(self, expression: Chain) -> Evaluate:
        operator = expression.rest[0][0]
        operands = [expression.first, *(operand for _, _, operand in expression.rest)]
        if operator == "??":
            return self._first_there(operands)
        if operator in ("and", "or"):
            return _all_or_any([self.condition(operand) for operand in operands], until=operator == "or")
        first = self.value(expression.first)
        steps = [self._step(*step) for step in expression.rest]
        if len(steps) > 1:
            return _one_after_another(first, steps)
        if operator in ("eq", "ne") and isinstance(operands[1], Literal) and type(operands[1].value) is str:
            return _compared_with(first, operands[1].value, equal=operator == "eq", position=expression.rest[0][1])
        return _applied(first, *steps[0])

    def _first_there(self, operands: list[Expression]) -> Evaluate:
        peeks = [self.peek(operand) for operand in operands[:-1]]
        last = self.value(operands[-1])

        def first_there(run: Run) -> Any:
            for peek in peeks:
                value = peek(run)
                if value is not MISSING and value is not None:
                    return value
            return last(run)

        return first_there

    def _step(
        self, operator: str, position: Position, operand: Expression
    ) -> tuple[Callable[[Run, Any, Any], Any], Position, Evaluate]:
        """Return an operation, its place, and what works its right side out."""
        if operator not in ("=~", "!~"):
            return OPERATIONS[operator], position, self.value(operand)
        if not isinstance(operand, Literal) or type(operand.value) is not str:
            raise located(
                start(operand), Mistake(f"Behind '{operator}' stands a regular expression, written as a text.")
            )
        self._count_pattern(start(operand))
        try:
            matches = matcher(operand.value)
        except Mistake as mistake:
            raise located(start(operand), mistake) from None
        if operator == "=~":
            return (lambda run, value, _: matches(run, value)), position, self.value(operand)
        return (lambda run, value, _: not matches(run, value)), position, self.value(operand)


def _is_fresh(expression: Expression) -> bool:
    """Tell whether nothing else holds what an expression makes. What C{move} removes may come back."""
    if isinstance(expression, Call):
        return expression.name != "move"
    if isinstance(expression, Chain):
        return expression.rest[0][0] != "??"
    return isinstance(expression, (ListOf, ObjectOf, Unary))


def _all_or_any(conditions: list[Callable[[Run], bool]], *, until: bool) -> Evaluate:
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


def _compared_with(first: Evaluate, text: str, *, equal: bool, position: Position) -> Evaluate:
    """Return a comparison with a constant text, which most comparisons are."""

    def compared(run: Run) -> bool:
        value = first(run)
        if type(value) is not str:
            try:
                value = as_text(run, value)
            except Mistake as mistake:
                raise located(position, mistake) from None
        return (value == text) is equal

    return compared


def _applied(
    first: Evaluate, operation: Callable[[Run, Any, Any], Any], position: Position, right: Evaluate
) -> Evaluate:
    def applied(run: Run) -> Any:
        left_value = first(run)
        right_value = right(run)
        try:
            return operation(run, left_value, right_value)
        except Mistake as mistake:
            raise located(position, mistake) from None

    return applied


def _one_after_another(
    first: Evaluate, steps: list[tuple[Callable[[Run, Any, Any], Any], Position, Evaluate]]
) -> Evaluate:
    def worked_out(run: Run) -> Any:
        value = first(run)
        for operation, position, right in steps:
            operand = right(run)
            try:
                value = operation(run, value, operand)
            except Mistake as mistake:
                raise located(position, mistake) from None
        return value

    return worked_out
