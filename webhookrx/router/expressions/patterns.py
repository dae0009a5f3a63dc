"""
Regular expressions and globs of programs, run by RE2 in time proportional to the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from webhookrx.regex import LinearRegex, spans_of
from webhookrx.router.expressions.function import Function, text_argument
from webhookrx.router.expressions.run import ELEMENT, OPERATION, OperationError, Run
from webhookrx.router.expressions.values import as_number, as_text, long_text

MAX_SIZE: Final = 2_000
"""Instructions of RE2 that an expression may become."""

_GROUP: Final = re.compile(r"\\([0-9]{1,3})")


class _CompiledRegex:
    """
    A compiled regular expression, for texts as bytes.

    @ivar groups: number and key of each group: its name, or its number as text.
    @raise OperationError: the pattern does not compile, or is too large.
    """

    def __init__(self, pattern: str, *, ignore_case: bool = False, captures: bool = True) -> None:
        """
        @param captures: groups are needed.
        """
        try:
            linear = LinearRegex(pattern, ignore_case=ignore_case)
        except ValueError as error:
            raise OperationError(str(error)) from None
        self._bare = linear.bare
        if self._bare.programsize > MAX_SIZE:
            raise OperationError("The regular expression is too large; large repetitions make it so.")
        self._whole = linear.compiled if captures else linear.bare
        self._cost = linear.cost
        self._of_groups = linear.per_group_byte if captures else 0
        self._spans = spans_of(self._bare, whole=False)
        names = {number: name for name, number in self._whole.groupindex.items()}
        self.groups = [(number, names.get(number, str(number))) for number in range(1, self._whole.groups + 1)]

    def matches(self, run: Run, text: str) -> bool:
        """
        Tell whether the expression matches somewhere in a text.

        @raise OperationError: the text is too long for the expression.
        """
        spans = self._spans(self._raw(run, text))
        return bool(spans) and spans[0][0] >= 0  # type: ignore[index]  # not None

    def first(self, run: Run, text: str) -> Any:
        """
        Return the first match, or None.

        @raise OperationError: the text is too long for it.
        """
        raw = self._raw(run, text)
        spans = self._spans(raw)
        if not spans or spans[0][0] < 0:
            return None
        return self._with_groups(run, raw, *spans[0])

    def all(self, run: Run, text: str) -> tuple[bytes, Iterator[Any]]:
        """
        Return the text as bytes, and all matches that don't overlap; between characters, never within one.

        @raise OperationError: the text is too long for the expression. The iterator raises it when no work is left.
        """
        raw = self._raw(run, text)
        cost, end = self._cost, len(raw)

        def found() -> Iterator[Any]:
            last = None
            for each in self._bare.finditer(raw):
                # RE2's binding for Python finds an empty match at the end twice.
                if each.span() == last:
                    continue
                last, behind = each.span(), end - each.end()
                # The search for the next match is paid for with the text, but for bytes that are read again.
                run.spend(_MATCH + cost.per_byte * (behind if cost.ahead is None else min(behind, cost.ahead)))
                if not (each.start() == each.end() < end and raw[each.start()] & 0xC0 == 0x80):
                    yield self._with_groups(run, raw, each.start(), each.end()) if self._of_groups else each

        return raw, found()

    def _with_groups(self, run: Run, raw: bytes, start: int, end: int) -> Any:
        """Return the match that begins there, with its groups."""
        run.spend(_MATCH + self._of_groups * (end - start))
        # What is behind the end is still seen by anchors.
        return self._whole.search(raw, start, end)

    def _raw(self, run: Run, text: str) -> bytes:
        if len(text) > run.limits.text:
            raise run.too_long()
        raw = text.encode("utf-8", "replace")
        # What is short is paid for by the operation.
        units = len(raw) * self._cost.per_byte
        if units > OPERATION:
            run.spend(units)
        return raw


_MATCH: Final = 1600
"""Units of a match with groups."""


def matcher(pattern: str) -> Callable[[Run, Any], bool]:
    """
    Return a function that tells whether an expression matches somewhere in a value. It raises L{OperationError} for an
    object or a list.

    @raise OperationError: the pattern does not compile.
    """
    matches = _CompiledRegex(pattern, captures=False).matches

    def matched(run: Run, value: Any) -> bool:
        if type(value) is str:
            return matches(run, value)
        if as_number(value) is None:
            raise OperationError("A regular expression is matched against a text or a number.")
        return matches(run, as_text(run, value))

    return matched


def _regexp_search(
    constants: tuple[Any, ...], *, keep_zero: bool = False, list_mode: bool = False
) -> Callable[[Run, Any], Any]:
    expression = _CompiledRegex(_one(constants))
    groups = expression.groups
    if keep_zero or not groups:
        groups = [(0, "0"), *groups]

    def search(run: Run, value: Any) -> Any:
        found = expression.first(run, text_argument(run, value))
        if found is None:
            return [] if list_mode else {}
        texts = [(name, found.group(number)) for number, name in groups]
        run.spend(len(texts) * ELEMENT + sum(len(text or b"") for _, text in texts))
        if list_mode:
            return [None if text is None else text.decode("utf-8", "replace") for _, text in texts]
        return {name: text.decode("utf-8", "replace") for name, text in texts if text is not None}

    return search


def _one(constants: tuple[Any, ...]) -> str:
    if not isinstance(constants[0], str):
        raise OperationError("The pattern is one text.")
    return constants[0]


def _regexp_subst(constants: tuple[Any, ...], **options: bool) -> Callable[[Run, Any, Any], str]:
    everywhere, with_groups = options.get("global", False), options.get("groups", True)
    expression = _CompiledRegex(_one(constants), ignore_case=options.get("ignorecase", False), captures=with_groups)

    def substitute(run: Run, value: Any, replacement: Any) -> str:
        raw, matches = expression.all(run, text_argument(run, value))
        parts = _parts(run, text_argument(run, replacement), len(expression.groups) if with_groups else -1)
        pieces: list[bytes] = []
        end = size = 0
        for found in matches:
            filled = [part if isinstance(part, bytes) else _group(found, part) for part in parts]
            size += sum(map(len, filled))
            if size > run.limits.text:
                raise run.too_long()
            run.spend(len(filled) * ELEMENT + sum(map(len, filled)))
            pieces += [raw[end : found.start()], *filled]
            end = found.end()
            if not everywhere:
                break
        return long_text(run, b"".join([*pieces, raw[end:]]).decode("utf-8", "replace"))

    return substitute


def _group(found: Any, number: int) -> bytes:
    """Return the text of a group; of one that took no part, the reference to it."""
    text: bytes | None = found.group(number)
    return b"\\%d" % number if text is None else text


def _parts(run: Run, replacement: str, groups: int) -> list[bytes | int]:
    """
    Return a replacement as bytes and numbers of groups.

    @param groups: number of groups; -1 when a backslash has no meaning.
    @raise OperationError: the replacement is too long for references to groups.
    """
    if groups < 0 or "\\" not in replacement:
        return [replacement.encode("utf-8", "replace")]
    if len(replacement) > _LONGEST_REPLACEMENT:
        raise OperationError(f"A replacement with groups is longer than {_LONGEST_REPLACEMENT} characters.")
    run.spend(len(replacement) * 10)
    parts: list[bytes | int] = []
    end = 0
    for found in _GROUP.finditer(replacement):
        if int(found[1]) > groups:
            continue
        parts.append(replacement[end : found.start()].encode("utf-8", "replace"))
        parts.append(int(found[1]))
        end = found.end()
    return [*parts, replacement[end:].encode("utf-8", "replace")]


_LONGEST_REPLACEMENT: Final = 4096


def _glob_match(constants: tuple[Any, ...]) -> Callable[[Run, Any], bool]:
    patterns = constants[0] if isinstance(constants[0], tuple) else constants
    # A period at the beginning is matched by a period only, and not by nothing before one.
    for_period = [pattern for pattern in patterns if pattern[:1] not in _WILDCARDS]
    expression = _globs(patterns)
    hidden = _globs(for_period) if for_period else None

    def matches(run: Run, value: Any) -> bool:
        text = text_argument(run, value)
        if text[:1] == ".":
            return hidden is not None and hidden.matches(run, text)
        return expression.matches(run, text)

    return matches


_WILDCARDS: Final = ("*", "?", "[")


def _globs(patterns: Sequence[str]) -> _CompiledRegex:
    return _CompiledRegex("(?s)^(?:" + "|".join(map(_as_regex, patterns)) + r")\Z", captures=False)


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
        constants=range(1, 2),
    ),
    Function(
        "regexp_subst",
        'text, "pattern", new, global=false, ignorecase=false, groups=true',
        r"The text with `new` for the first match, or for all. `\1` in `new`, which is `\\1` in quotes, is the text of "
        r"a group, unless `groups=false`. `utf8` and `jit` change nothing.",
        _regexp_subst,
        3,
        3,
        {"global": bool, "ignorecase": bool, "groups": bool, "utf8": bool, "jit": bool},
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
