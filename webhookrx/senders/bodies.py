"""
Bodies other than one JSON document: lines of JSON, concatenated documents, forms, and frames of Heroku's logplex, which
are lines of syslog (RFC 5424), each behind the number of its bytes (RFC 6587 section 3.4.1).

Nothing here raises for any body; time and memory are linear in its length.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

from webhookrx.errors import RequestRefused
from webhookrx.intake.json_body import PayloadError, body_text, has_too_many_values, parse_strict_json
from webhookrx.intake.urlencoded import parse_query
from webhookrx.message.message import Value
from webhookrx.senders.msgpack import MEDIA_TYPES as MSGPACK
from webhookrx.senders.msgpack import read_msgpack
from webhookrx.senders.otlp import MEDIA_TYPES as OTLP
from webhookrx.senders.otlp import holds_logs
from webhookrx.yield_point import yield_point

FORM: Final = "application/x-www-form-urlencoded"

MAX_EVENTS: Final = 10_000
"""Events that a body is taken apart into; what is behind them stays as it is."""

MAX_FIRST: Final = 256 * 1024
"""Characters in which the first of several documents, or a form, must end for a request to be recognised by it."""

MAX_FORM: Final = 1024 * 1024
"""Bytes of a form that is read at all: each of its escapes costs a fraction of a microsecond."""

_FIRST_ELEMENTS: Final = 100
"""Elements of an array among which the first object is looked for."""

_MANY_QUOTES: Final = 10
_OF_JSON: Final = tuple((f"%{ord(character):02X}".encode(), character.encode()) for character in '":,{}[]/\\')
"""
Escapes that a form with JSON in a field has by the hundred: all at once they cost half as much. None of the characters
means anything in a form, or can become part of another escape.
"""

_BLANK: Final = " \t\r\n"
_BEGINNINGS: Final = ("{", "\ufeff", *_BLANK)
_FORM: Final = re.compile(rb"[\w.%+~\[\]-]{1,256}=[!#-;=?-\[\]_a-z|~]*\s*")
_WHITE_SPACE: Final = re.compile(f"[{_BLANK}]*")

#: Finds where a document ends. Numbers stay text, so that a long one costs nothing.
_find_end: Final = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode


class Events(NamedTuple):
    """
    What a body was taken apart into.

    @ivar rest: text behind the events that is no event, or beyond the limit; may be empty.
    """

    events: list[Value]
    rest: str = ""


def first_element(array: list[Value]) -> dict[str, Value] | None:
    """Return the first object in an array; None when there is none near its beginning."""
    return next((each for each in array[:_FIRST_ELEMENTS] if type(each) is dict), None)


def first_object(body: bytes, text: str, media_type: str) -> dict[str, Value] | None:
    """
    Return the first object in a body that is neither one JSON document nor a form; None when there is none.

    @param text: the body as text.
    @param media_type: that of the request, in lower case.
    """
    if media_type == LOGPLEX:
        frames, _ = split_frames(body, 1)
        first = frames[0] if frames else None
    elif media_type in OTLP:
        # To read it takes the extra; whose it is shows without.
        first = {"resourceLogs": []} if holds_logs(body) else None
    elif media_type in MSGPACK:
        packed = read_msgpack(body)
        first = first_element(packed) if isinstance(packed, list) else packed
    elif text.startswith(_BEGINNINGS) and (start := text[:MAX_FIRST].lstrip(_BLANK + "\ufeff")).startswith("{"):
        first = _first_document(start)
    else:
        first = None
    return first if isinstance(first, dict) else None


def _first_document(text: str) -> Value:
    line, line_end, _ = text.partition("\n")
    if line_end:
        try:
            return parse_strict_json(line.encode("utf-8", "replace"))
        except PayloadError:
            pass  # It goes over several lines, or another one follows in the same line.
    end = _end_of_document(text, 0)
    return None if end is None else _read_document(text[:end].encode("utf-8", "replace"))


def split_lines(body: bytes) -> Events | None:
    """
    Read a body whose lines are JSON. Blank lines are left out; a line that is no JSON object or array is an event that
    is text.

    @return: None when no line is one, or there are too many values.
    """
    if has_too_many_values(body):
        return None
    lines = body.removeprefix(b"\xef\xbb\xbf").split(b"\n", MAX_EVENTS)
    rest = lines.pop() if len(lines) > MAX_EVENTS else b""
    lines = [line for line in map(bytes.strip, lines) if line]
    events = [_read_document(line) for line in lines]
    if not any(event is not None for event in events):
        return None
    texts = (body_text(line)[0] if event is None else event for line, event in zip(lines, events, strict=True))
    return Events(list(texts), body_text(rest)[0])


def split_documents(body: bytes, text: str) -> Events | None:
    """
    Read a body that has JSON objects or arrays one after another, with or without white space between them.

    @return: None when it does not begin with one, or there are too many values.
    """
    if has_too_many_values(body):
        return None
    events: list[Value] = []
    start = _skip_blank(text, 1 if text.startswith("\ufeff") else 0)
    while len(events) < MAX_EVENTS and start < len(text):
        end = _end_of_document(text, start)
        if end is None:
            break
        event = _read_document(text[start:end].encode("utf-8", "replace"))
        if event is None:
            break
        events.append(event)
        start = _skip_blank(text, end)
    return Events(events, text[start:]) if events else None


def form_fields(body: bytes, media_type: str) -> dict[str, Value] | None:
    """
    Return the fields of a form: text, or arrays of text where a name is repeated; None when it is not a form. It is
    one if its media type says so, unless it begins as JSON does, which many send as forms; or if there is no media
    type, and it looks like one.
    """
    if len(body) > MAX_FORM:
        return None
    if media_type == FORM:
        return None if body.lstrip().startswith((b"{", b"[")) else _read_form(body)
    return _read_form(body) if not media_type and _FORM.fullmatch(body) else None


def _read_form(body: bytes) -> dict[str, Value] | None:
    body = body.strip()
    if body.count(b"%22") > _MANY_QUOTES:
        for escape, character in _OF_JSON:
            body = body.replace(escape, character)
    try:
        return parse_query(body) or None  # type: ignore[return-value]  # dict is invariant
    except RequestRefused:
        return None


def read_frames(body: bytes) -> Events | None:
    """Return the frames of a body; None when it does not begin with one."""
    frames, rest = split_frames(body, MAX_EVENTS)
    return Events(frames, body_text(rest)[0]) if frames else None


def _read_document(line: bytes) -> Value:
    """Return the object or array that a line is; None when it is neither."""
    if line[:1] not in (b"{", b"["):
        return None
    try:
        return parse_strict_json(line)
    except PayloadError:
        return None


def _end_of_document(text: str, start: int) -> int | None:
    if text[start : start + 1] not in ("{", "["):
        return None
    try:
        return _find_end(text, start)[1]
    except (ValueError, RecursionError):
        return None


def _skip_blank(text: str, start: int) -> int:
    return _WHITE_SPACE.match(text, start).end()  # type: ignore[union-attr]  # it matches nothing, too


LOGPLEX: Final = "application/logplex-1"

_COUNT: Final = re.compile(rb"\s{0,16}([1-9][0-9]{0,8}) ")
_TEXT: Final = re.compile(rb"\S")
_FRAME: Final = re.compile(
    r"<(?P<priority>[0-9]{1,3})>[0-9]{1,3} (?P<timestamp>\S+) (?P<hostname>\S+) (?P<app_name>\S+) (?P<procid>\S+) "
    r"(?P<msgid>\S+)(?: (?P<message>.*))?",
    re.DOTALL,
)
_HIGHEST: Final = 191
"""RFC 5424 section 6.2.1."""

_LEVELS: Final = ("emergency", "alert", "critical", "error", "warn", "notice", "info", "debug")
"""RFC 5424, table 2, in the words of L{SEVERITIES}."""


def split_frames(body: bytes, most: int) -> tuple[list[Value], bytes]:
    """
    Take frames apart.

    @param most: how many.
    @return: a value for each frame, see L{read_frame}; and what is left once something is no frame, or there are too
        many.
    """
    frames, rest = cut_frames(body, most)
    return [read_frame(frame) for frame in frames], rest


def cut_frames(body: bytes, most: int) -> tuple[list[bytes], bytes]:
    """Do the same without reading them."""
    frames: list[bytes] = []
    start = 0
    while len(frames) < most:
        count = _COUNT.match(body, start)
        if count is None or count.end() + int(count[1]) > len(body):
            break
        start = count.end() + int(count[1])
        frames.append(body[count.end() : start])
        yield_point()
    return frames, body[start:] if _TEXT.search(body, start) else b""


def read_frame(frame: bytes) -> dict[str, Value]:
    """
    Return the members of a frame, see L{webhookrx.senders.definition}. It has no structured data, which
    logplex leaves out against RFC 5424. A frame that is no line of syslog is a C{message} as a whole.
    """
    text, _ = body_text(frame.removesuffix(b"\n"))
    found = _FRAME.fullmatch(text)
    priority = _HIGHEST + 1 if found is None else int(found["priority"])
    if found is None or priority > _HIGHEST:
        return {"message": text}
    members: dict[str, Value] = {"priority": priority, "facility": priority >> 3, "severity": _LEVELS[priority & 7]}
    for name, value in found.groupdict().items():
        if name != "priority" and value is not None and value != "-":
            members[name] = value
    return members
