"""
Checks of path patterns, when they are loaded and not at the first request.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import re2  # type: ignore[import-untyped]

from webhookrx.diagnostics import Diagnostic, diagnose, quoted_short
from webhookrx.intake.path_patterns import LinearSet, PathPattern, compile_pattern
from webhookrx.message.macros import is_hard_macro
from webhookrx.regex import is_too_large, parsed_by_re

# RE2 may let a name come twice. An escaped bracket and a character class hold no group.
_GROUP: Final = re.compile(
    r"\\. | \[ \^? \]? (?: \\. | [^\]\\] )* \] | \( \? P? < (?P<name> [^<>=!)]+ ) >", re.VERBOSE | re.DOTALL
)


#: A star behind a single slash, and the other places of a slash or a star.
_STAR: Final = re.compile(r"\\. | \[ \^? \]? (?: \\. | [^\]\\] )* \] | // | / (?P<star> \* )", re.VERBOSE | re.DOTALL)

#: The characters of a path (RFC 3986 §3.3), without those of patterns but for the dot.
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9._~!&',;=:@%/-]+")


_LARGEST: Final = 175_000
"""Instructions of the largest pattern that RE2 compiles in its memory: it takes an eighth of a second, as does one that
it refuses for its size."""

_MOST_COMPARED: Final = 100_000_000
_MOST_AT_ONCE: Final = 10_000_000
"""Instructions times bytes of paths for finding out which are hidden, and of one path: one of them takes up to nine
nanoseconds, and other threads wait while one path is looked at."""

_Problem: TypeAlias = tuple[str, str]
"""The code of a diagnostic, and its sentence."""


def check_patterns(patterns: Sequence[str], most: int | None = None) -> list[Diagnostic]:
    """
    Look for patterns that can't be used, that a hostile path makes run for ever, or that do nothing: those that match
    no path, and those hidden by an earlier one, which is the same, matches every path, or matches the one path of a
    pattern without wildcards. The last is not told where it would take long.

    @param most: instructions of RE2 to which they may be compiled together; nothing behind the one that is too much is
        looked at. None for any number.
    @return: what makes patterns unusable, then what does nothing, each in the order of the patterns. The path of a
        diagnostic is the index of a pattern; its sentence quotes the pattern, and counts others from 1, as people do.
        C{path-not-linear} is for the operator to judge: the pattern works, but may be slow.
    """
    found: list[Diagnostic] = []
    usable: dict[int, PathPattern] = {}
    size = 0
    for index, pattern in enumerate(patterns):
        compiled: PathPattern | None = None
        try:
            compiled = compile_pattern(pattern)
        except ValueError as error:
            problems = [_repeated_group(pattern) or ("path-syntax", f"{_quoted(pattern)} does not compile: {error}.")]
        else:
            problems = _group_problems(pattern, compiled)
            if not problems:
                usable[index] = compiled
                problems = _slow(pattern, compiled)
        found.extend(diagnose(code, (index,), sentence) for code, sentence in problems)
        if most is None:
            continue
        size += _size(pattern, compiled)
        if size > most:
            sentence = (
                f"Paths have at most {most:,} instructions of RE2 together, and those up to {quoted_short(pattern)} "
                f"have {size:,}: a count such as {{1,200}} stands for as many copies."
            )
            return [*found, diagnose("paths-too-large", (index,), sentence)]
    return [*found, *_idle(patterns, usable)]


def _size(pattern: str, compiled: PathPattern | None) -> int:
    """Return how many instructions it has taken RE2 to compile a pattern, or to find out that it can't."""
    if compiled is not None and compiled.linear is not None:
        return compiled.size
    return _LARGEST if is_too_large(pattern) else 0


def health_path_problem(path: str) -> str | None:
    """Return why load balancers can't ask for health at a path; None when they can."""
    if not path.startswith("/"):
        return f"{_quoted(path)} is not a path; it begins with a slash, such as /healthz."
    if not _PLAIN_PATH.fullmatch(path):
        return f"{_quoted(path)} is not one path: it takes no pattern and no query, such as /healthz."
    return None


def _repeated_group(pattern: str) -> _Problem | None:
    names = [found["name"] for found in _GROUP.finditer(pattern) if found["name"]]
    for name in names:
        if names.count(name) > 1:
            text = f"{_quoted(pattern)} has more than one group {_quoted(name)}; each group needs a name of its own."
            return "path-repeated-group", text
    return None


def _group_problems(pattern: str, compiled: PathPattern) -> list[_Problem]:
    # C{re} refuses a repeated name itself, and is a better judge of groups.
    repeated = _repeated_group(pattern) if compiled.linear is not None else None
    problems = [] if repeated is None else [repeated]
    problems.extend(
        (
            "path-hard-macro",
            f"{_quoted(pattern)} has a group {_quoted(name)}, which is a hard macro; only the receiver sets it.",
        )
        for name, _ in compiled.groups
        if is_hard_macro(name)
    )
    names = [name for name, _ in compiled.groups]
    if repeated is None and len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        problems.append(
            ("path-repeated-group", f"{_quoted(pattern)} has more than one group that sets {_quoted(name)}.")
        )
    return problems


def _slow(pattern: str, compiled: PathPattern) -> list[_Problem]:
    if compiled.linear is not None:
        return []
    text = "can't run on RE2; on Python's re, a hostile path could block the receiver, even without a token."
    return [("path-not-linear", f"{_quoted(pattern)} {text}")]


