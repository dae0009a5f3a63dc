"""
Texts with locators in them, rendered with the values that a request has there; see L{webhookrx.senders.definition}.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Container, Sequence
from copy import copy
from itertools import pairwise
from typing import Any, Final, TypeAlias

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
    @ivar headers: the names of headers in it, in lower case.
    """

    __slots__ = ("_before", "_only", "_pieces", "headers", "roots", "text")

    def __init__(self, text: str) -> None:
        """@raise LocatorError: braces or a place in it are not written as they should be."""
        self.text = text
        if text == "path" or text.startswith(KINDS):
            places, plain = [Locator(text)], ["", ""]
        else:
            places, plain = _split(text)
        pieces = list(map(_Piece, places, plain, plain[1:]))
        if pieces:
            pieces[-1].ends = True
        self._before: _Between = ((), plain[0], False)
        self._pieces: _Pieces = tuple((piece, (piece,), _behind(piece, ())) for piece in pieces)
        self._only = self._only_piece()
        self.headers = frozenset(place.header for place in places if place.header)
        self.roots = frozenset(place.root for place in places if place.root is not None)

    def narrowed(self, roots: Container[str]) -> TextTemplate | None:
        """
        Return what renders the same in less time where only some of its C{roots} lead to anything; None if it yields
        nothing there.
        """
        pieces = [piece for piece, *_ in self._pieces]
        there = [place.root is None or place.root in roots for place in (piece.place for piece in pieces)]
        if all(there):
            return self
        starts = [index for index, is_there in enumerate(there) if is_there]
        if not starts:
            return None
        narrowed = copy(self)
        narrowed._before = _passed_over(pieces[: starts[0]], self._before[1], False)
        narrowed._pieces = tuple(
            (pieces[start], tuple(pieces[start:end]), _behind(pieces[start], pieces[start + 1 : end]))
            for start, end in pairwise([*starts, len(pieces)])
        )
        narrowed._only = narrowed._only_piece()
        return narrowed

    def _only_piece(self) -> tuple[Locator, str, str] | None:
        """Return the one place that may yield something, with what is before and behind it; None for several places."""
        if len(self._pieces) != 1:
            return None
        words, between, gap = self._before
        ((piece, _, (more, last, ends_in_gap)),) = self._pieces
        before = "".join(words) + (between.lstrip(_SEPARATING) if gap and not words else between)
        return piece.place, before, "".join(more) + _end(last, ends_in_gap)

    def render(self, scope: LookupContext, accept: Callable[[Any], str | None] = scalar_text) -> tuple[str, str] | None:
        """
        Return the text with everything in its place, and what it was taken from, such as C{/action, /repository/name};
        None when it yields nothing.

        @param accept: returns the text of a value; None for one that yields nothing.
        """
        if self._only is not None:
            place, before, behind = self._only
            value = place.first(scope, accept)
            if value is None:
                return None
            return f"{before}{value}{behind}".strip() if before or behind else value, place.text
        if not self._pieces:
            text = self._before[1]
            return (text, "text") if text else None
        return self._join(scope, accept)

    def _join(self, scope: LookupContext, accept: Callable[[Any], str | None]) -> tuple[str, str] | None:
        words, between, gap = self._before
        parts: list[str] = [*words]
        taken: list[str] = []
        for piece, passed, behind in self._pieces:
            value = piece.place.first(scope, accept)
            if value is None:
                words, between, gap = _passed_over(passed, between, gap)
            else:
                parts += (between.lstrip(_SEPARATING) if gap and not parts else between, value)
                taken.append(piece.place.text)
                words, between, gap = behind
            parts += words
        if not taken:
            return None
        parts.append(_end(between, gap))
        return "".join(parts).strip(), ", ".join(taken)


class _Piece:
    """
    A place in a text, with the plain texts before and behind it.

    @ivar gap: what they come to when the place yields nothing.
    @ivar ends: it is the last one.
    """

    __slots__ = ("before", "behind", "ends", "gap", "place")

    def __init__(self, place: Locator, before: str, behind: str) -> None:
        self.place = place
        self.before = before
        self.behind = behind
        self.gap = _without(before, behind)
        self.ends = False


#: What stands between two pieces: words that stay, what comes before the next piece, and whether one was left out.
_Between: TypeAlias = tuple[Sequence[str], str, bool]

#: Pieces that may yield something: each with all that go when it does not, and what is behind it when it does.
_Pieces: TypeAlias = tuple[tuple[_Piece, tuple[_Piece, ...], _Between], ...]


def _end(between: str, gap: bool) -> str:
    """Return what is behind the last piece."""
    return between.rstrip(_OPENING + string.whitespace) if gap else between


def _behind(piece: _Piece, others: Sequence[_Piece]) -> _Between:
    """Return what is behind a piece that yields something, when others behind it yield nothing."""
    return _passed_over(others, piece.behind, False)


def _passed_over(pieces: Sequence[_Piece], between: str, gap: bool) -> _Between:
    """
    Leave out pieces that yield nothing.

    @param between: what comes before them.
    @param gap: whether one right before them was left out.
    """
    kept: list[str] = []
    for piece in pieces:
        if piece.behind or piece.ends:
            words, between = piece.gap if between is piece.before else _without(between, piece.behind)
            if words:
                kept.append(words)
            gap = True
    return kept, between, gap


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
