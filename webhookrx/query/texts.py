"""
The texts that a value is compared by.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

_encode: Final = msgspec.json.Encoder(enc_hook=dict).encode


def text_of(value: Any) -> str:
    """
    Return a value as text: a text as it is, anything else as its JSON, compact; numbers keep their spelling.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, msgspec.Raw):
        return bytes(value).decode()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _encode(value).decode()


def texts_of(value: Any) -> Iterable[str]:
    """Return the texts of a value: that of each element of an array, one of anything else."""
    return map(text_of, value) if isinstance(value, list | tuple) else (text_of(value),)
