"""
Reads MessagePack bodies into the values that the same JSON would have.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime
from typing import Any, Final

import msgspec

from webhookrx.intake.json_body import MAX_DEPTH
from webhookrx.message.message import Value
from webhookrx.yield_point import yield_point

MEDIA_TYPES: Final = ("application/msgpack", "application/x-msgpack", "application/vnd.msgpack")

MAX_BYTES: Final = 128 * 1024
"""Each byte may be a value; that many take 8 ms."""

MAX_VALUES: Final = 20_000
"""Values in a body, those within others counted; each costs a third of a microsecond."""

_decode: Final = msgspec.msgpack.Decoder().decode


def read_msgpack(body: bytes) -> dict[str, Value] | list[Value] | None:
    """
    Return the object or array that a body is; None when it is neither, or too much. Bytes come as Base64; numbers that
    JSON has not, and moments, as text.
    """
    if len(body) > MAX_BYTES:
        return None
    try:
        value = _JsonValues().value(_decode(body), MAX_DEPTH)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, OverflowError, _TooMuch):
        return None
    return value if type(value) in (dict, list) else None


class _TooMuch(Exception):
    """Too many values, too deep, or something that JSON has not."""


class _JsonValues:
    """Makes values of JSON, as many as are allowed."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def value(self, value: Any, levels: int) -> Any:
        """@raise _TooMuch: see there."""
        self._left -= 1
        if self._left < 0 or levels < 0:
            raise _TooMuch
        kind = type(value)
        if kind is dict:
            yield_point()
            return {self._name(name): self.value(member, levels - 1) for name, member in value.items()}
        if kind is list:
            return [self.value(each, levels - 1) for each in value]
        if kind is float:
            return msgspec.Raw(msgspec.json.encode(value)) if value - value == 0 else str(value)
        if kind is bytes:
            return b64encode(value).decode("ascii")
        if kind is datetime:
            return value.isoformat()
        if value is None or kind in (str, int, bool):
            return value
        raise _TooMuch

    def _name(self, name: Any) -> str:
        if type(name) is not str:
            raise _TooMuch
        return name
