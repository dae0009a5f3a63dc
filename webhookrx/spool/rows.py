"""
The tables of a spool file, its rows as values, and the changes of one transaction.

Where a file is damaged a column may hold anything, so every value that is read is checked. Every function here raises
C{sqlite3.Error} where SQLite fails or finds damage.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

from webhookrx.message.encoders import received_of
from webhookrx.spool.faults import damage

PAGE: Final = 4096
"""Bytes of a database page."""

ROW_OVERHEAD: Final = 64
"""Bytes that each message counts against the quota besides its own."""

NUMBERS_PER_FILE: Final = 10**12
"""Each file has message numbers of its own, so that none is used twice even if a file can't be read any more."""

VERSION: Final = 1
"""C{user_version} of the tables below."""

LAST_VERSION: Final = 99
"""The highest C{user_version} that a later version of this program may write; a higher one is damage."""

SCHEMA: Final = """
    CREATE TABLE waiting(id INTEGER PRIMARY KEY, received INTEGER NOT NULL, crc INTEGER NOT NULL, data BLOB NOT NULL);
    CREATE TABLE dead(
        id INTEGER PRIMARY KEY, received INTEGER NOT NULL, crc INTEGER NOT NULL, data BLOB NOT NULL,
        reason TEXT NOT NULL, spec TEXT NOT NULL, died INTEGER NOT NULL
    );
    CREATE TABLE passed(
        file INTEGER PRIMARY KEY, id INTEGER NOT NULL, messages INTEGER NOT NULL, bytes INTEGER NOT NULL
    );
    CREATE TABLE state(
        messages INTEGER NOT NULL, bytes INTEGER NOT NULL, dead INTEGER NOT NULL, dead_bytes INTEGER NOT NULL,
        next_id INTEGER NOT NULL, offered INTEGER NOT NULL
    );
"""

LISTED_TOGETHER: Final = 100
"""Messages that one read lists at most."""

DROPPED_TOGETHER: Final = 10_000
"""Messages that one call drops at most."""

_WAITING: Final = "SELECT id, received, length(data) FROM waiting WHERE id > ? AND id < ? ORDER BY id LIMIT ?"
#: Of a reason, and of the name of an observer, only what people read.
_DEAD: Final = (
    "SELECT id, received, length(data), substr(reason, 1, 2000), substr(spec, 1, 2000), died"
    " FROM dead WHERE id > ? AND id < ? ORDER BY id LIMIT ?"
)

#: A CRC is never negative, so no data matches this one.
_NO_CRC: Final = -1


class Row(NamedTuple):
    """A message of the table C{waiting}."""

    id: int
    crc: int
    data: bytes

    @classmethod
    def of(cls, number: int, crc: object, data: object) -> Row:
        """Make a row of its columns; one with columns of a wrong type is not whole."""
        if isinstance(crc, int) and isinstance(data, bytes):
            return cls(number, crc, data)
        return cls(number, _NO_CRC, b"")

    @property
    def received(self) -> int | None:
        """The moment of receipt, nanoseconds since the epoch; None when the data is damaged."""
        return received_of(self.data) if self.is_whole else None

    @property
    def is_whole(self) -> bool:
        """Whether the checksum matches."""
        return checksum(self.id, self.data) == self.crc

    @property
    def size(self) -> int:
        """Bytes that it counts against the quota."""
        return len(self.data) + ROW_OVERHEAD


class ReadCursor(NamedTuple):
    """
    How far a read-only file has been delivered: the table C{passed} of the newest file.

    @ivar id: the last message that is done.
    @ivar messages: how many still wait.
    @ivar bytes: the bytes of these.
    """

    id: int
    messages: int
    bytes: int


