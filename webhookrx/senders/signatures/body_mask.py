"""
Masks the secrets that requests show in their bodies, at the places of the schemes by which they show them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from webhookrx.intake.header_masking import MASK
from webhookrx.intake.json_body import json_or_missing
from webhookrx.message.fields import MISSING
from webhookrx.senders.json_parts import NAME, NotOfThisForm, TooManyParts, text_of, tokens
from webhookrx.senders.locator import parse_pointer
from webhookrx.senders.signatures.scheme import SignatureScheme

_MASK: Final = f'"{MASK}"'.encode()
_BLANKS: Final = b" \t\r\n"
_QUOTE, _COMMA = b'",'
_OPENING: Final = b"[{"
_ARRAY: Final = _OPENING[0]

#: What is left of pointers on the way to their values.
_Steps: TypeAlias = list[tuple[str, ...]]


class CantMask(ValueError):
    """A body may hold a secret where nobody can tell. The text is one sentence that quotes nothing of it."""


class BodyMask:
    """
    Masks the values at some places of JSON, whatever they are but C{null}: wrong secrets, too, and those of all members
    that have the same name, of which only the last is compared. All other bytes stay as they are.

    @param pointers: the places, with C{*} for every element of an array.
    """

    __slots__ = ("_places",)

    def __init__(self, pointers: Iterable[str]) -> None:
        self._places: _Steps = [parse_pointer(pointer) for pointer in pointers]

    def masked(self, body: bytes) -> bytes:
        """
        Return a body with C{"***"} at these places, with yield points. It takes a few looks at each bracket, comma and
        string.

        @param body: unpacked.
        @raise CantMask: it is neither empty nor strict JSON, so that a looser reader may find a member that is not
            compared; or it has too many values.
        """
        if not body.strip(_BLANKS):
            return body
        if json_or_missing(body) is MISSING:
            raise CantMask("The body is not strict JSON, so that the secret in it can't be masked.")
        try:
            spans = _ValueSpans(body, self._places).found
        except (NotOfThisForm, TooManyParts):
            raise CantMask("The body has too many values to mask the secret in it.") from None
        parts: list[bytes] = []
        end = 0
        for start, after in spans:
            parts += (body[end:start], _MASK)
            end = after
        return b"".join((*parts, body[end:])) if parts else body


def mask_for(schemes: Iterable[SignatureScheme]) -> BodyMask | None:
    """Return what masks the bodies of a sender; None for one that shows no secret there by any of its schemes."""
    shown = [place for scheme in schemes if scheme.algorithm == "equal" for place in scheme.places]
    pointers = [place for place in shown if place.startswith("/")]
    return BodyMask(pointers) if pointers else None


class _Container:
    """
    An object or array around the place that was come to.

    @ivar steps: those of pointers that lead into it.
    @ivar below: those that lead on from its current value.
    @ivar start: where that begins, with blanks before it.
    @ivar index: which element it is, in an array.
    @ivar has_name: whether the name of it has come, in an object.
    """

    __slots__ = ("below", "has_name", "index", "is_array", "start", "steps")

    def __init__(self, steps: _Steps, start: int, *, is_array: bool) -> None:
        self.steps = steps
        self.is_array = is_array
        self.index = -1
        self.next(start)

    def next(self, start: int) -> None:
        """Go on to the next value."""
        self.start = start
        self.has_name = False
        self.below: _Steps = []
        if self.is_array and self.steps:
            self.index += 1
            self.below = [steps[1:] for steps in self.steps if steps[0] in ("*", str(self.index))]

    def name(self, name: str, start: int) -> None:
        """Take the name of the current value, which begins after it."""
        self.start = start
        self.below = [steps[1:] for steps in self.steps if steps[0] == name]


class _ValueSpans:
    """
    Where values stand in JSON that was read before.

    @ivar found: the first byte of each, and the one behind it, in order.
    """

    def __init__(self, body: bytes, places: _Steps) -> None:
        self.found: list[tuple[int, int]] = []
        levels: list[_Container] = []
        for sign, place in tokens(body):
            level = levels[-1] if levels else None
            if sign == _QUOTE:
                if level is not None and not (level.is_array or level.has_name):
                    level.has_name = True
                    if level.steps:
                        _take_name(level, body, place)
            elif sign in _OPENING:
                below = places if level is None else level.below
                # What is masked as a whole is not looked into.
                steps = [] if () in below else below
                levels.append(_Container(steps, place + 1, is_array=sign == _ARRAY))
            else:
                if level is None:
                    raise NotOfThisForm
                if () in level.below:
                    self._end(body, level.start, place)
                if sign == _COMMA:
                    level.next(place + 1)
                else:
                    levels.pop()

    def _end(self, body: bytes, start: int, end: int) -> None:
        text = body[start:end]
        value = text.strip(_BLANKS)
        if value and value != b"null":
            first = start + len(text) - len(text.lstrip(_BLANKS))
            self.found.append((first, first + len(value)))


def _take_name(level: _Container, body: bytes, place: int) -> None:
    found = NAME.match(body, place)
    if found is None:
        raise NotOfThisForm
    level.name(text_of(found[1]), found.end())
