"""
Texts as JSON strings, long ones in pieces with a yield point after each.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from webhookrx.message.escapes import encode
from webhookrx.yield_point import PIECE, yield_point


def json_text(text: str) -> bytes:
    """Return a text as a JSON string."""
    return encode(text) if len(text) <= PIECE else b'"%b"' % b"".join(_pieces(text))


def raw_text(text: str) -> str | msgspec.Raw:
    """Return a text for an encoder of JSON: as JSON already if it is long."""
    return text if len(text) <= PIECE else msgspec.Raw(json_text(text))


def _pieces(text: str) -> Iterator[bytes]:
    for start in range(0, len(text), PIECE):
        yield encode(text[start : start + PIECE])[1:-1]
        yield_point()
