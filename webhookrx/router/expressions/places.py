"""
Places in objects and lists: where a path of keys leads, and changes there.

A text is the name of a member, a number the index of an element: from 0, or from the end when it is negative. A name
that is not there is looked up once more as the rest of the path with dots, as
L{webhookrx.message.fields} does it: C{log.attributes.webhook.query.team} finds C{"webhook.query.team"}.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from webhookrx.message.fields import MISSING
from webhookrx.router.expressions.mistakes import OperationError
from webhookrx.router.expressions.run import Run
from webhookrx.router.expressions.values import LISTS, OBJECTS

Key: TypeAlias = "str | int | None"
"""C{None} is the place behind the last element of a list."""

Keys: TypeAlias = "tuple[Key, ...]"


def find(value: Any, keys: Keys) -> Any:
    """Return what is at a place; L{MISSING} when nothing is there."""
    for number, key in enumerate(keys):
        kind = type(value)
        if kind is dict and type(key) is str:
            found = value.get(key, MISSING)
            if found is MISSING:
                return value.get(_dotted(keys, number), MISSING)
            value = found
        elif (kind in LISTS and type(key) is int and -len(value) <= key < len(value)) or (
            kind in OBJECTS and type(key) is str and key in value
        ):
            value = value[key]
        else:
            return MISSING
    return value


def put(run: Run, top: dict[str, Any], keys: Keys, value: Any) -> None:
    """
    Set what is at a place. Objects that are missing on the way are made, and a list for the place behind its last
    element.

    @raise OperationError: something on the way is neither object nor list, or an index is outside of a list.
    """
    place: Any = top
    last = len(keys) - 1
    for number in range(last):
        key = keys[number]
        inner = find(place, (key,))
        if inner is MISSING:
            if type(place) is not dict or type(key) is not str:
                raise OperationError(
                    "There is no place for this field: something on the way is no object, or not there."
                )
            whole = _dotted(keys, number)
            if whole in place:
                run.undo_log.set_member(place, whole, value)
                return
            inner = {} if keys[number + 1] is not None else []
            run.undo_log.set_member(place, key, inner)
        place = inner
    _put_in(run, place, keys[last], value)


def _put_in(run: Run, place: Any, key: Key, value: Any) -> None:
    if type(place) is dict and type(key) is str:
        run.undo_log.set_member(place, key, value)
    elif type(place) is not list or type(key) is str:
        raise OperationError("There is no place for this field: what should hold it is no object, or no list.")
    elif key is None or key == len(place):
        run.undo_log.append(place, value)
    elif type(key) is int and -len(place) <= key < len(place):
        run.undo_log.set_element(place, key, value)
    else:
        raise OperationError("The list has no such element.")


def take_away(run: Run, top: dict[str, Any], keys: Keys) -> Any:
    """
    Remove what is at a place, and return it; L{MISSING} when nothing is there.

    @raise OperationError: what holds it can't be changed.
    """
    place: Any = top
    for number, key in enumerate(keys):
        inner = find(place, (key,))
        if inner is MISSING or number == len(keys) - 1:
            name = key if inner is not MISSING else _dotted(keys, number)
            return _take_from(run, place, name)
        place = inner
    return MISSING


def _take_from(run: Run, place: Any, key: Key) -> Any:
    found = find(place, (key,))
    if found is not MISSING:
        if type(place) is dict:
            run.remove_member(place, str(key))
        elif type(place) is list:
            run.undo_log.remove_element(place, int(key or 0) % len(place))
        else:
            raise OperationError("What holds this field can't be changed: it is a tuple, or from a file.")
    return found


def _dotted(keys: Keys, start: int) -> str:
    """Return the rest of a path as one name; an empty one, which is no name, when a key is no name."""
    names = keys[start:]
    return ".".join(names) if all(type(name) is str for name in names) else ""  # type: ignore[arg-type]  # all texts
