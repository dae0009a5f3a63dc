"""
Escapes for characters that end a line for some reader (C{str.splitlines}, a terminal, a log viewer) or reorder the text
on a screen, so that a sender can't forge a second line.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from webhookrx.speedups import compiled
from webhookrx.yield_point import PIECE, map_pieces, run_unlocked, yield_point

#: DEL, C1 controls, line and paragraph separators, and bidi controls (with LRM, RLM and ARABIC LETTER MARK).
MISLEADING: Final = (
    *(chr(code) for code in range(0x7F, 0xA0)),
    "\u061c",
    *("\u200e", "\u200f"),
    *(chr(code) for code in range(0x2028, 0x202F)),
    *(chr(code) for code in range(0x2066, 0x206A)),
)

#: Different characters that are replaced one after the other, at a nanosecond a byte each. With more, each character of
#: the text is looked up, at up to 40.
_FEW: Final = 8

JSON_ESCAPES: Final = {char: f"\\u{ord(char):04x}" for char in MISLEADING}
"""What a JSON encoder leaves as it is inside a string, though it should not reach a person so."""

TEXT_ESCAPES: Final = {
    **{chr(code): f"\\x{code:02x}" for code in range(0x20)},
    **{char: f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}" for char in MISLEADING},
} | {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
"""The same for plain text, and all that may end a line there or move a cursor."""

encode: Final = msgspec.json.Encoder().encode
"""Return a value as compact JSON in UTF-8, in which nothing but C0 is escaped."""

encode_lines: Final = msgspec.json.Encoder().encode_lines
"""Do the same for each value of a list, each with a line end."""


#: Find L{MISLEADING} characters but DEL in UTF-8, by the first byte of theirs, to which a search can leap.
_SEARCHES: Final[Mapping[int, Callable[[bytes], object]]] = {
    0xC2: re.compile(rb"\xc2[\x80-\x9f]").search,
    0xD8: re.compile(rb"\xd8\x9c").search,
    0xE2: re.compile(rb"\xe2(?:\x80[\x8e\x8f\xa8-\xae]|\x81[\xa6-\xa9])").search,
}

_DEL: Final = b"\x7f"


def _substitute(escapes: Mapping[str, str]) -> Callable[[str], str]:
    """Return what replaces the characters of a text that have escapes."""
    by_code = str.maketrans(dict(escapes))

    def substitute(text: str) -> str:
        found = [char for char in escapes if char in text]
        if len(found) > _FEW:
            return text.translate(by_code)
        for char in found:
            text = text.replace(char, escapes[char])
        return text

    return substitute


_substitute_in_text: Final = _substitute(TEXT_ESCAPES)
_substitute_in_json: Final = _substitute(JSON_ESCAPES)


def escape(text: str) -> str:
    """
    Replace characters of a plain text by L{TEXT_ESCAPES}. The time is in proportion to the length, with a yield point
    after each piece.
    """
    return map_pieces(_escape_piece, text)


def _escape_piece(text: str) -> str:
    return text if text.isprintable() else _substitute_in_text(text)


def encode_json(value: Any) -> bytes:
    """Return a value as compact JSON in UTF-8, on one line and without misleading characters."""
    text = encode(value)
    return without_misleading(text) if 0x7F in text or not text.isascii() else text


def without_misleading(text: bytes) -> bytes:
    """
    Return what L{encode} has made with escapes for L{MISLEADING} characters. Text that is ASCII without DEL has none.
    The time is in proportion to the length, with a yield point after each piece.
    """
    if compiled is not None:
        if len(text) <= PIECE:
            return compiled.escape_text(text, b"", b"", False, True)
        return run_unlocked(len(text), compiled.escape_text, text, b"", b"", False, True)
    if len(text) <= PIECE:
        return escape_misleading(text)
    cleaned = io.BytesIO()
    write_in_pieces(text, 0, len(text), escape_misleading, cleaned.write)
    return cleaned.getvalue()


def write_in_pieces(
    text: bytes, start: int, end: int, clean: Callable[[bytes], bytes], write: Callable[[bytes], object]
) -> None:
    """
    Write a part of a text in UTF-8, with a yield point after each piece.

    @param clean: is applied to each piece; no character is cut in two.
    """
    while start < end:
        stop = min(start + PIECE, end)
        while stop < end and text[stop] & 0xC0 == 0x80:  # within a character
            stop += 1
        write(clean(text[start:stop]))
        start = stop
        yield_point()


def escape_misleading(text: bytes) -> bytes:
    """Do what L{without_misleading} does, in one go."""
    # The encoder has escaped C0. What is left stands in strings only, where an escape means the same.
    text = text.replace(_DEL, rb"\u007f")
    # To look is much cheaper than to decode all of it; quotes and dashes begin like some.
    if not any(first in text and search(text) for first, search in _SEARCHES.items()):
        return text
    return _substitute_in_json(text.decode()).encode()
