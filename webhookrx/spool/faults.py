"""
What an error of SQLite means for the file that it came from.
"""

from __future__ import annotations

import errno
import sqlite3
from enum import Enum


class Fault(Enum):
    """What to do about the file."""

    PASSING = "nothing was written; the file is as good as before"
    LOCKED = "the same, but locks of it are had by somebody else, or could not be let go: then opening it anew helps"
    FAILED = "a write or sync failed: what is in the page cache may never reach the disk"
    DAMAGED = "what is in the file is not what was written"


#: I/O errors that say nothing of the file's own content: memory, and the C{-shm} file, which is never synced.
_HARMLESS = frozenset(
    {
        sqlite3.SQLITE_IOERR_NOMEM,
        sqlite3.SQLITE_IOERR_ACCESS,
        sqlite3.SQLITE_IOERR_SHMOPEN,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_SHMMAP,
    }
)

#: The same of its locks.
_LOCKS = frozenset(
    {
        sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
        sqlite3.SQLITE_IOERR_LOCK,
        sqlite3.SQLITE_IOERR_RDLOCK,
        sqlite3.SQLITE_IOERR_UNLOCK,
        sqlite3.SQLITE_IOERR_SHMLOCK,
    }
)


def fault_of(error: BaseException) -> Fault:
    """
    Say what an error means. One without a code of SQLite's is Python's own, about what it was asked.
    """
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) or sqlite3.SQLITE_OK
    primary = code & 0xFF
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT):
        return Fault.DAMAGED
    if code in _LOCKS or primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
        return Fault.LOCKED
    if primary == sqlite3.SQLITE_IOERR and code not in _HARMLESS:
        return Fault.FAILED
    # The name of the file is gone, or is that of another file.
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        return Fault.FAILED
    # A number that is there already: the totals, which say what the next one is, were damaged.
    if primary == sqlite3.SQLITE_CONSTRAINT:
        return Fault.DAMAGED
    # A schema that lacks what we made: some page of it was replaced.
    if primary == sqlite3.SQLITE_ERROR and "no such" in str(error):
        return Fault.DAMAGED
    return Fault.PASSING


def is_full(error: BaseException) -> bool:
    """Tell whether there was no room for what should be written."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)


def error_text(error: object) -> str:
    """Say what an error says, whatever it is made of, for a log line: SQLite's own name of it as well."""
    name = getattr(error, "sqlite_errorname", None) if isinstance(error, sqlite3.Error) else None
    try:
        text = str(error) or type(error).__name__
    except BaseException:
        # An error of somebody else: its words must not end the thread that asks for them.
        text = type(error).__name__
    return f"{text} ({name})" if name else text
