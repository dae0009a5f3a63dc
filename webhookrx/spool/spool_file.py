"""
One database of a spool: messages that wait, in the order of their numbers, and dead letters.

It is written through one connection and read through another, which can't write. That way a file that had an I/O error
goes on to be read: the last connection to close a database copies its write-ahead log into it and syncs both, and one
that can't write does not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from webhookrx.message.stored import received_of

if TYPE_CHECKING:
    from webhookrx.spool.spool_directory import SpoolDirectory

ROW_OVERHEAD: Final = 64
"""Bytes that are counted for a message besides its own."""

NUMBERS_PER_FILE: Final = 10**12
"""Each file has message numbers of its own, so that none comes twice even if a file can't be read any more."""

SMALL_BATCH: Final = 32
BATCH_MESSAGES: Final = 1000
BATCH_BYTES: Final = 1024**2
"""A batch for the observer has so many messages and about so many bytes at most, or is one larger message."""

_CHECKPOINT_BYTES: Final = 4 * 1024**2
"""So much goes to the write-ahead log before it is copied into the database."""

_PAGE_OVERHEAD: Final = 16 * 1024
"""Bytes that a transaction writes besides its messages: whole pages of the tree, and the state."""

_PAGE: Final = 4096
"""Bytes of a page."""

_SCHEMA: Final = """
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
    PRAGMA user_version = 1;
"""


#: No checksum is negative, so nothing fits this one.
_NO_CRC: Final = -1


