"""
A message as bytes that give it back exactly: what a spool keeps.

The bytes are a mark, the moment of receipt as eight bytes, and the pairs as JSON in their order. JSON alone gives back
nearly every message; where it would not (a C{msgspec.Raw} that reads like an integer, an integer of more than 64
bits), each value that is more than text is written with a word for its kind.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import msgspec

from webhookrx.errors import WebhookrxError
from webhookrx.message.long_text import encode_around, long_text
from webhookrx.message.message import Message, Value
from webhookrx.yield_point import yield_point

_PLAIN: Final = 1
_TAGGED: Final = 2

_HEAD: Final = struct.Struct(">Bq")

_INT_RANGE: Final = range(-(1 << 63), 1 << 64)
_SIMPLE: Final = frozenset({str, bool, type(None)})

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(
    dict[str, Any], float_hook=lambda number: msgspec.Raw(number.encode("ascii"))
).decode


class NotAMessage(WebhookrxError):
    """Bytes that are no stored message; the text quotes none of them."""


def encode_stored(message: Message) -> bytes:
    """
    Return a message as bytes for L{decode_stored}.

    It raises for no message whose values keep to L{webhookrx.message.message.Value}.
    """
    values = message.values
    mark = _PLAIN
    if not (_SIMPLE.issuperset(map(type, values.values())) or all(map(_survives_json, values.values()))):
        mark = _TAGGED
        values = {name: _tagged(value) for name, value in values.items()}
    head = _HEAD.pack(mark, message.received)
    text = long_text(values)
    return head + _encode(values) if text is None else encode_around(text, values, _as_it_is, before=head)


def _as_it_is(encoded: bytes) -> bytes:
    return encoded


def decode_stored(stored: bytes) -> Message:
    """
    Return the message whose bytes these are, equal to what was encoded in values, their types and their order.

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


def _survives_json(value: Value) -> bool:
    kind = type(value)
    if kind in _SIMPLE:
        return True
    if isinstance(value, int):
        return value in _INT_RANGE
    if isinstance(value, msgspec.Raw):
        yield_point()
        # A fraction or an exponent is what makes the decoder keep the text of a number. It keeps that of no array.
        text = bytes(value)
        return not text.startswith(b"[") and (b"." in text or b"e" in text or b"E" in text)
    yield_point()
    members = value.values() if isinstance(value, dict) else value
    return all(map(_survives_json, members))  # type: ignore[arg-type]  # nothing else is left


def _tagged(value: Value) -> Any:
    """Return a value such that its kind can be told: what JSON has no word for is an object of one member."""
    if isinstance(value, msgspec.Raw):
        return {"raw": bytes(value).decode()}
    if isinstance(value, dict):
        return {"object": {name: _tagged(member) for name, member in value.items()}}
    if isinstance(value, list):
        return [_tagged(element) for element in value]
    if isinstance(value, int) and value not in _INT_RANGE:
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
