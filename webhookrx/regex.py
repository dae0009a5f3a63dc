"""
Regular expressions in time proportional to any text: Python's syntax, run by RE2.

No pattern can make one hang. Look-around, references to groups and atomic groups, which RE2 lacks, do not compile here.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import re2  # type: ignore[import-untyped]

from webhookrx.errors import WebhookrxError
from webhookrx.work import PER_INSTRUCTION, Work
from webhookrx.yield_point import PIECE, yield_point

try:
    from re import _parser  # type: ignore[attr-defined]
except ImportError:  # pragma: no cover  # moved by a later Python: then any pattern may be costly
    _parser = None

# The differences between the two dialects. A backslash pair and a character class are matched whole, so that nothing in
# them is replaced.
_DIALECT: Final = re.compile(
    r"""
    (?P<octal> \\[1-7][0-7]{2} )            # the same in both
    | (?P<reference> \\[1-9] )              # to a group; RE2 reads \12 as octal
    | (?P<end> \\Z )                        # RE2 spells it \z
    | \\.
    | \[ \^? \]? (?: \\. | [^\]\\] )* \]
    | \{ , (?P<most> [0-9]* ) \}            # RE2 takes {,3} for plain text
    | (?P<named> \(\?P?<\w+> )             # RE2 captures it whatever its options say
    """,
    re.VERBOSE | re.DOTALL,
)

_MOST_WORK: Final = 100_000_000
"""Instructions of an expression times bytes of a text."""

_TOO_COSTLY: Final = "The text is too long for a regular expression of that size."

LONGEST_PATTERN: Final = 10_000
_MEMORY_LIMIT: Final = 1024 * 1024
"""
Characters of an expression in L{LinearRegex}, and bytes of its compiled form. RE2 forgets states that exceed them, and
is slow at once, not now and then.
"""


def quiet_options(*, ignore_case: bool = False, memory: int | None = None, captures: bool = True) -> Any:
    """
    Return options of RE2 that keep it from writing to standard error; its exceptions say it all.

    @param memory: bytes; None for RE2's default.
    @param captures: groups are needed; without, RE2 is faster.
    """
    options = re2.Options()
    options.log_errors = False
    options.never_capture = not captures
    options.case_sensitive = not ignore_case
    if memory is not None:
        options.max_mem = memory
    return options


def occurs_in(expression: Any, text: bytes, overlap: int) -> bool:
    """
    Tell whether a C{re2} expression occurs in a text, with a yield point after each piece.

    @param overlap: bytes of its longest match that is looked for.
    """
    for start in range(0, len(text), PIECE):
        if expression.search(text[start : start + PIECE + overlap]):
            return True
        yield_point()
    return False


def compile_linear(pattern: str, *, ignore_case: bool = False, memory: int | None = None, captures: bool = True) -> Any:
    """
    Return a compiled C{re2} expression; None when RE2 can't express the pattern, or not in this many bytes.
    """
    if any(found["reference"] for found in _DIALECT.finditer(pattern)):
        return None
    try:
        options = quiet_options(ignore_case=ignore_case, memory=memory, captures=captures)
        words = _in_re2_words if captures or r"\Q" in pattern else _without_names
        return re2.compile(_DIALECT.sub(words, pattern), options)
    except (re2.error, UnicodeEncodeError):
        return None


def is_too_large(pattern: str) -> bool:
    """Tell whether RE2 can't express a pattern for its size, which takes as long as the largest that it can express."""
    try:
        re2.compile(_DIALECT.sub(_in_re2_words, pattern), quiet_options())
    except re2.error as error:
        return b"too large" in error.args[0]
    except UnicodeEncodeError:
        pass
    return False


def _in_re2_words(found: re.Match[str]) -> str:
    if found["end"]:
        return r"\z"
    return found[0] if found["most"] is None else f"{{0,{found['most']}}}"


def _without_names(found: re.Match[str]) -> str:
    return "(" if found["named"] else _in_re2_words(found)


def spans_of(linear: Any, *, whole: bool = True) -> Callable[[bytes], Sequence[tuple[int, int]] | None]:
    """
    Return a function of a text, as bytes, that returns the spans of the match and of each group, the whole match first;
    -1 for a group that took no part. None, or spans of -1, when the C{re2} expression does not match.

    @param whole: match the whole text, not the first place where it matches.
    """
    expression, anchors = getattr(linear, "_regexp", None), getattr(re2, "_Anchor", None)
    if expression is None or anchors is None:
        find = linear.fullmatch if whole else linear.search
        groups = range(linear.groups + 1)

        def slowly(text: bytes) -> Sequence[tuple[int, int]] | None:
            found = find(text)
            return None if found is None else list(map(found.span, groups))

        return slowly
    # What these two stand on. They and their match objects are Python, and take four times as long.
    match, anchor = expression.Match, anchors.ANCHOR_BOTH if whole else anchors.UNANCHORED
    return lambda text: match(anchor, text, 0, len(text))


class RegexTooCostly(WebhookrxError):
    """A text is too long for an expression of that size; the text quotes neither."""


class LinearRegex:
    """
    An expression that is looked for anywhere in a text.

    RE2 takes a time in proportion to the text, but in the worst case also to the size of the expression, some ten
    nanoseconds for each of its instructions and each byte: C{(a?){1000}b} would take half a minute for a megabyte.
    Their product is bounded, so that a search takes about a second at most; a L{Work} sets a lower bound.

    @ivar pattern: as it was written.
    @ivar names: the named groups, in the order of the pattern.
    @ivar compiled: the C{re2} expression.
    @ivar bare: the same without groups, which is faster.
    @ivar cost: of C{bare}.
    @ivar per_group_byte: units of work for each byte of a match whose groups are needed.
    @ivar search: tells whether it matches somewhere in a text, or raises L{RegexTooCostly}.
    @raise ValueError: it does not compile; the text is one sentence.
    """

    __slots__ = (
        "_groups",
        "_spans",
        "bare",
        "compiled",
        "cost",
        "names",
        "pattern",
        "per_group_byte",
        "search",
    )

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        if len(pattern) > LONGEST_PATTERN:
            raise ValueError(f"The regular expression is longer than {LONGEST_PATTERN} characters.")
        self.compiled = compile_linear(pattern, ignore_case=ignore_case, memory=_MEMORY_LIMIT)
        if self.compiled is None:
            raise ValueError(_why_not(pattern))
        # Without groups RE2 has less to do, and more of it in one pass.
        self.bare = compile_linear(pattern, ignore_case=ignore_case, memory=_MEMORY_LIMIT, captures=False)
        self.pattern = pattern
        self._groups = tuple(sorted(self.compiled.groupindex.items(), key=lambda group: group[1]))
        self.names = tuple(name for name, _ in self._groups)
        self._spans = spans = spans_of(self.bare, whole=False)
        self.cost = cost_of(pattern, self.bare.programsize)
        self.per_group_byte: int = self.compiled.programsize * PER_INSTRUCTION
        longest = _MOST_WORK // max(1, self.compiled.programsize)

        def search(text: str) -> bool:
            raw = text.encode("utf-8", "replace")
            if len(raw) > longest:
                raise RegexTooCostly(_TOO_COSTLY)
            found = spans(raw)
            return bool(found) and found[0][0] >= 0  # type: ignore[index]  # not None

        # Selectors and conditions ask nothing else, thousands of times; a method would add a tenth to it.
        self.search = search

    def groups(self, text: str, work: Work) -> dict[str, str] | None:
        """
        Return the text of each named group that took part in the first match; None when there is no match.

        @raise TooMuchWork: the text is too long for this expression, with what is left.
        """
        work.spend(len(text))
        raw = text.encode("utf-8", "replace")
        work.spend(len(raw) * self.cost.per_byte)
        spans = self._spans(raw)
        if not spans or spans[0][0] < 0:
            return None
        start, end = spans[0]
        work.spend((end - start) * self.per_group_byte)
        # What is behind the end is still seen by anchors.
        found = self.compiled.search(raw, start, end)
        groups = {name: found.group(number) for name, number in self._groups}
        return {name: part.decode("utf-8", "replace") for name, part in groups.items() if part is not None}


def _why_not(pattern: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"The regular expression does not compile: {error}."
    return (
        "RE2 can't run this regular expression: look-around, references to groups, atomic groups and very large "
        "repetitions are not possible."
    )


def parsed_by_re(pattern: str) -> Any:
    """
    Return the parsed form of a pattern in C{re}: a sequence of pairs of an operation and its argument. None where C{re}
    can't parse the pattern, though RE2 may.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _parser.parse(pattern)
    except Exception:  # a syntax of RE2 alone, too many levels, or whatever a private parser may raise
        return None


# The cost of a search, from the parsed form. RE2 looks at a byte once, in a nanosecond or two, as long as it can keep
# all states of the expression. There may be as many as subsets of the places in it, and then each byte costs time for
# each instruction. An expression with few places that match more than one character can't have so many.

_FEW: Final = 8
"""Places that are no certain character, of which the subsets are few."""

_MOST_LITERALS: Final = 200

_PER_BYTE: Final = 3
"""Units of a byte where the states are few."""


class Cost(NamedTuple):
    """
    The cost of a search.

    @ivar per_byte: units of work for each byte of a text.
    @ivar ahead: most bytes read behind a match before it is known to be one; None for all.
    """

    per_byte: int
    ahead: int | None


def cost_of(pattern: str, size: int) -> Cost:
    """
    Return the cost of a search.

    @param size: instructions of the compiled expression.
    """
    worst = Cost(max(_PER_BYTE, size * PER_INSTRUCTION), None)
    parsed = parsed_by_re(pattern)
    if parsed is None:
        return worst
    places, literals = _count(parsed, repeated=False)
    few = places <= _FEW and literals <= _MOST_LITERALS
    return Cost(_PER_BYTE if few else worst.per_byte, _ahead(parsed))


def _count(sequence: Any, *, repeated: bool) -> tuple[int, int]:
    """
    Return how many places match several characters, and how many a single one.

    @param repeated: the sequence is within a repetition, where alternatives and optional parts are not certain.
    """
    places = literals = 0
    for operation, argument in sequence:
        name = str(operation)
        if name == "LITERAL":
            literals += 1
        elif name == "SUBPATTERN":
            more = _count(argument[-1], repeated=repeated)
            places, literals = places + more[0], literals + more[1]
        elif name == "BRANCH":
            for branch in argument[1]:
                more = _count(branch, repeated=repeated)
                places += sum(more) if repeated else more[0]
                literals += 0 if repeated else more[1]
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, body = argument
            inner = sum(_count(body, repeated=True))
            places += inner * (max(1, least) if most == _parser.MAXREPEAT else most)
        elif name != "AT":
            places += 1
    return places, literals


def _ahead(sequence: Any) -> int | None:
    """Return the most bytes that a search reads behind the end of a match; None where that is not known."""
    width: tuple[int, int] = sequence.getwidth()
    if width[1] < _parser.MAXREPEAT and width[1] < _FAR:
        return width[1]
    items = list(sequence)
    for operation, argument in items[:-1]:
        if not _is_narrow(operation, argument):
            return None
    name, argument = str(items[-1][0]), items[-1][1]
    if name == "SUBPATTERN":
        inner = _ahead(argument[-1])
        return None if inner is None else inner + _FAR
    if name == "MAX_REPEAT" and len(argument[2]) == 1 and str(argument[2][0][0]) in _CLASSES:
        # Whatever the repetition reads is part of the match.
        return _FAR
    return None


_FAR: Final = 256
_CLASSES: Final = ("LITERAL", "NOT_LITERAL", "IN", "ANY", "CATEGORY")


def _is_narrow(operation: Any, argument: Any) -> bool:
    sequence = _parser.SubPattern(_parser.State(), [(operation, argument)])
    width: tuple[int, int] = sequence.getwidth()
    return width[1] < _FAR
