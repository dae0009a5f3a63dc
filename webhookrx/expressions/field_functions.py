"""
Functions whose arguments are fields, not their values: they look whether a field is there, change it or remove it.

What L{Function.apply} is here makes the closure of a call: it takes the L{FieldCall}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from webhookrx.expressions.function import MANY, Function
from webhookrx.expressions.limits import CLOCK_EVERY
from webhookrx.expressions.mistakes import Mistake, located
from webhookrx.expressions.paths import Evaluate, FieldPath
from webhookrx.expressions.run import Run
from webhookrx.expressions.tree import Call, Expression, ListOf, ObjectOf, start
from webhookrx.expressions.values import stored
from webhookrx.message.fields import MISSING


class FieldCall(NamedTuple):
    """
    A call of one of these functions.

    @ivar fields: its arguments.
    @ivar options: its options; those of L{set_fields} are objects that are looked into.
    @ivar constants: the values of options that are constants.
    @ivar peek: compiles what works a value out, or returns L{MISSING} when that fails.
    """

    call: Call
    fields: tuple[FieldPath, ...]
    options: dict[str, Expression]
    constants: dict[str, Any]
    peek: Callable[[Expression], Evaluate]


def _is_empty(value: Any) -> bool:
    return value is None or value is MISSING or (type(value) in (str, list, dict) and not value)


def _isset(made: FieldCall) -> Evaluate:
    peek = made.fields[0].peeked()
    return lambda run: not _is_empty(peek(run))


def _unset(made: FieldCall) -> Evaluate:
    removals = [field.take_away() for field in made.fields]

    def unset(run: Run) -> bool:
        for remove in removals:
            remove(run)
        return True

    return unset


def _move(made: FieldCall) -> Evaluate:
    read, remove = made.fields[0].read(), made.fields[0].take_away()

    def move(run: Run) -> Any:
        read(run)
        return remove(run)

    return move


def _unset_empties(made: FieldCall) -> Evaluate:
    read, position = made.fields[0].read(), made.call.position
    recursive: bool = made.constants.get("recursive", True)
    targets = made.constants.get("targets")

    def unset_empties(run: Run) -> bool:
        try:
            _Sweep(run, recursive, targets).sweep(read(run))
        except Mistake as mistake:
            raise located(position, mistake) from None
        return True

    return unset_empties


class _Sweep:
    """Removes empty members and elements, the inner ones first."""

    def __init__(self, run: Run, recursive: bool, targets: tuple[Any, ...] | None) -> None:
        self._run = run
        self._recursive = recursive
        self._targets = targets
        self._seen = 0

    def sweep(self, holder: Any) -> None:
        """
        @raise Mistake: it holds too much.
        """
        if type(holder) is dict:
            pairs: list[tuple[Any, Any]] = list(holder.items())
        elif type(holder) is list:
            # From behind, so that what is left keeps its index.
            pairs = list(enumerate(holder))[::-1]
        else:
            return
        self._seen += len(pairs)
        if self._seen > self._run.limits.elements:
            raise Mistake(f"An object or a list has more than {self._run.limits.elements} elements.")
        journal = self._run.journal
        for number, (key, value) in enumerate(pairs):
            if number % CLOCK_EVERY == 0:
                self._run.look()
            if self._recursive:
                self.sweep(value)
            if not self._is_target(value):
                continue
            if type(holder) is dict:
                journal.remove_member(holder, key)
            else:
                journal.remove_element(holder, key)

    def _is_target(self, value: Any) -> bool:
        if self._targets is None:
            return _is_empty(value)
        return any(type(value) is type(target) and value == target for target in self._targets)


def _set_fields(made: FieldCall) -> Evaluate:
    field, position = made.fields[0], made.call.position
    read = field.read()
    overrides, defaults = (_candidates(made, option) for option in ("overrides", "defaults"))

    def set_fields(run: Run) -> bool:
        holder = read(run)
        if type(holder) is not dict:
            raise located(position, Mistake("The argument is no object."))
        try:
            for name, values in overrides:
                _set_first(run, holder, name, values)
            for name, values in defaults:
                if _is_empty(holder.get(name)):
                    _set_first(run, holder, name, values)
        except Mistake as mistake:
            raise located(position, mistake) from None
        return True

    return set_fields


def _candidates(made: FieldCall, option: str) -> list[tuple[str, list[Evaluate]]]:
    """Return names of members, and for each what gives its value; the first that is there does."""
    given = made.options.get(option)
    if given is None:
        return []
    if not isinstance(given, ObjectOf):
        raise located(start(given), Mistake(f'{option} is written as an object: {{"name": value}}.'))
    found = []
    for name, value in given.members:
        key = getattr(name, "value", None)
        if type(key) is not str:
            raise located(start(name), Mistake("The name of a field is written as a text."))
        several = value.elements if isinstance(value, ListOf) else (value,)
        found.append((key, [made.peek(each) for each in several]))
    return found


def _set_first(run: Run, holder: dict[str, Any], name: str, values: list[Evaluate]) -> None:
    for evaluate in values:
        value = evaluate(run)
        if value is not MISSING and value is not None:
            run.journal.set_member(holder, name, stored(run, value, fresh=False))
            return


FIELD_FUNCTIONS: Final = (
    Function("isset", "field", "Whether the field is there, and neither `null` nor empty.", _isset),
    Function("unset", "field, …", "Removes fields. It is true, also when they are not there.", _unset, 1, MANY),
    Function("move", "field", "The value of the field, which is removed: `meta.new = move(meta.old);`.", _move),
    Function(
        "unset_empties",
        "field, recursive=true, targets=[…]",
        "Removes members and elements that are empty or `null`, or that are among the targets.",
        _unset_empties,
        options={"recursive": bool, "targets": tuple},
    ),
    Function(
        "set_fields",
        "field, overrides={…}, defaults={…}",
        "Sets members of an object; defaults only where nothing is. Of a list of values the first that is there is "
        "taken.",
        _set_fields,
        options={"overrides": dict, "defaults": dict},
    ),
)
