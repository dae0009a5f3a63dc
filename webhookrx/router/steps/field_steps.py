"""
Set Field, Unset Field and Regex: the steps that change single fields.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from webhookrx.diagnostics import Path as StepPath
from webhookrx.message.fields import MISSING, FieldError, Path, get_field, set_field, setter, split_path, unset_field
from webhookrx.message.message import Value
from webhookrx.regex import LONGEST_PATTERN, LinearRegex
from webhookrx.router.steps.context import Action, StepContext, StepEvent, StepProblems
from webhookrx.router.steps.step import Regex, SetField
from webhookrx.work import spend_json

_DEEPEST: Final = 32
"""Most names in a path, so that the result can still be written as JSON."""

_LARGEST_TIME: Final = (1 << 63) - 1

_ID: Final = ("meta", "id")


class _FieldType(NamedTuple):
    """What a field of the message model may hold; C{words} end the sentence that it must be…"""

    allows: Callable[[Any], bool]
    words: str


def _whole(largest: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and 0 <= value <= largest


_TIME: Final = _FieldType(_whole(_LARGEST_TIME), "a whole number: nanoseconds since 1970, or 0 when it is not known")
_FIELD_TYPES: Final[dict[Path, _FieldType]] = {
    ("log", "time_unix_nano"): _TIME,
    ("log", "observed_time_unix_nano"): _TIME,
    ("log", "severity_number"): _FieldType(_whole(24), "a whole number from 1 to 24, or 0 when it is not known"),
    ("log", "severity_text"): _FieldType(lambda value: isinstance(value, str), "a text"),
    ("log", "attributes"): _FieldType(lambda value: isinstance(value, dict), "an object"),
}


def field_path(text: str, at: StepPath, problems: StepProblems) -> Path | None:
    """Return the path of a field that a step reads; None, with the problem noted, when no message has such a field."""
    try:
        path = split_path(text)
    except ValueError as error:
        problems.add("bad-field", str(error), at)
        return None
    if path[0] not in ("log", "meta") or len(path) == 1:
        problems.add("bad-field", f"{text!r} is not a field of a message: those are below log or meta.", at)
        return None
    if len(path) > _DEEPEST:
        problems.add("bad-field", f"A field has at most {_DEEPEST} names with a dot between them.", at)
        return None
    return path


def changed_path(text: str, at: StepPath, problems: StepProblems, *, members: bool = False) -> Path | None:
    """
    Return the path of a field that a step changes.

    @param members: the step sets members of that field, not the field itself.
    """
    path = field_path(text, at, problems)
    if path is None:
        return None
    if path[:2] == _ID:
        problems.add("bad-field", "meta.id identifies the message, and can't be changed.", at)
        return None
    inner = len(path) > 2 or members
    if inner and path[:2] in _FIELD_TYPES and path[:2] != ("log", "attributes"):
        problems.add("bad-field", f"{path[0]}.{path[1]} has no members.", at)
        return None
    return path


def compile_set(wanted: SetField | tuple[SetField, ...], problems: StepProblems) -> Action | None:
    """Return the action that sets fields to constants: all of them, or none when one can't be set."""
    pairs: list[tuple[SetField, StepPath]]
    if isinstance(wanted, SetField):
        pairs = [(wanted, ("set",))]
    else:
        pairs = [(each, ("set", index)) for index, each in enumerate(wanted)]
    if not pairs:
        problems.add("bad-field", "There is no field to set.", ("set",))
    changes = [change for each, at in pairs if (change := _change(each, at, problems))]
    if len(changes) == 1:
        return _set_one(*changes[0])
    return _set_all(changes)


def compile_unset(wanted: str | tuple[str, ...], problems: StepProblems) -> Action | None:
    """Return the action that removes fields; a field that is missing is no failure."""
    texts: list[tuple[str, StepPath]]
    if isinstance(wanted, str):
        texts = [(wanted, ("unset",))]
    else:
        texts = [(each, ("unset", index)) for index, each in enumerate(wanted)]
    if not texts:
        problems.add("bad-field", "There is no field to unset.", ("unset",))
    paths = [path for text, at in texts if (path := changed_path(text, at, problems))]

    cost = len(paths) * _PATH

    def unset(context: StepContext) -> StepEvent | None:
        context.work.spend(cost)
        context.stale = True
        for path in paths:
            unset_field(context.record, path)
        return None

    return unset


def _change(wanted: SetField, at: StepPath, problems: StepProblems) -> tuple[Path, Value] | None:
    path = changed_path(wanted.field, (*at, "field"), problems)
    try:
        value = _constant(wanted.value)
    except ValueError as error:
        problems.add("bad-value", str(error), (*at, "value"))
        return None
    if path is None:
        return None
    wanted_type = _FIELD_TYPES.get(path)
    if wanted_type is not None and not wanted_type.allows(value):
        problems.add("bad-value", f"{wanted.field} must be {wanted_type.words}.", (*at, "value"))
        return None
    return path, value


