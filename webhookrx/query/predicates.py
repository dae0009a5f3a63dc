"""
What an operator asks of one text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from webhookrx.linear_regex import LinearRegex
from webhookrx.query.required_text import required_text


class Operator(NamedTuple):
    """
    What an operator does.

    @ivar kind: C{equals}, C{contains} or C{matches}.
    @ivar strict: upper and lower case differ.
    @ivar negated: it is true where its counterpart is not, so also for a field that is missing.
    """

    kind: str
    strict: bool
    negated: bool


OPERATORS: Final = {
    "=": Operator("equals", strict=False, negated=False),
    "!=": Operator("equals", strict=False, negated=True),
    "=*": Operator("contains", strict=False, negated=False),
    "!*": Operator("contains", strict=False, negated=True),
    "=~": Operator("matches", strict=False, negated=False),
    "!~": Operator("matches", strict=False, negated=True),
    "==": Operator("equals", strict=True, negated=False),
    "!==": Operator("equals", strict=True, negated=True),
    "==*": Operator("contains", strict=True, negated=False),
    "!=*": Operator("contains", strict=True, negated=True),
    "==~": Operator("matches", strict=True, negated=False),
    "!=~": Operator("matches", strict=True, negated=True),
}


class Predicate(NamedTuple):
    """
    The question that an operator and its value ask of a text; whether the operator is negated is another matter.

    @ivar kind: that of the operator.
    @ivar strict: that of the operator.
    @ivar value: what is compared to; casefolded unless C{strict} or a regular expression.
    @ivar holds: tells whether it holds for a text.
    @ivar needs: what is, casefolded, in every casefolded text for which it holds; it may be empty.
    @ivar cost: units of work for each character that a term looks at.
    """

    kind: str
    strict: bool
    value: str
    holds: Callable[[str], bool]
    needs: str
    cost: int = 4


def predicate(operator: Operator, value: str) -> Predicate:
    """
    Return what an operator with this value asks.

    @raise ValueError: the value is no regular expression, and the operator wants one; the text is one sentence.
    """
    kind, strict, _ = operator
    if kind == "matches":
        # The expression itself ignores case: casefolded, "\\S" would be "\\s".
        regex = LinearRegex(value, ignore_case=not strict)
        return Predicate(kind, strict, value, regex.search, required_text(value), regex.per_byte)
    folded = value.casefold()
    wanted = value if strict else folded
    return Predicate(kind, strict, wanted, _HOLDS[kind, strict](wanted), folded)


_HOLDS: Final[dict[tuple[str, bool], Callable[[str], Callable[[str], bool]]]] = {
    ("equals", True): lambda wanted: wanted.__eq__,
    ("equals", False): lambda wanted: lambda text: text.casefold() == wanted,
    ("contains", True): lambda wanted: lambda text: wanted in text,
    ("contains", False): lambda wanted: lambda text: wanted in text.casefold(),
}
