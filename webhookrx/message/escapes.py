"""
Characters that end a line for some reader (C{str.splitlines}, a terminal, a log viewer) or that reorder what a person
sees, and what stands for them, so that a sender can't forge a second line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

#: DEL, C1 controls, ARABIC LETTER MARK, LRM and RLM, line and paragraph separators, bidi embeddings and isolates.
MISLEADING: Final = (
    *(chr(code) for code in range(0x7F, 0xA0)),
    "\u061c",
    *("\u200e", "\u200f"),
    *(chr(code) for code in range(0x2028, 0x202F)),
    *(chr(code) for code in range(0x2066, 0x206A)),
)

#: With more different characters than this, one slow pass is faster than as many fast ones.
_MANY: Final = 6

JSON_ESCAPES: Final = {char: f"\\u{ord(char):04x}" for char in MISLEADING}
"""What a JSON encoder leaves as it is inside a string, though it should not reach a person so."""

TEXT_ESCAPES: Final = {
    **{chr(code): f"\\x{code:02x}" for code in range(0x20)},
    **{char: f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}" for char in MISLEADING},
} | {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
"""The same for plain text, and all that may end a line there or move a cursor."""

encode: Final = msgspec.json.Encoder().encode
"""Return a value as compact JSON in UTF-8, in which nothing but C0 is escaped."""


def _searches() -> dict[int, Callable[[bytes], object]]:
    """Return what finds L{MISLEADING} characters in UTF-8, by the first byte of theirs, to which a search can leap."""
    encoded: dict[int, list[bytes]] = {}
    for char in MISLEADING:
        encoded.setdefault(char.encode()[0], []).append(re.escape(char.encode()))
    return {first: re.compile(b"|".join(chars)).search for first, chars in encoded.items()}


_SEARCHES: Final = _searches()


def escape(text: str, escapes: Mapping[str, str]) -> str:
    """
    Replace characters of a text.

    @param escapes: what stands for each character; printable, and only for characters that are not.
    """
    if not text.isprintable():
        # A pass for each that occurs stays fast where a sender wrote nothing else; a call for each place would not.
        found = escapes.keys() & set(text)
        if len(found) > _MANY:
            return text.translate({ord(char): escapes[char] for char in found})
        for char in found:
            text = text.replace(char, escapes[char])
    return text


def encode_json(value: Any) -> bytes:
    """Return a value as compact JSON in UTF-8 that is one line and shows as what it is, whatever is in its texts."""
    text = encode(value)
    return without_misleading(text) if 0x7F in text or not text.isascii() else text


def without_misleading(text: bytes) -> bytes:
    """
    Return what L{encode} has made with escapes for L{MISLEADING} characters. Text that is ASCII without DEL has none.
    """
    # To look is much cheaper than to decode all of it; quotes and dashes begin like some.
    if any(first in text and search(text) for first, search in _SEARCHES.items()):
        # The encoder has escaped C0. What is left stands in strings only, where an escape means the same.
        return escape(text.decode(), JSON_ESCAPES).encode()
    return text
