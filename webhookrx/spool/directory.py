"""
The directory of a spool: the names of its files, its lock, and how files are made, renamed and removed.

  - C{00000001.sqlite}, C{00000002.sqlite}, …: messages. Only the one of the highest number is ever written.
  - C{00000001.sqlite-wal}, C{…-shm}: SQLite's own, beside the file they belong to.
  - C{00000001.failed}: the file of that number had an I/O error, and is read-only from then on.
  - C{00000001.sqlite.damaged}: could not be read to its end, and was put aside for people.
  - C{lock}: held by the receiver that runs.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import sqlite3
import stat
from contextlib import suppress
from typing import Final
from urllib.parse import quote

from webhookrx.filesystem import FileSystem, InUse
from webhookrx.spool.rows import PAGE, SCHEMA, VERSION, first_number

BUSY_TIME: Final = 5.0
"""Seconds to wait for a command of C{webhookrx spool} that is writing."""

LOCK: Final = "lock"
"""The file that is locked."""

STILL_OURS: Final = "this receiver uses it: for another observer, or until the last batch of a former one is back"
"""Why this process can't lock a directory that it has locked already."""

PARTS: Final = ("", "-wal", "-shm", "-journal")
"""The ends of the names of a database and of the files that SQLite keeps beside it."""

LAST_NUMBER: Final = 9_000_000
"""The highest number of a file: beyond it, message numbers would not fit into 64 bits."""

_FILE: Final = re.compile(r"([0-9]{8,})\.sqlite")
_MARK: Final = re.compile(r"([0-9]{8,})\.failed")
_NUMBERED: Final = re.compile(r"([0-9]{8,})\..*")
_NEW: Final = "new.sqlite"

_ours: set[tuple[int, int]] = set()
"""The locks that this process holds, by device and inode: the system does not say which process holds one."""


class SpoolFileSystem(FileSystem):
    """The file system with SQLite on it, in one object so that tests can make any call fail."""

    def connect(self, path: str, *, read_only: bool) -> sqlite3.Connection:
        """
        Open an existing database. The caller begins and ends transactions.

        @raise sqlite3.Error: it can't be opened.
        """
        mode = "ro" if read_only else "rw"
        db = sqlite3.connect(
            f"file:{quote(path)}?mode={mode}",
            uri=True,
            timeout=BUSY_TIME,
            isolation_level=None,
            check_same_thread=False,
        )
        # Damage may have the type text. Python's error for text that is not UTF-8 would look like one that passes.
        db.text_factory = _text
        return db


