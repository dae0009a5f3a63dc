"""
Messages as bytes: a line of JSON for files and consumers, and the form that a spool stores.

A line is one object of valid JSON on one line, whatever a sender wrote (L{webhookrx.message.escapes}): a message of the
source form is flat, one key per name, C{ISODATE} first; one of the router form has the two objects C{log} and C{meta}.

A stored message is a mark, the moment of receipt as eight bytes, and the pairs as JSON in their order. JSON gives back
all that it can express, numbers by their spelling. Integers with more digits than Python is sure to read do not survive
it; a message with one has each value that is more than text tagged with its kind.

A long text is encoded in pieces. Everything else in a message is bounded where it is made, so one call takes some
milliseconds at most; the text of a body may be full of characters that take ten nanoseconds each.
"""

from __future__ import annotations

import io
import secrets
import struct
import sys
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import re2  # type: ignore[import-untyped]

from webhookrx.errors import WebhookrxError
from webhookrx.message.escapes import encode, encode_lines, escape_misleading, without_misleading, write_in_pieces
from webhookrx.message.macros import isodate
from webhookrx.message.message import Message, Value
from webhookrx.message.record import is_router_form
from webhookrx.regex import occurs_in
from webhookrx.speedups import compiled
from webhookrx.yield_point import PIECE, encode_utf_8, run_unlocked, yield_point


def encode_line(message: Message) -> bytes:
    """
    Return a message as a line: one JSON object with all its pairs in UTF-8, and C{b"\\n"}. It is always one line of
    valid JSON, whatever bytes a sender chose: it holds no control characters, line or paragraph separators or bidi
    controls other than as escapes.

    It never raises for values of the type L{webhookrx.message.message.Value}.
    """
    if message.line is not None:
        return message.line
    values = message.values
    # The look for "log" spares nearly all messages of the source form a call.
    is_whole = "ISODATE" in values or ("log" in values and is_router_form(values))
    if not is_whole:
        values = {"ISODATE": isodate(message.received), **values}
    text = long_text(values)
    if text is not None:
        return encode_around(text, values, escape=True, after=b"\n")
    # What encode_json() does, without the call that each message would pay for.
    line = encode_lines([values])
    return without_misleading(line) if 0x7F in line or not line.isascii() else line


def encode_object(message: Message) -> bytes:
    """Return the same as L{encode_line} without the line end."""
    return encode_line(message)[:-1]


#: Placeholder for the text; random, so that no sender can write it.
_MARK: Final = encode(secrets.token_hex(16))


def long_text(values: Mapping[str, Value]) -> str | None:
    """Return C{MESSAGE}, or C{log.body} of the router form, if it is a text that is worth encoding in pieces."""
    text = values.get("MESSAGE")
    if text is None:
        log = values.get("log")
        text = log.get("body") if type(log) is dict else None
    return text if type(text) is str and len(text) > PIECE else None


def encode_around(
    text: str, values: Mapping[str, Value], *, escape: bool, before: bytes = b"", after: bytes = b""
) -> bytes:
    """
    Return the values as compact JSON, with a yield point after each piece of it.

    @param text: what L{long_text} returned of them.
    @param escape: without misleading characters (L{webhookrx.message.escapes}).
    @param before: goes in front of the JSON, and C{after} behind it.
    """
    around: dict[str, Any]
    if values.get("MESSAGE") is text:
        around = {**values, "MESSAGE": msgspec.Raw(_MARK)}
    else:
        around = {**values, "log": {**values["log"], "body": msgspec.Raw(_MARK)}}  # type: ignore[dict-item]
    frame = encode(around)
    place = frame.index(_MARK)
    if compiled is not None:
        # With the quotes of the mark. A part may be as large as the text, and grow as much.
        first, last = frame[: place + 1], frame[place + len(_MARK) - 1 :]
        if escape:
            first = run_unlocked(len(first), compiled.escape_text, first, before, b"", False, True)
            last = run_unlocked(len(last), compiled.escape_text, last, b"", after, False, True)
        else:
            first, last = before + first, last + after
        utf_8 = encode_utf_8(text, errors="strict")
        return run_unlocked(len(utf_8), compiled.escape_text, utf_8, first, last, True, escape)
    clean = escape_misleading if escape else bytes
    yield_point()
    # It grows in place, so that no copy of all of it is made at the end.
    encoded = io.BytesIO()
    write = encoded.write
    write(before)
    write_in_pieces(frame, 0, place, clean, write)
    write(b'"')
    for start in range(0, len(text), PIECE):
        write(clean(encode(text[start : start + PIECE])[1:-1]))
        yield_point()
    write(b'"')
    write_in_pieces(frame, place + len(_MARK), len(frame), clean, write)
    write(after)
    return encoded.getvalue()


