"""
Functions that convert values, addresses among them, and tell their types.
"""

from __future__ import annotations

import uuid
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Final

import msgspec

from webhookrx.intake.json_body import PayloadError, parse_strict_json
from webhookrx.message.fields import MISSING
from webhookrx.message.macros import NANOSECONDS
from webhookrx.router.expressions.function import Function, text_argument
from webhookrx.router.expressions.moments import Moment
from webhookrx.router.expressions.run import CALL, ELEMENT, MAX_INTEGER, MIN_INTEGER, SHORT, OperationError, Run
from webhookrx.router.expressions.values import (
    ADDRESSES,
    LISTS,
    NETWORKS,
    OBJECTS,
    Rows,
    Table,
    as_number,
    as_text,
    decoded,
    ipv4_address,
    json_text,
    long_text,
    stored,
    text_number,
    truth,
)

_HALF: Final = 0.5
_JSON_BYTE: Final = 6
_JSON_VALUE: Final = 120
"""Units of a byte of JSON that is read, and of a value in it."""

_LONGEST_INTEGER: Final = 4096


def _bool(_: Run, value: Any) -> bool:
    return truth(value)


def _int(run: Run, value: Any) -> int:
    kind = type(value)
    if kind is Moment:
        return int(value.nanoseconds)
    if kind is str:
        return _integer_text(run, value)
    number = int(value) if kind is bool else as_number(value)
    if number is None:
        raise OperationError("The argument is no number.")
    if not MIN_INTEGER <= number <= MAX_INTEGER:
        raise OperationError("The integer has more than 64 bits.")
    if type(number) is int:
        return number
    # Halves away from zero.
    whole = int(abs(number) + _HALF) if abs(number) < 2**52 else int(abs(number))
    return whole if number > 0 else -whole


def _integer_text(run: Run, text: str) -> int:
    run.spend(min(len(text), _LONGEST_INTEGER) * 10)
    digits = text.lstrip(" \t\r\n\f\v") if len(text) <= _LONGEST_INTEGER else ""
    if not digits.removeprefix("-" if digits[:1] == "-" else "+").isdecimal() or not digits.isascii():
        raise OperationError("The text is no integer.")
    number = int(digits)
    if not MIN_INTEGER <= number <= MAX_INTEGER:
        raise OperationError("The integer has more than 64 bits.")
    return number


def _double(run: Run, value: Any) -> float:
    kind = type(value)
    if kind is Moment:
        return float(value.nanoseconds / NANOSECONDS)
    if kind is str and len(value) > SHORT:
        run.spend(min(len(value), _LONGEST_INTEGER) * 10)
    number = int(value) if kind is bool else text_number(value) if kind is str else as_number(value)
    if number is None:
        raise OperationError("The argument is no number.")
    try:
        return float(number)
    except OverflowError:
        raise OperationError("The number is too large.") from None


def _bytes(run: Run, value: Any) -> bytes:
    if type(value) is bytes:
        return value
    return text_argument(run, value).encode("utf-8", "replace")


def _len(_: Run, value: Any) -> int:
    kind = type(value)
    if kind is str or kind is bytes or kind in LISTS or kind in OBJECTS:
        return len(value)
    raise OperationError("The argument is no text, list or object.")


def _read_json(run: Run, text: str) -> Any:
    if len(text) > run.limits.text:
        raise run.too_long()
    run.spend(len(text) * _JSON_BYTE + sum(map(text.count, "[{,:")) * _JSON_VALUE)
    try:
        read = parse_strict_json(text.encode("utf-8", "replace"))
    except PayloadError as error:
        raise OperationError(str(error).replace("The body", "The text")) from None
    return stored(run, read, fresh=False)


def _json(run: Run, value: Any = MISSING) -> dict[str, Any]:
    if type(value) is str:
        value = _read_json(run, value)
    made = {} if value is MISSING else stored(run, value, fresh=False)
    if type(made) is not dict:
        raise OperationError("The argument is no object, and no JSON text of one.")
    return made


def _list(run: Run, value: Any = MISSING) -> list[Any]:
    if type(value) is str:
        value = _read_json(run, value)
    made = [] if value is MISSING else stored(run, value, fresh=False)
    if type(made) is not list:
        raise OperationError("The argument is no list, and no JSON text of one.")
    return made


def _tuple(run: Run, value: Any = MISSING) -> tuple[Any, ...]:
    return tuple(_list(run, value))


def _parse_json(run: Run, value: Any) -> Any:
    return _read_json(run, text_argument(run, value))


def _keys(run: Run, value: Any) -> list[Any]:
    kind = type(value)
    if kind not in OBJECTS and kind not in LISTS:
        raise OperationError("The argument is no object and no list.")
    if len(value) > run.limits.elements:
        raise run.too_many("An object")
    made: list[Any] = stored(run, list(value) if kind in OBJECTS else list(range(len(value))), fresh=False)
    return made


def _dict_to_pairs(constants: tuple[Any, ...]) -> Any:
    if not all(isinstance(each, str) for each in constants):
        raise OperationError("The names of a pair are two texts.")
    key, member = constants

    def pairs(run: Run, value: Any) -> list[Any]:
        if type(value) not in OBJECTS:
            raise OperationError("The argument is no object.")
        if len(value) * 3 > run.limits.elements:
            raise run.too_many("A list")
        run.spend(len(value) * 3 * ELEMENT)
        made: list[Any] = stored(run, [{key: name, member: each} for name, each in value.items()], fresh=False)
        return made

    return pairs