def batch_for(waiting: int) -> int:
    """
    Return how many messages a new batch has at most.

    A crash between the observer's word and ours delivers a batch again; so it is small while the observer keeps up,
    and grows with what waits.
    """
    return min(max(waiting // 4, SMALL_BATCH), BATCH_MESSAGES)


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


class Passed(NamedTuple):
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


class State(NamedTuple):
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


def create(directory: SpoolDirectory, number: int) -> None:
    """
    Make an empty file, whole or not at all: it gets its name once all of it is on disk.

    @raise sqlite3.Error: it can't be made; nothing is left of it.
    @raise OSError: the same.
    """
    path = directory.begin_new()
    try:
        db = directory.file_system.connect(path, read_only=False)
        try:
            # It is synced once, whole. SQLite would sync it again to undo what failed to sync.
            db.execute("PRAGMA synchronous=OFF")
            db.execute(f"PRAGMA page_size={_PAGE}")
            # Without this the file would keep the size of the longest absence for ever. Only an empty file takes it.
            db.execute("PRAGMA auto_vacuum=INCREMENTAL")
            first = first_number(number)
            db.executescript(f"BEGIN; {_SCHEMA}")
            db.execute("INSERT INTO state VALUES (0, 0, 0, 0, ?, ?)", (first, first - 1))
            db.execute("COMMIT")
            # A mode that can't be set is told by naming the old one.
            if db.execute("PRAGMA journal_mode=WAL").fetchone() != ("wal",):
                raise sqlite3.OperationalError("the write-ahead log can't be used here")
        finally:
            db.close()
    except BaseException:
        directory.remove_new()
        raise
    directory.finish_new(number)


def damage(problem: str) -> sqlite3.Error:
    """Make the error that SQLite itself would raise of a damaged file, had it noticed."""
    error = sqlite3.DatabaseError(problem)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    error.sqlite_errorname = "SQLITE_CORRUPT"
    return error


@contextmanager
def _damage_told() -> Iterator[None]:
    """SQLite quotes damaged text in its errors, which Python then can't decode."""
    try:
        yield
    except UnicodeDecodeError:
        raise damage("its text is not text") from None


def _check_size(directory: SpoolDirectory, path: str) -> None:
    """
    @raise sqlite3.Error: the file ends inside a page. SQLite takes what is missing for zeros, unless its log has it.
    """
    size = directory.file_system.size
    if size(path) % _PAGE and not size(path + "-wal"):
        raise damage("it ends inside a page")


class SpoolFile:
    """
    A file that is there. Whoever writes is alone; reading goes on beside it.

    @param writable: False opens it for reading only.
    @raise sqlite3.Error: it can't be opened.
    @raise OSError: the name of its log can't be made safe.
    """

    @_damage_told()
    def __init__(self, directory: SpoolDirectory, number: int, *, writable: bool) -> None:
        self.number = number
        self.first_number = first_number(number)
        path = directory.path_of(number)
        self._reader = directory.file_system.connect(path, read_only=True)
        self._writer: sqlite3.Connection | None = None
        self._unsettled = 0
        try:
            # Otherwise nothing at all is read of a file that was cut short.
            self._reader.execute("PRAGMA writable_schema=ON")
            # The first look takes the lock that keeps other connections from copying the log when they close.
            self._reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            if writable:
                _check_size(directory, path)
                self._writer = directory.file_system.connect(path, read_only=False)
                # The checkpoint that SQLite makes by itself keeps its errors to itself; see checkpoint_if_due().
                self._writer.execute("PRAGMA wal_autocheckpoint=0")
                self._writer.execute(f"PRAGMA journal_size_limit={4 * _CHECKPOINT_BYTES}").fetchall()
                _state(self._writer)
                # The log is there now. SQLite syncs its name, too, but goes on if that fails.
                directory.sync()
        except BaseException:
            self.close()
            raise

    # -- life ----------------------------------------------------------------------------------------------------

    def stop_writing(self) -> None:
        """Never write or sync it again. What is committed can be read."""
        writer, self._writer = self._writer, None
        if writer is not None:
            # Not the last connection, so it copies and syncs nothing.
            writer.close()

    def close(self) -> None:
        """Let go of it. One that may be written is brought in order first."""
        self._reader.close()
        if self._writer is not None:
            self._writer.close()

    # -- reading -------------------------------------------------------------------------------------------------

    @_damage_told()
    def read_state(self) -> State:
        """
        Return the totals.

        @raise sqlite3.Error: they can't be read.
        """
        return _state(self._reader)

    @_damage_told()
    def read(self, after: int, count: int = BATCH_MESSAGES, size: int = BATCH_BYTES) -> list[Row]:
        """
        Return the messages that wait behind a number, in order: so many, or of so many bytes, at most, but one at
        least. Where the file is damaged, those before the damage.

        @raise sqlite3.Error: not even the first can be read.
        """
        rows: list[Row] = []
        cursor = self._reader.execute("SELECT id, crc, data FROM waiting WHERE id > ? ORDER BY id", (after,))
        try:
            for found in cursor:
                row = Row.of(*found)
                if row.id <= after:
                    raise damage("its messages are not in order")
                after = row.id
                rows.append(row)
                size -= row.size
                if len(rows) >= count or size <= 0:
                    break
        except sqlite3.Error:
            if not rows:
                raise
        finally:
            # A statement that is not done holds on to its moment, and the log could not be begun anew.
            cursor.close()
        return rows

    @_damage_told()
    def read_one(self, number: int) -> Row | None:
        """
        Return one message that waits; None when it does not.

        @raise sqlite3.Error: it can't be read.
        """
        found = self._reader.execute("SELECT id, crc, data FROM waiting WHERE id = ?", (number,)).fetchone()
        return None if found is None else Row.of(*found)

    @_damage_told()
    def oldest(self) -> int | None:
        """
        Return when the first message that waits was received.

        @raise sqlite3.Error: it can't be read.
        """
        return _oldest(self._reader)

    @_damage_told()
    def read_dead(self, after: int, count: int) -> list[DeadLetter]:
        """
        Return so many dead letters behind a number.

        @raise sqlite3.Error: they can't be read.
        """
        found = self._reader.execute(
            "SELECT id, received, crc, data, reason, spec, died FROM dead WHERE id > ? ORDER BY id LIMIT ?",
            (after, count),
        )
        return list(map(_dead_letter, found.fetchall()))

    @_damage_told()
    def read_passed(self) -> dict[int, Passed]:
        """
        Return how far the files before this one are done, by their numbers.

        @raise sqlite3.Error: it can't be read.
        """
        found = self._reader.execute("SELECT file, id, messages, bytes FROM passed").fetchall()
        return {file: Passed._make(_whole_numbers(rest)) for file, *rest in found}

    # -- writing -------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self, *, durable: bool) -> Iterator[Transaction]:
        """
        Write all that is done inside, or nothing.

        @param durable: return once it survives a power cut. Without, a power cut may undo it, together with all that
            came after it: frames of the log count up to the first that is torn, and the next durable transaction syncs
            those before it. So only what may be undone is written that way, such as the removal of what was delivered:
            it would be delivered twice.
        @raise sqlite3.Error: nothing was written.
        """
        db = self._writer
        if db is None:
            raise sqlite3.OperationalError("the file is not written any more")
        # Said anew each time: nothing that happens between two transactions can weaken a durable one.
        db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
        db.execute("BEGIN IMMEDIATE")
        transaction = Transaction(db)
        try:
            with _damage_told():
                yield transaction
                db.execute("COMMIT")
        except BaseException:
            # SQLite has ended some failed transactions by itself.
            with suppress(sqlite3.Error):
                if db.in_transaction:
                    db.execute("ROLLBACK")
            raise
        self._unsettled += transaction.written + _PAGE_OVERHEAD

    @property
    def is_writable(self) -> bool:
        """Whether it can be written."""
        return self._writer is not None

    @property
    def is_stuck(self) -> bool:
        """Whether a transaction could not even be undone."""
        return self._writer is not None and self._writer.in_transaction

    def checkpoint_if_due(self) -> None:
        """
        Copy the log into the database once it has grown, so that it can begin anew.

        @raise sqlite3.Error: it could not be copied. What was committed is as safe as before.
        """
        if self._writer is not None and self._unsettled >= _CHECKPOINT_BYTES:
            self._unsettled = 0
            self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def give_back(self, pages: int) -> bool:
        """
        Give pages that hold nothing back to the file system, so many at most; tell whether there were that many.

        @raise sqlite3.Error: it could not be done.
        """
        if self._writer is None or self._writer.execute("PRAGMA freelist_count").fetchone()[0] < pages:
            return False
        self._writer.execute("PRAGMA synchronous=NORMAL")
        self._writer.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()
        self._unsettled += _CHECKPOINT_BYTES
        return True


class Transaction:
    """
    What can be done to a file, all or nothing. Totals follow by themselves.

    @ivar written: bytes of messages that were written or removed.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.written = 0

    def state(self) -> State:
        """Return the totals as they are now, within the transaction."""
        return _state(self._db)

    def oldest(self) -> int | None:
        """Return when the first message that waits was received."""
        return _oldest(self._db)

    def append(self, stored: Sequence[bytes]) -> range:
        """Add messages at the end, and return their numbers."""
        first = self.state().next_id
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
        """Take messages away that wait, and return the numbers of those that did."""
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

    def drop_oldest(self, size: int, *, before: int = 0, count: int = 10_000) -> tuple[int, int]:
        """
        Drop from the head: at least so many bytes, and those that were received before a moment.

        @param count: so many at most.
        @return: how many were dropped, and their bytes.
        """
        numbers: list[int] = []
        freed = 0
        found = self._db.execute(
            "SELECT id, coalesce(CAST(received AS INTEGER), 0), coalesce(length(data), 0)"
            " FROM waiting ORDER BY id LIMIT ?",
            (count,),
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
        """Note the last message of the batch that is offered, for it to be the same after a restart."""
        self._db.execute("UPDATE state SET offered = ?", (last,))

    def bury(self, letters: Iterable[DeadLetter]) -> None:
        """Add dead letters; one that is there already stays."""
        for letter in letters:
            cursor = self._db.execute("INSERT OR IGNORE INTO dead VALUES (?, ?, ?, ?, ?, ?, ?)", letter)
            if cursor.rowcount > 0:
                self._count(dead=1, dead_size=len(letter.data) + ROW_OVERHEAD)

    def unbury(self, number: int) -> DeadLetter | None:
        """Take a dead letter away and return it; None when there is none of that number."""
        found = self._db.execute(
            "SELECT id, received, crc, data, reason, spec, died FROM dead WHERE id = ?", (number,)
        ).fetchone()
        if found is None:
            return None
        letter = _dead_letter(found)
        self._db.execute("DELETE FROM dead WHERE id = ?", (number,))
        self._count(dead=-1, dead_size=-len(letter.data) - ROW_OVERHEAD)
        return letter

    def drop_oldest_dead(self, size: int) -> tuple[int, int]:
        """Drop dead letters from the first on: at least so many bytes; return how many, and their bytes."""
        dropped = freed = 0
        while freed < size:
            found = self._db.execute("SELECT id FROM dead ORDER BY id LIMIT 1").fetchone()
            letter = None if found is None else self.unbury(found[0])
            if letter is None:
                break
            dropped += 1
            freed += len(letter.data) + ROW_OVERHEAD
        return dropped, freed

    def pass_over(self, file: int, passed: Passed) -> None:
        """Note how far a file before this one is done."""
        self._db.execute("INSERT OR REPLACE INTO passed VALUES (?, ?, ?, ?)", (file, *passed))

    def forget(self, file: int) -> None:
        """Forget a file that is not there any more."""
        self._db.execute("DELETE FROM passed WHERE file = ?", (file,))

    def _count(self, *, messages: int = 0, size: int = 0, dead: int = 0, dead_size: int = 0) -> None:
        self.written += abs(size) + abs(dead_size)
        self._db.execute(
            "UPDATE state SET messages = messages + ?, bytes = bytes + ?, dead = dead + ?, dead_bytes = dead_bytes + ?",
            (messages, size, dead, dead_size),
        )


def checksum(number: int, data: bytes) -> int:
    """Return the CRC-32 of a message and its number: a number that has changed would put it in another place."""
    return crc32(data, number & 0xFFFFFFFF)


def size_of(stored: Sequence[bytes]) -> int:
    """Return what messages count against the limit of a spool."""
    return sum(map(len, stored)) + ROW_OVERHEAD * len(stored)


def _state(db: sqlite3.Connection) -> State:
    found = db.execute("SELECT messages, bytes, dead, dead_bytes, next_id, offered FROM state").fetchone()
    return State._make(_whole_numbers(found or ()))


def _oldest(db: sqlite3.Connection) -> int | None:
    found = db.execute("SELECT received FROM waiting ORDER BY id LIMIT 1").fetchone()
    return None if found is None else _whole_numbers(found)[0]


def _whole_numbers(values: Sequence[object]) -> list[int]:
    """@raise sqlite3.Error: there are none, or they are something else: another page is in the place of theirs."""
    numbers = [value for value in values if isinstance(value, int)]
    if not numbers or len(numbers) != len(values):
        raise damage("its totals are not numbers")
    return numbers


def _dead_letter(values: Sequence[object]) -> DeadLetter:
    kinds = (int, int, int, bytes, str, str, int)
    if not all(map(isinstance, values, kinds)):
        raise damage("a dead letter is none")
    return DeadLetter._make(values)
