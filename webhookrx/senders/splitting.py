"""
Splitting: a bundle, which is a body with several events, becomes a body for each event.

Work is in proportion to the body, with yield points; nothing of a body is left behind: what has not the form that a way
needs stays one message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from webhookrx.errors import TOO_MANY_EVENTS, RequestRefused
from webhookrx.intake.json_body import PayloadError, parse_strict_json
from webhookrx.message.escapes import encode_json
from webhookrx.senders.bodies import LOGPLEX, cut_frames
from webhookrx.senders.bundle import (
    MAX_EVENTS,
    Bundle,
    SplitEvent,
    Surroundings,
    carried,
    compact,
    room_for_envelopes,
)
from webhookrx.senders.compiled import CompiledSender
from webhookrx.senders.json_parts import NotOfThisForm, TooManyParts, documents, members, without_mark
from webhookrx.senders.locator import parse_pointer
from webhookrx.senders.msgpack import MEDIA_TYPES as MSGPACK
from webhookrx.senders.msgpack import read_msgpack
from webhookrx.senders.otlp import MEDIA_TYPES as OTLP
from webhookrx.senders.otlp import OtlpError, read_logs
from webhookrx.senders.split_definition import Split
from webhookrx.senders.split_values import ValueSplitter
from webhookrx.yield_point import count_up_to, yield_point

FEW_EVENTS: Final = 200
"""Events that are judged at once: each may take some ten microseconds."""

#: What is between two events, at least.
_SEPARATORS: Final = {
    "value": (b",",),
    "documents": (b"{", b"["),
    "lines": (b"\n",),
    "bulk": (b"\n",),
    "frames": (b" ",),
}

_BEGINNINGS: Final = (b"[", b"{", b" ", b"\r", b"\n", b"\xef")

_LINES: Final = 16 * 1024
"""Bytes that are cut into lines at once; each may be one."""

_SCALARS: Final = tuple(bytes([character]) for character in b'"-0123456789tfn')
"""How a text or number begins that is JSON by itself."""

_FRAMED: Final = Surroundings(is_frame=True)
_ACTIONS: Final = ("index", "create", "update")
"""Actions of Elasticsearch's bulk API with a document behind them."""


class Splitter:
    """
    Takes bodies apart.

    @param splits: ways to do so; the first that fits a body counts.
    """

    def __init__(self, splits: tuple[Split, ...]) -> None:
        self._ways = [_way(split) for split in splits]
        self._unpacks = any(split.decode for split in splits)
        self._reads_values = any(split.by == "value" for split in splits)
        self._separators = tuple({byte for split in splits for byte in _SEPARATORS[split.by]})

    def may_hold_many(self, body: bytes) -> bool:
        """Tell whether a body may hold more than L{FEW_EVENTS}."""
        if self._unpacks or (self._reads_values and not body.startswith(_BEGINNINGS)):  # it may be binary
            return True
        return count_up_to(FEW_EVENTS, body, *self._separators) >= FEW_EVENTS

    def split(self, body: bytes, media_type: str = "") -> Bundle | None:
        """
        Take a body apart, with yield points.

        @param body: unpacked.
        @param media_type: that of the request, in lower case and without parameters.
        @return: None when no way fits: then it is one message, as without splitting.
        @raise RequestRefused: C{TOO_MANY_EVENTS}; or C{BODY_TOO_LARGE} or C{UNPACK_RATIO} where events are packed.
        """
        try:
            for way in self._ways:
                try:
                    events = way(body, media_type)
                except NotOfThisForm:
                    continue
                return Bundle(events, sum([event.around.is_left_out for event in events]))
        except TooManyParts:
            raise RequestRefused(TOO_MANY_EVENTS) from None
        return None


_Way = Callable[[bytes, str], list[SplitEvent]]


def splitter_for(text: str, sender: CompiledSender | None) -> Splitter | None:
    """
    Return what an option C{split} asks for; None for C{no}.

    @param text: C{no}, C{yes} for the sender's own ways, of which it has some, C{lines}, C{documents}, or a JSON
        pointer to an array, or to elements with C{*}; the settings were checked.
    """
    if text == "no":
        return None
    if text == "yes":
        assert sender is not None, "it has ways of its own"
        return Splitter(sender.definition.splits)
    if text in ("lines", "documents"):
        return Splitter((Split(by=text),))
    return Splitter((Split(at=text if "*" in parse_pointer(text) else text + "/*"),))


def _way(split: Split) -> _Way:
    if split.by == "lines":
        return _split_lines
    if split.by == "documents":
        return lambda body, _: _split_documents(body, split.carry)
    if split.by == "bulk":
        return lambda body, _: list(_split_bulk(body))
    if split.by == "frames":
        return _split_frames
    steps = parse_pointer(split.at)
    inside = parse_pointer(split.inside) if split.inside else ()
    return lambda body, media_type: _split_value(body, media_type, ValueSplitter(steps, split.decode, inside))


