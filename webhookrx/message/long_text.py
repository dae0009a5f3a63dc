"""
Messages with a long text, the body of a request as it came: JSON of them is made piece by piece.

All else in a message is bounded where it is made, so that encoding it in one call takes some milliseconds at most. The
text of a body may be full of characters that take ten nanoseconds each.
"""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from webhookrx.message.escapes import encode, write_in_pieces
from webhookrx.message.message import Value
from webhookrx.yield_point import PIECE, yield_point

#: Stands for the text until it is put in. It is random, so that nobody can write it.
_MARK: Final = encode(secrets.token_hex(16))


def long_text(values: Mapping[str, Value]) -> str | None:
    """Return C{MESSAGE}, or C{log.body} of the router form, if it is a text that is worth encoding in pieces."""
    text = values.get("MESSAGE")
    if text is None:
        log = values.get("log")
        text = log.get("body") if type(log) is dict else None
    return text if type(text) is str and len(text) > PIECE else None


def encode_around(
    text: str, values: Mapping[str, Value], clean: Callable[[bytes], bytes], before: bytes = b"", after: bytes = b""
) -> bytes:
    """
    Return the values as compact JSON, with a yield point after each piece of it.

    @param text: what L{long_text} returned of them.
    @param clean: is applied to each piece of the JSON, such as L{webhookrx.message.escapes.escape_misleading}.
    @param before: goes in front of the JSON, and C{after} behind it.
    """
    around: dict[str, Any]
    if values.get("MESSAGE") is text:
        around = {**values, "MESSAGE": msgspec.Raw(_MARK)}
    else:
        around = {**values, "log": {**values["log"], "body": msgspec.Raw(_MARK)}}  # type: ignore[dict-item]
    frame = encode(around)
    place = frame.index(_MARK)
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
