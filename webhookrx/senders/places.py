"""
Places in a request; C{entry} says how they are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from webhookrx.message.message import Value
from webhookrx.senders.evidence import Evidence

T = TypeVar("T")

MAX_TRIES: Final = 1_000
"""Values that C{*} in a place looks at, so that long arrays cost no more than that for each place of an entry."""

_MANY_DIGITS: Final = 10**300
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")
HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110 section 5.6.2."""


class PlaceError(ValueError):
    """
    A place or a text is not written as it should be; the text is one sentence.

    @ivar column: where in it, from 1.
    """

    def __init__(self, sentence: str, column: int = 1) -> None:
        super().__init__(sentence)
        self.column = column


class _Anything:
    """Holds every name."""

    def __contains__(self, name: object) -> bool:
        return True


_ANYTHING: Final = _Anything()


class Scope:
    """
    Where places are looked up.

    @ivar event: see C{entry}; an object, or None when the body holds none.
    @ivar whole: the whole body, with all that was decoded in it; the event itself when there is nothing around it.
    @ivar members: holds the first step of every place in the body that may yield something. Most places of most
        entries are nowhere in a request; this tells so faster than looking them up.
    """

    __slots__ = ("event", "evidence", "members", "whole")

    def __init__(self, evidence: Evidence, event: Value, whole: Value) -> None:
        self.evidence = evidence
        self.event = event
        self.whole = whole
        self.members: Container[object] = _ANYTHING
        if event is whole:
            self.members = event if type(event) is dict else ()


def text_of(value: Value) -> str | None:
    """Return the text of what yields something, see C{entry}; None for what does not."""
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


class Place:
    """
    Where to look.

    @ivar text: as it is written in the entry.
    @ivar root: the first step of a place in the body; None for one outside of it.
    @ivar has_star: whether it stands for several.
    """

    __slots__ = ("_header", "_name", "_steps", "has_star", "root", "text")

    def __init__(self, text: str) -> None:
        """@raise PlaceError: it is none."""
        self.text = text
        self.root: str | None = None
        self.has_star = False
        self._steps: tuple[str, ...] = ()
        self._name = ""
        self._header = b""
        kind, colon, name = text.partition(":")
        if text.startswith("/"):
            self._steps = _pointer(text)
            self.root = self._steps[0]
            self.has_star = "*" in self._steps
        elif kind == "header" and colon:
            if not HEADER_NAME.fullmatch(name):
                raise PlaceError("header: is followed by the name of a header.", len("header:") + 1)
            self._header = name.lower().encode("ascii")
        elif kind == "query" and colon:
            if not name:
                raise PlaceError("query: is followed by the name of a parameter.", len("query:") + 1)
            self._name = name
        elif text != "path":
            raise PlaceError("A place is /A/JSON/POINTER, header:NAME, query:NAME or path.")

    def first(self, scope: Scope, accept: Callable[[Any], T | None]) -> T | None:
        """
        Return the first value there as C{accept} has it.

        @param accept: returns None for a value that yields nothing; it is never given null.
        """
        if self.root is None:
            text = self._outside(scope.evidence)
            return accept(text) if text else None
        # Most places of most entries are not there, or are members of members.
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

    def all(self, scope: Scope, accept: Callable[[Any], T | None]) -> list[T]:
        """
        Return all values that a place in the body leads to, as C{accept} has them; those in the event if there are any,
        else those in the whole body.
        """
        for root in (scope.event,) if scope.whole is scope.event else (scope.event, scope.whole):
            accepted = map(accept, _each(root, self._steps, _Tries()))
            found = [value for value in accepted if value is not None]
            if found:
                return found
        return []

    def _outside(self, evidence: Evidence) -> str | None:
        if self._header:
            return evidence.header(self._header)
        if self._name:
            return first_value(evidence.query, self._name)
        return evidence.head.path.decode("latin-1")


def first_value(query: Mapping[str, str | list[str]], name: str) -> str | None:
    """Return the first value of a query parameter; None when there is none."""
    value = query.get(name)
    return value[0] if isinstance(value, list) else value


def parse_pointer(text: str) -> tuple[str, ...]:
    """
    Take a JSON pointer apart (RFC 6901 section 3).

    @raise PlaceError: it is none, or points to the whole body.
    """
    if not text.startswith("/"):
        raise PlaceError("A JSON pointer begins with a slash, such as /data/0/type.")
    return _pointer(text)


def _pointer(text: str) -> tuple[str, ...]:
    if stray := re.search(r"~(?![01])", text):
        raise PlaceError("In a JSON pointer, ~ is written ~0, and ~1 stands for a slash.", stray.start() + 1)
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text[1:].split("/"))


def element(array: list[Value], step: str) -> Value:
    """Return the element of an array that a step of a pointer names (RFC 6901 section 4); None when there is none."""
    if not _INDEX.fullmatch(step) or int(step) >= len(array):
        return None
    return array[int(step)]


def _first(value: Any, steps: tuple[str, ...], accept: Callable[[Any], T | None]) -> T | None:
    for number, step in enumerate(steps):
        if type(value) is dict:
            value = value.get(step)
        elif type(value) is not list:
            return None
        elif step == "*":
            tries = _Tries()
            return next(
                (found for each in _each(value, steps[number:], tries) if (found := accept(each)) is not None), None
            )
        else:
            value = element(value, step)
    return None if value is None else accept(value)


class _Tries:
    """How many values are still looked at."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_TRIES


def _each(value: Any, steps: tuple[str, ...], tries: _Tries) -> Iterator[Any]:
    """Yield all values that the rest of a pointer leads to; nulls are left out."""
    for number, step in enumerate(steps):
        if type(value) is dict:
            value = value.get(step)
        elif type(value) is not list:
            return
        elif step == "*":
            for each in value:
                if tries.left <= 0:
                    return
                tries.left -= 1
                yield from _each(each, steps[number + 1 :], tries)
            return
        else:
            value = element(value, step)
    if value is not None:
        yield value
