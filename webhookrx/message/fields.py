"""
Fields of a record: nested objects such as C{{"log": {"body": …}, "meta": {…}}}, and paths such as C{log.body.user}.

A name in a path is looked up as it is. Where that leads nowhere, the rest of the path is looked up as one name that
has dots in it: C{log.attributes.webhook.query.team} finds C{{"webhook.query.team": …}}. A number finds an element of
an array, from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import accumulate
from typing import Any, Final, TypeAlias

from webhookrx.errors import WebhookrxError

Path: TypeAlias = tuple[str, ...]

# An exact dict is much faster to recognise than any mapping.
_OBJECTS: Final = (dict, Mapping)
_ARRAYS: Final = (list, tuple)

MAX_NAMES: Final = 128
"""Names in a path; objects of a body nest no deeper."""


class FieldError(WebhookrxError):
    """A field can't be set; the text is one sentence that quotes no value."""


class _Missing:
    """What stands for a field that is not there; C{None} is JSON's null."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()


def split_path(text: str) -> Path:
    """
    Take a path apart.

    @raise ValueError: a name in it is empty, or there are more than L{MAX_NAMES}; the text is one sentence.
    """
    names = tuple(text.split("."))
    if len(names) > MAX_NAMES:
        raise ValueError(f"A field has no more than {MAX_NAMES} names.")
    if not all(names):
        raise ValueError("A field is written as names with a dot between them, such as log.body.user.")
    return names


def get_field(record: Any, path: Path) -> Any:
    """Return the value of a field; L{MISSING} when it is not there."""
    return _find(path, None, record)


def getter(path: Path) -> Callable[[Any], Any]:
    """Return what does the same as L{get_field} for one path, in less time."""
    find = partial(_find, path, _rests(path))
    if len(path) == 2:
        first, second = path

        def find_second(record: Any) -> Any:
            try:
                return record[first][second]
            except (KeyError, TypeError):
                return find(record)

        return find_second
    if len(path) == 3:
        one, two, three = path

        def find_third(record: Any) -> Any:
            try:
                return record[one][two][three]
            except (KeyError, TypeError):
                return find(record)

        return find_third
    return find


def set_field(record: dict[str, Any], path: Path, value: Any) -> None:
    """
    Set a field; objects that are missing on the way to it are made.

    @raise FieldError: something on the way is neither object nor array, or an array is too short.
    """
    place = _place(record, path)
    if place is not None:
        place[0][place[1]] = value
        return
    parent: Any = record
    for index, name in enumerate(path[:-1]):
        parent = parent.setdefault(name, {}) if isinstance(parent, dict) else _element(parent, path[: index + 1])
    if not isinstance(parent, dict):
        raise _no_place(path)
    parent[path[-1]] = value


def setter(path: Path) -> Callable[[dict[str, Any], Any], None]:
    """Return what does the same as L{set_field} for one path, in less time."""
    *outer, last = zip(path, _rests(path), strict=True)
    name = last[0]

    def set_quickly(record: dict[str, Any], value: Any) -> None:
        parent: Any = record
        for step, rest in outer:
            if type(parent) is not dict or rest in parent or step not in parent:
                break
            parent = parent[step]
        else:
            if type(parent) is dict:
                parent[name] = value
                return
        set_field(record, path, value)

    return set_quickly


def unset_field(record: dict[str, Any], path: Path) -> bool:
    """Remove a field, and tell whether it was there. Objects that become empty stay. Elements of arrays stay."""
    place = _place(record, path)
    if place is None or not isinstance(place[0], dict):
        return False
    del place[0][place[1]]
    return True


def leaves(value: Any) -> Iterator[Any]:
    """Yield all that is neither object nor array in a value, however deep, in no order."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, _OBJECTS):
            pending.extend(each.values())
        elif isinstance(each, _ARRAYS):
            pending.extend(each)
        else:
            yield each


def _find(path: Path, rests: Path | None, record: Any) -> Any:
    value = record
    for name in path:
        if not isinstance(value, dict):
            break
        value = value.get(name, MISSING)
    else:
        if value is not MISSING:
            return value
    place = _place(record, path, rests)
    return MISSING if place is None else place[0][place[1]]


def _rests(path: Path) -> Path:
    """Return for each name of a path what begins with it, as one name with dots."""
    return tuple(accumulate(reversed(path), lambda rest, name: f"{name}.{rest}"))[::-1]


def _place(record: Any, path: Path, rests: Path | None = None) -> tuple[Any, Any] | None:
    """
    Return the object or array that holds a field, and its name or index there; None when it is not there.

    @param rests: L{_rests} of the path, if they are known.
    """
    value, last, place = record, len(path) - 1, None
    for index, name in enumerate(path):
        if isinstance(value, _OBJECTS):
            # Innermost wins: what is found along the names comes before a name with dots further out.
            rest = rests[index] if rests else ".".join(path[index:])
            if rest in value:
                place = (value, rest)
            if index == last:
                return place
            if name not in value:
                return place or _behind_dots(value, path[index:])
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and len(name) <= 9 and int(name) < len(value):
            if index == last:
                return value, int(name)
            value = value[int(name)]
        else:
            break
    return place


def _behind_dots(value: Any, path: Path) -> tuple[Any, Any] | None:
    """
    Return the place of a field behind a name with dots: the shortest that is there. No other is tried after it, so that
    no record takes long.
    """
    name = path[0]
    for end in range(1, len(path) - 1):
        name = f"{name}.{path[end]}"
        if name in value:
            return _place(value[name], path[end + 1 :])
    return None


def _element(array: Any, path: Path) -> Any:
    found = get_field(array, path[-1:]) if isinstance(array, list) else MISSING
    if found is MISSING:
        raise _no_place(path)
    return found


def _no_place(path: Path) -> FieldError:
    return FieldError(f"{'.'.join(path[:-1])} has no place for a field {path[-1]!r}: it is no object.")
