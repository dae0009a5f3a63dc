"""
Programs: compiled once, run for each message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from webhookrx.diagnostics import Position
from webhookrx.message.fields import MISSING
from webhookrx.router.expressions.compiler import Compiler
from webhookrx.router.expressions.hiding import hides
from webhookrx.router.expressions.json_files import Files, no_files
from webhookrx.router.expressions.operators import add, identical
from webhookrx.router.expressions.paths import FieldPath
from webhookrx.router.expressions.program_parser import DECLARE, parse
from webhookrx.router.expressions.program_tree import (
    Assign,
    Block,
    Break,
    Case,
    End,
    FilterStatement,
    If,
    Literal,
    Name,
    Statement,
    Switch,
)
from webhookrx.router.expressions.run import (
    START,
    Ended,
    ExpressionError,
    OperationError,
    RecoverableError,
    Run,
    RunLimits,
    located,
)
from webhookrx.router.expressions.values import as_number, stored
from webhookrx.work import Work

Execute: TypeAlias = Callable[[Run], "bool | object | None"]
"""
Runs a statement, and tells whether the program ends here: C{True} keeps the message, C{False} drops it, and L{BREAK}
ends the innermost block.
"""

BREAK: Final = object()

_DEFAULT_LIMITS: Final = RunLimits()


class Program:
    """
    A program that is ready to run. It keeps nothing of a message between runs.

    @ivar text: as it was written.
    @ivar hides: it removes or masks part of a message.
    """

    __slots__ = ("_declared", "_execute", "_limits", "hides", "text")

    def __init__(self, text: str, execute: Execute, limits: RunLimits, declared: tuple[str, ...], hides: bool) -> None:
        self.text = text
        self.hides = hides
        self._execute = execute
        self._limits = limits
        self._declared = declared

    def run(self, record: dict[str, Any], work: Work | None = None) -> bool:
        """
        Run it on a message, whose C{log} and C{meta} it may change.

        @param work: what is left for all steps of the message; None for the bounds of this program alone.
        @return: whether the message is kept.
        @raise ExpressionError: something failed or was too much work; the record is as it was before.
        """
        run = Run(record, self._limits, Work(self._limits.work) if work is None else work, self._declared)
        try:
            kept = self._execute(run)
        except Ended as ended:
            kept = ended.keep
        except BaseException as error:
            run.undo_log.undo()
            if isinstance(error, OperationError):
                # A block had no work left.
                raise ExpressionError(error.problem, START) from None
            if isinstance(error, ExpressionError) or not isinstance(error, Exception):
                raise
            # A bug must not lose a message; the cause goes with the error.
            raise ExpressionError(f"The run failed in an unforeseen way: {type(error).__name__}.", START) from error
        finally:
            run.settle()
        return kept is not False


def compile_expression(text: str, limits: RunLimits = _DEFAULT_LIMITS, files: Files = no_files) -> Program:
    """
    Compile a program.

    @param files: the JSON files of C{cache_json_file}.
    @raise ExpressionError: the text is not a program; with the place, and what was expected there.
    """
    try:
        statements = parse(text)
        names = names_in(statements)
        execute = _Statements(Compiler(names.set, limits, files)).block(statements)
    except RecursionError:
        raise ExpressionError("This nests too deep.", START) from None
    return Program(text, execute, limits, names.declared, hides(statements))


class _Names(NamedTuple):
    """
    Local variables of a program.

    @ivar set: the variables that an assignment sets as a whole.
    @ivar declared: the variables of C{declare}.
    """

    set: frozenset[str]
    declared: tuple[str, ...]


def names_in(block: Block) -> _Names:
    """Return the local variables of a block."""
    names: set[str] = set()
    declared: dict[str, None] = {}
    pending = [block]
    while pending:
        for statement in pending.pop():
            if isinstance(statement, Assign):
                if isinstance(statement.target, Name):
                    names.add(statement.target.name)
                    if statement.operator == DECLARE:
                        declared[statement.target.name] = None
            elif isinstance(statement, If):
                pending += [inner for _, inner in statement.arms]
                pending.append(statement.otherwise)
            elif isinstance(statement, Switch):
                pending.append(statement.body)
    return _Names(frozenset(names), tuple(declared))


class _Statements:
    """Compiles statements."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler

    def block(self, block: Block) -> Execute:
        """
        @raise ExpressionError: something in it can't be compiled.
        """
        compiled, cost = self._compiler.cost_of(lambda: self._compiled(block))
        if not compiled:
            return lambda run: None

        def do(run: Run) -> bool | None:
            if cost > run.left:
                run.spend(cost)
            run.left -= cost
            for execute in compiled:
                ended = execute(run)
                if ended is not None:
                    return None if ended is BREAK else bool(ended)
            return None

        return do

    def _compiled(self, block: Block) -> list[Execute]:
        compiled = []
        for statement in block:
            self._compiler.count(statement.position)
            compiled.append(self._statement(statement))
        return compiled

    def _statement(self, statement: Statement) -> Execute:
        if isinstance(statement, Assign):
            return self._assign(statement)
        if isinstance(statement, If):
            return self._if(statement)
        if isinstance(statement, Switch):
            return self._switch(statement)
        if isinstance(statement, Break):
            return lambda run: BREAK
        if isinstance(statement, End):
            keep = statement.keep
            return lambda run: keep
        return self._filter(statement)

    def _filter(self, statement: FilterStatement) -> Execute:
        condition = self._compiler.condition(statement.expression)
        return lambda run: None if condition(run) else False

    def _if(self, statement: If) -> Execute:
        arms = [(self._compiler.condition(condition), self.block(block)) for condition, block in statement.arms]
        otherwise = self.block(statement.otherwise)

        def choose(run: Run) -> bool | object | None:
            for condition, do in arms:
                if condition(run):
                    return do(run)
            return otherwise(run)

        return choose

    def _switch(self, statement: Switch) -> Execute:
        compiler = self._compiler
        value = compiler.value(statement.value)
        texts, others, default = {}, [], -1
        for case in statement.cases:
            if case.value is None:
                default = case.target
            elif case.last is None and isinstance(case.value, Literal) and isinstance(case.value.value, str):
                texts[case.value.value] = case.target
            else:
                others.append((self._case(case), case.target))
        compiled, cost = compiler.cost_of(lambda: self._compiled(statement.body))

        def switch(run: Run) -> bool | None:
            wanted = value(run)
            target = texts.get(wanted) if type(wanted) is str else None
            if target is None:
                target = next((each for matches, each in others if matches(run, wanted)), default)
            if target < 0:
                return None
            run.spend(cost)
            for execute in compiled[target:]:
                ended = execute(run)
                if ended is not None:
                    return None if ended is BREAK else bool(ended)
            return None

        return switch

    def _case(self, case: Case) -> Callable[[Run, Any], bool]:
        assert case.value is not None, "the default is no case among others"
        position = case.position
        if case.last is None:
            peek = self._compiler.peek(case.value)
            return lambda run, wanted: identical(run, wanted, peek(run))
        first, last = self._compiler.value(case.value), self._compiler.value(case.last)

        def is_between(run: Run, wanted: Any) -> bool:
            number, least, most = as_number(wanted), as_number(first(run)), as_number(last(run))
            if number is None or least is None or most is None:
                raise RecoverableError("A range stands between numbers, and the value is one.", position)
            if least >= most:
                raise RecoverableError("A range ends above where it begins.", position)
            return least <= number < most

        return is_between

    def _assign(self, statement: Assign) -> Execute:
        target = self._compiler.path(statement.target, is_target=statement.operator != "+=")
        # The parser takes nothing else for a target.
        assert target is not None
        if statement.operator == "+=":
            return self._add_to(target, statement)
        if statement.operator == "=??":
            return self._assign_if_there(target, statement)
        put, value = target.put(), (self._compiler.kept if target.name else self._compiler.fresh)(statement.value)

        def assign(run: Run) -> None:
            put(run, value(run))

        return assign

    def _assign_if_there(self, target: FieldPath, statement: Assign) -> Execute:
        put, peek, position = target.put(), self._compiler.peek(statement.value), statement.position
        store = _kept if target.name else _stored

        def assign(run: Run) -> None:
            value = peek(run)
            if value is not MISSING and value is not None:
                put(run, store(run, value, position))

        return assign

    def _add_to(self, target: FieldPath, statement: Assign) -> Execute:
        read, put, position = target.read(), target.put(), statement.position
        value = self._compiler.value(statement.value)
        store = _kept if target.name else _stored

        def add_to(run: Run) -> None:
            old, more = read(run), value(run)
            try:
                made = add(run, old, more)
            except OperationError as error:
                raise located(position, error) from None
            put(run, store(run, made, position))

        return add_to


def _stored(run: Run, value: Any, position: Position) -> Any:
    try:
        return stored(run, value, fresh=False)
    except OperationError as error:
        raise located(position, error) from None


def _kept(run: Run, value: Any, position: Position) -> Any:
    return _stored(run, value, position) if type(value) in (dict, list) else value
