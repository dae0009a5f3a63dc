"""
Texts with locators in them, rendered with the values that a request has there; see L{webhookrx.senders.definition}.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from typing import Any, Final

from webhookrx.senders.locator import KINDS, Locator, LocatorError, LookupContext, scalar_text

_PIECES: Final = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<place>[^{}]*)\}|(?P<plain>[^{}]+)|(?P<lone>[{}])")

#: White space and punctuation, all of it, what opens something, and the rest.
_BETWEEN: Final = string.whitespace + string.punctuation + "\u2013\u2014\u2026\u00b7\u00ab\u00bb\u201c\u201d"
_OPENING: Final = "([{<\"'\u00ab\u201c"
_CLOSINGS: Final = str.maketrans(_OPENING, ")]}>\"'\u00bb\u201d")
_SEPARATING: Final = "".join(each for each in _BETWEEN if each not in _OPENING)


class TextTemplate:
    """
    A text with places.

    @ivar text: as it is written in the definition.
    @ivar roots: the first steps of its places in the body.
    """

    __slots__ = ("_begin", "_pieces", "roots", "text")

    def __init__(self, text: str) -> None:
        """@raise LocatorError: braces or a place in it are not written as they should be."""
        self.text = text
        if text == "path" or text.startswith(KINDS):
            places, plain = [Locator(text)], ["", ""]
        else:
            places, plain = _split(text)
        self._begin = plain[0]
        self._pieces = tuple(map(_Piece, places, plain, plain[1:]))
        self.roots = frozenset(place.root for place in places if place.root is not None)

    def render(self, scope: LookupContext, accept: Callable[[Any], str | None] = scalar_text) -> tuple[str, str] | None:
        """
        Return the text with everything in its place, and what it was taken from, such as C{/action, /repository/name};
        None when it yields nothing.

        @param accept: returns the text of a value; None for one that yields nothing.
        """
        pieces = self._pieces
        if len(pieces) == 1 and not self._begin and not pieces[0].behind:
            place = pieces[0].place
            if place.root is not None and place.root not in scope.members:
                return None
            value = place.first(scope, accept)
            return None if value is None else (value, place.text)
        if not pieces:
            return (self._begin, "text") if self._begin else None
        return self._join(scope, accept)

    def _join(self, scope: LookupContext, accept: Callable[[Any], str | None]) -> tuple[str, str] | None:
        parts: list[str] = []
        taken: list[str] = []
        members, between, gap = scope.members, self._begin, False
        last = self._pieces[-1]
        for piece in self._pieces:
            place = piece.place
            value = None
            if place.root is None or place.root in members:
                value = place.first(scope, accept)
            if value is not None:
                parts += (between.lstrip(_SEPARATING) if gap and not parts else between, value)
                taken.append(place.text)
                between, gap = piece.behind, False
            elif piece.behind or piece is last:
                words, between = piece.gap if between is piece.before else _without(between, piece.behind)
                if words:
                    parts.append(words)
                gap = True
        if not taken:
            return None
        parts.append(between.rstrip(_OPENING + string.whitespace) if gap else between)
        return "".join(parts).strip(), ", ".join(taken)


class _Piece:
    """
    A place in a text, with the plain texts before and behind it.

    @ivar gap: what they come to when the place yields nothing.
    """

    __slots__ = ("before", "behind", "gap", "place")

    def __init__(self, place: Locator, before: str, behind: str) -> None:
        self.place = place
        self.before = before
        self.behind = behind
        self.gap = _without(before, behind)


def _split(text: str) -> tuple[list[Locator], list[str]]:
    """Return the places in a text, and the plain texts before, between and behind them."""
    places: list[Locator] = []
    plain = [""]
    for found in _PIECES.finditer(text):
        if found["lone"]:
            raise LocatorError("A brace that stands for itself is written twice.", found.start() + 1)
        if found["place"] is None:
            plain[-1] += found["plain"] or found["brace"][0]
            continue
        try:
            places.append(Locator(found["place"]))
        except LocatorError as error:
            raise LocatorError(str(error), found.start() + 1 + error.column) from None
        plain.append("")
    return places, plain


def _without(before: str, behind: str) -> tuple[str, str]:
    """
    Leave out a piece between two plain texts.

    @return: what stays before it; and what comes before the next piece. A bracket that opens right before the piece
        goes with the one that closes right behind it, or else stays for what comes next.
    """
    words = before.rstrip(_BETWEEN)
    opening = before[len(before.rstrip(_OPENING)) :]
    closing = opening[::-1].translate(_CLOSINGS)
    if behind.startswith(closing):
        return words, behind[len(closing) :]
    return words, before[len(words) :] + behind.lstrip(_BETWEEN)


def first_text(
    texts: tuple[TextTemplate, ...], scope: LookupContext, accept: Callable[[Any], str | None] = scalar_text
) -> tuple[str, str] | None:
    """Return the first text that yields something, and its origin; C{accept} as in L{TextTemplate.render}."""
    for text in texts:
        rendered = text.render(scope, accept)
        if rendered is not None:
            return rendered
    return None
