"""
Rows that routers show: read as whatever somebody with a router's certificate may send.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from webhookrx.intake.json_body import MAX_DEPTH, count_brackets

MOST_ROW: Final = 512 * 1024
"""Bytes of a row. A router shows 64 KiB of a message at each of two points, which escapes make longer."""

DEEPEST: Final = 2 * MAX_DEPTH
"""Levels of arrays and objects in a row: those of a body, and what a message has around it."""

BYTES_A_SECOND: Final = 512 * 1024
"""Bytes of rows of one tap that are read in a second: the worst of so many take some milliseconds."""

_BURST: Final = 2.0
"""Seconds of that which may come at once."""


class ByteRate:
    """
    How many bytes of rows may be read: what one row is too long is taken from later ones.

    @param now: seconds on the clock.
    """

    def __init__(self, now: float) -> None:
        self._left = BYTES_A_SECOND * _BURST
        self._then = now

    def takes(self, count: int, now: float) -> bool:
        """Return whether so many bytes may be read now, and count them then."""
        self._left = min(BYTES_A_SECOND * _BURST, self._left + (now - self._then) * BYTES_A_SECOND)
        self._then = now
        if self._left <= 0:
            return False
        self._left -= count
        return True


class _RowHead(msgspec.Struct):
    """
    What rows of all kinds have, as far as whoever shows them relies on it.

    @ivar router: no router has it, as the console says which one it is.
    """

    row: Literal["message", "refused", "service"]
    at: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
    id: Annotated[str, Meta(max_length=256)] = ""
    source: Annotated[str, Meta(max_length=253)] = ""
    router: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_decode_head: Final = msgspec.json.Decoder(_RowHead).decode


def read_row(row: bytes, router: str) -> msgspec.Raw | None:
    """
    Return a row with the name of its router, on one line: what a router has sent may have line breaks between its
    values, and so end an event of a stream and begin another. It is checked and copied without a value made of each
    of its values, which takes many times as long.

    @param row: JSON whose syntax is known to be right, and nothing else.
    @return: one line of JSON; None for what is no row.
    """
    if len(row) > MOST_ROW:
        return None
    try:
        row.decode()
        head = _decode_head(row)
        line = msgspec.json.format(row, indent=-1)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    # How deep these go by themselves depends on the interpreter.
    if head.router is not msgspec.UNSET or (count_brackets(row, DEEPEST) > DEEPEST and _depth(row) > DEEPEST):
        return None
    encoded = b'{"router":%s,%s' % (msgspec.json.encode(router), line[1:])
    return msgspec.Raw(encoded) if len(encoded) <= MOST_ROW else None


_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[{]}"))


def _depth(row: bytes) -> int:
    """Return how deep arrays and objects nest in JSON whose syntax is right, without a value made of each."""
    without_escapes = row.replace(b"\\\\", b"").replace(b'\\"', b"")
    without_strings = b"".join(without_escapes.split(b'"')[::2])
    return max(accumulate(memoryview(without_strings.translate(_STEPS, _NO_BRACKETS)).cast("b")), default=0)
