"""
Whether a selector matches a router of which not everything is known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from webhookrx.query import Query, parse
from webhookrx.query.query_tree import ANY, And, Everything, Exists, Node, Not, Or, Term

METADATA: Final = ("hostname", "fqdn", "ip", "os", "arch", "version")
"""What a router says of its machine."""


class MayMatch(NamedTuple):
    """
    What is known of a match.

    @ivar matched: whether it matches; None when that can't be known.
    @ivar unknown: the fields that would decide, in the order of the query.
    """

    matched: bool | None
    unknown: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"may match: {', '.join(self.unknown)} unknown"


def may_match(query: Query, record: Mapping[str, Any], unknown: Collection[str]) -> MayMatch:
    """
    Tell whether a router matches.

    @param record: what is known of it: L{webhookrx.router.rules.router.Router.record}.
    @param unknown: those of L{METADATA} that are not known; what is neither known nor unknown is not there.
    """
    return _judge(query.tree, record, unknown)


def _judge(node: Node, record: Mapping[str, Any], unknown: Collection[str]) -> MayMatch:
    match node:
        case Term() | Exists():
            return _judge_term(node, record, unknown)
        case Not():
            matched, fields = _judge(node.operand, record, unknown)
            return MayMatch(None if matched is None else not matched, fields)
        case And() | Or():
            decisive = isinstance(node, Or)
            judged = [_judge(operand, record, unknown) for operand in node.operands]
            if any(each.matched is decisive for each in judged):
                return MayMatch(decisive)
            fields = tuple(dict.fromkeys(field for each in judged for field in each.unknown))
            return MayMatch(None, fields) if fields else MayMatch(not decisive)
        case Everything():
            return MayMatch(True)


def _judge_term(term: Term | Exists, record: Mapping[str, Any], unknown: Collection[str]) -> MayMatch:
    name = term.field.removeprefix("meta.").partition(".")[0]
    if name in unknown:
        return MayMatch(None, (name,))
    matched = parse(term.source).matches(record)
    if term.field == ANY and unknown and not (matched and isinstance(term, Term) and not term.negated):
        return MayMatch(None, tuple(each for each in METADATA if each in unknown))
    return MayMatch(matched)
