"""
A query: its text, what it says, and whether a record matches it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhookrx.query.matching import Deciding, compile_tree
from webhookrx.query.query_parser import parse_tree
from webhookrx.query.query_tree import Node, terms_of
from webhookrx.query.thorough import MOST_WORK
from webhookrx.work import Work


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
    @ivar decide: tells whether a record, nested dicts, matches, with what work may be done for it. Whatever JSON or
        YAML can hold, it raises nothing but L{webhookrx.query.thorough.QueryTooCostly} and
        L{webhookrx.regex.RegexTooCostly}, when it would take more.
    """

    __slots__ = ("decide", "text", "tree")

    def __init__(self, text: str, tree: Node) -> None:
        self.text = text
        self.tree = tree
        self.decide: Deciding = compile_tree(tree)

    def matches(self, record: Mapping[str, Any]) -> bool:
        """Tell the same, with as much work as all steps of a message may take."""
        return self.decide(record, Work(MOST_WORK))

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
