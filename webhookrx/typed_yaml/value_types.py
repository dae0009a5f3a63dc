"""
Types as msgspec describes them, the nodes that fit them, and plain text as a value of a type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import NODEFAULT, inspect

from webhookrx.message.message import Value
from webhookrx.typed_yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

NODES: Final[dict[Any, type[Node] | tuple[Any, ...]]] = {
    inspect.StrType: ScalarNode,
    inspect.IntType: ScalarNode,
    inspect.BoolType: ScalarNode,
    inspect.DictType: MappingNode,
    inspect.StructType: MappingNode,
    inspect.VarTupleType: SequenceNode,
}
WORDS: Final[dict[Any, str]] = {
    inspect.StrType: "a text",
    inspect.IntType: "a whole number",
    inspect.BoolType: "yes or no",
    inspect.DictType: "keys and values",
    inspect.StructType: "keys and values",
    inspect.VarTupleType: "a list",
}
"""The nodes that fit a kind of type, and its words for people."""


@cache
def shape_of(type: Any) -> Any:
    """Return the description of a type by msgspec."""
    return inspect.type_info(type)


@cache
def fields_of(cls: type[msgspec.Struct]) -> dict[str, inspect.Field]:
    """Return the fields of a type by their key in files."""
    return {field.encode_name: field for field in shape_of(cls).fields}


def bare(shape: Any) -> Any:
    """Return a type without its metadata."""
    return shape.type if isinstance(shape, inspect.Metadata) else shape


def default_of(field: inspect.Field) -> Any:
    """Return the default of a field; C{NODEFAULT} for a required one."""
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


def stand_in(shape: Any) -> Any:
    """Return an empty value of a type, in place of one that can't be read."""
    if isinstance(shape, inspect.StructType):
        given = {
            field.name: stand_in(bare(field.type)) if field.required else default_of(field) for field in shape.fields
        }
        return shape.cls(**given)
    if isinstance(shape, inspect.UnionType):
        members = [bare(member) for member in shape.types]
        return None if any(isinstance(each, inspect.NoneType) for each in members) else stand_in(members[0])
    if isinstance(shape, inspect.IntType):
        return 0
    empty: dict[Any, Callable[[], Any]] = {
        inspect.StrType: str,
        inspect.BoolType: bool,
        inspect.DictType: dict,
        inspect.VarTupleType: tuple,
    }
    make = empty.get(type(shape))
    return None if make is None else make()


_LONGEST_NUMBER: Final = 300
"""Characters; Python itself refuses to read whole numbers of more than 4,300 digits."""

_TRUTH: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}

_WHOLE: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_INT: Final = re.compile(r"([-+]?)0*([0-9]+)|0o([0-7]+)|0x([0-9a-fA-F]+)")
_FLOAT: Final = re.compile(r"([-+]?)0*([0-9]*)(?:\.([0-9]*))?(?:[eE]([-+]?[0-9]+))?")
_NO_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def whole_number(text: str) -> int | None:
    """Return a whole number in decimal; None for another text, or one with a needless 0."""
    return int(text) if _WHOLE.fullmatch(text) else None


def core_value(text: str) -> Value:
    """
    Return the value of plain text. A number with a fraction or an exponent keeps its digits.

    @raise ValueError: JSON has no such value; the error says so in one sentence.
    """
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in _TRUTH:
        return _TRUTH[text]
    if text[0] not in "-+.0123456789" or len(text) > _LONGEST_NUMBER:
        return text
    whole = _INT.fullmatch(text)
    if whole is not None:
        sign, decimal, octal, hexadecimal = whole.groups()
        if decimal is not None:
            return int(sign + decimal)
        return int(octal, 8) if octal is not None else int(hexadecimal, 16)
    if _NO_NUMBER.fullmatch(text):
        raise ValueError("Infinity and not-a-number can't be used; in quotes it is a text.")
    number = _FLOAT.fullmatch(text)
    if number is None or not (number[2] or number[3]):
        # JSON needs the zero of "0.5", the expression does not.
        return text if number is None or not re.search("[0-9]", text.lower().partition("e")[0]) else _raw(number)
    return _raw(number)


def _raw(number: re.Match[str]) -> msgspec.Raw:
    sign, whole, fraction, exponent = number.groups()
    text = f"{sign.replace('+', '')}{whole or '0'}"
    if fraction:
        text += f".{fraction}"
    return msgspec.Raw((text if exponent is None else f"{text}e{exponent}").encode())
