"""
One database of a spool: messages that wait, in the order of their numbers, and dead letters.

It is written through one connection and read through another, which can't write. That way a file that had an I/O error
goes on to be read: the last connection to close a database copies its write-ahead log into it and syncs both, and one
that can't write does not.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from webhookrx.spool.footprint import PAGE, Footprint
from webhookrx.spool.rows import (
    NUMBERS_PER_FILE,
    ROW_OVERHEAD,
    DeadLetter,
    Passed,
    Row,
    State,
    damage,
    damage_told,
    dead_letter_of,
    first_number,
    oldest_of,
    state_of,
    whole_numbers,
)
from webhookrx.spool.schema import LAST_VERSION, LOG_BYTES, SMALL_LOG_BYTES, VERSION
from webhookrx.spool.spool_directory import BUSY_TIME, SpoolDirectory
from webhookrx.spool.transaction import Transaction

SMALL_BATCH: Final = 32
BATCH_MESSAGES: Final = 1000
BATCH_BYTES: Final = 1024**2
"""A batch for the observer has so many messages and about so many bytes at most, or is one larger message."""

_TRUNCATE_TIME: Final = 50
"""Milliseconds that cutting off the log waits for readers."""

_PAGE_OVERHEAD: Final = 16 * 1024
"""Bytes that a transaction writes besides its messages: whole pages of the tree, and the state."""


def batch_for(waiting: int) -> int:
    """
    Return how many messages a new batch has at most.

    A crash between the observer's word and ours delivers a batch again; so it is small while the observer keeps up,
    and grows with what waits.
    """
    return min(max(waiting // 4, SMALL_BATCH), BATCH_MESSAGES)


def _check_size(directory: SpoolDirectory, path: str) -> None:
    """
    @raise sqlite3.Error: the file ends inside a page. SQLite takes what is missing for zeros, unless its log has it.
    """
    size = directory.file_system.size
    if size(path) % PAGE and not size(path + "-wal"):
        raise damage("it ends inside a page")


class SpoolFile:
    """
    A file that is there. Whoever writes is alone; reading goes on beside it.

    @param writable: False opens it for reading only.
    @ivar log_limit: bytes after which its log is copied into it; L{limit_log} sets it.
    @raise sqlite3.Error: it can't be opened.
    @raise OSError: the name of its log can't be made safe; or a later version of this program has made the file.
    """

    @damage_told()
    def __init__(self, directory: SpoolDirectory, number: int, *, writable: bool) -> None:
        self.number = number
        self.first_number = first_number(number)
        path = directory.path_of(number)
        self._reader = directory.file_system.connect(path, read_only=True)
        self._writer: sqlite3.Connection | None = None
        self._directory = directory
        self._places: dict[str, tuple[int, int]] = {}
        self.log_limit = SMALL_LOG_BYTES
        self._unsettled = 0
        try:
            # Otherwise nothing at all is read of a file that was cut short.
            self._reader.execute("PRAGMA writable_schema=ON")
            # The first look takes the lock that keeps other connections from copying the log when they close.
            self._reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            version = self._version()
            if writable:
                if version != VERSION:
                    raise damage("its version is none")
                _check_size(directory, path)
                self._open_writer(path)
                # The log is there now. SQLite syncs its name, too, but goes on if that fails.
                directory.sync()
                self._places = directory.places(number)
        except BaseException:
            self.close()
            raise

    # -- life ----------------------------------------------------------------------------------------------------

    def _version(self) -> int:
        """
        @raise OSError: a later version of this program has made it.
        """
        version = int(self._reader.execute("PRAGMA user_version").fetchone()[0])
        if VERSION < version <= LAST_VERSION:
            path = self._directory.path_of(self.number)
            raise OSError(errno.ENOTSUP, f"{path} was made by a later version of webhookrx (version {version})")
        return version

    def _open_writer(self, path: str) -> None:
        writer = self._writer = self._directory.file_system.connect(path, read_only=False)
        # The checkpoint that SQLite makes by itself keeps its errors to itself; see checkpoint_if_due().
        writer.execute("PRAGMA wal_autocheckpoint=0")
        writer.execute(f"PRAGMA journal_size_limit={2 * self.log_limit}").fetchall()
        # Some builds write zeros over what is removed, through the log: removing would need as much room as it gives.
        writer.execute("PRAGMA secure_delete=FAST").fetchall()
        state_of(writer)
        self.check_totals()
        # Whoever had it before may have left so much to copy.
        self._unsettled = self._directory.file_system.size(path + "-wal")

    def stop_writing(self) -> None:
        """Never write or sync it again. What is committed can be read."""
        writer, self._writer = self._writer, None
        if writer is not None:
            # Not the last connection, so it copies and syncs nothing.
            writer.close()

    def close(self) -> None:
        """Let go of it. One that may be written is brought in order first."""
        # A command may be one of many, each of which adds to the log, and never the last to close the file.
        with suppress(sqlite3.Error):
            self.checkpoint_if_due()
        self._reader.close()
        if self._writer is not None:
            self._writer.close()

    # -- reading -------------------------------------------------------------------------------------------------

    @damage_told()
    def read_state(self) -> State:
        """
        Return the totals.

        @raise sqlite3.Error: they can't be read, or can't be right.
        """
        state = state_of(self._reader)
        if not 0 <= state.next_id - self.first_number <= NUMBERS_PER_FILE:
            raise damage("its next number is not one of its own")
        return state

    @damage_told()
    def check_totals(self) -> None:
        """
        See whether the totals can be right.

        @raise sqlite3.Error: they can't, or can't be read.
        """
        state = self.read_state()
        (pages,) = self._reader.execute("PRAGMA page_count").fetchone()
        (highest,) = self._reader.execute("SELECT max(id) FROM waiting").fetchone()
        if highest is not None and state.next_id <= whole_numbers([highest])[0]:
            raise damage("its next number is taken")
        for count, size in ((state.messages, state.bytes), (state.dead, state.dead_bytes)):
            if not 0 <= ROW_OVERHEAD * count <= size <= (ROW_OVERHEAD * count + pages * PAGE if count else 0):
                raise damage("its totals can't be right")
        if bool(state.messages) != (highest is not None):
            raise damage("its totals can't be right")

    @damage_told()
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

    @damage_told()
    def read_one(self, number: int) -> Row | None:
        """
        Return one message that waits; None when it does not.

        @raise sqlite3.Error: it can't be read.
        """
        found = self._reader.execute("SELECT id, crc, data FROM waiting WHERE id = ?", (number,)).fetchone()
        return None if found is None else Row.of(*found)

    @damage_told()
    def oldest(self) -> int | None:
        """
        Return when the first message that waits was received.

        @raise sqlite3.Error: it can't be read.
        """
        return oldest_of(self._reader)

    @damage_told()
    def read_dead(self, after: int, count: int) -> list[DeadLetter]:
        """
        Return so many dead letters behind a number.

        @raise sqlite3.Error: they can't be read.
        """
        found = self._reader.execute(
            "SELECT id, received, crc, data, reason, spec, died FROM dead WHERE id > ? ORDER BY id LIMIT ?",
            (after, count),
        )
        return list(map(dead_letter_of, found.fetchall()))

    @damage_told()
    def read_passed(self) -> dict[int, Passed]:
        """
        Return how far the files before this one are done, by their numbers.

        @raise sqlite3.Error: it can't be read.
        """
        found = self._reader.execute("SELECT file, id, messages, bytes FROM passed").fetchall()
        return {file: Passed._make(whole_numbers(rest)) for file, *rest in found}

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
            with damage_told():
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

    @property
    def is_tight(self) -> bool:
        """Whether room is short, as far as was looked."""
        return self.log_limit == SMALL_LOG_BYTES

    @property
    def is_in_place(self) -> bool:
        """Whether it and its log still have their names: what has none is gone with this process."""
        return self._directory.places(self.number) == self._places

    @property
    def has_its_name(self) -> bool:
        """Whether its name is not that of another file."""
        found = self._directory.places(self.number).get("")
        return found is None or found == self._places.get("", found)

    def footprint(self) -> Footprint:
        """
        Tell what it takes of the file system.

        @raise sqlite3.Error: it can't be read.
        """
        path, size = self._directory.path_of(self.number), self._directory.file_system.size
        # The reader may be in the middle of a moment that is past.
        db = self._reader if self._writer is None else self._writer
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        (free,) = db.execute("PRAGMA freelist_count").fetchone()
        return Footprint(size(path), size(path + "-wal"), pages * PAGE, free * PAGE)

    def limit_log(self, size: int) -> None:
        """
        Copy the log after so many bytes from now on, L{LOG_BYTES} or L{SMALL_LOG_BYTES}.

        @raise sqlite3.Error: it could not be said.
        """
        if size != self.log_limit and self._writer is not None:
            self.log_limit = size
            # To this it is cut off when it is next begun anew.
            self._writer.execute(f"PRAGMA journal_size_limit={2 * size}").fetchall()

    def checkpoint_if_due(self) -> None:
        """
        Copy the log into the database once it has grown, so that it can begin anew.

        @raise sqlite3.Error: it could not be copied. What was committed is as safe as before.
        """
        if self._unsettled >= self.log_limit:
            self.checkpoint()

    def checkpoint(self) -> None:
        """
        Copy the log into the database.

        @raise sqlite3.Error: as L{checkpoint_if_due}.
        """
        if self._writer is None:
            return
        # Before it is tried: one that fails is tried again only once it is due again.
        self._unsettled = 0
        _, log, copied = self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if copied < log:
            # A reader has kept some of it from being copied, and all of it from being begun anew.
            self._unsettled = self.log_limit // 2

    def give_back(self, pages: int) -> bool:
        """
        Give pages that hold nothing back to the file system, so many at most; tell whether there were that many.

        @raise sqlite3.Error: it could not be done.
        """
        if self._writer is None or self._writer.execute("PRAGMA freelist_count").fetchone()[0] < pages:
            return False
        self._writer.execute("PRAGMA synchronous=NORMAL")
        # It stops after each page, and only a script is done on to its end: execute() takes no rows of it.
        self._writer.executescript(f"PRAGMA incremental_vacuum({pages})")
        self._unsettled += LOG_BYTES
        return True

    def give_back_log(self) -> None:
        """
        Copy the log and give its room back to the file system, unless somebody reads just now.

        @raise sqlite3.Error: it could not be done.
        """
        if self._writer is None or self.footprint().log <= _PAGE_OVERHEAD:
            return
        self._writer.execute(f"PRAGMA busy_timeout={_TRUNCATE_TIME}").fetchall()
        try:
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            self._writer.execute(f"PRAGMA busy_timeout={int(BUSY_TIME * 1000)}").fetchall()