def _idle(patterns: Sequence[str], usable: Mapping[int, PathPattern]) -> Iterator[Diagnostic]:
    """Yield what is wrong with patterns that do nothing, in their order."""
    nodes_of = {index: _nodes(patterns[index]) for index in usable}
    problems = {
        index: _never_matches(each, nodes_of[index]) or _glob(patterns[index]) for index, each in usable.items()
    }
    only = {index: _only_path(patterns[index], nodes_of[index]) for index in usable if problems[index] is None}
    hiding = _Hiding(usable, {index: path for index, path in only.items() if path is not None})
    index_of: dict[str, int] = {}
    universal: int | None = None
    for index in usable:
        pattern = patterns[index]
        problem = problems[index]
        if problem is None:
            if pattern in index_of:
                problem = "path-hidden", f"is hidden by pattern {index_of[pattern] + 1}, which is the same."
            elif universal is not None:
                problem = "path-hidden", f"is hidden by {_named(patterns, universal)}, which matches every path."
            elif (path := only[index]) is not None and (first := hiding.first(path)) < index:
                problem = "path-hidden", f"is hidden by {_named(patterns, first)}."
        if problem is not None:
            yield diagnose(problem[0], (index,), f"{_quoted(pattern)} {problem[1]}")
        index_of.setdefault(pattern, index)
        if universal is None and _is_universal(nodes_of[index]):
            universal = index


class _Hiding:
    """
    The patterns that match a path, those of one path apart: thousands of these are looked up, and not compared.

    @param usable: all patterns, by index.
    @param only: the path of those that match only that one.
    """

    def __init__(self, usable: Mapping[int, PathPattern], only: Mapping[int, bytes]) -> None:
        self._of_path: dict[bytes, int] = {}
        for index, path in only.items():
            if usable[index].linear is not None:
                self._of_path.setdefault(path, index)
        # Without a path to look at, RE2 need not compile them together.
        wild = [
            (index, each) for index, each in usable.items() if only and index not in only and each.linear is not None
        ]
        self._wild = LinearSet(wild)
        self._size = sum(each.size for _, each in wild)
        self._left = _MOST_COMPARED

    def first(self, path: bytes) -> int:
        """Return the lowest index of the patterns that match one of the paths."""
        known, units = self._of_path.get(path, sys.maxsize), len(path) * self._size
        if units > min(self._left, _MOST_AT_ONCE):
            return known
        self._left -= units
        return min((known, *self._wild.all(path)))


def _named(patterns: Sequence[str], index: int) -> str:
    return f"pattern {index + 1}, {_quoted(patterns[index])}"


_Nodes: TypeAlias = list[tuple[str, Any]]
"""The parsed form of a pattern in C{re}: operations and their arguments. Empty when C{re} can't parse it."""


def _nodes(pattern: str) -> _Nodes:
    return [(str(operation), argument) for operation, argument in parsed_by_re(pattern) or ()]


def _never_matches(compiled: PathPattern, nodes: _Nodes) -> _Problem | None:
    if compiled.linear is not None and not _may_begin_with_slash(compiled):
        return "path-without-slash", "can never match: every path begins with '/'."
    if any(operation == "LITERAL" and not "!" <= chr(argument) <= "~" for operation, argument in nodes):
        text = "can never match: a path holds visible ASCII characters only, the others come percent-encoded."
        return "path-invisible", text
    return None


def _only_path(pattern: str, nodes: _Nodes) -> bytes | None:
    """Return the one path that a pattern of visible characters matches; None when it is more than plain text."""
    if not nodes or _IGNORE_CASE.search(pattern) or any(operation != "LITERAL" for operation, _ in nodes):
        return None
    return bytes(argument for _, argument in nodes)


_IGNORE_CASE: Final = re.compile(r"\(\?[a-zA-Z]*i")


def _is_universal(nodes: _Nodes) -> bool:
    """Tell whether a pattern surely matches every path: C{/.*} and its like, in groups or anchored."""
    flat = _without_groups(nodes)
    if flat and flat[0] in _BEGINNING:
        del flat[0]
    if flat and flat[-1] in _END:
        del flat[-1]
    if flat and flat[0] == ("LITERAL", ord("/")):
        del flat[0]
    if len(flat) != 1 or flat[0][0] not in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return False
    least, most, inner = flat[0][1]
    return least == 0 and str(most) == "MAXREPEAT" and [str(operation) for operation, _ in inner] == ["ANY"]


_BEGINNING: Final = (("AT", "AT_BEGINNING"), ("AT", "AT_BEGINNING_STRING"))
_END: Final = (("AT", "AT_END"), ("AT", "AT_END_STRING"))


def _without_groups(nodes: Iterable[tuple[Any, Any]]) -> _Nodes:
    flat: _Nodes = []
    for operation, argument in nodes:
        if str(operation) == "SUBPATTERN":
            flat.extend(_without_groups(argument[3]))
        else:
            flat.append((str(operation), argument if str(operation) != "AT" else str(argument)))
    return flat


def _glob(pattern: str) -> _Problem | None:
    """Return a warning of a star that repeats the slash in front of it: a glob, not a regular expression."""
    for found in _STAR.finditer(pattern):
        if found["star"]:
            meant = f"{pattern[: found.start('star')]}.{pattern[found.start('star') :]}"
            return (
                "path-glob",
                f"repeats the slash, and matches nothing below it: for anything below write {_quoted(meant)}.",
            )
    return None


def _quoted(text: str) -> str:
    """Quote as written: C{repr} would double the backslashes, of which patterns are full."""
    return f'"{text}"' if text.isprintable() else repr(text)


def _may_begin_with_slash(compiled: PathPattern) -> bool:
    """Say whether a text that begins with a slash lies in the range of texts that the pattern can match."""
    try:
        least, greatest = compiled.linear.possiblematchrange(16)
    except re2.error:
        return True
    return bool(least < b"0" and greatest >= b"/")
