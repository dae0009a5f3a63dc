"""
A message as bytes that give it back: what a spool keeps.

The bytes are a mark, the moment of receipt as eight bytes, and the pairs as JSON in their order. JSON gives back all
that it can say, numbers by their spelling. Integers of so many digits that Python may refuse to read them do not go
well there; in a message with one, each value that is more than text is written with a word for its kind.
"""

from __future__ import annotations

import struct
import sys
from typing import Any, Final

import msgspec
import re2  # type: ignore[import-untyped]

from webhookrx.errors import WebhookrxError
from webhookrx.message.long_text import encode_around, long_text
from webhookrx.message.message import Message, Value
from webhookrx.regex import occurs_in

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

    It raises for no message whose values keep to L{webhookrx.message.message.Value}.
    """
    values = message.values
    stored = _stored(_PLAIN, message.received, values)
    if len(stored) > _SAFE_DIGITS and occurs_in(_LONG_INTEGER, stored, _SAFE_DIGITS + 3):
        return _stored(_TAGGED, message.received, {name: _tagged(value) for name, value in values.items()})
    return stored


def _stored(mark: int, received: int, values: dict[str, Any]) -> bytes:
    head = _HEAD.pack(mark, received)
    text = long_text(values)
    return head + _encode(values) if text is None else encode_around(text, values, _as_it_is, before=head)


def _as_it_is(encoded: bytes) -> bytes:
    return encoded


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
