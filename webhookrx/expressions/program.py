"""
Programs: compiled once, run for each message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from webhookrx.expressions.compiler import Compiler
from webhookrx.expressions.limits import Limits
from webhookrx.expressions.mistakes import ExpressionError, Mistake, located
from webhookrx.expressions.operators import add
from webhookrx.expressions.parser import parse
from webhookrx.expressions.paths import FieldPath
from webhookrx.expressions.run import Allowance, Run
from webhookrx.expressions.tree import Assign, Block, Demand, End, If, Name, Statement
from webhookrx.expressions.values import stored
from webhookrx.findings import Position
from webhookrx.message.fields import MISSING

Step: TypeAlias = Callable[[Run], "bool | None"]
"""Does a statement, and tells whether the program ends here: C{True} keeps the message, C{False} drops it."""

_DEFAULT_LIMITS: Final = Limits()


class Program:
    """
    A program that is ready to run. It holds nothing of a message between runs.

    @ivar text: as its user wrote it.
    """

    __slots__ = ("_clock", "_limits", "_step", "text")

    def __init__(self, text: str, step: Step, clock: Callable[[], float], limits: Limits) -> None:
        self.text = text
        self._step = step
        self._clock = clock
        self._limits = limits

    def run(self, record: dict[str, Any], allowance: Allowance | None = None) -> bool:
        """
        Run it on a message, whose C{log} and C{meta} it may change.

        @param allowance: what is left to all programs that run on this message; None for the bounds of one alone.
        @return: whether the message is kept; False drops it.
        @raise ExpressionError: something failed, or cost too much; the record is as it was before.
        """
        run = Run(record, self._clock, self._limits, allowance)
        try:
            kept = self._step(run)
        except BaseException as error:
            run.journal.undo()
            if isinstance(error, ExpressionError) or not isinstance(error, Exception):
                raise
            # A message must not be lost to a mistake of ours; the cause goes with the error.
            raise ExpressionError(f"The run failed in an unforeseen way: {type(error).__name__}.", 1, 1) from error
        return kept is not False


def compile_expression(text: str, clock: Callable[[], float], limits: Limits = _DEFAULT_LIMITS) -> Program:
    """
    Compile a program.

    @param clock: gives seconds; a run asks it how long it took.
    @raise ExpressionError: it is no program; with the place and what was expected there.
    """
    try:
        statements = parse(text)
        step = _Statements(Compiler(_names_set(statements), limits)).block(statements)
    except RecursionError:
        raise ExpressionError("This nests too deep.", 1, 1) from None
    return Program(text, step, clock, limits)


def _names_set(block: Block) -> frozenset[str]:
    """Return the local variables that something in a block sets as a whole."""
    names: set[str] = set()
    for statement in block:
        if isinstance(statement, Assign):
            if isinstance(statement.target, Name):
                names.add(statement.target.name)
        elif isinstance(statement, If):
            for _, inner in (*statement.arms, (None, statement.otherwise)):
                names |= _names_set(inner)
    return frozenset(names)


class _Statements:
    """Compiles statements."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler

    def block(self, block: Block) -> Step:
        """
        @raise ExpressionError: something in it can't be compiled.
        """
        steps = [self._compiler.counted(each.position, self._statement(each)) for each in block]
        if len(steps) == 1:
            return steps[0]

        def do(run: Run) -> bool | None:
            for step in steps:
                ended = step(run)
                if ended is not None:
                    return bool(ended)
            return None

        return do

    def _statement(self, statement: Statement) -> Step:
        if isinstance(statement, Assign):
            return self._assign(statement)
        if isinstance(statement, If):
            return self._if(statement)
        if isinstance(statement, End):
            keep = statement.keep
            return lambda run: keep
        return self._demand(statement)

    def _demand(self, statement: Demand) -> Step:
        condition = self._compiler.condition(statement.expression)
        return lambda run: None if condition(run) else False

    def _if(self, statement: If) -> Step:
        arms = [(self._compiler.condition(condition), self.block(block)) for condition, block in statement.arms]
        otherwise = self.block(statement.otherwise)

        def choose(run: Run) -> bool | None:
            for condition, do in arms:
                if condition(run):
                    return do(run)
            return otherwise(run)

        return choose

    def _assign(self, statement: Assign) -> Step:
        target = self._compiler.path(statement.target, is_target=statement.operator != "+=")
        # The parser takes nothing else for a target.
        assert target is not None
        if statement.operator == "+=":
            return self._add_to(target, statement)
        if statement.operator == "=??":
            return self._assign_if_there(target, statement)
        put, value = target.put(), self._compiler.fresh(statement.value)

        def assign(run: Run) -> None:
            put(run, value(run))

        return assign

    def _assign_if_there(self, target: FieldPath, statement: Assign) -> Step:
        put, peek, position = target.put(), self._compiler.peek(statement.value), statement.position

        def assign(run: Run) -> None:
            value = peek(run)
            if value is not MISSING and value is not None:
                put(run, _stored(run, value, position))

        return assign

    def _add_to(self, target: FieldPath, statement: Assign) -> Step:
        read, put, position = target.read(), target.put(), statement.position
        value = self._compiler.value(statement.value)

        def add_to(run: Run) -> None:
            old, more = read(run), value(run)
            try:
                made = add(run, old, more)
            except Mistake as mistake:
                raise located(position, mistake) from None
            put(run, _stored(run, made, position))

        return add_to


def _stored(run: Run, value: Any, position: Position) -> Any:
    try:
        return stored(run, value, fresh=False)
    except Mistake as mistake:
        raise located(position, mistake) from None
