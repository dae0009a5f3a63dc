"""
Compiles expressions into closures that take a L{Run}.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NoReturn, TypeVar

from webhookrx.diagnostics import Position
from webhookrx.message.fields import MISSING
from webhookrx.router.expressions.calls import compiled_call, has_patterns
from webhookrx.router.expressions.json_files import Files
from webhookrx.router.expressions.operators import (
    OPERATIONS,
    PREDICATES,
    Operation,
    all_or_any,
    applied,
    compared_with,
    negate,
    one_after_another,
    part_text,
    sliced,
)
from webhookrx.router.expressions.paths import BEHIND_LAST, Evaluate, FieldPath, key_of, path_of
from webhookrx.router.expressions.patterns import matcher
from webhookrx.router.expressions.program_tree import (
    BinaryOp,
    Call,
    Conditional,
    Default,
    Exit,
    Expression,
    Interpolation,
    ListOf,
    Literal,
    MemberAccess,
    Name,
    ObjectOf,
    Slice,
    TupleOf,
    Unary,
    start,
)
from webhookrx.router.expressions.run import (
    MAX_NESTING,
    MAX_PATTERNS,
    OPERATION,
    Ended,
    ExpressionError,
    OperationError,
    RecoverableError,
    Run,
    RunLimits,
    located,
)
from webhookrx.router.expressions.values import find, long_text, stored, truth

T = TypeVar("T")


class Compiler:
    """
    Compiles the expressions of one program.

    @ivar names: the local variables that the program sets.
    @ivar files: the JSON files of C{cache_json_file}, by path.
    @ivar limits: of each run.
    """

    def __init__(self, names: frozenset[str], limits: RunLimits, files: Files) -> None:
        self.names = names
        self.files = files
        self.limits = limits
        self._operations = 0
        self._counted = 0
        self._depth = 0
        self._patterns = 0

    def value(self, expression: Expression) -> Evaluate:
        """
        Return a function that evaluates an expression.

        @raise ExpressionError: the expression does not compile.
        """
        position = expression.position
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise ExpressionError(f"This nests deeper than {MAX_NESTING} levels.", position)
        self.count(position)
        evaluate = self._value(expression)
        self._depth -= 1
        return evaluate

    def count(self, position: Position) -> None:
        """
        Count an operation. There are no loops, so no operation runs twice.

        @raise ExpressionError: there are too many.
        """
        self._operations += 1
        if self._operations > self.limits.operations:
            raise ExpressionError(f"The program has more than {self.limits.operations} operations.", position)

    def cost_of(self, compile_block: Callable[[], T]) -> tuple[T, int]:
        """Return a compiled block, and the units of its operations without those of inner blocks."""
        before, inner = self._operations, self._counted
        compiled = compile_block()
        cost = (self._operations - before - (self._counted - inner)) * OPERATION
        self._counted = inner + self._operations - before
        return compiled, cost

    def _count_pattern(self, position: Position) -> None:
        """Count a regular expression or a format, which takes time and memory to compile."""
        self._patterns += 1
        if self._patterns > MAX_PATTERNS:
            problem = f"The program has more than {MAX_PATTERNS} regular expressions and formats."
            raise ExpressionError(problem, position)

    def peek(self, expression: Expression) -> Evaluate:
        """Return a function that evaluates an expression, and returns L{MISSING} when that fails."""
        path = self.path(expression, may_be_missing=True)
        if path is not None:
            self.count(expression.position)
            return path.peeked()
        evaluate = self.value(expression)

        def peek(run: Run) -> Any:
            try:
                return evaluate(run)
            except RecoverableError:
                return MISSING

        return peek

    def path(
        self, expression: Expression, *, is_target: bool = False, may_be_missing: bool = False
    ) -> FieldPath | None:
        """
        Return an expression as a path; None when it is not one.

        @param is_target: an assignment sets it.
        @param may_be_missing: the program handles a missing field.
        @raise ExpressionError: the path begins with a variable that nothing sets.
        """
        path = path_of(expression, self.value)
        if path is not None:
            path.check(self.names, is_target=is_target, may_be_missing=may_be_missing)
        return path

    def condition(self, expression: Expression) -> Callable[[Run], bool]:
        """Return a function that tells whether an expression is true."""
        evaluate = self.value(expression)
        if isinstance(expression, Unary) and expression.operator == "not":
            return evaluate
        if isinstance(expression, BinaryOp) and expression.rest[-1][0] in PREDICATES:
            return evaluate
        return lambda run: truth(evaluate(run))

    def fresh(self, expression: Expression) -> Evaluate:
        """Return a function that evaluates an expression for an object or a list; nothing else refers to the value."""
        evaluate, position = self.value(expression), start(expression)
        if isinstance(expression, Literal) and type(expression.value) is not float:
            return evaluate
        is_fresh = _is_fresh(expression)

        def freshly(run: Run) -> Any:
            value = evaluate(run)
            try:
                return stored(run, value, fresh=is_fresh)
            except OperationError as error:
                raise located(position, error) from None

        return freshly

    def kept(self, expression: Expression) -> Evaluate:
        """Return a function that evaluates an expression for a variable, which may hold more types than an object."""
        evaluate, position, is_fresh = self.value(expression), start(expression), _is_fresh(expression)
        if isinstance(expression, Literal):
            return evaluate

        def kept(run: Run) -> Any:
            value = evaluate(run)
            if type(value) is not dict and type(value) is not list:
                return value
            try:
                return stored(run, value, fresh=is_fresh)
            except OperationError as error:
                raise located(position, error) from None

        return kept

    def _value(self, expression: Expression) -> Evaluate:
        if isinstance(expression, Literal):
            constant = expression.value
            return lambda run: constant
        if isinstance(expression, (Name, MemberAccess)):
            path = self.path(expression)
            return path.read() if path is not None else self._member(expression)
        if isinstance(expression, BinaryOp):
            return self._binary_op(expression)
        if isinstance(expression, Call):
            if has_patterns(expression):
                self._count_pattern(expression.position)
            return compiled_call(expression, self)
        return _MAKERS[type(expression)](self, expression)

    def _slice(self, expression: Slice) -> Evaluate:
        of, position = self.value(expression.of), expression.position
        first = None if expression.first is None else self.value(expression.first)
        last = None if expression.last is None else self.value(expression.last)

        def cut(run: Run) -> str:
            text = of(run)
            begin = 0 if first is None else first(run)
            end = (len(text) if type(text) is str else 0) if last is None else last(run)
            try:
                return sliced(run, text, begin, end)
            except OperationError as error:
                raise located(position, error) from None

        return cut

    def _interpolation(self, expression: Interpolation) -> Evaluate:
        position = expression.position
        if len(expression.parts) == 1:
            only = self.value(expression.parts[0])
            parts: list[str | Evaluate] = [only]
        else:
            parts = [str(part.value) if isinstance(part, Literal) else self._filling(part) for part in expression.parts]

        def filled(run: Run) -> str:
            try:
                texts = [part if isinstance(part, str) else part_text(run, part(run)) for part in parts]
                return long_text(run, "".join(texts))
            except OperationError as error:
                raise located(position, error) from None

        return filled

    def _filling(self, expression: Expression) -> Evaluate:
        """Return a function for a macro in a text. Its field may be missing; a variable must be set somewhere."""
        self.path(expression)
        return self.peek(expression)

    def _exit(self, expression: Exit) -> Evaluate:
        keep = expression.keep

        def leave(run: Run) -> NoReturn:
            raise Ended(keep)

        return leave

    def _default(self, expression: Default) -> Evaluate:
        value, other = self.value(expression.value), self.value(expression.other)

        def first_true(run: Run) -> Any:
            found = value(run)
            return found if truth(found) else other(run)

        return first_true

    def _member(self, expression: Any) -> Evaluate:
        """Compile C{.name} or C{[key]} behind an expression that is not a path, such as a call."""
        position = expression.position
        if expression.key is None:
            raise ExpressionError(BEHIND_LAST, start(expression))
        of, key = self.value(expression.of), self.value(expression.key)

        def member(run: Run) -> Any:
            holder, wanted = of(run), key(run)
            try:
                found = find(holder, (key_of(wanted),))
                if found is MISSING:
                    raise OperationError("There is no such member or element.")
            except OperationError as error:
                raise located(position, error) from None
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
            except OperationError as error:
                raise located(position, error) from None

        return negative

    def _conditional(self, expression: Conditional) -> Evaluate:
        condition, yes, no = self.condition(expression.condition), self.value(expression.yes), self.value(expression.no)
        return lambda run: yes(run) if condition(run) else no(run)

    def _list(self, expression: ListOf) -> Evaluate:
        elements = [self.fresh(element) for element in expression.elements]
        return lambda run: [element(run) for element in elements]

    def _tuple(self, expression: TupleOf) -> Evaluate:
        elements = [self.kept(element) for element in expression.elements]
        return lambda run: tuple([element(run) for element in elements])

    def _object(self, expression: ObjectOf) -> Evaluate:
        members = [
            (self.value(name), start(name), self.fresh(value), optional) for name, value, optional in expression.members
        ]

        def made(run: Run) -> dict[str, Any]:
            made = {}
            for name, position, value, optional in members:
                key = name(run)
                if type(key) is not str:
                    raise RecoverableError("The name of a member is a text.", position)
                if not optional:
                    made[key] = value(run)
                    continue
                with suppress(RecoverableError):
                    given = value(run)
                    if given is not None:
                        made[key] = given
            return made

        return made

    def _binary_op(self, expression: BinaryOp) -> Evaluate:
        operator = expression.rest[0][0]
        operands = [expression.first, *(operand for _, _, operand in expression.rest)]
        if operator == "??":
            return self._first_there(operands)
        if operator in ("and", "or"):
            return all_or_any([self.condition(operand) for operand in operands], until=operator == "or")
        if operator in ("=~", "!~") and type(getattr(expression.first, "value", None)) in (int, float):
            raise ExpressionError(f"Before '{operator}' stands a text, not a number.", start(expression.first))
        first = self.value(expression.first)
        steps = [self._step(*step) for step in expression.rest]
        if len(steps) > 1:
            return one_after_another(first, steps)
        if operator in ("eq", "ne") and isinstance(operands[1], Literal) and type(operands[1].value) is str:
            return compared_with(first, operands[1].value, equal=operator == "eq", position=expression.rest[0][1])
        return applied(first, *steps[0])

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

    def _step(self, operator: str, position: Position, operand: Expression) -> tuple[Operation, Position, Evaluate]:
        """Return an operation, its place, and a function that evaluates its right side."""
        if operator not in ("=~", "!~"):
            return OPERATIONS[operator], position, self.value(operand)
        # The parser takes nothing else.
        assert isinstance(operand, Literal) and isinstance(operand.value, str)
        self._count_pattern(start(operand))
        try:
            matches = matcher(operand.value)
        except OperationError as error:
            raise located(start(operand), error) from None
        if operator == "=~":
            return (lambda run, value, _: matches(run, value)), position, self.value(operand)
        return (lambda run, value, _: not matches(run, value)), position, self.value(operand)


def _is_fresh(expression: Expression) -> bool:
    """
    Tell whether nothing else refers to the value of an expression. What C{move} removes may come back, C{set_fields}
    returns the object that it has changed, and all messages share a file.
    """
    if isinstance(expression, Call):
        return expression.name not in ("move", "set_fields", "cache_json_file")
    if isinstance(expression, BinaryOp):
        return expression.rest[0][0] != "??"
    return isinstance(expression, (ListOf, ObjectOf, Unary, Slice, Interpolation))


_MAKERS: Final[dict[type, Callable[[Compiler, Any], Evaluate]]] = {
    Slice: Compiler._slice,
    Unary: Compiler._unary,
    Conditional: Compiler._conditional,
    Default: Compiler._default,
    Interpolation: Compiler._interpolation,
    TupleOf: Compiler._tuple,
    ListOf: Compiler._list,
    ObjectOf: Compiler._object,
    Exit: Compiler._exit,
}