def _split_value(body: bytes, media_type: str, splitter: ValueSplitter) -> list[SplitEvent]:
    """
    @raise NotOfThisForm: it is no such value.
    """
    if media_type in OTLP:
        try:
            body = encode_json(read_logs(body))
        except OtlpError:
            raise NotOfThisForm from None
    elif media_type in MSGPACK:
        body = encode_json(read_msgpack(body))
    splitter.run(without_mark(body).strip())
    return splitter.events


def _split_lines(body: bytes, media_type: str) -> list[SplitEvent]:
    """
    @raise NotOfThisForm: never; every body has lines.
    @raise TooManyParts: it has too many.
    """
    return [_event(line) for line in _lines(body, MAX_EVENTS)]


def _lines(body: bytes, most: int) -> Iterator[bytes]:
    """
    Yield all lines that are not blank, without their ends.

    @raise TooManyParts: there are too many.
    """
    body = without_mark(body)
    start = found = 0
    while start < len(body):
        end = body.rfind(b"\n", start, start + _LINES) + 1 or body.find(b"\n", start) + 1 or len(body)
        yield_point()
        for line in body[start:end].split(b"\n"):
            if line and not line.isspace():
                found += 1
                if found > most:
                    raise TooManyParts
                yield line.removesuffix(b"\r")
        start = end


def _event(line: bytes) -> SplitEvent:
    """Return the event that a line is. A text or number of JSON is one by itself."""
    text = line.strip()
    if text.startswith(_SCALARS):
        try:
            value = parse_strict_json(text)
        except PayloadError:
            return SplitEvent(line)
        return SplitEvent(value.encode("utf-8", "replace") if isinstance(value, str) else text, True)
    return SplitEvent(line)


def _split_documents(body: bytes, carry: tuple[str, ...]) -> list[SplitEvent]:
    """
    @raise NotOfThisForm: it does not begin with an object or array.
    @raise TooManyParts: there are too many.
    """
    body = without_mark(body)
    if not body.strip():
        return []
    found, rest = documents(body, MAX_EVENTS)
    if not found:
        raise NotOfThisForm
    events = (
        list(_with_defaults(found, carry, room_for_envelopes(len(body))))
        if carry
        else [SplitEvent(document) for document in found]
    )
    if rest:
        events.append(SplitEvent(rest))
    if len(events) > MAX_EVENTS:
        raise TooManyParts
    return events


def _with_defaults(found: list[bytes], carry: tuple[str, ...], room: int) -> Iterator[SplitEvent]:
    """
    Yield events with the members of documents before them that they have not themselves.

    @param room: bytes that all envelopes may take.
    """
    defaults: dict[str, bytes] = {}
    known: dict[tuple[tuple[str, bytes], ...], Surroundings] = {}
    for document in found:
        yield_point()
        own = dict(members(document)) if document.startswith(b"{") else dict.fromkeys(carry, b"")
        missing = tuple((name, value) for name, value in defaults.items() if name not in own)
        around = known.get(missing)
        if around is None:
            known = {missing: (around := carried(missing))}
        room -= len(around.envelope)
        yield SplitEvent(document, False, around if room >= 0 else Surroundings(is_left_out=True))
        if document.startswith(b"{"):
            defaults |= {name: own[name] for name in carry if name in own}


def _split_bulk(body: bytes) -> Iterator[SplitEvent]:
    """
    @raise NotOfThisForm: it does not begin with an action.
    @raise TooManyParts: there are too many lines.
    """
    lines = _lines(body, 2 * MAX_EVENTS)
    for number, line in enumerate(lines):
        try:
            actions = members(line.strip())
        except NotOfThisForm:
            if not number:
                raise
            actions = []
        if len(actions) != 1 or actions[0][0] not in _ACTIONS or (document := next(lines, None)) is None:
            if not number and not (len(actions) == 1 and actions[0][0] == "delete"):
                raise NotOfThisForm
            yield SplitEvent(line)
            continue
        envelope = compact(line)
        yield SplitEvent(document, False, Surroundings(envelope or b"", envelope is None, ("1",), line + b"\n", b"\n"))


def _split_frames(body: bytes, media_type: str) -> list[SplitEvent]:
    """
    @raise NotOfThisForm: it does not begin with a frame.
    @raise TooManyParts: there are too many.
    """
    frames, rest = cut_frames(body, MAX_EVENTS + 1)
    if len(frames) > MAX_EVENTS:
        raise TooManyParts
    if not frames and rest:
        raise NotOfThisForm
    framed = _FRAMED if media_type == LOGPLEX else Surroundings()
    events = [SplitEvent(frame.removesuffix(b"\n"), True, framed) for frame in frames]
    return [*events, SplitEvent(rest, True)] if rest else events
