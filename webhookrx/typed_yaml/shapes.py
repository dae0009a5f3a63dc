"""
What msgspec knows of types, and what stands in for a value of one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import NODEFAULT, inspect

from webhookrx.typed_yaml.nodes import Mapping, Node, Scalar, Sequence

NODES: Final[dict[Any, type[Node] | tuple[Any, ...]]] = {
    inspect.StrType: Scalar,
    inspect.IntType: Scalar,
    inspect.BoolType: Scalar,
    inspect.DictType: Mapping,
    inspect.StructType: Mapping,
    inspect.VarTupleType: Sequence,
}
WORDS: Final[dict[Any, str]] = {
    inspect.StrType: "a text",
    inspect.IntType: "a whole number",
    inspect.BoolType: "yes or no",
    inspect.DictType: "keys and values",
    inspect.StructType: "keys and values",
    inspect.VarTupleType: "a list",
}
"""Kinds of types, what a node must be for them, and what they are for people."""


@cache
def shape_of(type: Any) -> Any:
    """Return what msgspec knows of a type."""
    return inspect.type_info(type)


@cache
def fields_of(cls: type[msgspec.Struct]) -> dict[str, inspect.Field]:
    """Return the fields of a type by their key in files."""
    return {field.encode_name: field for field in shape_of(cls).fields}


def bare(shape: Any) -> Any:
    """Return a shape without what is said about it."""
    return shape.type if isinstance(shape, inspect.Metadata) else shape


def default_of(field: inspect.Field) -> Any:
    """Return what a field holds when it is left out; C{NODEFAULT} when it can't be."""
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


def stand_in(shape: Any) -> Any:
    """Return a value of a type that stands in for one that can't be read."""
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
