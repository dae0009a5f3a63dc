"""
What an error of SQLite means for the spool file it came from: passing, locked, failed (C{EIO}) or damaged.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum


class Fault(Enum):
    """What an error says about the file."""

    PASSING = "nothing was written; the file is as good as before"
    LOCKED = "the same, but another holder has its locks, or they can't be released: reopening the file helps"
    FAILED = "a write or sync failed: what is in the page cache may never reach the disk"
    DAMAGED = "the content of the file is not what was written"


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

#: I/O errors of its locks.
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
    Classify an error. One without an SQLite code is Python's own, about the call, and passing.
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
    # A message number that exists already: the totals, which hold the next number, were damaged.
    if primary == sqlite3.SQLITE_CONSTRAINT:
        return Fault.DAMAGED
    # A schema that lacks our tables: a page of it was replaced.
    if primary == sqlite3.SQLITE_ERROR and "no such" in str(error):
        return Fault.DAMAGED
    return Fault.PASSING


def is_full(error: BaseException) -> bool:
    """Tell whether the disk or a disk quota is full: C{ENOSPC}, C{EDQUOT} or C{SQLITE_FULL}."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)


def error_text(error: object) -> str:
    """Return the text of any error for a log line, with SQLite's name for it."""
    name = getattr(error, "sqlite_errorname", None) if isinstance(error, sqlite3.Error) else None
    try:
        text = str(error) or type(error).__name__
    except BaseException:
        # The __str__ of a third party must not end the thread that calls it.
        text = type(error).__name__
    return f"{text} ({name})" if name else text


def damage(problem: str) -> sqlite3.Error:
    """Make the error that SQLite itself raises for a damaged file, for damage that it does not notice."""
    error = sqlite3.DatabaseError(problem)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    error.sqlite_errorname = "SQLITE_CORRUPT"
    return error


@contextmanager
def decode_errors_are_damage() -> Iterator[None]:
    """Raise L{damage} for text that is not UTF-8: SQLite quotes damaged text in its errors."""
    try:
        yield
    except UnicodeDecodeError:
        raise damage("its text is not UTF-8") from None
