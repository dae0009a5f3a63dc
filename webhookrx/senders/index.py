"""
An index of the senders that a request may belong to, by the names of its headers, query parameters and members, so that
few definitions are compared with each request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from webhookrx.query.query_tree import And, Exists, Node, Or, Term
from webhookrx.senders.conditions import Conditions

_COMMON: Final = 1_000
"""How many would have to have a name for it to be as bad a lead as those that requests of all kinds have."""

_COMMON_HEADERS: Final = frozenset(
    (b"accept", b"authorization", b"content-encoding", b"content-length", b"content-type", b"host", b"user-agent")
)
_COMMON_KEYS: Final = frozenset(("action", "data", "event", "id", "message", "name", "status", "time", "type")) | {
    *("created", "created_at", "host", "labels", "level", "object", "payload", "project", "sender", "severity"),
    *("source", "state", "subject", "text", "timestamp", "title", "updated_at", "url", "user", "version"),
}

Names: TypeAlias = frozenset[Any]
"""Names of which one must be there."""


class Index:
    """
    For each alternative, a header, parameter or member that it requires, or a few of which it requires one. A header is
    preferred, since a body may have to be parsed; of several names the one that fewest alternatives use.

    @param alternatives: in the order in which they win. The rank of one is its place in it.
    @ivar first_by_body: the lowest rank that is not found by a header.
    """

    def __init__(self, alternatives: Sequence[Conditions]) -> None:
        self._by_header: dict[bytes, list[int]] = {}
        self._by_parameter: dict[str, list[int]] = {}
        self._by_key: dict[str, list[int]] = {}
        self._others: list[int] = []
        headers = _Costs(_COMMON_HEADERS, (name for alternative in alternatives for name in alternative.header_names))
        keys = _Costs(_COMMON_KEYS, (name for alternative in alternatives for name in alternative.body_keys))
        by_body = []
        for rank, alternative in enumerate(alternatives):
            header, key = headers.cheapest(_header_choices(alternative)), keys.cheapest(_key_choices(alternative, keys))
            if header is not None and (key is None or headers.of(header) < _COMMON):
                _add(self._by_header, header, rank)
                continue
            by_body.append(rank)
            if key is not None:
                _add(self._by_key, key, rank)
            elif alternative.parameters:
                _add(self._by_parameter, [alternative.parameters[0][0]], rank)
            else:
                self._others.append(rank)
        self.first_by_body = by_body[0] if by_body else len(alternatives)

    def by_headers(self, names: Iterable[bytes]) -> list[int]:
        """Return the ranks of all that are found by the names of headers, lowest first; some may be in it twice."""
        ranks: list[int] = []
        for header in self._by_header.keys() & names:
            ranks += self._by_header[header]
        ranks.sort()
        return ranks

    def by_body(self, members: Mapping[str, Any] | None, query: Mapping[str, Any]) -> list[int]:
        """
        Return the ranks of all others that may hold, lowest first; some may be in it twice.

        @param members: of the object; None when there is no object. The number of lookups is bounded by the names of
            the index.
        @param query: the parameters.
        """
        ranks: list[int] = []
        if members is not None:
            for key in self._by_key.keys() & members.keys():
                ranks += self._by_key[key]
            ranks += self._others
        for name in self._by_parameter.keys() & query.keys() if query else ():
            ranks += self._by_parameter[name]
        ranks.sort()
        return ranks


class _Costs:
    """Counts the alternatives that a name leads to."""

    def __init__(self, common: Iterable[Any], used: Iterable[Any]) -> None:
        self._uses = Counter(used)
        self._uses.update(dict.fromkeys(common, _COMMON))

    def of(self, names: Names) -> int:
        """Return what it costs to go by a few names of which one must be there."""
        return sum(self._uses[name] or 1 for name in names)

    def cheapest(self, choices: Iterable[Names]) -> Names | None:
        """Return the names that cost least; None when there is no choice."""
        return min(choices, key=lambda names: (self.of(names), sorted(names)), default=None)


def _add(found: dict[Any, list[int]], names: Iterable[Any], rank: int) -> None:
    for name in names:
        found.setdefault(name, []).append(rank)


def _header_choices(alternative: Conditions) -> list[Names]:
    choices = [frozenset({name}) for name, _ in alternative.headers]
    return [*choices, alternative.any_header] if alternative.any_header else choices


def _key_choices(alternative: Conditions, costs: _Costs) -> list[Names]:
    choices: list[Names] = [frozenset({name}) for name in alternative.body_keys]
    needed = None if alternative.query is None else _needed(alternative.query.tree, costs)
    return choices if needed is None else [*choices, needed]


def _needed(node: Node, costs: _Costs) -> Names | None:
    """Return names of members of which an object must have one for a query to match it; None when there are none."""
    match node:
        case Term() if node.negated or node.path is None:
            return None
        case Term(path=path) | Exists(path=path) if path is not None:
            # A name with dots is looked up as one, too.
            return frozenset((path[0], ".".join(path)))
        case And():
            needed = [_needed(operand, costs) for operand in node.operands]
            return costs.cheapest([names for names in needed if names is not None])
        case Or():
            alternatives = [_needed(operand, costs) for operand in node.operands]
            if any(names is None for names in alternatives):
                return None
            return frozenset().union(*(names for names in alternatives if names is not None))
    return None


def header_search(names: Iterable[bytes]) -> Callable[[bytes], list[bytes]]:
    """
    Return what finds the names of some headers in header lines, in their order. It is twice as fast as to take out all
    names, since most headers are given up at their first differing letter.

    @param names: in lower case, as the lines are to be; each line begins behind a line feed.
    """
    tree: dict[int, Any] = {}
    for name in names:
        inner = tree
        for letter in name + b":":
            inner = inner.setdefault(letter, {})
    # Without any name it finds nothing.
    return re.compile(b"\n(" + _expression(tree) + b"):" if tree else b"(?!)").findall


def _expression(tree: dict[int, Any]) -> bytes:
    """Return what matches the names in a tree of their letters, without the colon that ends each."""
    alternative = []
    while len(tree) == 1:
        ((letter, tree),) = tree.items()
        alternative.append(letter)
    begin = b"".join(re.escape(bytes((letter,))) for letter in alternative if letter != _END)
    if not tree:
        return begin
    choices = (b"" if letter == _END else re.escape(bytes((letter,))) + _expression(tree[letter]) for letter in tree)
    return begin + b"(?:" + b"|".join(choices) + b")"


_END: Final = ord(":")
