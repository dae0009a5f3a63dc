"""
One database of a spool: messages that wait, in the order of their numbers, and dead letters.

It is written through one connection and read through another, which can't write. That way a file that had an I/O error
goes on to be read: the last connection to close a database copies its write-ahead log into it and syncs both, and one
that can't write does not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from webhookrx.spool.directory import BUSY_TIME, SpoolDirectory
from webhookrx.spool.file_reader import FileReader
from webhookrx.spool.footprint import PAGE, Footprint
from webhookrx.spool.rows import bad_text_is_damage, damage, oldest_of, totals_of
from webhookrx.spool.schema import SMALL_LOG_BYTES, VERSION
from webhookrx.spool.transaction import Transaction

_TRUNCATE_TIME: Final = 50
"""Milliseconds that cutting off the log waits for readers."""

_PAGE_OVERHEAD: Final = 16 * 1024
"""Bytes that a transaction writes besides its messages: whole pages of the tree, and the state."""


def _check_size(directory: SpoolDirectory, path: str) -> None:
    """
    @raise sqlite3.Error: the file ends inside a page. SQLite takes what is missing for zeros, unless its log has it.
    """
    size = directory.file_system.size
    if size(path) % PAGE and not size(path + "-wal"):
        raise damage("it ends inside a page")


class SpoolFile(FileReader):
    """
    A file that may be written, too. Whoever writes is alone; reading goes on beside it.

    @param writable: False opens it for reading only.
    @ivar log_limit: bytes after which its log is copied into it; L{limit_log} sets it.
    @raise sqlite3.Error: it can't be opened.
    @raise OSError: the name of its log can't be made safe; or a later version of this program has made the file.
    """

    @bad_text_is_damage()
    def __init__(self, directory: SpoolDirectory, number: int, *, writable: bool) -> None:
        super().__init__(directory, number)
        self._writer: sqlite3.Connection | None = None
        self.log_limit = SMALL_LOG_BYTES
        self._unsettled = 0
        if writable:
            try:
                self._open_writer()
            except BaseException:
                self.close()
                raise

    # -- life ----------------------------------------------------------------------------------------------------

    def _open_writer(self) -> None:
        if self._version != VERSION:
            raise damage("its version is none")
        _check_size(self._directory, self._path)
        writer = self._writer = self._directory.file_system.connect(self._path, read_only=False)
        # The checkpoint that SQLite makes by itself keeps its errors to itself; see checkpoint_if_due().
        writer.execute("PRAGMA wal_autocheckpoint=0")
        writer.execute(f"PRAGMA journal_size_limit={2 * self.log_limit}").fetchall()
        # Some builds write zeros over what is removed, through the log: removing would need as much room as it gives.
        writer.execute("PRAGMA secure_delete=FAST").fetchall()
        totals_of(writer)
        oldest_of(writer)
        self.check_totals()
        # Whoever had it before may have left so much to copy.
        self._unsettled = self._directory.file_system.size(self._path + "-wal")
        # The log is there now. SQLite syncs its name, too, but goes on if that fails.
        self._directory.sync()
        self._places = self._directory.places(self.number)

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
            with bad_text_is_damage():
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
        size = self._directory.file_system.size
        # The reader may be in the middle of a moment that is past.
        db = self._reader if self._writer is None else self._writer
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        (free,) = db.execute("PRAGMA freelist_count").fetchone()
        return Footprint(size(self._path), size(self._path + "-wal"), pages * PAGE, free * PAGE)

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
        busy, log, copied = self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if busy or copied < log:
            # Somebody who reads, or copies, has kept some of it from being copied, and all of it from being begun anew.
            self._unsettled = self.log_limit // 2

    def give_back(self, keep: int, most: int, is_late: Callable[[], bool]) -> bool:
        """
        Give pages that hold nothing back to the file system, and tell whether there are more to give.

        @param keep: so many of them stay.
        @param most: so many are given back at most.
        @param is_late: no more are, after the first one, once this is true.
        @raise sqlite3.Error: it could not be done.
        """
        if self._writer is None:
            return False
        (free,) = self._writer.execute("PRAGMA freelist_count").fetchone()
        spare: int = free - keep
        if spare <= 0:
            return False
        given = 0
        with self.transaction(durable=False) as transaction:
            while given < min(spare, most) and not (given and is_late()):
                transaction.give_back_page()
                given += 1
        if given < spare:
            return True
        # The file is cut off when the log is copied.
        self._unsettled = self.log_limit
        return False

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
