"""
The file of an idempotency window: keys of stored deliveries in SQLite, for the next start.

A row holds the entries of one write, as L{KeyRing.entries} returns them; its number grows by as many as it holds. So it
is appended to at one end, and cut off at the other. Nothing is ever synced: what a power cut takes are keys whose
deliveries would be stored again.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import quote

from webhookrx.errors import UnusableFile
from webhookrx.filesystem import DiskSpace
from webhookrx.idempotency.key_ring import CAPACITY, ENTRY

BUSY_TIME: Final = 0.5
"""Seconds to wait for another process to give the file up."""

_VERSION: Final = 1
_SCHEMA: Final = """
CREATE TABLE deliveries (last INTEGER PRIMARY KEY, newest INTEGER NOT NULL, entries BLOB NOT NULL);
"""
#: Bytes of a transaction besides its entries: pages of the tree.
_TREE: Final = 64 * 1024
#: Rows that one write cuts off, so that none takes long.
_CUT: Final = 10_000

_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_CONSTRAINT)

Connect = Callable[[str], sqlite3.Connection]


def connect(path: str) -> sqlite3.Connection:
    """
    Open a database, and make it if it is missing.

    @raise sqlite3.Error: it can't be opened.
    """
    return sqlite3.connect(
        f"file:{quote(path)}?mode=rwc", uri=True, timeout=BUSY_TIME, isolation_level=None, check_same_thread=False
    )


@contextmanager
def _damage_is_said() -> Iterator[None]:
    """Raise L{UnusableFile} for errors of SQLite that mean damage."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_OK
        # A schema without our table, or a row that is there already, are damage, too.
        if code & 0xFF in _DAMAGE or "no such" in str(error):
            raise UnusableFile(str(error)) from None
        raise


class DeliveryFile:
    """
    An open file. It belongs to this process alone, until it is closed or the process ends. One thread at a time uses
    it.

    @param path: absolute.
    @raise UnusableFile: it is damaged.
    @raise sqlite3.Error: it can't be used: another process has it, it is read-only, or else.
    @raise OSError: its directory can't be made, or a later version of this program has made it.
    """

    def __init__(
        self, path: str, connect: Connect = connect, disk_space: DiskSpace | None = None, capacity: int = CAPACITY
    ) -> None:
        directory = os.path.dirname(path)
        with suppress(FileExistsError):
            os.mkdir(directory, 0o700)
        with suppress(FileExistsError):
            # SQLite gives the files that it makes beside a database the mode of the database.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        self._disk_space = disk_space or DiskSpace(directory)
        self._capacity = capacity
        self._last = 0
        with _damage_is_said():
            self._db = connect(path)
        try:
            self._begin(path)
        except BaseException:
            self.close()
            raise

    @_damage_is_said()
    def _begin(self, path: str) -> None:
        db = self._db
        # With the exclusive lock no memory is shared with other processes, which would be a third file.
        for pragma in ("locking_mode=EXCLUSIVE", "synchronous=OFF", "cell_size_check=ON", "trusted_schema=OFF"):
            db.execute(f"PRAGMA {pragma}").fetchall()
        if db.execute("PRAGMA journal_mode=WAL").fetchone() != ("wal",):
            raise sqlite3.OperationalError("the write-ahead log can't be used here")
        db.execute("BEGIN IMMEDIATE")  # here it turns out whether it can be written
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            raise OSError(f"{path} was made by a later version of webhookrx (version {version})")
        if not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            db.execute(_SCHEMA)
            db.execute(f"PRAGMA user_version = {_VERSION}")
        elif version != _VERSION:
            raise UnusableFile(f"it has the version {version}")
        db.execute("COMMIT")
        (last,) = db.execute("SELECT max(last) FROM deliveries").fetchone()
        self._last = last or 0

    @_damage_is_said()
    def read(self) -> list[bytes]:
        """
        Return the newest entries, as many as are remembered, in their order.

        @raise UnusableFile: it is damaged.
        @raise sqlite3.Error: it can't be read.
        """
        parts: list[bytes] = []
        room = self._capacity * ENTRY
        for (entries,) in self._db.execute("SELECT entries FROM deliveries ORDER BY last DESC"):
            if not isinstance(entries, bytes) or len(entries) % ENTRY:
                raise UnusableFile("a row of it has no whole entries")
            parts.append(entries)
            room -= len(entries)
            if room <= 0:
                break
        return parts[::-1]

    @_damage_is_said()
    def append(self, entries: bytes, newest: int, oldest: int) -> None:
        """
        Write further entries, and cut off those that are too many or too old.

        @param newest: the time of the last of them, in seconds.
        @param oldest: the time before which nothing is remembered.
        @raise UnusableFile: it is damaged.
        @raise sqlite3.Error: nothing was written.
        @raise OSError: nothing was written, since too little of the disk is free.
        """
        self._disk_space.check(2 * len(entries) + _TREE)
        db, last = self._db, self._last + len(entries) // ENTRY
        db.execute("BEGIN IMMEDIATE")
        try:
            db.execute("INSERT INTO deliveries VALUES (?, ?, ?)", (last, newest, entries))
            db.execute("DELETE FROM deliveries WHERE last <= ?", (self._end_of_cut(last - self._capacity, oldest),))
            db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            raise
        self._last = last

    def _end_of_cut(self, last: int, oldest: int) -> int:
        """Return the number of the last row that is to be cut off: too old, or not beyond C{last}."""
        end = 0
        rows = self._db.execute("SELECT last, newest FROM deliveries ORDER BY last LIMIT ?", (_CUT,))
        for number, newest in rows:
            if number > last and newest >= oldest:
                break
            end = number
        rows.close()
        return end

    def close(self) -> None:
        """Close it."""
        with suppress(sqlite3.Error):
            self._db.close()


def put_aside(path: str) -> str:
    """
    Rename a damaged file, and the log with its newest pages, in the place of an earlier one, and return the new path.
    """
    for part in ("-wal", ""):
        with suppress(OSError):
            os.replace(path + part, f"{path}{part}.damaged")
    # SQLite would take one that is left over for that of the new file.
    for part in ("-shm", "-journal", "-wal", ""):
        with suppress(OSError):
            os.unlink(path + part)
    return f"{path}.damaged"
