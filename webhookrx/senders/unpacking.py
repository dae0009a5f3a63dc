"""
A body taken apart as its sender's definition says: events, and structured texts decoded in their places.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable
from typing import Any, Final

import msgspec

from webhookrx.errors import RequestRefused
from webhookrx.intake.encodings import unpack as unpack_gzip
from webhookrx.intake.json_body import (
    MAX_DEPTH,
    MAX_ELEMENTS,
    PayloadError,
    count_brackets,
    count_separators,
    parse_strict_json,
)
from webhookrx.message.message import Value
from webhookrx.senders.bodies import Events, first_element, read_frames, split_documents, split_lines
from webhookrx.senders.compiled import CompiledSender
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.locator import LookupContext, element
from webhookrx.senders.msgpack import MEDIA_TYPES as MSGPACK
from webhookrx.senders.msgpack import read_msgpack
from webhookrx.senders.otlp import AVAILABLE, MISSING_EXTRA, OtlpError, read_logs
from webhookrx.senders.otlp import MEDIA_TYPES as OTLP

GZIP: Final = b"\x1f\x8b"
"""How what is packed by gzip begins."""

MAX_UNPACKED: Final = 32 * 1024 * 1024
"""Bytes that all packed parts of a body may unpack to."""

MAX_RATIO: Final = 100
"""How many times its size one of them may unpack to, see L{webhookrx.intake.encodings.unpack}."""

MAX_DECODED: Final = 10_000
"""Texts in a body that are decoded; the others stay text."""


class Unpacked(msgspec.Struct, frozen=True, gc=False):
    """
    A body taken apart.

    @ivar whole: an object; the list of its events when it has several; its text when it is neither.
    @ivar rest: text behind the events that was not taken apart.
    @ivar event: where the places of the definition are looked up first, see L{webhookrx.senders.locator.LookupContext}.
    """

    whole: Value
    rest: str
    event: Value

    def scope(self, evidence: Evidence) -> LookupContext:
        """
        Return where the places of the definition are looked up.

        @param evidence: what it was unpacked from; a reference here would make a cycle.
        """
        return LookupContext(evidence, self.event, self.whole)


def unpack(sender: CompiledSender, evidence: Evidence) -> Unpacked:
    """
    Take a body apart. The evidence remembers it, so that it is done once; but not one object with nothing in it to take
    apart.

    What is in the evidence is not changed; the result shares parts with it.

    @raise webhookrx.senders.otlp.OtlpError: the body is protobuf, and can't be read.
    """
    decoded: Any = evidence.decoded
    if type(decoded) is dict and sender.definition.format != "text":
        for name in sender.wrappers:
            if name in decoded:
                break
        else:
            return Unpacked(decoded, "", decoded)
    remembered: Any = evidence.unpacked
    if remembered is not None and remembered[0] is sender:
        if isinstance(remembered[1], OtlpError):
            raise remembered[1]
        return remembered[1]  # type: ignore[no-any-return]
    try:
        events = _events(sender.definition.format, evidence)
    except OtlpError as error:
        evidence.unpacked = (sender, error)
        raise
    whole: Any = evidence.text if events is None else events.events if isinstance(events, Events) else events
    if sender.decodes and type(whole) is not str:
        budget = _DecodingBudget()
        for steps, what in sender.decodes:
            whole = _decoded_at(whole, steps, what, budget, len(steps))
    event = _first_event(whole, sender.events)
    rest = events.rest if isinstance(events, Events) else ""
    unpacked = Unpacked(whole, rest, event)
    evidence.unpacked = (sender, unpacked)
    return unpacked


def unreadable(sender: CompiledSender, evidence: Evidence) -> str:
    """Return why bodies of this kind can't be taken apart here, in words; empty when they can."""
    if AVAILABLE or sender.definition.format != "otlp" or evidence.media_type not in OTLP:
        return ""
    return MISSING_EXTRA


def _events(body_format: str, evidence: Evidence) -> dict[str, Value] | Events | None:
    """Return the object that a body is, or its events; None when it is neither."""
    decoded = evidence.decoded
    if body_format == "text":
        return None
    if type(decoded) is dict:
        return decoded
    if type(decoded) is list:
        return Events(decoded)
    return READERS[body_format](evidence)


