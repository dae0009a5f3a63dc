"""
A query: its text, what it says, and whether a record matches it.
"""

from __future__ import annotations

from typing import NamedTuple

from webhookrx.query.matching import Matching, compile_tree
from webhookrx.query.parser import parse_tree
from webhookrx.query.tree import Node, terms_of


class FieldUse(NamedTuple):
    """
    A field that a query asks for.

    @ivar field: such as C{label.site}.
    @ivar column: where it stands, from 1.
    """

    field: str
    column: int


class Query:
    """
    What L{parse} returns.

    @ivar text: as it was written.
    @ivar tree: what it says.
    @ivar matches: tells whether a record, nested dicts, matches. Whatever JSON or YAML can hold,
        it raises nothing but L{webhookrx.query.thorough.QueryTooCostly} and L{webhookrx.linear_regex.RegexTooCostly},
        when it would take longer than a second or two.
    """

    __slots__ = ("matches", "text", "tree")

    def __init__(self, text: str, tree: Node) -> None:
        self.text = text
        self.tree = tree
        self.matches: Matching = compile_tree(tree)

    @property
    def fields(self) -> tuple[FieldUse, ...]:
        """The fields that it names, in order, with repetitions; not C{@ANY}."""
        return tuple(FieldUse(term.field, term.column) for term in terms_of(self.tree) if term.path is not None)

    def __repr__(self) -> str:
        return f"parse({self.text!r})"


def parse(text: str) -> Query:
    """
    Read a query. The empty one matches everything.

    @raise QueryError: it is none.
    """
    return Query(text, parse_tree(text))
