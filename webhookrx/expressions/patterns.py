"""
Regular expressions and globs of a program, all run by RE2: its time is in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from webhookrx.expressions.function import Function, text_argument
from webhookrx.expressions.limits import LONG
from webhookrx.expressions.mistakes import Mistake
from webhookrx.expressions.run import Run
from webhookrx.expressions.values import as_text, long_text
from webhookrx.linear_regex import LinearRegex, compile_linear, spans_of

MAX_SIZE: Final = 2_000
"""Instructions of RE2 that an expression may become."""

MAX_WORK: Final = 2_000_000
"""
Instructions of an expression times bytes of the text. RE2 promises time in proportion to that, some 25 ns each at
worst, and can't be stopped; most expressions take a nanosecond or two for each byte.
"""

_MUCH_WORK: Final = 50_000
"""The same product, from which on there is a look at the clock first: a millisecond at worst."""

_GROUP: Final = re.compile(r"\\(?:([0-9])|(.))", re.DOTALL)


class _Regex:
    """
    A compiled regular expression, for texts as bytes.

    @ivar groups: number and key of each group: its name, or its number as text.
    @raise Mistake: it is none, or too large.
    """

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        try:
            LinearRegex(pattern, ignore_case=ignore_case)
        except ValueError as error:
            raise Mistake(str(error)) from None
        self._compiled = compile_linear(pattern, ignore_case=ignore_case)
        size = self._compiled.programsize
        if size > MAX_SIZE:
            raise Mistake("The regular expression is too large; large repetitions make it so.")
        self._most = MAX_WORK // max(size, 1)
        self._looks_from = _MUCH_WORK // max(size, 1)
        self._spans = spans_of(self._compiled, whole=False)
        names = {number: name for name, number in self._compiled.groupindex.items()}
        self.groups = [(number, names.get(number, str(number))) for number in range(1, self._compiled.groups + 1)]

    def matches(self, run: Run, text: str) -> bool:
        """
        Tell whether it matches somewhere.

        @raise Mistake: the text is too long for it.
        """
        spans = self._spans(self._raw(run, text))
        return bool(spans) and spans[0][0] >= 0  # type: ignore[index]  # not None

    def first(self, run: Run, text: str) -> Any:
        """
        Return the first match, or None.

        @raise Mistake: the text is too long for it.
        """
        return self._compiled.search(self._raw(run, text))

    def all(self, run: Run, text: str) -> tuple[bytes, Iterator[Any]]:
        """
        Return the text as bytes, and all matches that don't overlap; between characters, never within one.

        @raise Mistake: the text is too long for it; of the iterator: the time is over.
        """
        raw = self._raw(run, text)

        def found() -> Iterator[Any]:
            for each in self._compiled.finditer(raw):
                # One match may take as long as looking at all that follows.
                run.look()
                if not (each.start() == each.end() < len(raw) and raw[each.start()] & 0xC0 == 0x80):
                    yield each

        return raw, found()

    def _raw(self, run: Run, text: str) -> bytes:
        raw = text.encode("utf-8", "replace")
        if len(raw) > self._most:
            raise Mistake(f"The text is too long for this regular expression, which takes up to {self._most} bytes.")
        if len(raw) > LONG:
            run.spend(len(raw))
        elif len(raw) > self._looks_from:
            run.look()
        return raw


def matcher(pattern: str) -> Callable[[Run, Any], bool]:
    """
    Return what tells whether an expression matches somewhere in a value.

    @raise Mistake: it is no regular expression; of the function that is returned: the value is an object or a list.
    """
    matches = _Regex(pattern).matches

    def matched(run: Run, value: Any) -> bool:
        if type(value) is str:
            return matches(run, value)
        if type(value) in (dict, list):
            raise Mistake("A regular expression is matched against a text, and this is an object or a list.")
        return matches(run, as_text(run, value))

    return matched


def _regexp_search(
    constants: tuple[Any, ...], *, keep_zero: bool = False, list_mode: bool = False
) -> Callable[[Run, Any], Any]:
    expression = _Regex(_one(constants))
    groups = expression.groups
    if keep_zero or not groups:
        groups = [(0, "0"), *groups]

    def search(run: Run, value: Any) -> Any:
        found = expression.first(run, text_argument(run, value))
        if found is None:
            return [] if list_mode else {}
        texts = [(name, found.group(number)) for number, name in groups]
        if list_mode:
            return [_decoded(text) for _, text in texts]
        return {name: _decoded(text) for name, text in texts if text is not None}

    return search


def _decoded(text: bytes | None) -> str:
    return "" if text is None else text.decode("utf-8", "replace")


def _one(constants: tuple[Any, ...]) -> str:
    if not isinstance(constants[0], str):
        raise Mistake("The pattern is one text.")
    return constants[0]


def _regexp_subst(constants: tuple[Any, ...], **options: bool) -> Callable[[Run, Any, Any], str]:
    expression = _Regex(_one(constants), ignore_case=options.get("ignorecase", False))
    everywhere, with_groups = options.get("global", False), options.get("groups", False)

    def substitute(run: Run, value: Any, replacement: Any) -> str:
        raw, matches = expression.all(run, text_argument(run, value))
        parts = _parts(text_argument(run, replacement), len(expression.groups) if with_groups else -1)
        pieces: list[bytes] = []
        end = size = 0
        for found in matches:
            filled = [part if isinstance(part, bytes) else found.group(part) or b"" for part in parts]
            size += sum(map(len, filled))
            if size > run.limits.text:
                raise Mistake(f"A text is longer than {run.limits.text} characters.")
            pieces += [raw[end : found.start()], *filled]
            end = found.end()
            if not everywhere:
                break
        return long_text(run, b"".join([*pieces, raw[end:]]).decode("utf-8", "replace"))

    return substitute


def _parts(replacement: str, groups: int) -> list[bytes | int]:
    """
    Return a replacement as bytes and numbers of groups.

    @param groups: how many there are; -1 when a backslash is nothing but one.
    @raise Mistake: it is too long to be looked into.
    """
    if groups < 0 or "\\" not in replacement:
        return [replacement.encode("utf-8", "replace")]
    if len(replacement) > LONG:
        raise Mistake(f"A replacement with groups is longer than {LONG} characters.")
    parts: list[bytes | int] = []
    end = 0
    for found in _GROUP.finditer(replacement):
        parts.append(replacement[end : found.start()].encode("utf-8", "replace"))
        known = found[1] is not None and int(found[1]) <= groups
        parts.append(int(found[1]) if known else (found[2] or found[0]).encode("utf-8", "replace"))
        end = found.end()
    return [*parts, replacement[end:].encode("utf-8", "replace")]


def _glob_match(constants: tuple[Any, ...]) -> Callable[[Run, Any], bool]:
    patterns = constants[0] if isinstance(constants[0], tuple) else constants
    expression = _Regex("(?s)^(?:" + "|".join(map(_as_regex, patterns)) + r")\Z")
    return lambda run, value: expression.matches(run, text_argument(run, value))


_CLASS_SIGNS: Final = re.compile(r"[][^&]")
_GLOB: Final = re.compile(r"\[([!^]?)((?:\]|)[^\]\\]*)\]|(\*)|(\?)|\\?(.)", re.DOTALL)


def _as_regex(glob: str) -> str:
    """Return a glob of POSIX as a regular expression; wildcards don't match slashes, nor a period at the start."""

    def part(found: re.Match[str]) -> str:
        hidden = r"[^./]" if found.start() == 0 or glob[found.start() - 1] == "/" else "[^/]"
        if found[3]:
            return f"(?:{hidden}[^/]*)?" if hidden != "[^/]" else "[^/]*"
        if found[4]:
            return hidden
        if found[5] is not None:
            return re.escape(found[5])
        members = _CLASS_SIGNS.sub(r"\\\g<0>", found[2])
        return f"[{'^/' if found[1] else ''}{members}]"

    return _GLOB.sub(part, glob)


PATTERN_FUNCTIONS: Final = (
    Function(
        "regexp_search",
        'text, "pattern", keep_zero=false, list_mode=false',
        "The text of each group of the first match, by name or number; of the whole match when there are no groups.",
        _regexp_search,
        2,
        2,
        {"keep_zero": bool, "list_mode": bool},
        range(1, 2),
    ),
    Function(
        "regexp_subst",
        'text, "pattern", new, global=false, ignorecase=false, groups=false',
        r"The text with `new` for the first match, or for all; with `groups`, `\1` in `new` is the text of a group.",
        _regexp_subst,
        3,
        3,
        {"global": bool, "ignorecase": bool, "groups": bool},
        range(1, 2),
    ),
    Function(
        "glob_match",
        'text, "pattern"',
        "Whether a pattern with `*`, `?` and `[…]`, or one of a list, matches the whole text; `*` matches no slash.",
        _glob_match,
        2,
        2,
        constants=range(1, 2),
    ),
)