_PLAIN: Final = 1
_TAGGED: Final = 2

_HEAD: Final = struct.Struct(">Bq")

#: Digits of an integer that Python reads whatever PYTHONINTMAXSTRDIGITS says.
_SAFE_DIGITS: Final = sys.int_info.str_digits_check_threshold
#: What is a longer one in compact JSON, if it is not within a string.
_LONG_INTEGER: Final = re2.compile(rb"[\[,:]-?[0-9]{%d}" % (_SAFE_DIGITS + 1))

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(
    dict[str, Any], float_hook=lambda number: msgspec.Raw(number.encode("ascii"))
).decode


class NotAMessage(WebhookrxError):
    """Bytes that are no stored message; the text quotes none of them."""


def encode_stored(message: Message) -> bytes:
    """
    Return a message as bytes for L{decode_stored}.

    It never raises for values of the type L{webhookrx.message.message.Value}.
    """
    values = message.values
    stored = _stored(_PLAIN, message.received, values)
    if len(stored) > _SAFE_DIGITS and occurs_in(_LONG_INTEGER, stored, _SAFE_DIGITS + 3):
        return _stored(_TAGGED, message.received, {name: _tagged(value) for name, value in values.items()})
    return stored


def _stored(mark: int, received: int, values: dict[str, Any]) -> bytes:
    head = _HEAD.pack(mark, received)
    text = long_text(values)
    return head + _encode(values) if text is None else encode_around(text, values, escape=False, before=head)


def decode_stored(stored: bytes) -> Message:
    """
    Return the message whose bytes these are, equal to what was encoded in values and their order. A C{msgspec.Raw} that
    reads like an integer or an array comes back as one.

    @raise NotAMessage: they are not the bytes of a message.
    """
    try:
        mark, received = _HEAD.unpack_from(stored)
        values = _decode(memoryview(stored)[_HEAD.size :])
        if mark == _TAGGED:
            values = {name: _untagged(value) for name, value in values.items()}
        elif mark != _PLAIN:
            raise NotAMessage(f"stored in the unknown form {mark}")
    except (struct.error, msgspec.MsgspecError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise NotAMessage(f"not a stored message ({type(error).__name__})") from None
    return Message(values, received)


def received_of(stored: bytes) -> int:
    """Return when a stored message was received, in nanoseconds since the epoch, without decoding the rest."""
    received: int = _HEAD.unpack_from(stored)[1]
    return received


def _tagged(value: Value) -> Any:
    """Return a value such that its kind can be told: what JSON has no word for is an object of one member."""
    if isinstance(value, msgspec.Raw):
        return {"raw": bytes(value).decode()}
    if isinstance(value, dict):
        return {"object": {name: _tagged(member) for name, member in value.items()}}
    if isinstance(value, list):
        return [_tagged(element) for element in value]
    if type(value) is int and value.bit_length() > 64:
        # Hexadecimal: Python refuses decimal texts of thousands of digits.
        return {"int": hex(value)}
    return value


def _untagged(value: Any) -> Value:
    if isinstance(value, list):
        return [_untagged(element) for element in value]
    if not isinstance(value, dict):
        return value  # type: ignore[no-any-return]  # JSON has no other kinds
    ((kind, content),) = value.items()
    if kind == "object":
        return {name: _untagged(member) for name, member in content.items()}
    return int(content, 16) if kind == "int" else msgspec.Raw(content.encode())