class SpoolDirectory:
    """
    One directory. The constructor touches nothing.

    @param path: absolute.
    @param within: the directory of the spool, if C{path} is that of a worker inside it.
    """

    def __init__(self, path: str, file_system: SpoolFileSystem | None = None, within: str | None = None) -> None:
        self.path = path
        self._within = within
        self.file_system = SpoolFileSystem() if file_system is None else file_system
        self._lock_fd: int | None = None

    # -- the directory and its lock ------------------------------------------------------------------------------

    def check_links(self) -> None:
        """
        Check that neither the directory nor the lock is a symbolic link of another user, who could lead us anywhere,
        and to another place later. Links of root, such as systemd makes for C{DynamicUser=}, and our own are followed.

        @raise OSError: one of them is.
        """
        lock = os.path.join(self.path, LOCK)
        # In this order: nothing behind a link of another user is looked at.
        for path in (self.path, lock) if self._within is None else (self._within, self.path, lock):
            owner = self.file_system.link_owner(path)
            if owner not in (None, 0, os.geteuid()):
                raise OSError(errno.EPERM, f"{path!r} is a symbolic link of another user (uid {owner})")

    def make(self) -> None:
        """
        Make the directory with mode 0700 if it is missing; of those around it, only that of the spool.

        @raise OSError: it can't be made, or something else has its name; or as L{check_links} says.
        """
        self.check_links()
        if self._within is not None:
            self._make(self._within)
        self._make(self.path)

    def _make(self, path: str) -> None:
        try:
            self.file_system.mkdir(path, 0o700)
        except FileExistsError:
            # The process that made it may have been stopped before its name was safe.
            with suppress(PermissionError):
                self._sync(os.path.dirname(path))
        else:
            self._sync(os.path.dirname(path))

    def lock(self) -> None:
        """
        Lock the directory for this process, until L{unlock} or its end, however it ends.

        @raise InUse: another process has locked it, or this one.
        @raise OSError: it can't be locked; or as L{check_links} says.
        """
        self.check_links()
        path = os.path.join(self.path, LOCK)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        if self.file_system.link_owner(path) is None:
            flags |= os.O_NOFOLLOW
        fd = self.file_system.open(path, flags, 0o600)
        try:
            self.file_system.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Once more: another user may have exchanged the name between the check and the opening.
            self.check_links()
            if self.file_system.identity(path) != _identity(fd):
                raise OSError(errno.EPERM, f"{path!r} was exchanged while it was locked")
        except BlockingIOError:
            reason = STILL_OURS if _identity(fd) in _ours else "another receiver uses it"
            self.file_system.close(fd)
            raise InUse(errno.EWOULDBLOCK, reason) from None
        except BaseException:
            self.file_system.close(fd)
            raise
        self._lock_fd = fd
        _ours.add(_identity(fd))

    def unlock(self) -> None:
        """Release the lock."""
        fd, self._lock_fd = self._lock_fd, None
        if fd is not None:
            _ours.discard(_identity(fd))
            self.file_system.close(fd)

    def restore_lock(self) -> None:
        """
        Make the directory and the lock again if they were removed or renamed: other receivers must find it locked.

        @raise InUse: another process has locked it now.
        @raise OSError: it can't be made or locked.
        """
        old, path = self._lock_fd, os.path.join(self.path, LOCK)
        if old is None or self.file_system.identity(path) == _identity(old):
            return
        self.make()
        self.lock()
        _ours.discard(_identity(old))
        self.file_system.close(old)

    @property
    def is_locked(self) -> bool:
        """Whether L{lock} has locked it."""
        return self._lock_fd is not None

    # -- names ---------------------------------------------------------------------------------------------------

    def numbers(self) -> list[int]:
        """
        Return the numbers of the files of messages, in order. Other names are ignored.

        @raise OSError: the directory can't be read.
        """
        return self._numbers(_FILE)

    def next_number(self, after: int = 0) -> int:
        """
        Return a number that no file has, or had as far as the directory shows.

        @param after: the highest number that the caller knows of.
        @raise OSError: there is none left, or the directory can't be read.
        """
        number = max([after, *self._numbers(_NUMBERED)]) + 1
        if number > LAST_NUMBER:
            raise OSError(errno.EOVERFLOW, f"no file number is left after {LAST_NUMBER}")
        return number

    def _numbers(self, pattern: re.Pattern[str]) -> list[int]:
        found = (pattern.fullmatch(name) for name in self.file_system.listdir(self.path))
        numbers = {int(match[1]) for match in found if match and match[1] == f"{int(match[1]):08d}"}
        return sorted(number for number in numbers if 0 < number <= LAST_NUMBER)

    def path_of(self, number: int) -> str:
        """Return the path of a file of messages."""
        return os.path.join(self.path, f"{number:08d}.sqlite")

    def identities(self, number: int) -> dict[str, tuple[int, int]]:
        """Return device and inode behind the names of a file, its log and its C{-shm}, by the ends of the names."""
        path, identity = self.path_of(number), self.file_system.identity
        found = {part: identity(path + part) for part in ("", "-wal", "-shm")}
        return {part: place for part, place in found.items() if place is not None}

    def sync(self) -> None:
        """
        Sync the directory, which makes the names in it safe.

        @raise OSError: they are not.
        """
        self._sync(self.path)

    # -- files ---------------------------------------------------------------------------------------------------

    def create(self, number: int) -> None:
        """
        Make an empty file, whole or not at all: it gets its name once all of it is on disk.

        @raise sqlite3.Error: it can't be made; nothing is left of it.
        @raise OSError: the same.
        """
        self.remove_new()
        new, path = os.path.join(self.path, _NEW), self.path_of(number)
        # SQLite gives the files that it makes beside a database the mode of the database.
        fd = self.file_system.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self.file_system.close(fd)
        try:
            self._fill(new, first_number(number))
            try:
                self._sync(new, os.O_RDWR)
                self.file_system.rename(new, path)
                self.sync()
            except BaseException:
                self._unlink(path)
                raise
        except BaseException:
            self.remove_new()
            raise

    def _fill(self, path: str, first: int) -> None:
        db = self.file_system.connect(path, read_only=False)
        try:
            # It is synced once, whole. SQLite would sync it again to undo what failed to sync.
            db.execute("PRAGMA synchronous=OFF")
            db.execute(f"PRAGMA page_size={PAGE}")
            # Without this the file would keep its largest size for ever. Only an empty file accepts it.
            db.execute("PRAGMA auto_vacuum=INCREMENTAL")
            db.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION};")
            db.execute("INSERT INTO state VALUES (0, 0, 0, 0, ?, ?)", (first, first - 1))
            db.execute("COMMIT")
            # SQLite reports a mode that it can't set by returning the old one.
            if db.execute("PRAGMA journal_mode=WAL").fetchone() != ("wal",):
                raise sqlite3.OperationalError("the write-ahead log can't be used here")
        finally:
            db.close()

    def remove_new(self) -> None:
        """Remove what is left of a file that never got its number."""
        for part in PARTS:
            self._unlink(os.path.join(self.path, _NEW + part))

    def remove(self, number: int) -> None:
        """Remove a file of messages, and all that belongs to it."""
        self._remove_parts(number)
        self._unlink(self._failed(number))

    def remove_last(self, number: int) -> None:
        """
        Remove the file of the highest number, and keep its mark, so that the number is not used again.

        @raise OSError: the mark can't be made; the file still exists.
        """
        self.mark_failed(number)
        if not self.is_failed(number):
            raise OSError(errno.ENOSPC, "the mark of a file can't be made")
        self.sync()
        self._remove_parts(number)

    def _remove_parts(self, number: int) -> None:
        # SQLite would take a -wal that is left over for that of a new file of the same name; so the file goes last.
        for part in reversed(PARTS):
            self._unlink(self.path_of(number) + part)

    def put_aside(self, number: int) -> str:
        """Rename a damaged file, and the log with its newest pages, and return the new path."""
        path = self.path_of(number)
        for part in ("-wal", ""):
            with suppress(OSError):
                self.file_system.rename(path + part, path + part + ".damaged")
        self._unlink(path + "-shm")
        self._unlink(self._failed(number))
        return path + ".damaged"

    def mark_failed(self, number: int) -> None:
        """
        Mark a file as read-only for later processes.

        The mark is not synced: a power cut takes both it and its reason, pages that only the cache holds.
        """
        with suppress(OSError):
            self.check_links()
            fd = self.file_system.open(self._failed(number), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self.file_system.close(fd)

    def is_failed(self, number: int) -> bool:
        """Tell whether a file is marked."""
        return os.path.exists(self._failed(number))

    def remove_marks(self) -> None:
        """Remove the marks of removed files, once a file of a higher number exists."""
        with suppress(OSError):
            for number in set(self._numbers(_MARK)).difference(self.numbers()):
                self._unlink(self._failed(number))

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


def open_to_others(path: str) -> str | None:
    """Describe the problem with a directory that others than its owner may write to; None if they may not."""
    with suppress(OSError):
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"can be written to by others than its owner (mode {mode:04o}); what is in it may be anybody's"
    return None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
