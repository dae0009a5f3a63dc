"""
What a path pattern means, as far as its parsed form tells: a plain text, every path, or some examples of what it
matches. Serves the warnings about patterns; the wire never comes here.

The parsed form is the one that C{re} itself makes. Its nodes are pairs of an operation and an argument.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

try:
    from re import _parser  # type: ignore[attr-defined]
except ImportError:  # pragma: no cover  # a Python that has moved it: then nothing is sampled
    _parser = None

_VISIBLE: Final = "".join(map(chr, range(0x21, 0x7F)))
"""What a raw path is made of."""
_NOTABLE: Final = "/-._%~09azAZ"
"""Characters at which patterns differ; chosen half of the time, where they are allowed."""
_MORE: Final = (0, 0, 1, 1, 2, 3, 5, 9)
_MANY_MORE: Final = (30, 300)
"""How many turns more than the least a repetition takes; many more in one example of sixteen."""
_MAX_GROUPS: Final = 50
"""Brackets in a pattern that is looked into; groups in groups are followed by recursion."""
_MAX_SAMPLE: Final = 2000
"""Characters and turns from which on repetitions take as few turns as they may."""
_REPETITIONS: Final = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_ONE_CHARACTER: Final = ("LITERAL", "NOT_LITERAL", "ANY", "IN")
_BEGINNING: Final = (("AT", "AT_BEGINNING"), ("AT", "AT_BEGINNING_STRING"))
_END: Final = (("AT", "AT_END"), ("AT", "AT_END_STRING"))
_CATEGORIES: Final[dict[str, Callable[[str], bool]]] = {
    "CATEGORY_DIGIT": str.isdigit,
    "CATEGORY_NOT_DIGIT": lambda character: not character.isdigit(),
    "CATEGORY_SPACE": lambda character: False,
    "CATEGORY_NOT_SPACE": lambda character: True,
    "CATEGORY_WORD": lambda character: character.isalnum() or character == "_",
    "CATEGORY_NOT_WORD": lambda character: not (character.isalnum() or character == "_"),
}
"""By operation of C{re}: whether one of L{_VISIBLE} is in it."""


class ParsedPattern:
    """
    A pattern as C{re} understands it.

    @raise ValueError: C{re} does not, or it has too many groups to look into.
    """

    def __init__(self, pattern: str) -> None:
        if _parser is None or pattern.count("(") > _MAX_GROUPS:
            raise ValueError("it has too many groups to look into")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                parsed = _parser.parse(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(str(error)) from None
        self._nodes: list[tuple[str, Any]] = [(str(operation), argument) for operation, argument in parsed]
        self._ignore_case = bool(parsed.state.flags & re.IGNORECASE)

    def plain_text(self) -> str | None:
        """Return the one text that it matches; None when it is more than plain text."""
        if self._ignore_case or any(operation != "LITERAL" for operation, _ in self._nodes):
            return None
        return "".join(chr(argument) for _, argument in self._nodes)

    def is_universal(self) -> bool:
        """Say whether it surely matches every path: C{/.*} and its like."""
        nodes = _without_groups(self._nodes)
        if nodes and nodes[0] in _BEGINNING:
            nodes = nodes[1:]
        if nodes and nodes[-1] in _END:
            nodes = nodes[:-1]
        if nodes and nodes[0] == ("LITERAL", ord("/")):
            nodes = nodes[1:]
        if len(nodes) != 1 or nodes[0][0] not in _REPETITIONS:
            return False
        least, most, inner = nodes[0][1]
        return bool(least == 0 and str(most) == "MAXREPEAT" and [str(operation) for operation, _ in inner] == ["ANY"])

    def asks_for_invisible(self) -> bool:
        """Say whether it asks for a character that no raw path has, such as a blank or a letter with an accent."""
        return any(operation == "LITERAL" and chr(argument) not in _VISIBLE for operation, argument in self._nodes)

    def samples(self, count: int) -> Iterator[str]:
        """
        Make examples of what it matches, the same ones each time. Anchors are not minded, so an example that the
        pattern does not match is possible. Only for a pattern that RE2 can express.
        """
        # Chance that repeats itself: a configuration must not be warned about on some days only.
        chance = random.Random(0)  # noqa: S311
        for turn in range(count):
            sample = _Sample(chance, _MANY_MORE if turn % 16 == 15 else _MORE)
            yield sample.text(self._nodes, self._ignore_case)


class _Sample:
    """One example in the making."""

    def __init__(self, chance: random.Random, more: tuple[int, ...]) -> None:
        self._random = chance
        self._more = more
        self._size = 0

    def text(self, nodes: Sequence[tuple[Any, Any]], ignore_case: bool) -> str:
        return "".join(self._node(str(operation), argument, ignore_case) for operation, argument in nodes)

    def _node(self, operation: str, argument: Any, ignore_case: bool) -> str:
        if operation in _REPETITIONS:
            least, most, inner = argument
            return self._repetition(least, most, inner, ignore_case)
        if operation == "SUBPATTERN":
            _, added, removed, inner = argument
            return self.text(inner, bool((ignore_case or added & re.IGNORECASE) and not removed & re.IGNORECASE))
        if operation == "BRANCH":
            return self.text(self._random.choice(argument[1]), ignore_case)
        return self._characters(operation, argument, 1, ignore_case)

    def _repetition(self, least: int, most: int, inner: Sequence[tuple[Any, Any]], ignore_case: bool) -> str:
        turns = min(least + self._random.choice(self._more), most)
        if self._size > _MAX_SAMPLE:
            turns = least
        self._size += turns
        if len(inner) == 1 and str(inner[0][0]) in _ONE_CHARACTER:
            return self._characters(str(inner[0][0]), inner[0][1], turns, ignore_case)
        return "".join(self.text(inner, ignore_case) for _ in range(turns))

    def _characters(self, operation: str, argument: Any, count: int, ignore_case: bool) -> str:
        choice = _characters(operation, tuple(argument) if operation == "IN" else argument)
        if not choice:
            return ""
        self._size += count
        text = "".join(self._random.choices(choice, k=count))
        return "".join(map(self._random.choice, zip(text.lower(), text.upper(), strict=False))) if ignore_case else text


def _without_groups(nodes: Sequence[tuple[Any, Any]]) -> list[tuple[str, Any]]:
    """Unwrap the groups of a sequence."""
    flat: list[tuple[str, Any]] = []
    for operation, argument in nodes:
        if str(operation) == "SUBPATTERN":
            flat.extend(_without_groups(argument[3]))
        else:
            flat.append((str(operation), argument if str(operation) != "AT" else str(argument)))
    return flat


@lru_cache(maxsize=256)
def _characters(operation: str, argument: Any) -> str:
    """
    Return those of L{_VISIBLE} that a node stands for, none for an anchor. The notable ones are there so many times
    that about every second choice falls on one.
    """
    members = _members(operation, argument)
    notable = "".join(character for character in _NOTABLE if character in members)
    return members + notable * (len(members) // max(len(notable), 1))


def _members(operation: str, argument: Any) -> str:
    if operation == "ANY":
        return _VISIBLE
    if operation == "LITERAL":
        return chr(argument)
    if operation == "NOT_LITERAL":
        return _VISIBLE.replace(chr(argument), "")
    if operation != "IN":
        return ""
    members: set[str] = set()
    negated = False
    for kind, value in argument:
        match str(kind):
            case "NEGATE":
                negated = True
            case "LITERAL":
                members.add(chr(value))
            case "RANGE":
                members.update(character for character in _VISIBLE if value[0] <= ord(character) <= value[1])
            case "CATEGORY":
                members.update(filter(_CATEGORIES[str(value)], _VISIBLE))
    return "".join(character for character in _VISIBLE if (character in members) != negated)
