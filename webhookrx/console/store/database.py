"""
The file of a console's store: opens it, makes or migrates its tables, and runs transactions that are on disk when they
return.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar
from urllib.parse import quote

from webhookrx.console.store.history import StoreTransaction
from webhookrx.console.store.schema import MIGRATIONS, SCHEMA, VERSION
from webhookrx.errors import StoreFull, StoreUnavailable, UnusableFile
from webhookrx.filesystem import DiskSpace

BUSY_TIME: Final = 5.0
"""Seconds to wait for another process that writes, such as C{webhookrx console user}."""

APPLICATION: Final = 0x77727843
"""C{PRAGMA application_id}, "wrxC": by it other programs know the file (file(1))."""

#: Bytes that a transaction may need in the log: a whole rules file with its history.
_ROOM: Final = 16 * 1024 * 1024
#: Pages in the log after which they are brought into the file.
_CHECKPOINT_PAGES: Final = 1000
#: Bytes to which the log is cut back once it has been larger.
_LOG_BYTES: Final = 64 * 1024 * 1024

_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)

T = TypeVar("T")


def connect(path: str, mode: str = "rw") -> sqlite3.Connection:
    """
    Open a database.

    @param mode: C{rw}, or C{ro}.
    @raise sqlite3.Error: it can't be opened.
    """
    return sqlite3.connect(
        f"file:{quote(path)}?mode={mode}", uri=True, timeout=BUSY_TIME, isolation_level=None, check_same_thread=False
    )


@contextmanager
def _said_plainly() -> Iterator[None]:
    """Raise our errors for those of SQLite that mean the file, not the statement."""
    try:
        yield
    except (sqlite3.OperationalError, sqlite3.DatabaseError) as error:
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise StoreFull("There is no room for it on the disk of the store.") from error
        if code in _DAMAGE:
            raise UnusableFile(f"The store is damaged: {error}") from error
        if code in (
            sqlite3.SQLITE_BUSY,
            sqlite3.SQLITE_LOCKED,
            sqlite3.SQLITE_IOERR,
            sqlite3.SQLITE_READONLY,
            sqlite3.SQLITE_CANTOPEN,
            sqlite3.SQLITE_NOMEM,
        ):
            raise StoreUnavailable(f"The store can't be used now: {error}.") from error
        raise


class StoreWriter:
    """
    The connection that writes. One thread at a time uses it.

    @param path: absolute.
    @param clock: seconds since the epoch.
    @param disk_space: the floor of free space that stays.
    @param connect: opens the file.
    @raise UnusableFile: it is damaged, or no store of a console, or of a later version.
    @raise StoreUnavailable: it can't be opened or written.
    @raise StoreFull: there is no room.
    """

    def __init__(
        self,
        path: str,
        clock: Callable[[], float] = time.time,
        disk_space: DiskSpace | None = None,
        connect: Callable[[str], sqlite3.Connection] = connect,
    ) -> None:
        self.path = path
        self._clock = clock
        self._disk_space = disk_space or DiskSpace(os.path.dirname(path))
        with suppress(FileExistsError):
            # SQLite gives the files that it makes beside a database the mode of the database.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with _said_plainly():
            self._db = connect(path)
            try:
                self._begin()
            except BaseException:
                self.close()
                raise

    def _begin(self) -> None:
        db = self._db
        for pragma in (
            "synchronous=FULL",
            "foreign_keys=ON",
            "cell_size_check=ON",
            "trusted_schema=OFF",
            f"wal_autocheckpoint={_CHECKPOINT_PAGES}",
            f"journal_size_limit={_LOG_BYTES}",
        ):
            db.execute(f"PRAGMA {pragma}").fetchall()
        if db.execute("PRAGMA journal_mode=WAL").fetchone() != ("wal",):
            raise StoreUnavailable("The store can't be used: no write-ahead log is possible on its file system.")
        db.execute("BEGIN IMMEDIATE")
        try:
            self._migrate()
            db.execute("COMMIT")
        except BaseException:
            self._undo()
            raise

    def _migrate(self) -> None:
        db = self._db
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if not tables:
            _execute_all(db, SCHEMA)
            db.execute(f"PRAGMA application_id = {APPLICATION}")
        elif application != APPLICATION:
            raise UnusableFile("The file is a database, and no store of a console.")
        elif version > VERSION:
            raise UnusableFile(f"A later version of webhookrx has made the store: {version}, this one knows {VERSION}.")
        else:
            for each in range(version, VERSION):
                _execute_all(db, MIGRATIONS[each])
        db.execute(f"PRAGMA user_version = {VERSION}")

    def write(self, work: Callable[[StoreTransaction], T]) -> T:
        """See L{webhookrx.console.store.interface.ConsoleStore.write}."""
        try:
            self._disk_space.check(_ROOM)
        except OSError as error:
            raise StoreFull(f"There is no room for it on the disk of the store: {error.strerror}.") from None
        with _said_plainly():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                result = work(StoreTransaction(self._db, self._clock()))
                self._db.execute("COMMIT")
            except BaseException:
                self._undo()
                raise
        return result

    def _undo(self) -> None:
        # SQLite has undone it itself after some errors.
        if self._db.in_transaction:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file."""
        with suppress(sqlite3.Error):
            self._db.close()


class StoreReader:
    """
    The connection that reads. One thread at a time uses it.

    @param path: of a file that a L{StoreWriter} has opened before.
    @raise StoreUnavailable: it can't be opened.
    """

    def __init__(self, path: str, connect: Callable[[str], sqlite3.Connection] = connect) -> None:
        with _said_plainly():
            self._db = connect(path)
            self._db.execute("PRAGMA query_only=ON").fetchall()
            self._db.execute("PRAGMA trusted_schema=OFF").fetchall()

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """See L{webhookrx.console.store.interface.ConsoleStore.read}."""
        with _said_plainly():
            self._db.execute("BEGIN")
            try:
                return work(self._db)
            finally:
                # What has been read stays as it is; a transaction left open would keep the log from its end.
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file."""
        with suppress(sqlite3.Error):
            self._db.close()


def _execute_all(db: sqlite3.Connection, statements: str) -> None:
    """Execute statements inside a transaction, which C{executescript} would commit first."""
    statement = ""
    for line in statements.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            db.execute(statement)
            statement = ""