class DeadLetter(NamedTuple):
    """
    A message that the observer has refused for good.

    @ivar received: the moment of receipt, nanoseconds since the epoch; 0 when that is damaged.
    @ivar spec: the spec string of the observer.
    @ivar died: the moment of the refusal, nanoseconds since the epoch.
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
        """Whether the checksum matches."""
        return checksum(self.id, self.data) == self.crc

    @property
    def size(self) -> int:
        """Bytes that it counts against the quota."""
        return len(self.data) + ROW_OVERHEAD


class ListedMessage(NamedTuple):
    """
    A waiting message or a dead letter without its data.

    @ivar received: nanoseconds since the epoch, as C{died}; None when that is damaged.
    @ivar size: bytes of the message.
    @ivar reason: why it was refused for good; None when it waits.
    @ivar spec: the observer that has refused it.
    @ivar died: when that was.
    """

    id: int
    received: int | None
    size: int
    reason: str | None = None
    spec: str = ""
    died: int = 0

    @classmethod
    def of(cls, item: Row | DeadLetter) -> ListedMessage:
        """List a message that was read."""
        if isinstance(item, Row):
            return cls(item.id, item.received, len(item.data))
        return cls(item.id, item.received or None, len(item.data), item.reason, item.spec, item.died)


class Totals(NamedTuple):
    """
    The one row of the table C{state}: totals of a file, updated in each transaction, so that nothing is ever counted.

    @ivar messages: how many wait, C{bytes} of them.
    @ivar next_id: the number of the next message.
    @ivar offered: the last number of the newest batch that was offered to the observer.
    """

    messages: int
    bytes: int
    dead: int
    dead_bytes: int
    next_id: int
    offered: int


NO_TOTALS: Final = Totals(0, 0, 0, 0, 0, 0)


def first_number(file: int) -> int:
    """Return the number of the first message of a file."""
    return (file - 1) * NUMBERS_PER_FILE + 1


def checksum(number: int, data: bytes) -> int:
    """Return the CRC-32 of a message and its number: a damaged number would put it in another place."""
    return crc32(data, number & 0xFFFFFFFF)


def size_of(stored: Sequence[bytes]) -> int:
    """Return the bytes that messages count against the quota."""
    return sum(map(len, stored)) + ROW_OVERHEAD * len(stored)


def totals_of(db: sqlite3.Connection) -> Totals:
    """Read the totals of a file."""
    found = db.execute("SELECT messages, bytes, dead, dead_bytes, next_id, offered FROM state").fetchone()
    return Totals._make(whole_numbers(found or ()))


def oldest_of(db: sqlite3.Connection) -> int | None:
    """Read the moment of receipt of the first message that waits; None when none waits."""
    found = db.execute("SELECT received FROM waiting ORDER BY id LIMIT 1").fetchone()
    return None if found is None else whole_numbers(found)[0]


def whole_numbers(values: Sequence[object]) -> list[int]:
    """
    Check that all values are integers, and return them.

    @raise sqlite3.Error: there are none, or some are not: another page is in the place of theirs.
    """
    numbers = [value for value in values if isinstance(value, int)]
    if not numbers or len(numbers) != len(values):
        raise damage("its totals are not numbers")
    return numbers


def dead_letter_of(values: Sequence[object]) -> DeadLetter:
    """
    Make a dead letter of its columns.

    @raise sqlite3.Error: a column has the wrong type.
    """
    kinds = (int, int, int, bytes, str, str, int)
    if not all(map(isinstance, values, kinds)):
        raise damage("a dead letter is malformed")
    return DeadLetter._make(values)


def list_waiting(db: sqlite3.Connection, after: int, before: int) -> list[ListedMessage]:
    """List the next waiting messages between two numbers, L{LISTED_TOGETHER} at most."""
    return [
        ListedMessage(number, _moment(received), _number(size))
        for number, received, size in _select(db, _WAITING, after, before)
    ]


def list_dead(db: sqlite3.Connection, after: int, before: int) -> list[ListedMessage]:
    """List the next dead letters between two numbers, L{LISTED_TOGETHER} at most."""
    return [
        ListedMessage(number, _moment(received), _number(size), _text(reason), _text(spec), _number(died))
        for number, received, size, reason, spec, died in _select(db, _DEAD, after, before)
    ]


def _select(db: sqlite3.Connection, statement: str, after: int, before: int) -> Iterator[tuple[Any, ...]]:
    for found in db.execute(statement, (after, before, LISTED_TOGETHER)).fetchall():
        if not isinstance(found[0], int) or found[0] <= after:
            raise damage("its messages are not in order")
        after = found[0]
        yield found


# Where a file is damaged a value may have any type.


def _moment(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _number(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class Transaction:
    """
    Changes of a file, all or nothing. The totals are updated with each change.

    @ivar written: bytes of messages written or removed, and of pages moved.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.written = 0

    def totals(self) -> Totals:
        """Return the totals as they are now, within the transaction."""
        return totals_of(self._db)

    def oldest(self) -> int | None:
        """Return the moment of receipt of the first message that waits."""
        return oldest_of(self._db)

    def append(self, stored: Sequence[bytes]) -> range:
        """Add messages at the end, and return their numbers."""
        first = self.totals().next_id
        numbers = range(first, first + len(stored))
        self._db.executemany(
            "INSERT INTO waiting VALUES (?, ?, ?, ?)",
            [
                (number, received_of(data), checksum(number, data), data)
                for number, data in zip(numbers, stored, strict=True)
            ],
        )
        self._count(messages=len(stored), size=size_of(stored))
        self._db.execute("UPDATE state SET next_id = ?", (numbers.stop,))
        return numbers

    def remove(self, numbers: Sequence[int]) -> list[int]:
        """Remove messages that wait, and return the numbers of those that did."""
        if not numbers:
            return []
        found = self._db.execute(
            "SELECT id, coalesce(length(data), 0) FROM waiting WHERE id BETWEEN ? AND ?", (min(numbers), max(numbers))
        )
        sizes = dict(found.fetchall())
        gone = [number for number in numbers if number in sizes]
        self._db.executemany("DELETE FROM waiting WHERE id = ?", [(number,) for number in gone])
        self._count(messages=-len(gone), size=-sum(sizes[number] + ROW_OVERHEAD for number in gone))
        return gone

    def drop_oldest(self, size: int, before: int) -> tuple[int, int]:
        """
        Drop messages from the head: at least C{size} bytes, and all that were received before a moment; at most
        L{DROPPED_TOGETHER}.

        @return: how many were dropped, and their bytes.
        """
        numbers: list[int] = []
        freed = 0
        found = self._db.execute(
            "SELECT id, coalesce(CAST(received AS INTEGER), 0), coalesce(length(data), 0)"
            " FROM waiting ORDER BY id LIMIT ?",
            (DROPPED_TOGETHER,),
        )
        for number, received, length in found:
            if freed >= size and received >= before:
                break
            numbers.append(number)
            freed += length + ROW_OVERHEAD
        found.close()
        self.remove(numbers)
        return len(numbers), freed

    def offer(self, last: int) -> None:
        """Save the last number of the batch that is offered, so that it is the same after a restart."""
        self._db.execute("UPDATE state SET offered = ?", (last,))

    def add_dead_letters(self, letters: Iterable[DeadLetter]) -> None:
        """Add dead letters; an existing one of the same number stays."""
        for letter in letters:
            cursor = self._db.execute("INSERT OR IGNORE INTO dead VALUES (?, ?, ?, ?, ?, ?, ?)", letter)
            if cursor.rowcount > 0:
                self._count(dead=1, dead_size=letter.size)

    def take_dead_letter(self, number: int) -> DeadLetter | None:
        """Remove a dead letter and return it; None when there is no such number."""
        found = self._db.execute(
            "SELECT id, received, crc, data, reason, spec, died FROM dead WHERE id = ?", (number,)
        ).fetchone()
        if found is None:
            return None
        letter = dead_letter_of(found)
        self._db.execute("DELETE FROM dead WHERE id = ?", (number,))
        self._count(dead=-1, dead_size=-letter.size)
        return letter

    def drop_oldest_dead(self, size: int) -> tuple[int, int]:
        """Drop the first dead letters: at least C{size} bytes; return how many, and their bytes."""
        dropped = freed = 0
        while freed < size:
            found = self._db.execute("SELECT id FROM dead ORDER BY id LIMIT 1").fetchone()
            letter = None if found is None else self.take_dead_letter(found[0])
            if letter is None:
                break
            dropped += 1
            freed += letter.size
        return dropped, freed

    def vacuum_page(self) -> None:
        """Return one free page to the file system; another page may be moved for it."""
        # One at a time, whatever the number in brackets: a statement stops at each row, and this one's have no columns.
        self._db.execute("PRAGMA incremental_vacuum(1)").close()
        self.written += 2 * PAGE

    def save_cursor(self, file: int, cursor: ReadCursor) -> None:
        """Save how far an older file has been delivered."""
        self._db.execute("INSERT OR REPLACE INTO passed VALUES (?, ?, ?, ?)", (file, *cursor))

    def delete_cursor(self, file: int) -> None:
        """Delete the cursor of a file that was removed."""
        self._db.execute("DELETE FROM passed WHERE file = ?", (file,))

    def _count(self, *, messages: int = 0, size: int = 0, dead: int = 0, dead_size: int = 0) -> None:
        self.written += abs(size) + abs(dead_size)
        self._db.execute(
            "UPDATE state SET messages = messages + ?, bytes = bytes + ?, dead = dead + ?, dead_bytes = dead_bytes + ?",
            (messages, size, dead, dead_size),
        )
