"""
Texts as JSON strings, long ones in pieces with a yield point after each.
"""

from __future__ import annotations

import msgspec

from webhookrx.message.escapes import encode, write_in_pieces
from webhookrx.yield_point import PIECE, yield_point


def json_pieces(line: bytes) -> list[bytes]:
    """Return the parts of a JSON string of a text in UTF-8. To join them is up to the caller, who may have more."""
    if len(line) <= PIECE:
        return [encode(line.decode())]
    pieces = [b'"']
    write_in_pieces(line, 0, len(line), _inner, pieces.append)
    pieces.append(b'"')
    return pieces


def text_pieces(text: str) -> list[bytes]:
    """Return the parts of a JSON string of a text."""
    pieces = [b'"']
    for start in range(0, len(text), PIECE):
        pieces.append(encode(text[start : start + PIECE])[1:-1])
        yield_point()
    pieces.append(b'"')
    return pieces


def json_text(text: str) -> bytes:
    """Return a text as a JSON string."""
    return encode(text) if len(text) <= PIECE else b"".join(text_pieces(text))


def raw_text(text: str) -> str | msgspec.Raw:
    """Return a text for an encoder of JSON: as JSON already if it is long."""
    return text if len(text) <= PIECE else msgspec.Raw(json_text(text))


def _inner(piece: bytes) -> bytes:
    return encode(piece.decode())[1:-1]
