"""
The directory of a spool: what its files are called, who has it, and how files come and go.

  - C{00000001.sqlite}, C{00000002.sqlite}, …: messages. Only the one of the highest number is ever written.
  - C{00000001.sqlite-wal}, C{…-shm}: SQLite's own, beside the file they belong to.
  - C{00000001.failed}: the file of that number had an I/O error, and is only read from then on.
  - C{00000001.sqlite.damaged}: could not be read to its end, and was put aside for people.
  - C{lock}: held by the receiver that runs.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import sqlite3
from contextlib import suppress
from typing import Final
from urllib.parse import quote

BUSY_TIME: Final = 5.0
"""Seconds to wait for a person's command that is writing."""

_FILE: Final = re.compile(r"([0-9]{8,})\.sqlite")
_NUMBERED: Final = re.compile(r"([0-9]{8,})\..*")
_PARTS: Final = ("", "-wal", "-shm", "-journal")
_NEW: Final = "new.sqlite"


class FileSystem:
    """
    What is asked of the operating system, and of SQLite as far as files go. Tests put faults here.
    """

    mkdir = staticmethod(os.mkdir)
    listdir = staticmethod(os.listdir)
    open = staticmethod(os.open)
    close = staticmethod(os.close)
    fsync = staticmethod(os.fsync)
    flock = staticmethod(fcntl.flock)
    rename = staticmethod(os.rename)
    unlink = staticmethod(os.unlink)

    def size(self, path: str) -> int:
        """Return how many bytes a file has; none if it is not there."""
        try:
            return os.stat(path).st_size
        except OSError:
            return 0

    def connect(self, path: str, *, read_only: bool) -> sqlite3.Connection:
        """
        Open a database that is there. Transactions are begun and ended by hand.

        @raise sqlite3.Error: it can't be opened.
        """
        mode = "ro" if read_only else "rw"
        return sqlite3.connect(
            f"file:{quote(path)}?mode={mode}",
            uri=True,
            timeout=BUSY_TIME,
            isolation_level=None,
            check_same_thread=False,
        )


class InUse(OSError):
    """Another receiver has the directory."""


class SpoolDirectory:
    """
    One directory. Nothing is touched before a method is called.

    @param path: absolute.
    """

    def __init__(self, path: str, file_system: FileSystem | None = None) -> None:
        self.path = path
        self.file_system = FileSystem() if file_system is None else file_system
        self._lock_fd: int | None = None

    def make(self) -> None:
        """
        Make the directory, for its owner alone, unless it is there; not the one around it.

        @raise OSError: it can't be made, or something else has its name.
        """
        try:
            self.file_system.mkdir(self.path, 0o700)
        except FileExistsError:
            return
        self._sync(os.path.dirname(self.path))

    def lock(self) -> None:
        """
        Take the directory for this process, until L{unlock} or its end, however it ends.

        @raise InUse: another process has it.
        @raise OSError: it can't be locked.
        """
        fd = self.file_system.open(os.path.join(self.path, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self.file_system.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file_system.close(fd)
            raise InUse(errno.EWOULDBLOCK, "another receiver uses it") from None
        except BaseException:
            self.file_system.close(fd)
            raise
        self._lock_fd = fd

    def unlock(self) -> None:
        """Let others have it."""
        fd, self._lock_fd = self._lock_fd, None
        if fd is not None:
            self.file_system.close(fd)

    def numbers(self) -> list[int]:
        """
        Return the numbers of the files of messages, in order.

        @raise OSError: the directory can't be read.
        """
        found = (_FILE.fullmatch(name) for name in self.file_system.listdir(self.path))
        return sorted(int(match[1]) for match in found if match)

    def next_number(self) -> int:
        """Return a number that no file has, or had as far as can be seen."""
        found = (_NUMBERED.fullmatch(name) for name in self.file_system.listdir(self.path))
        return max((int(match[1]) for match in found if match), default=0) + 1

    def path_of(self, number: int) -> str:
        """Return the path of a file of messages."""
        return os.path.join(self.path, f"{number:08d}.sqlite")

    def begin_new(self) -> str:
        """
        Make an empty file of a passing name, readable for its owner alone, and return its path.

        @raise OSError: it can't be made.
        """
        self.remove_new()
        path = os.path.join(self.path, _NEW)
        # SQLite gives the files that it makes beside a database the mode of the database.
        fd = self.file_system.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self.file_system.close(fd)
        return path

    def finish_new(self, number: int) -> None:
        """
        Sync the file of L{begin_new}, which is complete and closed, and give it its number, for good.

        @raise OSError: it or its name is not safe on disk; neither file is there.
        """
        new, path = os.path.join(self.path, _NEW), self.path_of(number)
        try:
            self._sync(new, os.O_RDWR)
            self.file_system.rename(new, path)
            self.sync()
        except BaseException:
            self._unlink(path)
            self.remove_new()
            raise

    def sync(self) -> None:
        """
        Make the names in it safe.

        @raise OSError: they are not.
        """
        self._sync(self.path)

    def remove_new(self) -> None:
        """Remove what is left of a file that never got its number."""
        for part in _PARTS:
            self._unlink(os.path.join(self.path, _NEW + part))

    def remove(self, number: int) -> None:
        """Remove a file of messages, and all that belongs to it."""
        # SQLite would take a -wal that is left over for that of a new file of the same name; so the file goes last.
        for part in reversed(_PARTS):
            self._unlink(self.path_of(number) + part)
        self._unlink(self._failed(number))

    def set_aside(self, number: int) -> str:
        """Rename a damaged file, and what holds its newest pages, and return the new path."""
        path = self.path_of(number)
        for part in ("-wal", ""):
            with suppress(OSError):
                self.file_system.rename(path + part, path + part + ".damaged")
        self._unlink(path + "-shm")
        self._unlink(self._failed(number))
        return path + ".damaged"

    def mark_failed(self, number: int) -> None:
        """
        Note that a file may only be read, for those who come after this process.

        It is not synced: a power cut takes both this and what makes it necessary, pages that only the cache holds.
        """
        with suppress(OSError):
            fd = self.file_system.open(self._failed(number), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self.file_system.close(fd)

    def is_failed(self, number: int) -> bool:
        """Tell whether a file is marked."""
        return os.path.exists(self._failed(number))

    def _failed(self, number: int) -> str:
        return os.path.join(self.path, f"{number:08d}.failed")

    def _unlink(self, path: str) -> None:
        with suppress(OSError):
            self.file_system.unlink(path)

    def _sync(self, path: str, flags: int = os.O_RDONLY | os.O_DIRECTORY) -> None:
        fd = self.file_system.open(path, flags | os.O_CLOEXEC)
        try:
            self.file_system.fsync(fd)
        finally:
            self.file_system.close(fd)