_TYPES: Final[dict[type, tuple[str, ...]]] = {
    str: ("string",),
    bytes: ("bytes",),
    bool: ("boolean",),
    int: ("integer",),
    float: ("double",),
    msgspec.Raw: ("double",),
    list: ("list", "sequence"),
    Rows: ("list", "sequence"),
    tuple: ("tuple", "sequence"),
    dict: ("dict", "mapping"),
    Table: ("dict", "mapping"),
    type(None): ("null",),
    Moment: ("datetime",),
    IPv4Address: ("ip",),
    IPv6Address: ("ip",),
    IPv4Network: ("subnet",),
    IPv6Network: ("subnet",),
}
_TYPE_NAMES: Final = ("object", *dict.fromkeys(name for names in _TYPES.values() for name in names))


def _istype(constants: tuple[Any, ...]) -> Any:
    name = constants[0]
    if name not in _TYPE_NAMES:
        hint = {"int": " Write integer.", "bool": " Write boolean.", "json": " Write dict."}.get(name, "")
        raise OperationError(f"There is no type of that name; there are {', '.join(_TYPE_NAMES)}.{hint}")
    return lambda _, value: name == "object" or name in _TYPES.get(type(value), ())


def _repr(run: Run, value: Any) -> str:
    kind = type(value)
    if kind is Moment:
        return f"datetime({value})"
    if kind is bytes:
        return f'bytes("{decoded(run, value)}")'
    if kind is str:
        long_text(run, value)
        run.spend(len(value) * 4)
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return long_text(run, f'"{escaped}"')
    return as_text(run, value)


def _uuid(run: Run) -> str:
    run.spend(CALL * 2)
    return str(uuid.uuid4())


def _vars(run: Run) -> Any:
    there = {name: run.locals[name] for name in run.declared if name in run.locals}
    return stored(run, there, fresh=False)


DATA_FUNCTIONS: Final = (
    Function(
        "string",
        "value",
        "The value as text: `null` as `null`, objects and lists as JSON, a moment as seconds since the epoch.",
        as_text,
    ),
    Function("int", "value", "The value as integer: a fraction is rounded, a moment is nanoseconds.", _int),
    Function("double", "value", "The value as number with a fraction; a moment is seconds.", _double),
    Function("bool", "value", "Whether the value counts as true.", _bool),
    Function("bytes", "text", "The bytes of a text; stored, they are a text of Base64.", _bytes),
    Function(
        "istype",
        'value, "type"',
        "Whether it is a `string`, `integer`, `double`, `boolean`, `null`, `dict`, `list`, `tuple`, `bytes`, "
        "`datetime`, `ip` or `subnet`; `mapping`, `sequence` and `object` are several of them.",
        _istype,
        2,
        2,
        constants=range(1, 2),
    ),
    Function("len", "value", "The number of characters, bytes, elements or members.", _len),
    Function("keys", "object", "The names of its members, or the indices of a list, as a list.", _keys),
    Function("dict", "value", "The object in a JSON text, or a copy of one; `dict()` is an empty one.", _json, 0, 1),
    Function("json", "value", "Another name of `dict`.", _json, 0, 1),
    Function("list", "value", "The list in a JSON text, or a copy of one; `list()` is an empty one.", _list, 0, 1),
    Function("json_array", "value", "Another name of `list`.", _list, 0, 1),
    Function("tuple", "value", "The same as a tuple, which can't be changed.", _tuple, 0, 1),
    Function("parse_json", "text", "The value of a JSON text, whatever it is.", _parse_json),
    Function("format_json", "value", "The value as JSON text.", json_text),
    Function(
        "dict_to_pairs",
        'object, "key", "value"',
        'A list of objects, one for each member: `{"key": name, "value": member}`.',
        _dict_to_pairs,
        3,
        3,
        constants=range(1, 3),
    ),
    Function("repr", "value", "The value in the syntax of a program.", _repr),
    Function("vars", "", "The variables that are declared and set, as an object.", _vars, 0, 0),
    Function("uuid", "", "A new UUID, version 4.", _uuid, 0, 0),
    Function("uuid4", "", "Another name of `uuid`.", _uuid, 0, 0),
)


_LONGEST: Final = 64
"""Characters of an address or a network."""


def _ip(run: Run, value: Any) -> IPv4Address | IPv6Address:
    if type(value) in ADDRESSES:
        found: IPv4Address | IPv6Address = value
        return found
    text = text_argument(run, value)
    run.spend(CALL * 2)
    try:
        if len(text) > _LONGEST or "%" in text:
            raise ValueError
        return IPv6Address(text) if ":" in text else ipv4_address(text)
    except ValueError:
        raise OperationError("The text is no address.") from None


def _subnet(run: Run, value: Any) -> IPv4Network | IPv6Network:
    if type(value) in NETWORKS:
        found: IPv4Network | IPv6Network = value
        return found
    text = text_argument(run, value)
    run.spend(CALL * 4)
    address, slash, mask = text.partition("/")
    try:
        if len(text) > _LONGEST or "%" in text or (slash and not mask):
            raise ValueError
        if ":" in address:
            return IPv6Network((IPv6Address(address), int(mask) if slash else 128), strict=False)
        bits = mask if "." in mask else int(mask) if slash else 32
        return IPv4Network((ipv4_address(address), bits), strict=False)
    except ValueError:
        raise OperationError('The text is no network, such as "192.0.2.0/24".') from None


ADDRESS_FUNCTIONS: Final = (
    Function("ip", "text", "The address in a text, for `in`; stored, it is that text again.", _ip),
    Function("subnet", "text", "The network in a text, such as `192.0.2.0/24`, for `in`.", _subnet, folds=True),
)
