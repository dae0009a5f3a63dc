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
from webhookrx.query.texts import text_of
from webhookrx.query.thorough import MOST_WORK, Thorough
from webhookrx.query.tree import And, Everything, Exists, Node, Not, Or, Term, terms_of

#: Tells whether a record matches.
Matching: TypeAlias = Callable[[Mapping[str, Any]], bool]

_SHORT: Final = 2048
_FEW: Final = 32
"""Characters of a text, and elements of an array, that are looked at for each term anew."""


class _NotQuick(Exception):
    """A term came to a text that is too long, or to too many of them."""


def compile_tree(node: Node) -> Matching:
    """
    Return what tells whether a record matches a tree. It raises L{webhookrx.query.thorough.QueryTooCostly} or
    L{webhookrx.linear_regex.RegexTooCostly} when that would take longer than a second or two.
    """
    terms = [term for term in terms_of(node) if isinstance(term, Term)]
    if any(term.path is None for term in terms) or _SHORT * sum(term.predicate.cost for term in terms) > MOST_WORK:
        return lambda record: Thorough(record).matches(node)
    parts = [_compile(part) for part in (node.operands if isinstance(node, And) else (node,))]

    def matches(record: Mapping[str, Any]) -> bool:
        try:
            for part in parts:
                if not part(record):
                    return False
        except _NotQuick:
            return Thorough(record).matches(node)
        return True

    return matches


def _compile(node: Node) -> Matching:
    match node:
        case Term():
            positive = _term(node)
            return _negated(positive) if node.negated else positive
        case Exists():
            get = getter(node.path)
            return lambda record: get(record) is not MISSING
        case Not():
            return _negated(_compile(node.operand))
        case And():
            return _all([_compile(operand) for operand in node.operands])
        case Or():
            return _any([_compile(operand) for operand in node.operands])
        case Everything():
            return lambda record: True


def _term(term: Term) -> Matching:
    assert term.path is not None, "all fields are looked at thoroughly"
    holds, get = term.predicate.holds, getter(term.path)

    def matches(record: Mapping[str, Any]) -> bool:
        value = get(record)
        if isinstance(value, str) and len(value) <= _SHORT:
            return holds(value)
        if value is MISSING:
            return False
        if isinstance(value, list | tuple):
            if len(value) > _FEW:
                raise _NotQuick
            return any(map(holds, map(_short_text, value)))
        return holds(_short_text(value))

    return matches


def _short_text(value: Any) -> str:
    if isinstance(value, str | msgspec.Raw):
        if len(value) > _SHORT:
            raise _NotQuick
    elif isinstance(value, Mapping | list | tuple):
        raise _NotQuick
    return text_of(value)


def _negated(matching: Matching) -> Matching:
    return lambda record: not matching(record)


def _all(parts: list[Matching]) -> Matching:
    if len(parts) == 2:
        first, second = parts
        return lambda record: first(record) and second(record)

    def matches(record: Mapping[str, Any]) -> bool:
        for part in parts:  # noqa: SIM110  # all() with a generator takes twice as long
            if not part(record):
                return False
        return True

    return matches


def _any(parts: list[Matching]) -> Matching:
    if len(parts) == 2:
        first, second = parts
        return lambda record: first(record) or second(record)

    def matches(record: Mapping[str, Any]) -> bool:
        for part in parts:  # noqa: SIM110
            if part(record):
                return True
        return False

    return matches
