"""
Paths in a program, such as C{log.body["user name"]}, and macros, which are short for some of them.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from webhookrx.diagnostics import Position
from webhookrx.message.fields import MISSING, Path
from webhookrx.message.macros import HARD_MACROS
from webhookrx.router.expressions.program_tree import Expression, Literal, MemberAccess, Name, start
from webhookrx.router.expressions.run import (
    SLOW_PATH,
    ExpressionError,
    OperationError,
    RecoverableError,
    Run,
    located,
)
from webhookrx.router.expressions.values import Keys, find, put, take_away


class Macro(NamedTuple):
    """A macro: whether it may be set, and the field that it stands for."""

    settable: bool
    path: Path


_HOST: Final = Macro(True, ("meta", "host", "name"))
_BODY: Final = Macro(True, ("log", "body"))

MACROS: Final = {
    "HOST": _HOST,
    "FULLHOST": _HOST,
    "MESSAGE": _BODY,
    "MSG": _BODY,
    "MSGONLY": _BODY,
    "SOURCEIP": Macro(False, ("meta", "connection", "src_ip")),
    "SOURCEPORT": Macro(False, ("meta", "connection", "src_port")),
    "TRANSPORT": Macro(False, ("meta", "connection", "transport")),
}
"""The macros of a message. Hard ones, as AxoSyslog calls them, can't be set."""

_ATTRIBUTES: Final = "webhook."
"""The beginning of the names of pairs that are in C{log.attributes}."""


def macro_path(name: str, position: Position) -> Path:
    """
    Return the field that a macro or the name of a pair stands for. The name of a pair that is no field is a local
    variable that begins with a dollar.

    @raise ExpressionError: messages of the router form have no such hard macro.
    """
    if name in MACROS:
        return MACROS[name].path
    if name.startswith(_ATTRIBUTES):
        return ("log", "attributes", name)
    if name in HARD_MACROS:
        close = get_close_matches(name[:40].upper(), MACROS, 1)
        hint = f"Did you mean ${close[0]}?" if close else f"There are {', '.join(MACROS)}; other fields have a path."
        raise ExpressionError(f"There is no macro '{name[:40]}' here. {hint}", position)
    return (f"${name}",)


def macro_settable(name: str) -> bool:
    """Tell whether a program may set a macro."""
    return name not in MACROS or MACROS[name].settable


Evaluate: TypeAlias = Callable[[Run], Any]
"""Returns the value of an expression; raises L{ExpressionError}."""

ROOTS: Final = ("log", "meta")
"""The parts of the record. All other names are local variables."""

_HOMES: Final = {"body": "log", "attributes": "log", "connector": "meta", "host": "meta", "router": "meta"}
"""Objects of the record that people write without their parent."""

_MANY: Final = 32
"""Members of an object from which on keeping their order is counted."""

BEHIND_LAST: Final = "'[]' is the place behind the last element of a list: it can only be set."


def _what(root: str) -> str:
    return f"the macro or pair '{root[1:41]}'" if root[0] == "$" else f"the variable '{root[:40]}'"


def _hint(root: str, names: frozenset[str]) -> str:
    """Return a guess at the meaning of a variable that nothing sets."""
    if root in _HOMES:
        return f"Did you mean '{_HOMES[root]}.{root}'?"
    if root[0] == "$":
        close = get_close_matches(root[1:].upper(), MACROS, 1)
        return f"Did you mean ${close[0]}?" if close else f"There are {', '.join(MACROS)}; other fields have a path."
    close = get_close_matches(root, [*ROOTS, *names], 1)
    return f"Did you mean '{close[0]}'?" if close else "Fields begin with log or meta."


