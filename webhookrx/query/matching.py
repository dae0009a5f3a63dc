"""
Whether a record matches, one record at a time: a tree as one function, with nothing left to decide but the values.

That is for records as they usually are. One that holds a long text, or many, where a term looks is left to
L{webhookrx.query.thorough}, which takes longer to begin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from webhookrx.message.fields import MISSING, getter
from webhookrx.query.query_tree import And, Everything, Exists, Node, Not, Or, Term, terms_of
from webhookrx.query.texts import bytes_of, compared_text
from webhookrx.query.thorough import Thorough, spend
from webhookrx.work import Work

#: Tells whether a record matches.
Matching: TypeAlias = Callable[[Mapping[str, Any]], bool]

#: The same, with what may be done.
Deciding: TypeAlias = Callable[[Mapping[str, Any], Work], bool]

_SHORT: Final = 2048
_FEW: Final = 32
"""Characters of a text, and elements of an array, that are looked at for each term anew."""


class _NotQuick(Exception):
    """A term came to a text that is too long, or to too many of them."""


def compile_tree(node: Node) -> Deciding:
    """
    Return what tells whether a record matches a tree. It raises L{webhookrx.query.thorough.QueryTooCostly} or
    L{webhookrx.regex.RegexTooCostly} when that would be more work than there is.
    """
    terms = [term for term in terms_of(node) if isinstance(term, Term)]
    if any(term.path is None for term in terms):
        return lambda record, work: Thorough(record, work).matches(node)
    parts = [_compile(part) for part in (node.operands if isinstance(node, And) else (node,))]
    cost = len(terms) * _TERM

    def matches(record: Mapping[str, Any], work: Work) -> bool:
        if cost > work.left:
            spend(work, cost)
        work.left -= cost
        try:
            for part in parts:
                if not part(record, work):
                    return False
        except _NotQuick:
            return Thorough(record, work).matches(node)
        return True

    return matches


_TERM: Final = 300
"""Units of a term, with a short text."""


def _compile(node: Node) -> Deciding:
    match node:
        case Term():
            positive = _term(node)
            return _negated(positive) if node.negated else positive
        case Exists():
            get = getter(node.path)
            return lambda record, work: get(record) is not MISSING
        case Not():
            return _negated(_compile(node.operand))
        case And():
            return _all([_compile(operand) for operand in node.operands])
        case Or():
            return _any([_compile(operand) for operand in node.operands])
        case Everything():
            return lambda record, work: True


def _term(term: Term) -> Deciding:
    assert term.path is not None, "all fields are looked at thoroughly"
    holds, get, cost = term.predicate.holds, getter(term.path), term.predicate.cost

    def matches(record: Mapping[str, Any], work: Work) -> bool:
        value = get(record)
        if isinstance(value, str) and len(value) <= _SHORT:
            if len(value) > _PAID:
                spend(work, bytes_of(value) * cost)
            return holds(value)
        if value is MISSING:
            return False
        if isinstance(value, list | tuple):
            if len(value) > _FEW:
                raise _NotQuick
            texts = list(map(_short_text, value))
            spend(work, sum(map(bytes_of, texts)) * cost)
            return any(map(holds, texts))
        text = _short_text(value)
        spend(work, bytes_of(text) * cost)
        return holds(text)

    return matches


_PAID: Final = 32
"""Characters that are paid for with the term."""


def _short_text(value: Any) -> str:
    if isinstance(value, str | msgspec.Raw):
        if len(value) > _SHORT:
            raise _NotQuick
    elif isinstance(value, Mapping | list | tuple):
        raise _NotQuick
    return compared_text(value)


def _negated(deciding: Deciding) -> Deciding:
    return lambda record, work: not deciding(record, work)


def _all(parts: list[Deciding]) -> Deciding:
    if len(parts) == 2:
        first, second = parts
        return lambda record, work: first(record, work) and second(record, work)

    def matches(record: Mapping[str, Any], work: Work) -> bool:
        for part in parts:  # noqa: SIM110  # all() with a generator takes twice as long
            if not part(record, work):
                return False
        return True

    return matches


def _any(parts: list[Deciding]) -> Deciding:
    if len(parts) == 2:
        first, second = parts
        return lambda record, work: first(record, work) or second(record, work)

    def matches(record: Mapping[str, Any], work: Work) -> bool:
        for part in parts:  # noqa: SIM110
            if part(record, work):
                return True
        return False

    return matches
