"""
A message as one line of JSON: a flat object, one key per name, C{ISODATE} first.

JSON (RFC 8259) may hold characters that end a line for some reader (C{str.splitlines}, a terminal, a log viewer) or
that reorder what a person sees. They come out as C{\\u} escapes, so that a sender can't forge a second line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from webhookrx.message.macros import isodate
from webhookrx.message.message import Message

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

#: The bytes that the characters above begin with in UTF-8. All but DEL begin others as well.
_FIRST_BYTES: Final = frozenset(char.encode()[0] for char in MISLEADING)

_encode: Final = msgspec.json.Encoder().encode


def _searches() -> dict[int, Callable[[bytes], object]]:
    """Return what finds L{MISLEADING} characters in UTF-8, by the first byte of theirs, to which a search can leap."""
    encoded: dict[int, list[bytes]] = {}
    for char in MISLEADING:
        encoded.setdefault(char.encode()[0], []).append(re.escape(char.encode()))
    return {first: re.compile(b"|".join(chars)).search for first, chars in encoded.items()}


_SEARCHES: Final = _searches()


def _has_misleading(text: bytes) -> bool:
    """Tell whether a text has any; to look is much cheaper than to decode it, and quotes and dashes begin like some."""
    return any(first in text and search(text) for first, search in _SEARCHES.items())


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


def encode_line(message: Message) -> bytes:
    """
    Return a message as a line: one JSON object with all its pairs in UTF-8, and C{b"\\n"}. It is always one line of
    valid JSON, whatever bytes a sender chose: it holds no control characters, line or paragraph separators or bidi
    controls other than as escapes.

    It raises for no message whose values keep to L{webhookrx.message.message.Value}.
    """
    values = message.values
    text = _encode(values)
    # The encoder has escaped C0. What is left stands in strings only, where an escape means the same.
    if 0x7F in text or (not text.isascii() and _has_misleading(text)):
        text = escape(text.decode(), JSON_ESCAPES).encode()
    if "ISODATE" in values:
        return text + b"\n"
    if not values:
        return b'{"ISODATE":"' + isodate(message.received).encode() + b'"}\n'
    return b"".join((b'{"ISODATE":"', isodate(message.received).encode(), b'",', text[1:], b"\n"))


def encode_object(message: Message) -> bytes:
    """Return the same as L{encode_line} without the line end."""
    return encode_line(message)[:-1]
