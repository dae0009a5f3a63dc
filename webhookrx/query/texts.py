"""
The texts that a value is compared by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

_encode: Final = msgspec.json.Encoder(enc_hook=dict).encode


def compared_text(value: Any) -> str:
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


_MEMBER: Final = 120
_WRITTEN: Final = 3
"""
Units of work for a member of an object or an element of an array that is come to, and for a character that is written
as JSON, of which one may become six.
"""


def counted_leaves(value: Any, spend: Callable[[int], object]) -> Iterator[Any]:
    """
    Yield all that is neither object nor array in a value, however deep, in no order.

    @param spend: is called with the units of work that each object and each array takes, before it is looked at.
    """
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, Mapping):
            spend(_MEMBER * (1 + len(each)))
            pending.extend(each.values())
        elif isinstance(each, list | tuple):
            spend(_MEMBER * (1 + len(each)))
            pending.extend(each)
        else:
            yield each


def spend_json(value: Any, spend: Callable[[int], object]) -> None:
    """
    Count what it takes to write a value as JSON; call it before that is done.

    @param spend: is called with units of work, and raises when there are too few left.
    """
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, Mapping):
            spend(_MEMBER * (1 + len(each)) + _WRITTEN * sum(map(len, each)))
            pending.extend(each.values())
        elif isinstance(each, list | tuple):
            spend(_MEMBER * (1 + len(each)))
            pending.extend(each)
        elif isinstance(each, str | msgspec.Raw):
            spend(_WRITTEN * len(each))


def bytes_of(text: str) -> int:
    """Return how many bytes a text is about, without counting them."""
    return len(text) if text.isascii() else 3 * len(text)


def compared_texts(value: Any) -> Iterable[str]:
    """Return the texts of a value: that of each element of an array, one of anything else."""
    return map(compared_text, value) if isinstance(value, list | tuple) else (compared_text(value),)
