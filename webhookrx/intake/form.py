"""
Bodies that are forms, as browsers and some code hosts post them.
"""

from __future__ import annotations

from typing import Final

from webhookrx.errors import RequestRefused
from webhookrx.intake.head import Head
from webhookrx.intake.json_body import PayloadError, parse_strict_json
from webhookrx.intake.query import MAX_PARAMETERS, parse_query
from webhookrx.message.message import Value
from webhookrx.yield_point import PIECE, yield_point

_FORM: Final = b"application/x-www-form-urlencoded"

#: What a form never holds: who has written it would have encoded them. Plain text nearly always has one.
_NOT_IN_FORMS: Final = bytes({*range(0x21), 0x7F, *b'"<>\\^`{|}'})

_PAYLOAD: Final = "payload"
"""The field in which code hosts send their JSON."""


def says_form(head: Head) -> bool:
    """Tell whether a request says that its body is a form. C{curl -d} says so of whatever it sends."""
    types = head.values(b"content-type")
    return bool(types) and types[0].partition(b";")[0].strip().lower() == _FORM


def form_members(body: bytes) -> dict[str, Value] | None:
    """
    Return the fields of a form as the members of an object: text, or a list of texts where a name is repeated. Where
    the field C{payload} holds a JSON object, its members stand in its place.

    @return: None when it is none: a part is not C{name=value}, there are too many, or they are not UTF-8.
    """
    body = body.rstrip(b"\r\n")
    if body.count(b"&") >= MAX_PARAMETERS or not _is_plain(body):
        return None
    if any(part.find(b"=") < 1 for part in body.split(b"&")):
        return None
    try:
        fields: dict[str, Value] = parse_query(body)  # type: ignore[assignment]  # dict is invariant
    except RequestRefused:
        return None
    payload = fields.get(_PAYLOAD)
    if isinstance(payload, str) and payload.startswith("{"):
        try:
            members = parse_strict_json(payload.encode())
        except PayloadError:
            return fields
        if isinstance(members, dict):
            del fields[_PAYLOAD]
            fields |= members
    return fields


def _is_plain(body: bytes) -> bool:
    for start in range(0, len(body), PIECE):
        piece = body[start : start + PIECE]
        if len(piece.translate(None, _NOT_IN_FORMS)) < len(piece):
            return False
        yield_point()
    return True
