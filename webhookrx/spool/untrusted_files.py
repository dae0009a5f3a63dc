"""
Opening files of a spool that anybody may have written: a person's command may run as root, and look anywhere.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from webhookrx.errors import WebhookrxError
from webhookrx.spool.directory import SpoolFileSystem

PATIENCE: Final = 30.0
"""Seconds that one look or change may compute; more than a few of a thousandth are needed by none that is honest."""
LONGEST: Final = 256 * 1024**2
"""Bytes that one value of a file may have."""

_STEPS: Final = 10_000
"""Instructions of SQLite's machine between two looks at the clock."""
_PARTS: Final = ("", "-wal", "-shm", "-journal")


class NoSpoolFile(WebhookrxError):
    """A file is not one that a spool has made; the text is one line for people."""


class UntrustedFileSystem(SpoolFileSystem):
    """
    Opens nothing but regular files, and runs nothing that they hold for long.

    SQLite opens files by name and follows links; so a name is looked at before that and again after it. Who may
    exchange files in between can write to the directory, which L{open_to_others} tells.

    @param clock: seconds on the monotonic clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deadline = clock() + PATIENCE

    def connect(self, path: str, *, read_only: bool) -> sqlite3.Connection:
        """
        Open a database that is there.

        @raise NoSpoolFile: it, or what belongs to it, is no regular file; or it runs code of its own.
        @raise sqlite3.Error: it can't be opened.
        """
        before = _identity(path)
        db = super().connect(path, read_only=read_only)
        try:
            db.set_progress_handler(self._is_late, _STEPS)
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            db.execute("PRAGMA trusted_schema=OFF")
            if read_only:
                # Otherwise nothing at all is read of a file that was cut short.
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
        Give what is done inside its time.

        @raise NoSpoolFile: it took longer.
        """
        self._deadline = self._clock() + PATIENCE
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
                raise
            raise NoSpoolFile(
                f"it took longer than {PATIENCE:.0f} s; this is no file of a spool, or damaged"
            ) from error

    def _is_late(self) -> bool:
        return self._clock() > self._deadline


def open_to_others(path: str) -> str | None:
    """Say what is wrong with a directory that others than its owner may write to; None when nothing is."""
    with suppress(OSError):
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"can be written to by others than its owner (mode {mode:04o}); what is in it may be anybody's"
    return None


def _identity(path: str) -> tuple[int, int]:
    """
    Tell which file has a name.

    @raise NoSpoolFile: it, or one of SQLite's own beside it, is no regular file.
    """
    identity = (0, 0)
    for part in reversed(_PARTS):
        try:
            status = os.lstat(path + part)
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(status.st_mode):
            raise NoSpoolFile(f"{path + part!r} is no regular file")
        identity = status.st_dev, status.st_ino
    return identity
