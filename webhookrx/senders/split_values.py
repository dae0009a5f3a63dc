"""
Splits one value of JSON: the events at a pointer, and what stands around them.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Final, NamedTuple

import msgspec

from webhookrx.errors import BAD_COMPRESSION, RequestRefused
from webhookrx.intake.encodings import unpack
from webhookrx.intake.json_body import PayloadError, parse_strict_json
from webhookrx.senders.bundle import (
    MAX_ENVELOPES,
    MAX_EVENTS,
    OBJECT_OR_ARRAY,
    Ancestor,
    Members,
    SplitEvent,
    Surroundings,
    room_for_envelopes,
    surroundings,
)
from webhookrx.senders.json_parts import NotOfThisForm, TooManyParts, elements, members
from webhookrx.senders.unpacking import GZIP, MAX_RATIO, MAX_UNPACKED
from webhookrx.yield_point import yield_point

#: Bytes around a name and its value.
_MARKS: Final = 4


class _WayTo(msgspec.Struct, frozen=True, gc=False):
    """
    The way to a value.

    @ivar levels: objects and arrays, the outermost first.
    @ivar size: bytes of what stands beside it.
    """

    levels: tuple[Ancestor, ...] = ()
    size: int = 0

    def into_array(self) -> _WayTo:
        return _WayTo((*self.levels, Ancestor()), self.size)

    def into_object(self, step: str, others: Members) -> _WayTo:
        size = sum([len(name) + len(value) + _MARKS for name, value in others])
        return _WayTo((*self.levels, Ancestor(step, others)), self.size + size)


class _Element(NamedTuple):
    raw: bytes
    way: _WayTo


class ValueSplitter:
    """
    Walks along a pointer through one body.

    @param steps: of the pointer; at least one is C{*}.
    @param decode: see L{webhookrx.senders.split_definition.Split}.
    @param inside: steps of the pointer into what was decoded; empty: it is one event.
    @ivar events: those that were found.
    """

    def __init__(self, steps: tuple[str, ...], decode: str = "", inside: tuple[str, ...] = ()) -> None:
        self.events: list[SplitEvent] = []
        self._steps = steps
        self._decode = decode
        self._inside = inside
        self._visited = 0
        self._unpacked = 0
        self._room = 0

    def run(self, raw: bytes) -> None:
        """
        Find the events in a value.

        @raise NotOfThisForm: something on the way is neither an object nor an array, or the first array is not there.
        @raise TooManyParts: there are more than L{MAX_EVENTS}.
        @raise RequestRefused: what is packed unpacks to too much.
        """
        self._room = room_for_envelopes(len(raw))
        self._walk(raw, self._steps, _WayTo())

    def _walk(self, raw: bytes, steps: tuple[str, ...], way: _WayTo, element: _Element | None = None) -> None:
        """
        @param element: the innermost element of an array that C{raw} is, or is in; it is an event by itself where the
            next array is not there.
        """
        if "*" not in steps:
            self._take(raw, steps, way)
            return
        step, rest = steps[0], steps[1:]
        if element is not None and raw[:1] != (b"[" if step == "*" else b"{"):
            self._add(element.raw, self._around(element.way))
        elif step == "*":
            self._walk_elements(elements(raw, MAX_EVENTS), rest, way.into_array())
        else:
            values, way = _led_on(members(raw), step, way)
            if not values and element is None:
                raise NotOfThisForm
            if not values and element is not None:
                self._add(element.raw, self._around(element.way))
            for value in values:
                if value != b"null":  # as some have it for an empty array
                    self._walk(value, rest, way, element)

    def _walk_elements(self, found: list[bytes], rest: tuple[str, ...], way: _WayTo) -> None:
        if rest:
            for element in found:
                self._count()
                self._walk(element, rest, way, _Element(element, way))
        elif found:
            around = self._around(way, len(found))
            for element in found:
                self._count()
                if self._decode and element[:1] == b'"':
                    self._take_encoded(element, way)
                else:
                    self._add(element, around)

    def _take(self, raw: bytes, steps: tuple[str, ...], way: _WayTo) -> None:
        """Take an element: what names lead to in it, or all of it where they lead nowhere."""
        inner, inner_way = raw, way
        for step in steps:
            values: list[bytes] = []
            if inner[:1] == b"{":
                values, inner_way = _led_on(members(inner), step, inner_way)
            if len(values) != 1:
                self._add(raw, self._around(way))
                return
            inner = values[0]
        if self._decode and inner[:1] == b'"':
            self._take_encoded(inner, inner_way)
        elif not self._take_inside(inner, inner_way):
            self._add(inner, self._around(inner_way))

    def _take_encoded(self, raw: bytes, way: _WayTo) -> None:
        data = self._decoded(raw)
        if data is None:
            self._add(raw, self._around(way))
            return
        if self._take_inside(data, way):
            return
        self.events.append(SplitEvent(data, not data.startswith(OBJECT_OR_ARRAY), self._around(way, is_base64=True)))

    def _take_inside(self, data: bytes, way: _WayTo) -> bool:
        """Take the events inside of an object; return False, and take nothing, if there are none."""
        if not (self._inside and data.startswith(b"{")):
            return False
        before = len(self.events)
        try:
            self._walk(data, self._inside, way)
        except NotOfThisForm:
            del self.events[before:]
            return False
        return True

    def _around(self, way: _WayTo, events: int = 1, *, is_base64: bool = False) -> Surroundings:
        """Return what stands around so many events, each of which gets a copy."""
        size = way.size * events
        if size > self._room:
            bare = tuple(Ancestor(level.step) for level in way.levels)
            return msgspec.structs.replace(surroundings(bare, is_base64), is_left_out=True)
        self._room -= size
        return surroundings(way.levels, is_base64)

    def _decoded(self, raw: bytes) -> bytes | None:
        """
        Return what a string in Base64 stands for, unpacked; None if it stands for nothing.

        @raise RequestRefused: it unpacks to too much.
        """
        try:
            data = b64decode(text_content(raw), validate=True)
        except binascii.Error:
            return None
        yield_point()
        if data.startswith(GZIP) and self._decode == "base64+gzip":
            try:
                data = unpack(data, [b"gzip"], MAX_UNPACKED - self._unpacked, MAX_RATIO)
            except RequestRefused as refused:
                if refused.reason is BAD_COMPRESSION:
                    return None
                raise
            self._unpacked += len(data)
            self._room = min(MAX_ENVELOPES, self._room + room_for_envelopes(len(data)))
        return data.removesuffix(b"\n").removesuffix(b"\r")

    def _add(self, raw: bytes, around: Surroundings) -> None:
        if raw[:1] in OBJECT_OR_ARRAY:
            self.events.append(SplitEvent(raw, False, around))
        else:
            self.events.append(SplitEvent(text_content(raw), True, around))

    def _count(self) -> None:
        """
        @raise TooManyParts: that was one element too many.
        """
        self._visited += 1
        if self._visited > 2 * MAX_EVENTS or len(self.events) >= MAX_EVENTS:
            raise TooManyParts
        yield_point()


def _led_on(found: list[tuple[str, bytes]], step: str, way: _WayTo) -> tuple[list[bytes], _WayTo]:
    """Return the values of a member, and the way into it."""
    values = [value for name, value in found if name == step]
    return values, way.into_object(step, [member for member in found if member[0] != step])


def text_content(raw: bytes) -> bytes:
    """Return the content of a string of JSON, or the number or word that it is instead."""
    try:
        value = parse_strict_json(raw)
    except PayloadError:
        return raw
    return value.encode("utf-8", "replace") if isinstance(value, str) else raw
