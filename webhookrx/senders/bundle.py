"""
Bundles: bodies with several events, taken apart; and what stands around each event.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Final

import msgspec

from webhookrx.intake.json_body import PayloadError, parse_strict_json
from webhookrx.message.escapes import encode_json

MAX_EVENTS: Final = 10_000
"""Events of one body."""

MAX_ENVELOPE: Final = 64 * 1024
"""Bytes of an envelope; a longer one is left out."""

MAX_ENVELOPES: Final = 16 * 1024 * 1024
"""Bytes that the envelopes of all events of a body may take, each of which has a copy; see L{room_for_envelopes}."""

_ALWAYS_ROOM: Final = 1024 * 1024
_LARGEST_GROWTH: Final = 8

#: White space and escapes make a text of JSON this much longer at most.
_GROWTH: Final = 6

Members = Sequence[tuple[str, bytes]]
"""Names and values of members, as they were sent."""


OBJECT_OR_ARRAY: Final = (b"{", b"[")
"""How an event begins that is more than a text or a number."""


class Surroundings(msgspec.Struct, frozen=True, gc=False):
    """
    What stands around an event, or around many.

    @ivar envelope: an object as compact JSON, which is what messages say of it; empty when there is nothing.
    @ivar is_left_out: there is something, but too much.
    @ivar path: steps that lead to the event in a body like the sender's that holds no other.
    @ivar before: what begins such a body, and C{behind} what ends it.
    @ivar opens: C{before} ends within an object, whose members those of the event are, too.
    @ivar is_base64: what is not JSON stands there in Base64.
    @ivar is_frame: the number of its bytes stands before it.
    """

    envelope: bytes = b""
    is_left_out: bool = False
    path: tuple[str, ...] = ()
    before: bytes = b""
    behind: bytes = b""
    opens: bool = False
    is_base64: bool = False
    is_frame: bool = False

    def whole(self, event: bytes, is_text: bool) -> bytes:
        """
        Return a body like the sender's that holds one event.

        @param is_text: see L{SplitEvent}.
        """
        if self.is_frame:
            return b"%d %s" % (len(event), event)
        if self.opens:
            return self.before + event.lstrip()[1:]
        if is_text and self.before:
            event = encode_json(b64encode(event).decode() if self.is_base64 else event.decode("utf-8", "replace"))
        return self.before + event + self.behind


NOWHERE: Final = Surroundings()


class SplitEvent(msgspec.Struct, frozen=True, gc=False):
    """
    One event of a bundle.

    @ivar body: what is judged in place of the body: the sender's own bytes of an object or array, the content of a
        text.
    @ivar is_text: nothing is read in it, since it is a text or a number by itself.
    @ivar around: what stands around it.
    """

    body: bytes
    is_text: bool = False
    around: Surroundings = NOWHERE


class Bundle(msgspec.Struct, frozen=True, gc=False):
    """
    A body taken apart.

    @ivar events: in the order of the body; none if the body says so.
    @ivar left_out: how many of them have lost their envelope, since it is too long.
    """

    events: Sequence[SplitEvent]
    left_out: int = 0


class Ancestor(msgspec.Struct, frozen=True, gc=False):
    """
    An object on the way to an event, or an array.

    @ivar step: the name of the member that leads on; None for an array.
    @ivar others: all other members.
    """

    step: str | None = None
    others: Members = ()


def room_for_envelopes(size: int) -> int:
    """
    Return the bytes that the envelopes of all events may take; those beyond are left out.

    @param size: bytes of the body.
    """
    return min(MAX_ENVELOPES, _ALWAYS_ROOM + _LARGEST_GROWTH * size)


def surroundings(levels: Sequence[Ancestor], is_base64: bool = False) -> Surroundings:
    """Return what stands around events, from the outermost object or array to the innermost."""
    envelope = _envelope(levels)
    others = envelope is not None
    before, behind = b"", b""
    path = tuple("0" if level.step is None else level.step for level in levels)
    for level in levels:
        if level.step is None:
            before, behind = before + b"[", b"]" + behind
        else:
            members = _joined(level.others) + b"," if others and level.others else b""
            before, behind = before + b"{" + members + encode_json(level.step) + b":", b"}" + behind
    return Surroundings(envelope or b"", envelope is None, path, before, behind, is_base64=is_base64)


def carried(members: Members) -> Surroundings:
    """Return what stands around an object for which members hold that stand in others."""
    if not members:
        return NOWHERE
    envelope = compact(b"{" + _joined(members) + b"}")
    if envelope is None:
        return Surroundings(is_left_out=True)
    return Surroundings(envelope, before=b"{" + _joined(members) + b",", opens=True)


def compact(raw: bytes) -> bytes | None:
    """Return JSON without white space; None if it is too long for an envelope, or can't be read."""
    if len(raw) > MAX_ENVELOPE * _GROWTH:
        return None
    try:
        text = encode_json(parse_strict_json(raw))
    except PayloadError:
        return None
    return text if len(text) <= MAX_ENVELOPE else None


def _envelope(levels: Sequence[Ancestor]) -> bytes | None:
    """Return all members of objects on the way, each object in the place of its array; None if they are too many."""
    raw = b""
    for level in reversed(levels):
        if level.step is None:
            continue
        inner = encode_json(level.step) + b":" + raw if raw else b""
        members = b",".join(part for part in (_joined(level.others), inner) if part)
        raw = b"{" + members + b"}" if members else b""
        if len(raw) > MAX_ENVELOPE * _GROWTH:
            return None
    return compact(raw) if raw else b""


def _joined(members: Members) -> bytes:
    return b",".join(encode_json(name) + b":" + value for name, value in members)
