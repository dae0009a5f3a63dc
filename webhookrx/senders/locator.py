"""
Locators: where in a request a sender definition says that something is, see
L{webhookrx.senders.definition}.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from webhookrx.message.message import Value
from webhookrx.senders.evidence import Evidence

T = TypeVar("T")

MAX_TRIES: Final = 1_000
"""Values that C{*} in a place looks at, so that long arrays cost no more than that for each place of a definition."""

_MAX_TALLIED: Final = 10
"""Texts that C{tally:} names; a group may have hundreds."""

_MANY_DIGITS: Final = 10**300
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_CHOICE: Final = re.compile(r"\[([^=\]]+)=(.*)\]")
KINDS: Final = ("/", "header:", "query:", "same:", "tally:")
"""How a place begins, unless it is C{path}."""
HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110 section 5.6.2."""


class LocatorError(ValueError):
    """
    A place or a text is not written as it should be; the text is one sentence.

    @ivar column: where in it, from 1.
    """

    def __init__(self, sentence: str, column: int = 1) -> None:
        super().__init__(sentence)
        self.column = column


class LookupContext(msgspec.Struct, frozen=True, gc=False):
    """
    Where places are looked up.

    @ivar event: see L{webhookrx.senders.definition}; an object, or None when the body holds none.
    @ivar whole: the whole body, with all that was decoded in it; the event itself when there is nothing around it.
    """

    evidence: Evidence
    event: Value
    whole: Value


def scalar_text(value: Value) -> str | None:
    """Return the text of a value that yields a text, see L{webhookrx.senders.definition}; None for any other."""
    if type(value) is str:
        return value.strip() or None
    if value is True or value is False:
        return "true" if value else "false"
    if type(value) is int:
        # Python refuses to write integers of thousands of digits.
        return str(value) if -_MANY_DIGITS < value < _MANY_DIGITS else None
    if type(value) is msgspec.Raw:
        return bytes(value).decode("utf-8", "replace")
    return None


class _Choice:
    """
    A step to the elements of an array that have a member with a given text, such as C{[key=host.name]}.
    """

    __slots__ = ("_name", "_text")

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text = text

    def takes(self, value: Any) -> bool:
        """Tell whether it leads to an element."""
        return type(value) is dict and scalar_text(value.get(self._name)) == self._text


class Locator:
    """
    Where to look.

    @ivar text: as it is written in the definition.
    @ivar root: the first step of a place in the body; None for one outside of it.
    @ivar has_star: whether it stands for several.
    @ivar header: the name of a header in lower case; empty for any other place.
    """

    __slots__ = ("_name", "_steps", "_summary", "has_star", "header", "root", "text")

    def __init__(self, text: str) -> None:
        """@raise LocatorError: the text is not a locator."""
        self.text = text
        self.root: str | None = None
        self.has_star = False
        self._steps: _Steps = ()
        self._name = ""
        self.header = b""
        self._summary: Callable[[list[Any]], Any] | None = None
        kind, colon, name = text.partition(":")
        if text.startswith("/"):
            self._read_pointer(text)
        elif kind in _SUMMARIES and colon:
            if not name.startswith("/"):
                raise LocatorError(f"{kind}: is followed by a JSON pointer.", len(kind) + 2)
            self._read_pointer(name, len(kind) + 1)
            self.has_star = False
            self._summary = _SUMMARIES[kind]
        elif kind == "header" and colon:
            if not HEADER_NAME.fullmatch(name):
                raise LocatorError("header: is followed by the name of a header.", len("header:") + 1)
            self.header = name.lower().encode("ascii")
        elif kind == "query" and colon:
            if not name:
                raise LocatorError("query: is followed by the name of a parameter.", len("query:") + 1)
            self._name = name
        elif text != "path":
            raise LocatorError(
                "A place is /A/JSON/POINTER, same:/A/JSON/POINTER, tally:/A/JSON/POINTER, header:NAME, query:NAME or "
                "path."
            )

    def _read_pointer(self, text: str, before: int = 0) -> None:
        """@param before: characters of the place that stand before the pointer."""
        try:
            self.root, *steps = _pointer(text)
        except LocatorError as error:
            raise LocatorError(str(error), error.column + before) from None
        self._steps = (self.root, *map(_step, steps))
        self.has_star = any(step == "*" or type(step) is _Choice for step in self._steps)

    def first(self, scope: LookupContext, accept: Callable[[Any], T | None]) -> T | None:
        """
        Return the first value there as C{accept} has it.

        @param accept: returns None for a value that yields nothing; it is never given null.
        """
        if self.root is None:
            text = scope.evidence.header(self.header) if self.header else self._outside(scope.evidence)
            return accept(text) if text else None
        if self._summary is not None:
            return self._summarized(scope, accept)
        # Most places of most definitions are not there, or are members of members.
        value: Any = scope.event
        for step in self._steps:
            if type(value) is not dict:
                value = None if value is None else _first(scope.event, self._steps, accept)
                break
            value = value.get(step)
        else:
            value = None if value is None else accept(value)
        if value is None and scope.whole is not scope.event:
            return _first(scope.whole, self._steps, accept)
        return value  # type: ignore[no-any-return]

    def all(self, scope: LookupContext, accept: Callable[[Any], T | None]) -> list[T]:
        """
        Return all values that a place in the body leads to, as C{accept} has them; those in the event if there are any,
        else those in the whole body.
        """
        for root in (scope.event,) if scope.whole is scope.event else (scope.event, scope.whole):
            values = _each(root, self._steps, _Tries())
            found = [known for value in values if value is not None and (known := accept(value)) is not None]
            if found:
                return found
        return []

    def _summarized(self, scope: LookupContext, accept: Callable[[Any], T | None]) -> T | None:
        """Return what is true of all values there; None when some were not looked at."""
        assert self._summary is not None, "the caller has checked it"
        for root in (scope.event,) if scope.whole is scope.event else (scope.event, scope.whole):
            tries = _Tries()
            found = [None if value is None else accept(value) for value in _each(root, self._steps, tries)]
            if tries.left >= 0 and any(value is not None for value in found):
                return self._summary(found)  # type: ignore[no-any-return]
        return None

    def _outside(self, evidence: Evidence) -> str | None:
        if self._name:
            return first_value(evidence.query, self._name)
        return evidence.head.path.decode("latin-1")


