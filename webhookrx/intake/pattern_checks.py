"""
What is wrong with path patterns, found when they are loaded and not at the first request.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import re2  # type: ignore[import-untyped]

from webhookrx.intake.path_patterns import LinearSet, PathPattern, compile_pattern
from webhookrx.intake.pattern_samples import ParsedPattern
from webhookrx.message.macros import is_hard_macro

_SAMPLES: Final = 160
_ENOUGH: Final = 16
"""Examples of a pattern that are tried, and how many of them it must match to tell us anything."""

# RE2 may let a name come twice. An escaped bracket and a character class hold no group.
_GROUP: Final = re.compile(
    r"\\. | \[ \^? \]? (?: \\. | [^\]\\] )* \] | \( \? P? < (?P<name> [^<>=!)]+ ) >", re.VERBOSE | re.DOTALL
)


#: A star behind a single slash, and all in which one is something else.
_STAR: Final = re.compile(r"\\. | \[ \^? \]? (?: \\. | [^\]\\] )* \] | // | / (?P<star> \* )", re.VERBOSE | re.DOTALL)

#: What a path may hold (RFC 3986 §3.3), but for what stands in patterns.
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9._~!&',;=:@%/-]+")


SYNTAX: Final = "syntax"
REPEATED_GROUP: Final = "repeated-group"
HARD_MACRO: Final = "hard-macro"
NOT_LINEAR: Final = "not-linear"
NO_SLASH: Final = "no-slash"
INVISIBLE: Final = "invisible"
GLOB: Final = "glob"
HIDDEN: Final = "hidden"
"""Kinds of problems."""


@dataclass(frozen=True, slots=True)
class PatternProblem:
    """
    One finding.

    @ivar index: of the pattern, from 0.
    @ivar kind: L{SYNTAX} and so on.
    @ivar text: one sentence that quotes the pattern. It counts other patterns from 1, as people do.
    """

    index: int
    kind: str
    text: str


_Said: TypeAlias = tuple[str, str]
"""The kind of a problem, and its sentence."""


class PatternCheck(NamedTuple):
    """
    All findings.

    @ivar errors: what makes a pattern unusable; or, by the kind L{NOT_LINEAR}, usable only by who takes the risk.
    @ivar warnings: what is allowed but probably not meant.
    """

    errors: tuple[PatternProblem, ...]
    warnings: tuple[PatternProblem, ...]


def check_patterns(patterns: Sequence[str]) -> PatternCheck:
    """
    Look for patterns that can't be used, or that a hostile path makes run for ever, and for those that do nothing.

    @return: errors and warnings, each in the order of the patterns.
    """
    errors: list[PatternProblem] = []
    usable: dict[int, PathPattern] = {}
    for index, pattern in enumerate(patterns):
        try:
            compiled = compile_pattern(pattern)
        except ValueError as error:
            problems = [_repeated_group(pattern) or (SYNTAX, f"{_quoted(pattern)} does not compile: {error}.")]
        else:
            problems = _group_problems(pattern, compiled)
            if not problems:
                usable[index] = compiled
                problems = _slow(pattern, compiled)
        errors.extend(PatternProblem(index, *problem) for problem in problems)
    warnings = [PatternProblem(index, *said) for index, said in _Warnings(patterns, usable).in_order()]
    return PatternCheck(tuple(errors), tuple(warnings))


def health_path_problem(path: str) -> str | None:
    """Return what is wrong with a path at which load balancers ask for health; None when it is one."""
    if not path.startswith("/"):
        return f"{_quoted(path)} is not a path; it begins with a slash, such as /healthz."
    if not _PLAIN_PATH.fullmatch(path):
        return f"{_quoted(path)} is not one path: it takes no pattern and no query, such as /healthz."
    return None


def _repeated_group(pattern: str) -> _Said | None:
    names = [found["name"] for found in _GROUP.finditer(pattern) if found["name"]]
    for name in names:
        if names.count(name) > 1:
            text = f"{_quoted(pattern)} has more than one group {_quoted(name)}; each group needs a name of its own."
            return REPEATED_GROUP, text
    return None


def _group_problems(pattern: str, compiled: PathPattern) -> list[_Said]:
    # C{re} refuses a repeated name itself, and knows better what is a group.
    repeated = _repeated_group(pattern) if compiled.linear is not None else None
    problems = [] if repeated is None else [repeated]
    problems.extend(
        (
            HARD_MACRO,
            f"{_quoted(pattern)} has a group {_quoted(name)}, which is a hard macro; only the receiver sets it.",
        )
        for name, _ in compiled.groups
        if is_hard_macro(name)
    )
    names = [name for name, _ in compiled.groups]
    if repeated is None and len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        problems.append((REPEATED_GROUP, f"{_quoted(pattern)} has more than one group that sets {_quoted(name)}."))
    return problems


def _slow(pattern: str, compiled: PathPattern) -> list[_Said]:
    if compiled.linear is not None:
        return []
    text = "can't run on RE2, but on Python's re, where a hostile path may hold up everything before it needs a token."
    return [(NOT_LINEAR, f"{_quoted(pattern)} {text}")]


class _Warnings:
    """Goes through the usable patterns in order, with what is known of the earlier ones."""

    def __init__(self, patterns: Sequence[str], usable: dict[int, PathPattern]) -> None:
        self._patterns = patterns
        self._usable = usable
        self._linear = LinearSet([(index, found) for index, found in usable.items() if found.linear is not None])
        self._index_of: dict[str, int] = {}
        self._universal: int | None = None

    def in_order(self) -> list[tuple[int, _Said]]:
        warnings: list[tuple[int, _Said]] = []
        for index, compiled in self._usable.items():
            pattern = self._patterns[index]
            parsed = _parsed(pattern)
            said = self._never_matches(compiled, parsed) or _glob(pattern) or self._hidden(index, compiled, parsed)
            if said is not None:
                warnings.append((index, (said[0], f"{_quoted(pattern)} {said[1]}")))
            self._index_of.setdefault(pattern, index)
            if self._universal is None and parsed is not None and parsed.is_universal():
                self._universal = index
        return warnings

    def _never_matches(self, compiled: PathPattern, parsed: ParsedPattern | None) -> _Said | None:
        if compiled.linear is not None and not _may_begin_with_slash(compiled):
            return NO_SLASH, "can never match: every path begins with '/'."
        if parsed is not None and parsed.asks_for_invisible():
            text = "can never match: a path holds visible ASCII characters only, the others come percent-encoded."
            return INVISIBLE, text
        return None

    def _hidden(self, index: int, compiled: PathPattern, parsed: ParsedPattern | None) -> _Said | None:
        text = self._hiding(index, compiled, parsed)
        return None if text is None else (HIDDEN, text)

    def _hiding(self, index: int, compiled: PathPattern, parsed: ParsedPattern | None) -> str | None:
        same = self._index_of.get(self._patterns[index])
        if same is not None:
            return f"is hidden by pattern {same + 1}, which is the same."
        if self._universal is not None:
            return f"is hidden by {self._name(self._universal)}, which matches every path."
        if compiled.linear is None or parsed is None:
            return None
        plain_text = parsed.plain_text()
        if plain_text is not None:
            hiding = min(self._linear.all(plain_text.encode("ascii")), default=index)
            return f"is hidden by {self._name(hiding)}." if hiding < index else None
        sampled = self._hiding_samples(index, compiled, parsed)
        return None if sampled is None else f"appears to be hidden by {self._name(sampled)}."

    def _hiding_samples(self, index: int, compiled: PathPattern, parsed: ParsedPattern) -> int | None:
        """Find an earlier pattern that matches every example of this one."""
        hiding: set[int] | None = None
        tried = 0
        for sample in parsed.samples(_SAMPLES):
            path = sample.encode("utf-8", "replace")
            if not compiled.linear.fullmatch(path):
                continue
            tried += 1
            earlier = {hit for hit in self._linear.all(path) if hit < index}
            hiding = earlier if hiding is None else hiding & earlier
            if not hiding:
                return None
        return min(hiding) if hiding and tried >= _ENOUGH else None

    def _name(self, index: int) -> str:
        return f"pattern {index + 1}, {_quoted(self._patterns[index])}"


def _glob(pattern: str) -> _Said | None:
    """Return a warning of a star that repeats the slash in front of it, which nobody wants."""
    for found in _STAR.finditer(pattern):
        if found["star"]:
            meant = f"{pattern[: found.start('star')]}.{pattern[found.start('star') :]}"
            return GLOB, f"repeats the slash, and matches nothing below it: for anything below write {_quoted(meant)}."
    return None


def _parsed(pattern: str) -> ParsedPattern | None:
    try:
        return ParsedPattern(pattern)
    except ValueError:
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
