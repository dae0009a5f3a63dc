"""
Functions whose arguments are fields, not values: they test, change or remove the field.

Their L{Function.apply} takes the L{FieldCall}, and returns the closure of the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from webhookrx.message.fields import MISSING
from webhookrx.router.expressions.function import MANY, Function
from webhookrx.router.expressions.paths import Evaluate, FieldPath
from webhookrx.router.expressions.program_tree import Call, Expression, ListOf, Literal, ObjectOf, start
from webhookrx.router.expressions.run import ELEMENT, ExpressionError, OperationError, RecoverableError, Run, located
from webhookrx.router.expressions.values import stored


class FieldCall(NamedTuple):
    """
    A call of one of these functions.

    @ivar fields: its arguments; None for an argument that is not a field.
    @ivar options: its options.
    @ivar constants: the values of options that are constants.
    @ivar peek: see L{webhookrx.router.expressions.compiler.Compiler.peek}.
    @ivar fresh: see L{webhookrx.router.expressions.compiler.Compiler.fresh}.
    """

    call: Call
    fields: tuple[FieldPath | None, ...]
    options: dict[str, Expression]
    constants: dict[str, Any]
    peek: Callable[[Expression], Evaluate]
    fresh: Callable[[Expression], Evaluate]

    def holder(self) -> Evaluate:
        """Return a function that evaluates the first argument, to change the value in its place."""
        field = self.fields[0]
        return self.fresh(self.call.arguments[0]) if field is None else field.read()


def _isset(made: FieldCall) -> Evaluate:
    field = made.fields[0]
    if field is None:
        return lambda run: False
    peek = field.peeked()
    return lambda run: peek(run) is not MISSING


def _unset(made: FieldCall) -> Evaluate:
    removals = [field.take_away() for field in made.fields if field is not None]

    def unset(run: Run) -> bool:
        for remove in removals:
            remove(run)
        return True

    return unset


def _move(made: FieldCall) -> Evaluate:
    (field,) = made.fields
    assert field is not None, "the compiler takes fields only"
    read, remove = field.read(), field.take_away()

    def move(run: Run) -> Any:
        read(run)
        return remove(run)

    return move


def _unset_empties(made: FieldCall) -> Evaluate:
    read, position = made.holder(), made.call.position
    sweep = _Sweep(
        recursive=made.constants.get("recursive", True),
        ignore_case=made.constants.get("ignorecase", False),
        targets=_targets(made),
        replacement=_replacement(made),
    )

    def unset_empties(run: Run) -> bool:
        holder = read(run)
        try:
            if type(holder) not in (dict, list):
                raise OperationError("The argument is no object and no list.")
            sweep.sweep(run, holder)
        except OperationError as error:
            raise located(position, error) from None
        return True

    return unset_empties


def _targets(made: FieldCall) -> tuple[frozenset[str], frozenset[type]] | None:
    """Return the texts, and the types of empty values, to remove; None for the default: all empty values."""
    given = made.options.get("targets")
    if given is None:
        return None
    elements = given.elements if isinstance(given, ListOf) else ()
    texts: set[str] = set()
    kinds: set[type] = set()
    for element in elements:
        if isinstance(element, Literal) and isinstance(element.value, str):
            texts.add(element.value)
        elif isinstance(element, Literal) and element.value is None:
            kinds.add(type(None))
        elif isinstance(element, ListOf) and not element.elements:
            kinds.add(list)
        elif isinstance(element, ObjectOf) and not element.members:
            kinds.add(dict)
        else:
            raise ExpressionError("Targets are texts, null, [] and {}.", start(element))
    if not isinstance(given, ListOf):
        raise ExpressionError("targets is written as a list.", start(given))
    return (frozenset(texts), frozenset(kinds)) if elements else None


def _replacement(made: FieldCall) -> Any:
    given = made.options.get("replacement")
    if given is None:
        return MISSING
    if not isinstance(given, Literal) or type(given.value) is float:
        raise ExpressionError("The replacement is a constant text, integer, true, false or null.", start(given))
    return given.value


class _Sweep:
    """Removes empty members and elements, or sets them to something else, the inner ones first."""

    def __init__(
        self,
        *,
        recursive: bool,
        ignore_case: bool,
        targets: tuple[frozenset[str], frozenset[type]] | None,
        replacement: Any,
    ) -> None:
        self._recursive = recursive
        self._ignore_case = ignore_case
        self._kinds = _EMPTY_KINDS if targets is None else targets[1]
        texts = frozenset([""]) if targets is None else targets[0]
        self._texts = frozenset(map(str.casefold, texts)) if ignore_case else texts
        self._longest = max(map(len, self._texts), default=0)
        self._replacement = replacement

    def sweep(self, run: Run, holder: Any) -> None:
        """
        @raise OperationError: there is no work left.
        """
        if type(holder) is dict:
            pairs: list[tuple[Any, Any]] = list(holder.items())
        elif type(holder) is list:
            # From the end, so that the elements before keep their index.
            pairs = list(enumerate(holder))[::-1]
        else:
            return
        run.spend(len(pairs) * ELEMENT * 5)
        gone = []
        for key, value in pairs:
            if self._recursive:
                self.sweep(run, value)
            if self._is_target(value):
                gone.append(key)
        self._change(run, holder, gone)

    def _change(self, run: Run, holder: Any, keys: list[Any]) -> None:
        undo_log = run.undo_log
        if type(holder) is list and self._replacement is MISSING and keys:
            # Elements that are removed one by one would each move all that are behind them.
            gone = set(keys)
            undo_log.replace_elements(holder, [each for index, each in enumerate(holder) if index not in gone])
            return
        for key in keys:
            if self._replacement is not MISSING:
                change = undo_log.set_member if type(holder) is dict else undo_log.set_element
                change(holder, key, self._replacement)
            else:
                run.remove_member(holder, key)

    def _is_target(self, value: Any) -> bool:
        kind = type(value)
        if kind is str:
            if len(value) > 2 * self._longest:
                return False
            return (value.casefold() if self._ignore_case else value) in self._texts
        return kind in self._kinds and not value


_EMPTY_KINDS: Final[frozenset[type]] = frozenset([type(None), list, dict])


def _flatten(made: FieldCall) -> Evaluate:
    read, position = made.holder(), made.call.position
    separator: str = made.constants.get("separator", ".")

    def flatten(run: Run) -> bool:
        holder = read(run)
        try:
            if type(holder) is not dict:
                raise OperationError("The argument is no object.")
            flat = _flattened(run, holder, separator)
        except OperationError as error:
            raise located(position, error) from None
        for name in [name for name, member in holder.items() if type(member) is dict]:
            run.remove_member(holder, name)
        for name, member in flat:
            run.undo_log.set_member(holder, name, member)
        return True

    return flatten


def _flattened(run: Run, holder: dict[str, Any], separator: str) -> list[tuple[str, Any]]:
    """Return the members of inner objects, each with the names on the way to it."""
    run.spend((len(holder) + 1) * ELEMENT)
    flat: list[tuple[str, Any]] = []
    characters = 0
    pending = [(name, member) for name, member in reversed(holder.items()) if type(member) is dict]
    while pending:
        name, member = pending.pop()
        if type(member) is not dict:
            flat.append((name, member))
            continue
        # Names grow with depth: a few long ones above many members would make much of little.
        added = (len(name) + len(separator)) * len(member)
        characters += added
        if characters > run.limits.text:
            raise OperationError(f"An object or a list has texts of more than {run.limits.text} characters.")
        run.spend((len(member) + 1) * ELEMENT * 5 + added)
        pending.extend((name + separator + inner, value) for inner, value in reversed(member.items()))
    return flat


def _set_fields(made: FieldCall) -> Evaluate:
    read, position = made.holder(), made.call.position
    overrides, replacements, defaults = (
        _candidates(made, option) for option in ("overrides", "replacements", "defaults")
    )

    def set_fields(run: Run) -> Any:
        holder = read(run)
        if type(holder) is not dict:
            raise RecoverableError("The argument is no object.", position)
        try:
            before = {name for name, _ in replacements if name in holder}
            done = {name for name, values in overrides if _set_first(run, holder, name, values)}
            for name, values in replacements:
                if name in before and name not in done:
                    _set_first(run, holder, name, values)
            for name, values in defaults:
                if name not in holder:
                    _set_first(run, holder, name, values)
        except OperationError as error:
            raise located(position, error) from None
        return holder

    return set_fields


def _candidates(made: FieldCall, option: str) -> list[tuple[str, list[Evaluate]]]:
    """Return names of members, and functions for the value of each; the first value that is there counts."""
    given = made.options.get(option)
    if given is None:
        return []
    if not isinstance(given, ObjectOf):
        raise ExpressionError(f'{option} is written as an object: {{"name": value}}.', start(given))
    found = []
    for name, value, _ in given.members:
        key = getattr(name, "value", None)
        if type(key) is not str:
            raise ExpressionError("The name of a field is written as a text.", start(name))
        several = value.elements if isinstance(value, ListOf) else (value,)
        found.append((key, [made.peek(each) for each in several]))
    return found


def _set_first(run: Run, holder: dict[str, Any], name: str, values: list[Evaluate]) -> bool:
    """Set a member to the first value that is there, and tell whether there was one."""
    for evaluate in values:
        value = evaluate(run)
        if value is not MISSING and value is not None:
            run.undo_log.set_member(holder, name, stored(run, value, fresh=False))
            return True
    return False


FIELD_FUNCTIONS: Final = (
    Function(
        "isset", "field", 'Whether the field exists, whatever its value, including `null`, `""` and `[]`.', _isset
    ),
    Function("unset", "field, …", "Removes fields, if they exist. Returns true.", _unset, 1, MANY),
    Function("move", "field", "The value of the field, which is removed: `meta.new = move(meta.old);`.", _move),
    Function(
        "unset_empties",
        "field, recursive=true, targets=[…], ignorecase=false, replacement=value",
        "Removes members and elements that are empty or `null`, or only the targets: texts, `null`, `[]` and `{}`; or "
        "sets them to the replacement.",
        _unset_empties,
        options={"recursive": bool, "ignorecase": bool, "targets": object, "replacement": object},
    ),
    Function(
        "set_fields",
        "field, overrides={…}, replacements={…}, defaults={…}",
        "Sets members of an object, and returns it: overrides always, replacements if the member exists, defaults "
        "if it does not. Of a list of values, the first that exists and is not `null` counts.",
        _set_fields,
        options={"overrides": dict, "replacements": dict, "defaults": dict},
    ),
    Function(
        "flatten",
        'field, separator="."',
        "Moves the members of nested objects into the object, under joined names. Returns true.",
        _flatten,
        options={"separator": str},
    ),
)