def first_value(query: Mapping[str, str | list[str]], name: str) -> str | None:
    """Return the first value of a query parameter; None when there is none."""
    value = query.get(name)
    return value[0] if isinstance(value, list) else value


def parse_pointer(text: str) -> tuple[str, ...]:
    """
    Take a JSON pointer apart (RFC 6901 section 3), in which no elements are picked by their members.

    @raise LocatorError: it is not a pointer, or points to the whole body.
    """
    if not text.startswith("/"):
        raise LocatorError("A JSON pointer begins with a slash, such as /data/0/type.")
    if picked := re.search(r"/(\[[^=\]/]+=[^/]*\])(?=/|\Z)", text):
        raise LocatorError("Elements are picked by their members in places only.", picked.start(1) + 1)
    return _pointer(text)


def _pointer(text: str) -> tuple[str, ...]:
    if stray := re.search(r"~(?![01])", text):
        raise LocatorError("In a JSON pointer, ~ is written ~0, and ~1 stands for a slash.", stray.start() + 1)
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text[1:].split("/"))


def _step(text: str) -> str | _Choice:
    choice = _CHOICE.fullmatch(text)
    return text if choice is None else _Choice(*choice.groups())


def element(array: list[Value], step: str) -> Value:
    """Return the element of an array that a step of a pointer names (RFC 6901 section 4); None when there is none."""
    if not _INDEX.fullmatch(step) or int(step) >= len(array):
        return None
    return array[int(step)]


def _same(values: list[Any]) -> Any:
    """Return the one value that there is; None when there are several, or one is missing."""
    first = values[0]
    return first if all(value == first for value in values) else None


def _tally(values: list[Any]) -> str:
    """Return each text with how often it is there, by text, and how many others there are; a single one alone."""
    counts = Counter(str(value) for value in values if value is not None)
    if len(values) == 1:
        return next(iter(counts))
    shown = sorted(counts.items())[:_MAX_TALLIED]
    others = counts.total() - sum(count for _, count in shown)
    parts = [f"{text} {count}" for text, count in shown] + ([f"{others} others"] if others else [])
    return ", ".join(parts)


_SUMMARIES: Final[dict[str, Callable[[list[Any]], Any]]] = {"same": _same, "tally": _tally}

_Steps: TypeAlias = "tuple[str | _Choice, ...]"


def _first(value: Any, steps: _Steps, accept: Callable[[Any], T | None]) -> T | None:
    for number, step in enumerate(steps):
        if type(value) is dict:
            value = value.get(step)
        elif type(value) is not list:
            return None
        elif step == "*" or type(step) is _Choice:
            values = _each(value, steps[number:], _Tries())
            return next((known for each in values if each is not None and (known := accept(each)) is not None), None)
        else:
            value = element(value, step)  # type: ignore[arg-type]  # it is text
    return None if value is None else accept(value)


class _Tries:
    """How many values are still looked at; negative once there were more."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_TRIES


def _each(value: Any, steps: _Steps, tries: _Tries) -> Iterator[Any]:
    """Yield what the rest of a pointer leads to, for each element on the way; None where that is nothing."""
    for number, step in enumerate(steps):
        if type(value) is dict:
            value = value.get(step)
        elif type(value) is not list:
            value = None
            break
        elif step == "*" or type(step) is _Choice:
            for each in value:
                if tries.left <= 0:
                    tries.left = -1
                    return
                tries.left -= 1
                if type(step) is not _Choice or step.takes(each):
                    yield from _each(each, steps[number + 1 :], tries)
            return
        else:
            value = element(value, step)  # type: ignore[arg-type]  # it is text
    yield value
