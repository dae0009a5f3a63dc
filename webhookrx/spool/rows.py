"""
What is kept in a file of a spool, and reading it as what it may be: anything, where the file is damaged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple
from zlib import crc32

from webhookrx.message.encoders import received_of

ROW_OVERHEAD: Final = 64
"""Bytes that are counted for a message besides its own."""

NUMBERS_PER_FILE: Final = 10**12
"""Each file has message numbers of its own, so that none comes twice even if a file can't be read any more."""

#: No checksum is negative, so nothing fits this one.
_NO_CRC: Final = -1


class Row(NamedTuple):
    """A message as it is kept."""

    id: int
    crc: int
    data: bytes

    @classmethod
    def of(cls, number: int, crc: object, data: object) -> Row:
        """Return what a row of a file holds, which may be anything where the file is damaged."""
        if isinstance(crc, int) and isinstance(data, bytes):
            return cls(number, crc, data)
        return cls(number, _NO_CRC, b"")

    @property
    def received(self) -> int | None:
        """When it was received, nanoseconds since the epoch; None when its bytes are damaged."""
        return received_of(self.data) if self.is_whole else None

    @property
    def is_whole(self) -> bool:
        """Whether the bytes are those that were written."""
        return checksum(self.id, self.data) == self.crc

    @property
    def size(self) -> int:
        """What it counts against the limit."""
        return len(self.data) + ROW_OVERHEAD


class ReadCursor(NamedTuple):
    """
    How far a file that is only read is done.

    @ivar id: the last message that is.
    @ivar messages: how many still wait, and their bytes.
    """

    id: int
    messages: int
    bytes: int


class DeadLetter(NamedTuple):
    """
    A message that was refused for good.

    @ivar received: nanoseconds since the epoch; as C{died}, when it was refused.
    @ivar spec: the observer that it was meant for.
    """

    id: int
    received: int
    crc: int
    data: bytes
    reason: str
    spec: str
    died: int

    @property
    def is_whole(self) -> bool:
        """Whether the bytes are those that were written."""
        return checksum(self.id, self.data) == self.crc


class Totals(NamedTuple):
    """
    Totals of a file, kept up to date in each transaction, so that nothing is ever counted.

    @ivar next_id: the number that the next message gets.
    @ivar offered: the last number of the newest batch that was offered to the observer.
    """

    messages: int
    bytes: int
    dead: int
    dead_bytes: int
    next_id: int
    offered: int


def first_number(number: int) -> int:
    """Return the number of the first message of a file."""
    return (number - 1) * NUMBERS_PER_FILE + 1


def checksum(number: int, data: bytes) -> int:
    """Return the CRC-32 of a message and its number: a number that has changed would put it in another place."""
    return crc32(data, number & 0xFFFFFFFF)


def size_of(stored: Sequence[bytes]) -> int:
    """Return what messages count against the limit of a spool."""
    return sum(map(len, stored)) + ROW_OVERHEAD * len(stored)


def totals_of(db: sqlite3.Connection) -> Totals:
    """
    Read the totals of a file.

    @raise sqlite3.Error: they can't be read.
    """
    found = db.execute("SELECT messages, bytes, dead, dead_bytes, next_id, offered FROM state").fetchone()
    return Totals._make(whole_numbers(found or ()))


def oldest_of(db: sqlite3.Connection) -> int | None:
    """
    Read when the first message of a file that waits was received; None when none waits.

    @raise sqlite3.Error: it can't be read.
    """
    found = db.execute("SELECT received FROM waiting ORDER BY id LIMIT 1").fetchone()
    return None if found is None else whole_numbers(found)[0]


def whole_numbers(values: Sequence[object]) -> list[int]:
    """
    Return what was read, which must be numbers.

    @raise sqlite3.Error: there are none, or they are something else: another page is in the place of theirs.
    """
    numbers = [value for value in values if isinstance(value, int)]
    if not numbers or len(numbers) != len(values):
        raise damage("its totals are not numbers")
    return numbers


def dead_letter_of(values: Sequence[object]) -> DeadLetter:
    """
    Return what was read, which must be a dead letter.

    @raise sqlite3.Error: it is none.
    """
    kinds = (int, int, int, bytes, str, str, int)
    if not all(map(isinstance, values, kinds)):
        raise damage("a dead letter is none")
    return DeadLetter._make(values)


def damage(problem: str) -> sqlite3.Error:
    """Make the error that SQLite itself would raise of a damaged file, had it noticed."""
    error = sqlite3.DatabaseError(problem)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    error.sqlite_errorname = "SQLITE_CORRUPT"
    return error


@contextmanager
def bad_text_is_damage() -> Iterator[None]:
    """SQLite quotes damaged text in its errors, which Python then can't decode."""
    try:
        yield
    except UnicodeDecodeError:
        raise damage("its text is not text") from None