class FieldPath:
    """
    A path from a root of the record, or from a local variable.

    @ivar position: of its beginning.
    @ivar local: it begins with a local variable.
    @ivar is_root: it is C{log} or C{meta} itself.
    @ivar name: the local variable that is the whole path; empty for other paths.
    """

    def __init__(
        self, position: Position, keys: tuple[Expression | str | None, ...], value: Callable[[Expression], Evaluate]
    ) -> None:
        self._path = keys
        self._root = root = str(keys[0])
        self.position = position
        self.local = root not in ROOTS
        self.is_root = not self.local and len(keys) == 1
        self.name = root if self.local and len(keys) == 1 else ""
        self._described = "".join(map(_described, keys)).removeprefix(".")
        self._fixed: Keys | None = None
        if all(key is None or isinstance(key, str) or _is_constant(key) for key in keys):
            self._fixed = tuple(key.value if isinstance(key, Literal) else key for key in keys)  # type: ignore[misc]
        else:
            self._parts = tuple(_part(key, value) for key in keys)

    def check(self, names: frozenset[str], *, is_target: bool, may_be_missing: bool) -> None:
        """
        @param names: the local variables that the program sets.
        @raise ExpressionError: it begins with another local variable, unless that is the name of a pair that may be
            missing; or it has C{[]}, which is for the end of a target.
        """
        if None in (self._path[:-1] if is_target else self._path):
            raise ExpressionError(BEHIND_LAST, self.position)
        if self.local and self._root not in names and not (may_be_missing and self._root[0] == "$"):
            raise ExpressionError(f"Nothing sets {_what(self._root)}. {_hint(self._root[:40], names)}", self.position)

    def keys(self) -> Callable[[Run], Keys]:
        """Return a function that evaluates the keys."""
        fixed = self._fixed
        if fixed is not None:
            return lambda run: fixed
        parts = self._parts
        return lambda run: tuple([part(run) for part in parts])

    def top(self, run: Run) -> dict[str, Any]:
        """Return the object that has the root as a member."""
        return run.locals if self.local else run.record

    def peeked(self) -> Evaluate:
        """Return a function that reads the field; L{MISSING} when it is not there."""
        fixed, local = self._fixed, self.local
        if fixed is None:
            keys, top = self.keys(), self.top

            def peek_at_keys(run: Run) -> Any:
                try:
                    return find(top(run), keys(run))
                except RecoverableError:
                    return MISSING

            return peek_at_keys
        if local:
            return lambda run: find(run.locals, fixed)
        quick = _quick(fixed)

        def peek(run: Run) -> Any:
            try:
                return quick(run.record)
            except (KeyError, TypeError):
                return find(run.record, fixed)

        return peek

    def read(self) -> Evaluate:
        """Return a function that reads the field, and raises L{RecoverableError} when it is not there."""
        if self._fixed is None or self.local:
            keys, top = self.keys(), self.top

            def read(run: Run) -> Any:
                value = find(top(run), keys(run))
                return self._missing() if value is MISSING else value

            return read
        fixed, quick = self._fixed, _quick(self._fixed)

        def read_quickly(run: Run) -> Any:
            try:
                return quick(run.record)
            except (KeyError, TypeError):
                value = find(run.record, fixed)
            return self._missing() if value is MISSING else value

        return read_quickly

    def put(self) -> Callable[[Run, Any], None]:
        """Return a function that sets the field to a value that nothing else refers to."""
        if self.name:
            name = self.name

            def put_local(run: Run, value: Any) -> None:
                run.locals[name] = value

            return put_local
        keys, top, position = self.keys(), self.top, self.position

        def put_field(run: Run, value: Any) -> None:
            try:
                run.spend(SLOW_PATH)
                put(run, top(run), keys(run), value)
            except OperationError as error:
                raise located(position, error) from None

        if self._fixed is None or self.local:
            return put_field
        way, last = _quick(self._fixed[:-1]), self._fixed[-1]

        def put_quickly(run: Run, value: Any) -> None:
            try:
                parent = way(run.record)
            except (KeyError, TypeError):
                parent = None
            if type(parent) is dict and type(last) is str:
                run.undo_log.set_member(parent, last, value)
            else:
                put_field(run, value)

        return put_quickly

    def take_away(self) -> Evaluate:
        """Return a function that removes the field and returns its value, or L{MISSING}."""
        keys, top, position = self.keys(), self.top, self.position

        def take(run: Run) -> Any:
            try:
                run.spend(SLOW_PATH)
                return take_away(run, top(run), keys(run))
            except OperationError as error:
                raise located(position, error) from None

        if self._fixed is None or self.local:
            return take
        way, last = _quick(self._fixed[:-1]), self._fixed[-1]

        def take_quickly(run: Run) -> Any:
            try:
                parent = way(run.record)
            except (KeyError, TypeError):
                parent = None
            if type(parent) is dict and type(last) is str and last in parent and len(parent) < _MANY:
                return run.undo_log.remove_member(parent, last)
            return take(run)

        return take_quickly

    def _missing(self) -> NoReturn:
        raise RecoverableError(f"{self._described} is not there.", self.position)


def path_of(expression: Expression, value: Callable[[Expression], Evaluate]) -> FieldPath | None:
    """
    Return an expression as a path; None when it does not begin with a name.

    @param value: compiles keys that are not constants.
    """
    keys: list[Expression | str | None] = []
    while isinstance(expression, MemberAccess):
        keys.append(expression.key)
        expression = expression.of
    if not isinstance(expression, Name):
        return None
    return FieldPath(expression.position, (expression.name, *reversed(keys)), value)


def key_of(value: Any) -> str | int:
    """
    Return a value as a key.

    @raise OperationError: the value is neither text nor integer.
    """
    if type(value) is str or type(value) is int:
        return value
    raise OperationError("A key is a text or an integer.")


def _is_constant(key: Expression) -> bool:
    return isinstance(key, Literal) and type(key.value) in (str, int)


def _part(key: Expression | str | None, value: Callable[[Expression], Evaluate]) -> Callable[[Run], str | int | None]:
    if key is None or isinstance(key, str):
        return lambda run: key
    evaluate, position = value(key), start(key)

    def part(run: Run) -> str | int:
        found = evaluate(run)
        try:
            return key_of(found)
        except OperationError as error:
            raise located(position, error) from None

    return part


def _described(key: Expression | str | None) -> str:
    """Return a key as the program has it, but for a computed one: that could quote the message."""
    if isinstance(key, Literal) and isinstance(key.value, str) and not key.value.isidentifier():
        return f'["{key.value[:40]}"]'
    if isinstance(key, Literal) and isinstance(key.value, int):
        return f"[{key.value}]"
    return f".{key.value if isinstance(key, Literal) else key}"[:80] if isinstance(key, (str, Literal)) else "[…]"


def _quick(keys: Keys) -> Callable[[dict[str, Any]], Any]:
    """
    Return a function that follows keys through objects only; it raises C{KeyError} or C{TypeError} elsewhere.
    """
    if not all(type(key) is str for key in keys):
        return _slow
    names: Any = keys
    if len(names) == 1:
        (only,) = names
        return lambda record: record[only]
    if len(names) == 2:
        first, second = names
        return lambda record: record[first][second]
    if len(names) == 3:
        first, second, third = names
        return lambda record: record[first][second][third]
    if len(names) == 4:
        first, second, third, fourth = names
        return lambda record: record[first][second][third][fourth]

    def follow(record: dict[str, Any]) -> Any:
        value: Any = record
        for name in names:
            value = value[name]
        return value

    return follow


def _slow(_: dict[str, Any]) -> NoReturn:
    raise KeyError
