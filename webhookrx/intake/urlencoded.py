"""
Queries and forms (C{a=1&b=2}, C{application/x-www-form-urlencoded}) as names and texts.
"""

from __future__ import annotations

from binascii import a2b_qp
from typing import Final
from urllib.parse import unquote_to_bytes

from webhookrx.errors import BAD_ENCODING, BAD_REQUEST, RequestRefused
from webhookrx.intake.head import Head
from webhookrx.intake.json_body import PayloadError, parse_strict_json
from webhookrx.intake.remembered import Remembered
from webhookrx.message.message import Value
from webhookrx.yield_point import PIECE, yield_point

MAX_PARAMETERS: Final = 1000
"""The most that a query may hold: each becomes a name-value pair."""

_PERCENT: Final = ord("%")


def parse_query(query: bytes) -> dict[str, str | list[str]]:
    """
    Read a query as HTML forms write it: pairs apart by C{&} only, C{+} for a blank, percent-encoded UTF-8.

    A percent sign that two hexadecimal digits do not follow stands for itself. A pair without C{=} has an empty value.

    @param query: raw, without the question mark.
    @return: name to value, in the order of first appearance; a name that is repeated has the list of its values.
    @raise RequestRefused: C{BAD_ENCODING} when a name or value is not UTF-8 once decoded, C{BAD_REQUEST} when there
        are more than L{MAX_PARAMETERS}.
    """
    values: dict[str, str | list[str]] = {}
    if not query:
        return values
    is_long = len(query) > PIECE  # a form; then each part has its blanks put in on its own, with turns for others
    pairs = (query if is_long else query.replace(b"+", b" ")).split(b"&")
    if len(pairs) > MAX_PARAMETERS and len(pairs) - pairs.count(b"") > MAX_PARAMETERS:
        raise RequestRefused(BAD_REQUEST, f"The query holds more than {MAX_PARAMETERS} parameters.")
    since_turn = 0
    for pair in pairs:
        if not pair:
            continue
        raw_name, _, raw_value = pair.partition(b"=")
        if is_long:
            since_turn += len(pair)
            if since_turn > PIECE:
                yield_point()
                since_turn = 0
            raw_name, raw_value = _unquoted(raw_name), _unquoted(raw_value)
        else:
            raw_name = unquote_to_bytes(raw_name) if _PERCENT in raw_name else raw_name
            raw_value = unquote_to_bytes(raw_value) if _PERCENT in raw_value else raw_value
        try:
            name, value = raw_name.decode(), raw_value.decode()
        except UnicodeDecodeError:
            raise RequestRefused(BAD_ENCODING) from None
        earlier = values.get(name)
        if earlier is None:
            values[name] = value
        elif isinstance(earlier, list):
            earlier.append(value)
        else:
            values[name] = [earlier, value]
    return values


def remembered_query(query: bytes) -> dict[str, str | list[str]]:
    """
    Do what L{parse_query} does, for a query that senders repeat.

    @return: shared by all requests with that query: leave it as it is.
    """
    return _QUERIES[query]


def _has_no_list(values: dict[str, str | list[str]]) -> bool:
    return all(type(value) is str for value in values.values())


#: Those with a list are left out: it becomes part of a message, where a step may change it.
_QUERIES: Final = Remembered(parse_query, most=1024, longest=128, keeps=_has_no_list)


def _unquoted(raw: bytes) -> bytes:
    """Undo blanks and percent-encoding, with a yield point after each piece of a long text."""
    if len(raw) <= PIECE:
        return _unquoted_at_once(raw.replace(b"+", b" "))
    pieces = []
    start = 0
    while start < len(raw):
        end = start + PIECE
        begun = raw.rfind(b"%", end - 2, end)  # an escape that the end would cut in two
        end = end if begun < 0 else begun
        pieces.append(_unquoted_at_once(raw[start:end].replace(b"+", b" ")))
        start = end
        yield_point()
    return b"".join(pieces)


def _unquoted_at_once(piece: bytes) -> bytes:
    """
    Undo percent-encoding in a fifteenth of the time that it takes escape by escape: as quoted-printable (RFC 2045
    §6.7), which differs in its escape character, and in malformed escapes.

    @param piece: holds no line ends.
    """
    text = a2b_qp(piece.replace(b"=", b"=3D").replace(b"%", b"="))
    return text if len(text) == len(piece) - 2 * piece.count(b"%") else unquote_to_bytes(piece)


_FORM: Final = b"application/x-www-form-urlencoded"

#: Bytes that a form never holds, since its writer encodes them. Plain text nearly always has one.
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

    @return: None when the body is not a form: a part is not C{name=value}, there are too many, or they are not UTF-8.
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
