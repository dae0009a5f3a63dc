"""
One SQLite file of a spool: waiting messages in the order of their numbers, and dead letters.

It is written through one connection and read through another, which can't write. So a file that had an I/O error can
still be read: the last connection to close a database copies its write-ahead log into it and syncs both, and one that
can't write does not.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from webhookrx.spool.directory import BUSY_TIME, SpoolDirectory
from webhookrx.spool.faults import damage, decode_errors_are_damage
from webhookrx.spool.quota import SMALL_LOG_BYTES, Footprint
from webhookrx.spool.rows import (
    LAST_VERSION,
    NUMBERS_PER_FILE,
    PAGE,
    ROW_OVERHEAD,
    VERSION,
    DeadLetter,
    ListedMessage,
    ReadCursor,
    Row,
    Totals,
    Transaction,
    dead_letter_of,
    first_number,
    list_dead,
    list_waiting,
    oldest_of,
    totals_of,
    whole_numbers,
)

BATCH_MESSAGES: Final = 1000
BATCH_BYTES: Final = 1024**2
"""A usual batch has at most so many messages and about so many bytes, or is one larger message."""
USUAL_BATCH: Final = (BATCH_MESSAGES, BATCH_BYTES)

IDLE_PAGES: Final = 4096
"""Free pages that are kept, so that the next messages need no new ones."""
TIGHT_PAGES: Final = 64
"""Free pages that are kept, and returned in one turn, while disk space is short: each may be moved through the log."""
TURN_PAGES: Final = 256
"""Pages that are returned in one turn otherwise."""
TURN_TIME: Final = 0.02
"""Seconds after which a turn returns no more pages."""

_TRUNCATE_TIME: Final = 50
"""Milliseconds that truncating the log waits for readers."""
_PAGE_OVERHEAD: Final = 16 * 1024
"""Bytes that a transaction writes besides its messages: whole pages of the tree, and the totals."""


class SpoolFile:
    """
    An open file. One thread at a time writes; reading goes on beside it.

    @param writable: False opens it for reading only.
    @ivar log_limit: bytes after which its log is copied into it; L{limit_log} sets it.
    @raise sqlite3.Error: it can't be opened; each method raises it, too, where SQLite fails or finds damage.
    @raise OSError: the name of its log can't be synced; or a later version of this program has made the file.
    """

    @decode_errors_are_damage()
    def __init__(self, directory: SpoolDirectory, number: int, *, writable: bool) -> None:
        self.number = number
        self.first_number = first_number(number)
        self.log_limit = SMALL_LOG_BYTES
        self._directory = directory
        self._path = directory.path_of(number)
        self._writer: sqlite3.Connection | None = None
        self._uncopied = 0  # bytes written to the log, roughly, since it was last copied
        self._reader = directory.file_system.connect(self._path, read_only=True)
        try:
            self._begin_reading()
            version = self._read_version()
            self._identities = directory.identities(number)
            if writable:
                self._open_writer(version)
        except BaseException:
            self.close()
            raise

    # -- opening and closing -------------------------------------------------------------------------------------

    def _begin_reading(self) -> None:
        # Otherwise nothing at all is read of a truncated file.
        self._reader.execute("PRAGMA writable_schema=ON")
        # The first read takes the lock that keeps other connections from copying the log when they close.
        self._reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()

    def _read_version(self) -> int:
        version = int(self._reader.execute("PRAGMA user_version").fetchone()[0])
        if VERSION < version <= LAST_VERSION:
            raise OSError(errno.ENOTSUP, f"{self._path} was made by a later version of webhookrx (version {version})")
        return version

    def _open_writer(self, version: int) -> None:
        if version != VERSION:
            raise damage(f"there is no version {version}")
        size = self._directory.file_system.size
        # SQLite takes what is missing for zeros, unless its log has it.
        if size(self._path) % PAGE and not size(self._path + "-wal"):
            raise damage("it ends inside a page")
        writer = self._writer = self._directory.file_system.connect(self._path, read_only=False)
        # The automatic checkpoint of SQLite hides its errors; see checkpoint().
        writer.execute("PRAGMA wal_autocheckpoint=0")
        writer.execute(f"PRAGMA journal_size_limit={2 * self.log_limit}").fetchall()
        # Some builds write zeros over what is removed, through the log: removing would need as much room as it gives.
        writer.execute("PRAGMA secure_delete=FAST").fetchall()
        totals_of(writer)
        oldest_of(writer)
        self.check_totals()
        # A former process may have left so much to copy.
        self._uncopied = size(self._path + "-wal")
        # The log exists now. SQLite syncs its name, too, but ignores a failure.
        self._directory.sync()
        self._identities = self._directory.identities(self.number)

    def reopen_reader(self) -> None:
        """
        Reopen a file that is no longer written. That releases locks of this process which can't be released otherwise:
        the system drops them when all of the file is closed. A file that has lost its name stays open.

        @raise sqlite3.Error: it can't be read yet. Call this again before anything else.
        """
        now = self._directory.identities(self.number)
        if any(now.get(part) != self._identities.get(part) for part in ("", "-wal")):
            return
        # Nothing copies the log here: no connection is closed that could write.
        self._reader.close()
        self._reader = self._directory.file_system.connect(self._path, read_only=True)
        self._begin_reading()

    def stop_writing(self) -> None:
        """Never write or sync it again. What is committed can be read."""
        writer, self._writer = self._writer, None
        if writer is not None:
            # Not the last connection, so it copies and syncs nothing.
            writer.close()

    def close(self) -> None:
        """Close it. The log of a writable file is copied first if that is due."""
        # A command may be one of many, each of which adds to the log, and never the last to close the file.
        with suppress(sqlite3.Error):
            self.checkpoint()
        self._reader.close()
        if self._writer is not None:
            self._writer.close()

    # -- reading -------------------------------------------------------------------------------------------------

    @decode_errors_are_damage()
    def read_totals(self) -> Totals:
        """Return the totals."""
        totals = totals_of(self._reader)
        if not 0 <= totals.next_id - self.first_number <= NUMBERS_PER_FILE:
            raise damage("its next number is not one of its own")
        return totals

    @decode_errors_are_damage()
    def check_totals(self) -> None:
        """
        Check the totals.

        @raise sqlite3.Error: they can't be right, or can't be read.
        """
        totals = self.read_totals()
        (pages,) = self._reader.execute("PRAGMA page_count").fetchone()
        (highest,) = self._reader.execute("SELECT max(id) FROM waiting").fetchone()
        if highest is not None and totals.next_id <= whole_numbers([highest])[0]:
            raise damage("its next number is taken")
        for count, size in ((totals.messages, totals.bytes), (totals.dead, totals.dead_bytes)):
            if not 0 <= ROW_OVERHEAD * count <= size <= (ROW_OVERHEAD * count + pages * PAGE if count else 0):
                raise damage("its totals can't be right")
        if bool(totals.messages) != (highest is not None):
            raise damage("its totals can't be right")

    @decode_errors_are_damage()
    def read(self, after: int, count: int = BATCH_MESSAGES, size: int = BATCH_BYTES) -> list[Row]:
        """
        Return the waiting messages after a number, in order: at most C{count} and about C{size} bytes, but at least
        one. Where the file is damaged, those before the damage.

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
            # A statement that is not done keeps its snapshot, and the log could not restart.
            cursor.close()
        return rows

    @decode_errors_are_damage()
    def read_one(self, number: int) -> Row | None:
        """Return one waiting message; None when it does not wait."""
        found = self._reader.execute("SELECT id, crc, data FROM waiting WHERE id = ?", (number,)).fetchone()
        return None if found is None else Row.of(*found)

    @decode_errors_are_damage()
    def first(self) -> int | None:
        """Return the number of the first waiting message; None when none waits."""
        found = self._reader.execute("SELECT id FROM waiting ORDER BY id LIMIT 1").fetchone()
        return None if found is None else int(found[0])

    @decode_errors_are_damage()
    def oldest(self) -> int | None:
        """Return when the first waiting message was received; None when none waits."""
        return oldest_of(self._reader)

    @decode_errors_are_damage()
    def read_dead(self, after: int, count: int = BATCH_MESSAGES, size: int = BATCH_BYTES) -> list[DeadLetter]:
        """
        Return the dead letters after a number, in order, as L{read} does.

        @raise sqlite3.Error: not even the first can be read.
        """
        letters: list[DeadLetter] = []
        cursor = self._reader.execute(
            "SELECT id, received, crc, data, reason, spec, died FROM dead WHERE id > ? ORDER BY id", (after,)
        )
        try:
            for found in cursor:
                letter = dead_letter_of(found)
                letters.append(letter)
                size -= letter.size
                if len(letters) >= count or size <= 0:
                    break
        except sqlite3.Error:
            if not letters:
                raise
        finally:
            cursor.close()
        return letters

    @decode_errors_are_damage()
    def read_cursors(self) -> dict[int, ReadCursor]:
        """Return how far older files have been delivered, by their numbers."""
        found = self._reader.execute("SELECT file, id, messages, bytes FROM passed").fetchall()
        return {file: ReadCursor._make(whole_numbers(rest)) for file, *rest in found}

    @decode_errors_are_damage()
    def list_waiting(self, after: int, before: int) -> list[ListedMessage]:
        """List the next waiting messages between two numbers, as L{webhookrx.spool.rows.list_waiting} does."""
        return list_waiting(self._reader, after, before)

    @decode_errors_are_damage()
    def list_dead(self, after: int, before: int) -> list[ListedMessage]:
        """List the next dead letters between two numbers, as L{webhookrx.spool.rows.list_dead} does."""
        return list_dead(self._reader, after, before)

    # -- state ---------------------------------------------------------------------------------------------------

    @property
    def is_writable(self) -> bool:
        """Whether it can be written."""
        return self._writer is not None

    @property
    def is_stuck(self) -> bool:
        """Whether a transaction could not even be rolled back."""
        return self._writer is not None and self._writer.in_transaction

    @property
    def is_tight(self) -> bool:
        """Whether disk space was short when it was last measured."""
        return self.log_limit == SMALL_LOG_BYTES

    @property
    def is_in_place(self) -> bool:
        """Whether it and its log still have their names: an unlinked file is gone with this process."""
        return self._directory.identities(self.number) == self._identities

    @property
    def has_its_name(self) -> bool:
        """Whether no other file has its name."""
        found = self._directory.identities(self.number).get("")
        return found is None or found == self._identities.get("", found)

    def footprint(self) -> Footprint:
        """Return the disk space that it occupies."""
        size = self._directory.file_system.size
        # The reader may be in an older snapshot.
        db = self._reader if self._writer is None else self._writer
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        (free,) = db.execute("PRAGMA freelist_count").fetchone()
        return Footprint(size(self._path), size(self._path + "-wal"), pages * PAGE, free * PAGE)

    # -- writing -------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self, *, durable: bool) -> Iterator[Transaction]:
        """
        Write all that is done inside, or nothing.

        @param durable: return once it survives a power cut. Without, a power cut may undo it, together with all that
            came after it: frames of the log count up to the first torn one, and the next durable transaction syncs
            those before it. So only what may be undone is written that way, such as the removal of what was delivered:
            it would be delivered twice.
        @raise sqlite3.Error: nothing was written.
        """
        db = self._writer
        if db is None:
            raise sqlite3.OperationalError("the file is not written any more")
        # Set each time: nothing that happens between two transactions can weaken a durable one.
        db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
        db.execute("BEGIN IMMEDIATE")
        transaction = Transaction(db)
        try:
            with decode_errors_are_damage():
                yield transaction
                db.execute("COMMIT")
        except BaseException:
            # SQLite has rolled some failed transactions back by itself.
            with suppress(sqlite3.Error):
                if db.in_transaction:
                    db.execute("ROLLBACK")
            raise
        self._uncopied += transaction.written + _PAGE_OVERHEAD

    def limit_log(self, size: int) -> None:
        """Set the bytes after which the log is copied: C{LOG_BYTES} or C{SMALL_LOG_BYTES}."""
        if size != self.log_limit and self._writer is not None:
            self.log_limit = size
            # The log is truncated to this when it next restarts.
            self._writer.execute(f"PRAGMA journal_size_limit={2 * size}").fetchall()

    def checkpoint(self, *, at_once: bool = False) -> None:
        """
        Copy the log into the database once it has grown, or C{at_once}, so that it can restart.

        @raise sqlite3.Error: it could not be copied. What was committed is as safe as before.
        """
        if self._writer is None or (self._uncopied < self.log_limit and not at_once):
            return
        # Before the try: one that fails is tried again only once it is due again.
        self._uncopied = 0
        busy, log, copied = self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if busy or copied < log:
            # A reader, or another checkpoint, has kept some of the log from being copied, so it can't restart.
            self._uncopied = self.log_limit // 2

    def vacuum(self, clock: Callable[[], float]) -> bool:
        """
        Return free pages to the file system for one turn, bounded in pages and time; tell whether more are left.

        @param clock: seconds on the monotonic clock.
        @raise sqlite3.Error: no page was returned.
        """
        if self._writer is None:
            return False
        keep, most = (TIGHT_PAGES, TIGHT_PAGES) if self.is_tight else (IDLE_PAGES, TURN_PAGES)
        deadline = clock() + TURN_TIME
        (free,) = self._writer.execute("PRAGMA freelist_count").fetchone()
        spare: int = free - keep
        if spare <= 0:
            return False
        done = 0
        with self.transaction(durable=False) as transaction:
            while done < min(spare, most) and not (done and clock() >= deadline):
                transaction.vacuum_page()
                done += 1
        if done < spare:
            return True
        # The file is truncated when the log is copied.
        self._uncopied = self.log_limit
        return False

    def truncate_log(self) -> None:
        """Copy the log and return its space to the file system, unless a reader is busy."""
        if self._writer is None or self.footprint().log <= _PAGE_OVERHEAD:
            return
        self._writer.execute(f"PRAGMA busy_timeout={_TRUNCATE_TIME}").fetchall()
        try:
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            self._writer.execute(f"PRAGMA busy_timeout={int(BUSY_TIME * 1000)}").fetchall()
