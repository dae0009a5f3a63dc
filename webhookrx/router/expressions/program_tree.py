"""
The syntax tree of a program.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from webhookrx.diagnostics import Position


class Node(msgspec.Struct, frozen=True, gc=False):
    """A part of a program. Its position is that of its most telling token, such as an operator."""

    position: Position


class Literal(Node, frozen=True, gc=False):
    """A text, a number, C{true}, C{false} or C{null}."""

    value: str | int | float | bool | None


class Name(Node, frozen=True, gc=False):
    """The record's C{log} or C{meta}, or a local variable."""

    name: str


class MemberAccess(Node, frozen=True, gc=False):
    """C{of.name} and C{of[key]}; without a key, C{of[]}, the place behind the last element of a list."""

    of: Expression
    key: Expression | None


class Unary(Node, frozen=True, gc=False):
    """C{not} or C{-}, and its operand."""

    operator: str
    operand: Expression


class BinaryOp(Node, frozen=True, gc=False):
    """
    Operands with an operator between each two, all of one precedence. One node for all, so that a long condition is
    no deep one.
    """

    first: Expression
    rest: tuple[tuple[str, Position, Expression], ...]


class Conditional(Node, frozen=True, gc=False):
    """C{condition ? yes : no}"""

    condition: Expression
    yes: Expression
    no: Expression


class Default(Node, frozen=True, gc=False):
    """C{value ?: other}: the value if it is true; it is evaluated once."""

    value: Expression
    other: Expression


class Slice(Node, frozen=True, gc=False):
    """C{of[first..last]}; either end may be left out."""

    of: Expression
    first: Expression | None
    last: Expression | None


class Interpolation(Node, frozen=True, gc=False):
    """A text with macros in it: literals, and the fields of macros."""

    parts: tuple[Expression, ...]


class TupleOf(Node, frozen=True, gc=False):
    """C{(a, b)}"""

    elements: tuple[Expression, ...]


class ListOf(Node, frozen=True, gc=False):
    """C{[a, b]}"""

    elements: tuple[Expression, ...]


class ObjectOf(Node, frozen=True, gc=False):
    """
    C{{"name": value}}

    @ivar members: name, value, and whether the member is left out when the value is missing or C{null}.
    """

    members: tuple[tuple[Expression, Expression, bool], ...]


class Call(Node, frozen=True, gc=False):
    """C{name(a, b, option=c)}"""

    name: str
    arguments: tuple[Expression, ...]
    options: tuple[tuple[str, Position, Expression], ...]


class Exit(Node, frozen=True, gc=False):
    """C{drop} or C{done} within an expression."""

    keep: bool


Expression: TypeAlias = (
    "Literal | Name | MemberAccess | Slice | Unary | BinaryOp | Conditional | Default | Interpolation | TupleOf"
    " | ListOf | ObjectOf | Call | Exit"
)


def start(expression: Expression) -> Position:
    """Return the position of the beginning of an expression; its own may be that of an operator in it."""
    while True:
        if isinstance(expression, BinaryOp):
            expression = expression.first
        elif isinstance(expression, (MemberAccess, Slice)):
            expression = expression.of
        elif isinstance(expression, Conditional):
            expression = expression.condition
        elif isinstance(expression, Default):
            expression = expression.value
        else:
            return expression.position


class FilterStatement(Node, frozen=True, gc=False):
    """An expression as a statement: the message is dropped unless it is true."""

    expression: Expression


class Assign(Node, frozen=True, gc=False):
    """C{target = value}, or with another operator of assignment."""

    target: Expression
    operator: str
    value: Expression


class If(Node, frozen=True, gc=False):
    """Conditions with their blocks, and the block of C{else}."""

    arms: tuple[tuple[Expression, Block], ...]
    otherwise: Block


class Case(Node, frozen=True, gc=False):
    """
    C{case value:}, C{case first..last:}, or C{default:}, which has no value.

    @ivar target: the index of its first statement in the body of the switch.
    """

    value: Expression | None
    last: Expression | None
    target: int


class Switch(Node, frozen=True, gc=False):
    """C{switch (value) { … }}: its cases, and all statements; each case falls through to the next C{break}."""

    value: Expression
    cases: tuple[Case, ...]
    body: Block


class Break(Node, frozen=True, gc=False):
    """C{break}: ends the innermost block."""


class End(Node, frozen=True, gc=False):
    """C{drop} or C{done}."""

    keep: bool


Statement: TypeAlias = "FilterStatement | Assign | If | Switch | Break | End"
Block: TypeAlias = "tuple[Statement, ...]"
