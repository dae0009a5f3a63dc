"""
The operators of queries, each as a predicate on one text.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final, NamedTuple

from webhookrx.regex import LinearRegex


class Operator(NamedTuple):
    """
    An operator.

    @ivar kind: C{equals}, C{contains}, C{matches}, C{compares} or C{among}.
    @ivar strict: upper and lower case differ.
    @ivar negated: true where its counterpart is not, so also for a field that is missing.
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
    "<": Operator("compares", strict=True, negated=False),
    "<=": Operator("compares", strict=True, negated=False),
    ">": Operator("compares", strict=True, negated=False),
    ">=": Operator("compares", strict=True, negated=False),
}

IN: Final = "IN"
AMONG: Final = Operator("among", strict=False, negated=False)
"""C{IN (…)}: one of several texts, or an address in one of several networks."""


class Predicate(NamedTuple):
    """
    An operator with its value, as a question to one text. Negation is left to the term.

    @ivar kind: that of the operator.
    @ivar strict: that of the operator.
    @ivar value: the value compared with; casefolded unless C{strict} or a regular expression.
    @ivar needs: a casefolded text that every casefolded text contains for which the predicate holds; it may be empty.
    @ivar cost: units of work for each character.
    """

    kind: str
    strict: bool
    value: str
    holds: Callable[[str], bool]
    needs: str
    cost: int = 4


def predicate(operator: Operator, value: str, sign: str = "") -> Predicate:
    """
    Return the predicate of an operator with a value.

    @param sign: the operator as it is written; used for one that compares.
    @raise ValueError: the operator takes a regular expression or a number, and the value is not one; the text is one
        sentence.
    """
    kind, strict, _ = operator
    if kind == "matches":
        # The expression itself ignores case: casefolded, "\\S" would be "\\s".
        regex = LinearRegex(value, ignore_case=not strict)
        return Predicate(kind, strict, value, regex.search, required_text(value), regex.cost.per_byte)
    if kind == "compares":
        return Predicate(kind, strict, f"{sign} {value}", _comparison(sign, value), "")
    folded = value.casefold()
    wanted = value if strict else folded
    return Predicate(kind, strict, wanted, _HOLDS[kind, strict](wanted), folded)


def predicate_among(values: tuple[str, ...]) -> Predicate:
    """
    Return the predicate of C{IN} with these values. A value in CIDR stands for all addresses of the network.

    @raise ValueError: a network has bits set beyond its prefix; the text is one sentence.
    """
    networks = [network for value in values if (network := _network(value)) is not None]
    texts = frozenset(value.casefold() for value in values)

    def holds(text: str) -> bool:
        return text.casefold() in texts or (bool(networks) and _is_in(text, networks))

    # No value holds a line end, so that two lists differ.
    return Predicate(AMONG.kind, AMONG.strict, "\n".join(values), holds, "", 4 + len(networks))


def _network(value: str) -> IPv4Network | IPv6Network | None:
    address, slash, bits = value.partition("/")
    if not slash or not bits.isdecimal():
        return None
    try:
        ip_address(address)
    except ValueError:
        return None
    try:
        return ip_network(value)
    except ValueError:
        raise ValueError(f"{value} is no network: its prefix is too long, or it has bits set behind it.") from None


_LONGEST_ADDRESS: Final = 45


def _is_in(text: str, networks: list[IPv4Network | IPv6Network]) -> bool:
    if len(text) > _LONGEST_ADDRESS or not text[-1:].isalnum():
        return False
    try:
        address = ip_address(text)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return any(address in network or (mapped is not None and mapped in network) for network in networks)


_COMPARES: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NUMBER: Final = re.compile(r"-?+(?:0|[1-9][0-9]{0,400}+)(\.[0-9]{1,400}+)?+([eE][+-]?+[0-9]{1,4}+)?+")


def _number(text: str) -> int | float | None:
    """Return the number that a text is in JSON; None for any other text, and for numbers that go on without end."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    return int(text) if found[1] is None and found[2] is None else float(text)


def _comparison(sign: str, value: str) -> Callable[[str], bool]:
    wanted = _number(value)
    if wanted is None:
        raise ValueError(f"Behind {sign} stands a number, such as 400 or -1.5.")
    compares = _COMPARES[sign]

    def holds(text: str) -> bool:
        number = _number(text)
        return number is not None and compares(number, wanted)

    return holds


_HOLDS: Final[dict[tuple[str, bool], Callable[[str], Callable[[str], bool]]]] = {
    ("equals", True): lambda wanted: wanted.__eq__,
    ("equals", False): lambda wanted: lambda text: text.casefold() == wanted,
    ("contains", True): lambda wanted: lambda text: wanted in text,
    ("contains", False): lambda wanted: lambda text: wanted in text.casefold(),
}


# Of anything that is not here, groups and "|" among it, nothing is easy to see.
_PIECE: Final = re.compile(
    r"""
    (?P<plain> [A-Za-z0-9_/:@,=<>~!%&;"'`\x20-]+ ) (?P<optional> [*?] )? [+?]*
    | (?: [.^$] | \\[dDwWsSbB] | \\[.*+?|/:@-] | \[ \^? [^][^\\] [^][\\]* \] ) [*+?]*
    """,
    re.VERBOSE,
)


def required_text(pattern: str) -> str:
    """
    Return a text that is, casefolded, in every casefolded text that an expression matches, as long as can easily be
    found. It is casefolded and ASCII; often it is empty.

    @param pattern: one that compiles for RE2.
    """
    longest = ""
    at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            return ""
        plain = piece["plain"] or ""
        if piece["optional"]:
            plain = plain[:-1]
        longest = max(longest, plain, key=len)
        at = piece.end()
    return longest.lower()