READERS: Final[dict[str, Callable[[Evidence], dict[str, Value] | Events | None]]] = {
    "json": lambda evidence: split_documents(evidence.body, evidence.text),
    "ndjson": lambda evidence: split_lines(evidence.body),
    "json-stream": lambda evidence: split_documents(evidence.body, evidence.text),
    "form": lambda evidence: evidence.form,
    "logplex": lambda evidence: read_frames(evidence.body),
    "msgpack": lambda evidence: _packed(evidence),
    "otlp": lambda evidence: _logs(evidence),
    "text": lambda evidence: None,
}
"""Name of a format to what reads a body that is not one JSON document."""


def _packed(evidence: Evidence) -> dict[str, Value] | Events | None:
    if evidence.media_type not in MSGPACK:
        return split_documents(evidence.body, evidence.text)
    value = read_msgpack(evidence.body)
    return Events(value) if isinstance(value, list) else value


def _logs(evidence: Evidence) -> dict[str, Value] | Events | None:
    if evidence.media_type not in OTLP:
        return split_documents(evidence.body, evidence.text)
    return read_logs(evidence.body)


def _first_event(whole: Any, steps: tuple[str, ...]) -> Value:
    if steps:
        pointed = whole if type(whole) is not list else first_element(whole)
        for step in steps:
            if type(pointed) is dict:
                pointed = pointed.get(step)
            else:
                pointed = element(pointed, step) if type(pointed) is list else None
        event = first_element(pointed) if type(pointed) is list else pointed
        if type(event) is dict:
            return event
    if type(whole) is list:
        return first_element(whole)
    return whole if type(whole) is dict else None


class _DecodingBudget:
    """What decoding may still cost, so that many small texts make no more values than one body may hold."""

    __slots__ = ("texts", "unpacked", "values")

    def __init__(self) -> None:
        self.texts = MAX_DECODED
        self.values = MAX_ELEMENTS
        self.unpacked = MAX_UNPACKED

    def allows(self, raw: bytes) -> bool:
        """Count a text that is JSON, perhaps."""
        self.values -= count_separators(raw, MAX_ELEMENTS) + 1
        return self.values >= 0


def _decoded_at(value: Any, steps: tuple[str, ...], what: str, budget: _DecodingBudget, depth: int) -> Any:
    """Return a value with all that a pointer leads to decoded; what is on the way is copied, the rest shared."""
    if not steps:
        return _decoded(value, what, budget, MAX_DEPTH - depth)
    step, *others = steps
    rest = tuple(others)
    if type(value) is dict:
        if step not in value:
            return value
        return value | {step: _decoded_at(value[step], rest, what, budget, depth)}
    if type(value) is not list:
        return value
    if step == "*":
        return [_decoded_at(each, rest, what, budget, depth) for each in value]
    if element(value, step) is None:
        return value
    copy = list(value)
    copy[int(step)] = _decoded_at(value[int(step)], rest, what, budget, depth)
    return copy


def _decoded(value: Any, what: str, budget: _DecodingBudget, levels: int) -> Any:
    """
    Return what a text stands for; the text itself when it is something else than the definition says, or too much.

    @param levels: how deep it may nest.
    """
    if type(value) is not str or budget.texts <= 0:
        return value
    budget.texts -= 1
    raw = value.encode("utf-8", "replace")
    if what != "json":
        try:
            raw = b64decode(raw, validate=True)
            if what == "base64+gzip+json" and raw.startswith(GZIP):
                raw = unpack_gzip(raw, [b"gzip"], budget.unpacked, MAX_RATIO)
                budget.unpacked -= len(raw)
            value = raw.decode()
        except (binascii.Error, RequestRefused, UnicodeDecodeError):
            return value
    if what == "base64" or not value.lstrip().startswith(("{", "[")) or not budget.allows(raw):
        return value
    try:
        found = parse_strict_json(raw)
    except PayloadError:
        return value
    return value if count_brackets(raw, levels) > levels and _nests_deeper(found, levels) else found


def _nests_deeper(value: Any, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) in (dict, list)
        ]
        if not level:
            return False
    return True
