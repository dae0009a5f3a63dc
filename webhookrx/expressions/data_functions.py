"""
Functions that make values of others, and tell what they are.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from webhookrx.expressions.function import Function, text_argument
from webhookrx.expressions.limits import MAX_INTEGER, MIN_INTEGER
from webhookrx.expressions.mistakes import Mistake
from webhookrx.expressions.run import Run
from webhookrx.expressions.values import (
    as_number,
    as_text,
    checked_number,
    json_text,
    stored,
    text_number,
    truth,
)
from webhookrx.request.payload import PayloadError, parse_strict_json


def _bool(_: Run, value: Any) -> bool:
    return truth(value)


def _number(value: Any) -> int | float:
    if type(value) is bool:
        return int(value)
    number = text_number(value) if type(value) is str else as_number(value)
    if number is None:
        raise Mistake("The argument is no number.")
    return number


def _int(_: Run, value: Any) -> int:
    number = _number(value)
    if not MIN_INTEGER <= number <= MAX_INTEGER:
        raise Mistake("The integer has more than 64 bits.")
    return int(checked_number(int(number)))


def _double(_: Run, value: Any) -> float:
    try:
        return float(_number(value))
    except OverflowError:
        raise Mistake("The number is too large.") from None


def _len(_: Run, value: Any) -> int:
    if type(value) in (str, list, dict):
        return len(value)
    raise Mistake("The argument is no text, list or object.")


def _json(run: Run, value: Any = None) -> Any:
    if value is None:
        return {}
    if type(value) is not str:
        return stored(run, value, fresh=False)
    try:
        read = parse_strict_json(text_argument(run, value).encode("utf-8", "replace"))
    except PayloadError as error:
        raise Mistake(str(error).replace("The body", "The text")) from None
    return stored(run, read, fresh=False)


def _json_array(run: Run, value: Any = None) -> Any:
    made = [] if value is None else _json(run, value)
    if type(made) is not list:
        raise Mistake("The argument is no list.")
    return made


def _keys(run: Run, value: Any) -> list[Any]:
    if type(value) is not dict:
        raise Mistake("The argument is no object.")
    if len(value) > run.limits.elements:
        raise Mistake(f"An object has more than {run.limits.elements} elements.")
    made: list[Any] = stored(run, list(value), fresh=False)
    return made


def _istype(_: Run, value: Any, name: Any) -> bool:
    kinds: dict[type, tuple[str, ...]] = {
        str: ("string",),
        bool: ("boolean",),
        int: ("int", "integer"),
        float: ("double",),
        msgspec.Raw: ("double",),
        list: ("list", "json_array"),
        dict: ("dict", "json", "json_object"),
        type(None): ("null",),
    }
    return name in kinds.get(type(value), ())


def _flatten(run: Run, value: Any, *, separator: str = ".") -> dict[str, Any]:
    if type(value) is not dict:
        raise Mistake("The argument is no object.")
    flat: dict[str, Any] = {}
    characters = 0
    pending = [("", stored(run, value, fresh=False))]
    while pending:
        prefix, each = pending.pop()
        if type(each) is dict and each:
            # Names grow with depth: a few long ones above many members would make much of little.
            characters += (len(prefix) + len(separator)) * len(each)
            if characters > run.limits.text:
                raise Mistake(f"An object or a list has texts of more than {run.limits.text} characters.")
            pending.extend((prefix + separator + name, member) for name, member in reversed(each.items()))
        else:
            flat[prefix.removeprefix(separator)] = each
    run.spend(characters)
    return flat


DATA_FUNCTIONS: Final = (
    Function("string", "value", "The value as text; objects and lists as JSON.", as_text),
    Function("int", "value", "The value as integer; a fraction is cut off.", _int),
    Function("double", "value", "The value as number with a fraction.", _double),
    Function("bool", "value", "Whether the value counts as true.", _bool),
    Function(
        "istype",
        'value, "type"',
        "Whether it is a `string`, `int`, `double`, `boolean`, `null`, `dict` or `list`.",
        _istype,
        2,
        2,
    ),
    Function("len", "value", "The number of characters, elements or members.", _len),
    Function("keys", "object", "The names of its members, as a list.", _keys),
    Function("json", "value", "The value of a JSON text, or a copy; `json()` is an empty object.", _json, 0, 1),
    Function(
        "json_array", "value", "The same, which must be a list; `json_array()` is an empty one.", _json_array, 0, 1
    ),
    Function("format_json", "value", "The value as JSON text.", json_text),
    Function(
        "flatten",
        'object, separator="."',
        "The object with one level: names of inner ones are put together.",
        _flatten,
        options={"separator": str},
    ),
)
