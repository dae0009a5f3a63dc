"""
How a file of a spool is made.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from webhookrx.spool.footprint import PAGE
from webhookrx.spool.rows import first_number

if TYPE_CHECKING:
    from webhookrx.spool.directory import SpoolDirectory

LOG_BYTES: Final = 4 * 1024**2
SMALL_LOG_BYTES: Final = 512 * 1024
"""So much goes to the write-ahead log before it is copied into the database; the second where room is short."""

VERSION: Final = 1
"""How the file is made; later versions of this program may make others."""

LAST_VERSION: Final = 99
"""No program makes a higher one: it is damage."""

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
"""


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
            db.execute(f"PRAGMA page_size={PAGE}")
            # Without this the file would keep the size of the longest absence for ever. Only an empty file takes it.
            db.execute("PRAGMA auto_vacuum=INCREMENTAL")
            first = first_number(number)
            db.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION};")
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
