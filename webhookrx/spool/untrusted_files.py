"""
Opens spool files that another user may have written: C{webhookrx spool} may run as root, on any directory.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from webhookrx.errors import WebhookrxError
from webhookrx.spool.directory import PARTS, SpoolFileSystem

TIME_LIMIT: Final = 30.0
"""Seconds that one read or change may compute; an honest file needs milliseconds."""
LONGEST: Final = 256 * 1024**2
"""The most bytes of one value."""

_STEPS: Final = 10_000
"""Instructions of SQLite's virtual machine between two reads of the clock."""


class NoSpoolFile(WebhookrxError):
    """A file was not made by a spool; the text is one line for people."""


class UntrustedFileSystem(SpoolFileSystem):
    """
    Opens regular files only, and stops whatever their content makes SQLite do for long.

    SQLite opens files by name and follows links; so a name is checked before that and again after it. Only users who
    can write to the directory can exchange files in between; see L{webhookrx.spool.directory.open_to_others}.

    @param clock: seconds on the monotonic clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deadline = clock() + TIME_LIMIT

    def connect(self, path: str, *, read_only: bool) -> sqlite3.Connection:
        """
        Open an existing database.

        @raise NoSpoolFile: it, or its log, is no regular file; or it has code of its own (triggers, views).
        @raise sqlite3.Error: it can't be opened.
        """
        before = _identity(path)
        db = super().connect(path, read_only=read_only)
        try:
            db.set_progress_handler(self._is_late, _STEPS)
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            db.execute("PRAGMA trusted_schema=OFF")
            if read_only:
                # Otherwise nothing at all is read of a truncated file.
                db.execute("PRAGMA writable_schema=ON")
            found = db.execute("SELECT 1 FROM sqlite_schema WHERE type IN ('trigger', 'view') LIMIT 1").fetchone()
            if found is not None or _identity(path) != before:
                raise NoSpoolFile(f"{path!r} is no file of a spool")
        except BaseException:
            db.close()
            raise
        return db

    @contextmanager
    def in_time(self) -> Iterator[None]:
        """
        Bound the work inside to L{TIME_LIMIT}.

        @raise NoSpoolFile: it took longer.
        """
        self._deadline = self._clock() + TIME_LIMIT
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
                raise
            raise NoSpoolFile(
                f"it took longer than {TIME_LIMIT:.0f} s; this is no file of a spool, or damaged"
            ) from error

    def _is_late(self) -> bool:
        return self._clock() > self._deadline


def _identity(path: str) -> tuple[int, int]:
    """
    Return device and inode of a file.

    @raise NoSpoolFile: it, or one of SQLite's own files beside it, is no regular file.
    """
    identity = (0, 0)
    for part in reversed(PARTS):
        try:
            status = os.lstat(path + part)
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(status.st_mode):
            raise NoSpoolFile(f"{path + part!r} is no regular file")
        identity = status.st_dev, status.st_ino
    return identity