def _constant(value: Any) -> Value:
    """
    Return a value of the rules file as messages hold it.

    @raise ValueError: JSON has no such value; the text is one sentence.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("The value holds a number that JSON can't hold.")
        return msgspec.Raw(repr(value).encode())
    if isinstance(value, (list, tuple)):
        return [_constant(element) for element in value]
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise ValueError("The names in an object must be texts.")
        return {name: _constant(member) for name, member in value.items()}
    if value is None or isinstance(value, (str, int, msgspec.Raw)):
        return value
    raise ValueError("The value must be a text, a number, yes or no, null, a list or an object.")


def own_copy(value: Any) -> Any:
    """Return a value with objects and arrays of its own."""
    if isinstance(value, dict):
        return {name: own_copy(member) for name, member in value.items()}
    if isinstance(value, list):
        return [own_copy(element) for element in value]
    return value


_PATH: Final = 500
_ELEMENT: Final = 100
"""Units of work for a field that is found, and for an element that is copied."""


def _cost(value: Value) -> int:
    """Return the units of work of copying a value, and of writing the copy."""
    if isinstance(value, dict):
        return _ELEMENT + sum(_ELEMENT + len(name) + _cost(member) for name, member in value.items())
    if isinstance(value, list):
        return _ELEMENT + sum(map(_cost, value))
    return _ELEMENT + (len(value) if isinstance(value, (str, msgspec.Raw)) else 0)


def _set_one(path: Path, value: Value) -> Action:
    cost, set_value = _PATH + _cost(value), setter(path)

    def set_constant(context: StepContext) -> StepEvent | None:
        context.work.spend(cost)
        context.stale = True
        set_value(context.record, value)
        return None

    def set_copy(context: StepContext) -> StepEvent | None:
        context.work.spend(cost)
        context.stale = True
        set_value(context.record, own_copy(value))
        return None

    return set_copy if isinstance(value, (dict, list)) else set_constant


def _set_all(changes: Sequence[tuple[Path, Value]]) -> Action:
    cost = sum(2 * _PATH + _cost(value) for _, value in changes)

    def set_each(context: StepContext) -> StepEvent | None:
        context.work.spend(cost)
        context.stale = True
        record, before = context.record, []
        try:
            for path, value in changes:
                before.append(_before(record, path))
                set_field(record, path, own_copy(value))
        except FieldError:
            # The last is the one that failed, and has changed nothing.
            for path, value in reversed(before[:-1]):
                if value is MISSING:
                    unset_field(record, path)
                else:
                    set_field(record, path, value)
            raise
        return None

    return set_each


def _before(record: dict[str, Any], path: Path) -> tuple[Path, Any]:
    """Return a path, and the value that restores the record after C{path} was set; C{MISSING}: unset it."""
    value = get_field(record, path)
    if value is not MISSING:
        return path, value
    inner: Any = record
    length = 0
    # Name by name, as set_field makes objects: a name with dots further out is not on the way.
    while inner is not MISSING and length < len(path):
        inner = get_field(inner, path[length : length + 1])
        length += 1
    return path[:length], MISSING


_encode = msgspec.json.Encoder().encode


def compile_regex(wanted: Regex, problems: StepProblems) -> Action | None:
    """
    Return the action that searches a field and sets a member of another field for each named group that took part.
    Without a match, or without the field, nothing happens.
    """
    regex = _expression(wanted, problems)
    source = field_path(wanted.field, ("regex", "field"), problems)
    target = changed_path(wanted.into, ("regex", "into"), problems, members=True)
    if regex is None or source is None or target is None:
        return None
    groups_in = regex.groups

    def match(context: StepContext) -> StepEvent | None:
        record = context.record
        value = get_field(record, source)
        if value is MISSING:
            return None
        if not isinstance(value, str):
            spend_json(value, context.work.spend)
            value = _encode(value).decode()
        groups = groups_in(value, context.work)
        if not groups:
            return None
        context.stale = True
        parent = get_field(record, target)
        if isinstance(parent, dict):
            parent.update(groups)
        elif parent is MISSING:
            set_field(record, target, groups)
        else:
            raise FieldError(f"{wanted.into} is no object, so that it can't get members.")
        return None

    return match


def _expression(wanted: Regex, problems: StepProblems) -> LinearRegex | None:
    at = ("regex", "pattern")
    try:
        regex = LinearRegex(wanted.pattern, ignore_case=wanted.ignore_case)
    except ValueError as error:
        problems.add("bad-regex", str(error), at, *_place(wanted.pattern))
        return None
    if not regex.names:
        problems.add(
            "no-groups", "The expression has no named group, such as (?P<user>[a-z]+), to make a field of.", at
        )
    return regex


def _place(pattern: str) -> tuple[int, int]:
    """Return the line and column of the mistake in an expression, as far as Python's C{re} finds it."""
    if len(pattern) > LONGEST_PATTERN:
        return 1, 1
    try:
        re.compile(pattern)
    except re.error as error:
        return error.lineno or 1, error.colno or 1
    except (OverflowError, RecursionError):
        pass
    return 1, 1
