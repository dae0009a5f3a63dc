"""
Why a record matches a query, or does not: the terms that decide, and the values of their fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias

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


class Explanation(msgspec.Struct, frozen=True, omit_defaults=True):
    """
    Why a record matches or does not.

    @ivar matched: None when that depends on fields that are not known.
    @ivar deciding: the terms that made the record match, or kept it from matching: of an C{AND} the first part that
        fails, of an C{OR} all parts. Empty for the empty query.
    @ivar unknown: the fields that would decide, in the order of the query; empty when it is known.
    """

    matched: bool | None
    deciding: tuple[DecidingTerm, ...] = ()
    unknown: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.matched is None:
            return f"may match: {', '.join(self.unknown)} unknown"
        verdict = "matches" if self.matched else "doesn't match"
        return f"{verdict}: {'; '.join(map(str, self.deciding))}" if self.deciding else verdict


#: Returns which of a record's unknown fields a field may be; for C{@ANY} all of them.
UnknownFields: TypeAlias = Callable[[str], tuple[str, ...]]


def explain(query: Query, record: Mapping[str, Any], unknown: UnknownFields = lambda field: ()) -> Explanation:
    """
    Return whether a record matches a query, and the terms that decided.

    The terms quote values of the record: don't log them where those may be secret.
    """
    return _explain(query.tree, record, unknown, under_not=False)


def _explain(node: Node, record: Mapping[str, Any], unknown: UnknownFields, under_not: bool) -> Explanation:
    match node:
        case Term() | Exists():
            return _explain_term(node, record, unknown(node.field), under_not)
        case Not():
            inner = _explain(node.operand, record, unknown, not under_not)
            return inner if inner.matched is None else msgspec.structs.replace(inner, matched=not inner.matched)
        case And() | Or():
            decisive = isinstance(node, Or)
            parts = [_explain(operand, record, unknown, under_not) for operand in node.operands]
            decided = next((part for part in parts if part.matched is decisive), None)
            if decided is not None:
                return decided
            fields = tuple(dict.fromkeys(field for part in parts for field in part.unknown))
            if fields:
                return Explanation(None, (), fields)
            return Explanation(not decisive, tuple(term for part in parts for term in part.deciding))
        case Everything():
            return Explanation(True)


def _explain_term(
    term: Term | Exists, record: Mapping[str, Any], unknown: tuple[str, ...], under_not: bool
) -> Explanation:
    if unknown and term.field != ANY:
        return Explanation(None, (), unknown)
    matched = compile_tree(term)(record, Work(MOST_WORK))
    # Another field can't undo a match of any field.
    if unknown and not (matched and isinstance(term, Term) and not term.negated):
        return Explanation(None, (), unknown)
    text = f"NOT {term.source}" if under_not else term.source
    return Explanation(matched, (DecidingTerm(text, term.column, term.field, _found(term, record)),))


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
