"""
Signatures and keys as text, read strictly: exact length, one way to write each value.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Final

LONGEST: Final = 64 * 1024
"""Bytes of a text that is read at all: no key and no signature comes near it, and bodies have room for more."""


def from_hex(text: bytes) -> bytes | None:
    """Read hexadecimal digits in either case; None for anything else."""
    if len(text) > LONGEST:
        return None
    try:
        return binascii.unhexlify(text)
    except ValueError:
        return None


def from_base64(text: bytes) -> bytes | None:
    """Read Base64 with its padding and without a bit that means nothing (RFC 4648 section 3.5); None if it is not."""
    if len(text) > LONGEST:
        return None
    try:
        value = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return None
    return value if binascii.b2a_base64(value, newline=False) == text else None


_TO_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")


def from_base64url(text: bytes) -> bytes | None:
    """Read Base64 for URLs (RFC 4648 section 5), with all of its padding or none of it; None if it is not."""
    if b"+" in text or b"/" in text:
        return None
    plain = text.translate(_URL_SAFE)
    return from_base64(plain if plain.endswith(b"=") else plain + b"=" * (-len(plain) % 4))


DECODERS: Final[dict[str, Callable[[bytes], bytes | None]]] = {
    "hex": from_hex,
    "base64": from_base64,
    "base64url": from_base64url,
    "text": lambda text: text,
}
"""Name of an encoding to what reads it; each returns None for what is not written so, and raises nothing."""

ENCODERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "hex": binascii.hexlify,
    "base64": lambda value: binascii.b2a_base64(value, newline=False),
    "base64url": lambda value: binascii.b2a_base64(value, newline=False).translate(_TO_URL_SAFE, b"="),
    "text": lambda text: text,
}
"""Name of an encoding to what writes it."""
