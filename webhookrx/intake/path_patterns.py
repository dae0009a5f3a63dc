"""
Path patterns: the first that matches the path of a request, and the text of its named groups.

Patterns are Python regular expressions that must match the whole raw path. They run on RE2, which reads a path once
whatever is in it; one set of all of them finds the match, so a thousand cost about as much as one.
The few that RE2 can't express (look-around, references to groups, atomic groups) run on C{re}.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote_to_bytes

import re2  # type: ignore[import-untyped]

from webhookrx.errors import BAD_ENCODING, RequestRefused
from webhookrx.message.macros import canonical
from webhookrx.regex import compile_linear, quiet_options, spans_of

_PERCENT: Final = ord("%")

_MOST_OF_SET: Final = 64_000
"""Instructions of the patterns of one set: RE2 compiles so many within some forty milliseconds, and has memory for
twice as many."""


class PathPattern(NamedTuple):
    """
    One compiled pattern.

    @ivar linear: the C{re2} expression; None when RE2 can't express the pattern.
    @ivar backtracking: the C{re} expression in its place, else None.
    @ivar groups: the macro that each named group sets, and the number of the group, in the order of the pattern.
    @ivar spans: L{spans_of} C{linear} for whole paths.
    """

    linear: Any
    backtracking: re.Pattern[str] | None
    groups: tuple[tuple[str, int], ...]
    spans: Callable[[bytes], Sequence[tuple[int, int]] | None] | None = None

    @property
    def size(self) -> int:
        """Instructions that RE2 has compiled it to; 0 where it has not."""
        return 0 if self.linear is None else int(self.linear.programsize)


def compile_pattern(pattern: str) -> PathPattern:
    """
    Compile a pattern for RE2, or for C{re} when RE2 can't express it.

    @raise ValueError: neither can compile it; the text says why.
    """
    linear = compile_linear(pattern)
    if linear is not None:
        return PathPattern(linear, None, _in_order(linear.groupindex), spans_of(linear))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            backtracking = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return PathPattern(None, backtracking, _in_order(backtracking.groupindex))


def has_group(pattern: str, name: str) -> bool:
    """
    Tell whether a pattern captures a value; also of one that can't be compiled, which is a mistake of its own.

    @param name: that of the macro which the group sets.
    """
    try:
        return any(group == name for group, _ in compile_pattern(pattern).groups)
    except ValueError:
        return True


def decode_groups(groups: Mapping[str, bytes]) -> dict[str, str]:
    """
    Percent-decode captured text as UTF-8. A plus sign and a percent sign without two hexadecimal digits stay.

    @raise RequestRefused: C{BAD_ENCODING}: it is not UTF-8 once decoded.
    """
    try:
        return {name: (unquote_to_bytes(raw) if _PERCENT in raw else raw).decode() for name, raw in groups.items()}
    except UnicodeDecodeError:
        raise RequestRefused(BAD_ENCODING) from None


#: The indices of some patterns, and a function that returns the positions in them of those that match a path, or None.
_Part: TypeAlias = tuple[tuple[int, ...], Callable[[bytes], list[int] | None]]


class LinearSet:
    """
    Patterns on RE2 that are matched in one pass over a path.

    @param members: patterns, each with its index in the caller's list.
    """

    __slots__ = ("_parts",)

    def __init__(self, members: Sequence[tuple[int, PathPattern]]) -> None:
        self._parts: list[_Part] = [part for group in _groups(members) for part in _parts(group)]

    def all(self, path: bytes) -> list[int]:
        """Return the indices of the patterns that match the whole path, in no order."""
        return [indices[hit] for indices, matching in self._parts for hit in matching(path) or ()]

    def first(self, path: bytes) -> int | None:
        """Return the lowest index of the patterns that match the whole path."""
        for indices, matching in self._parts:
            hits = matching(path)
            if hits:
                return indices[min(hits)]
        return None


class PathPatterns:
    """
    All path patterns of an endpoint, compiled once.

    @param patterns: in order; of those that match a path, the first wins.
    @raise ValueError: one does not compile.
    """

    __slots__ = ("_backtracking", "_linear", "_patterns")

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [compile_pattern(pattern) for pattern in patterns]
        members = list(enumerate(self._patterns))
        self._linear = LinearSet([member for member in members if member[1].linear is not None])
        self._backtracking = [
            (index, pattern.backtracking) for index, pattern in members if pattern.backtracking is not None
        ]

    def match(self, path: bytes) -> tuple[int, dict[str, bytes]] | None:
        """
        Find the first pattern that matches the whole path.

        @param path: raw, not percent-decoded, without the query.
        @return: the index of the pattern, and the raw text of each named group that took part; None when no pattern
            matches.
        """
        first = self._linear.first(path)
        for index, expression in self._backtracking:
            if first is not None and index > first:
                break
            backtracked = expression.fullmatch(path.decode("latin-1"))
            if backtracked is not None:
                taken = ((name, backtracked[number]) for name, number in self._patterns[index].groups)
                return index, {name: text.encode("latin-1") for name, text in taken if text is not None}
        if first is None:
            return None
        pattern = self._patterns[first]
        groups: dict[str, bytes] = {}
        if pattern.groups and pattern.spans is not None:
            spans = pattern.spans(path) or ()
            for name, number in pattern.groups:
                start, end = spans[number]
                if start >= 0:
                    groups[name] = path[start:end]
        return first, groups


def _in_order(groupindex: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    in_order = sorted(groupindex.items(), key=lambda group: group[1])
    return tuple((canonical(name), number) for name, number in in_order)


def _groups(members: Sequence[tuple[int, PathPattern]]) -> Iterator[list[tuple[int, PathPattern]]]:
    """Yield the members of each set, in order: RE2 would compile too large a set before it refuses it."""
    group: list[tuple[int, PathPattern]] = []
    size = 0
    for index, pattern in members:
        if group and size + pattern.size > _MOST_OF_SET:
            yield group
            group, size = [], 0
        group.append((index, pattern))
        size += pattern.size
    if group:
        yield group


def _parts(members: Sequence[tuple[int, PathPattern]]) -> list[_Part]:
    """
    Build one set, or as few as RE2's memory limit lets through, in order. A pattern too large even for a set of its own
    is matched by its own expression, which RE2 can also run with next to no memory.
    """
    together = re2.Set.FullMatchSet(quiet_options())
    try:
        for _, pattern in members:
            together.Add(pattern.linear.pattern)
        together.Compile()
    except re2.error:
        if len(members) == 1:
            index, pattern = members[0]
            return [((index,), lambda path: [0] if pattern.linear.fullmatch(path) else None)]
        middle = len(members) // 2
        return _parts(members[:middle]) + _parts(members[middle:])
    return [(tuple(index for index, _ in members), together.Match)]
