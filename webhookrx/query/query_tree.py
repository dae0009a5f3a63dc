"""
The syntax tree of a query, and the tree as text and as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec

from webhookrx.message.fields import Path
from webhookrx.query.predicates import IN, OPERATORS, Predicate
from webhookrx.query.query_lexer import written, written_field

ANY: Final = "@ANY"


class Term(msgspec.Struct, frozen=True):
    """
    A field, an operator and a value.

    @ivar field: such as C{label.site}; L{ANY} for all fields.
    @ivar path: the names of the field; None for all fields.
    @ivar operator: such as C{=*}, or L{IN}.
    @ivar value: the right side; for C{IN} with commas.
    @ivar predicate: the question to each text of the field.
    @ivar source: the term as it was written.
    @ivar column: the place of its field, from 1.
    @ivar values: those of C{IN}.
    """

    field: str
    path: Path | None
    operator: str
    value: str
    predicate: Predicate
    source: str
    column: int
    values: tuple[str, ...] = ()

    @property
    def negated(self) -> bool:
        """Whether the term is true where its predicate does not hold."""
        return self.operator != IN and OPERATORS[self.operator].negated


class Exists(msgspec.Struct, frozen=True):
    """True of a record that has the field, whatever its value."""

    field: str
    path: Path
    source: str
    column: int


class Not(msgspec.Struct, frozen=True):
    """True where its operand is not."""

    operand: Node


class And(msgspec.Struct, frozen=True):
    """True where all operands are: two or more, none an C{And}."""

    operands: tuple[Node, ...]


class Or(msgspec.Struct, frozen=True):
    """True where any operand is: two or more, none an C{Or}."""

    operands: tuple[Node, ...]


class Everything(msgspec.Struct, frozen=True):
    """The empty query."""


Node: TypeAlias = "Term | Exists | Not | And | Or | Everything"


def terms_of(node: Node) -> Iterator[Term | Exists]:
    """Yield the terms of a tree, from left to right."""
    if isinstance(node, Term | Exists):
        yield node
    elif isinstance(node, Not):
        yield from terms_of(node.operand)
    elif isinstance(node, And | Or):
        for operand in node.operands:
            yield from terms_of(operand)


def format_tree(node: Node) -> str:
    """
    Return a tree as one line, with parentheses wherever C{AND}, C{OR} and C{NOT} meet. The line is an equivalent query,
    unless it is too long for one.
    """
    match node:
        case Term():
            field = ANY if node.path is None else written_field(node.path)
            value = f"({', '.join(map(written, node.values))})" if node.operator == IN else written(node.value)
            return f"{field} {node.operator} {value}"
        case Exists():
            return f"{written_field(node.path)} EXISTS"
        case Not():
            return f"NOT {_operand(node.operand)}"
        case And() | Or():
            word = " AND " if isinstance(node, And) else " OR "
            return word.join(map(_operand, node.operands))
        case Everything():
            return ""


def plain_tree(node: Node) -> dict[str, Any]:
    """Return a tree as objects and lists for JSON; C{{}} for the empty query."""
    match node:
        case Term():
            value = list(node.values) if node.operator == IN else node.value
            return {"field": node.field, "operator": node.operator, "value": value, "column": node.column}
        case Exists():
            return {"field": node.field, "operator": "EXISTS", "column": node.column}
        case Not():
            return {"not": plain_tree(node.operand)}
        case And():
            return {"and": [plain_tree(operand) for operand in node.operands]}
        case Or():
            return {"or": [plain_tree(operand) for operand in node.operands]}
        case Everything():
            return {}


def _operand(node: Node) -> str:
    text = format_tree(node)
    return f"({text})" if isinstance(node, And | Or) else text
