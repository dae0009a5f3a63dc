"""
Why a record matches a query or does not: the terms that decided, and the values of their fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from webhookrx.message.escapes import escape
from webhookrx.message.fields import MISSING, get_field, leaves
from webhookrx.query.query import MOST_WORK, Query, compared_text, compared_texts, compile_tree
from webhookrx.query.query_tree import ANY, And, Everything, Exists, Node, Not, Or, Term
from webhookrx.work import Work

_MANY: Final = 5
_LONG: Final = 80
"""Values of a field that are shown, and characters of each."""


class DecidingTerm(msgspec.Struct, frozen=True):
    """
    A term that decided.

    @ivar text: the term as it was written, with C{NOT} before it if it is negated.
    @ivar column: the place of its field in the query, from 1.
    @ivar field: C{@ANY} for all fields.
    @ivar found: the first texts of the field, shortened; for C{@ANY}, those for which the operator holds. None when the
        field is missing.
    """

    text: str
    column: int
    field: str
    found: tuple[str, ...] | None

    def __str__(self) -> str:
        return f"{self.text} ({self._state()})"

    def _state(self) -> str:
        if self.found is None:
            return "missing"
        if not self.found:
            return "no field is" if self.field == ANY else "is an empty list"
        texts = ", ".join(escape(text) or "empty" for text in self.found)
        return f"a field is {texts}" if self.field == ANY else f"is {texts}"


class Explanation(msgspec.Struct, frozen=True):
    """
    Why a record matches or does not.

    @ivar deciding: the terms that made the record match, or kept it from matching: of an C{AND} the first part that
        fails, of an C{OR} all parts. Empty for the empty query.
    """

    matched: bool
    deciding: tuple[DecidingTerm, ...]

    def __str__(self) -> str:
        verdict = "matches" if self.matched else "doesn't match"
        return f"{verdict}: {'; '.join(map(str, self.deciding))}" if self.deciding else verdict


def explain(query: Query, record: Mapping[str, Any]) -> Explanation:
    """
    Return whether a record matches a query, and the terms that decided.

    The terms quote values of the record: don't log them where those may be secret.
    """
    return Explanation(*_explain(query.tree, record, under_not=False))


def _explain(node: Node, record: Mapping[str, Any], under_not: bool) -> tuple[bool, tuple[DecidingTerm, ...]]:
    match node:
        case Term() | Exists():
            text = f"NOT {node.source}" if under_not else node.source
            return compile_tree(node)(record, Work(MOST_WORK)), (
                DecidingTerm(text, node.column, node.field, _found(node, record)),
            )
        case Not():
            matched, deciding = _explain(node.operand, record, not under_not)
            return not matched, deciding
        case And() | Or():
            deciding = ()
            decisive = isinstance(node, Or)
            for operand in node.operands:
                matched, own = _explain(operand, record, under_not)
                if matched is decisive:
                    return matched, own
                deciding += own
            return not decisive, deciding
        case Everything():
            return True, ()


def _found(term: Term | Exists, record: Mapping[str, Any]) -> tuple[str, ...] | None:
    if isinstance(term, Term) and term.path is None:
        return _short(filter(term.predicate.holds, map(compared_text, leaves(record))))
    assert term.path is not None
    value = get_field(record, term.path)
    return None if value is MISSING else _short(compared_texts(value))


def _short(texts: Iterable[str]) -> tuple[str, ...]:
    first = list(islice(texts, _MANY + 1))
    shown = [text if len(text) <= _LONG else text[: _LONG - 1] + "…" for text in first]
    return (*shown[:_MANY], "…") if len(shown) > _MANY else tuple(shown)
