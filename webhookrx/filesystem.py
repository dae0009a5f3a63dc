"""
The file system: the calls that observers and spools make, locks on files, and the free space that stays free.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

from webhookrx.quantities import format_size


class FileSystem:
    """
    Calls of the operating system, in one object so that tests can make any of them fail. Everything raises C{OSError}.
    """

    close = staticmethod(os.close)
    control: Callable[..., Any] = staticmethod(fcntl.fcntl)
    dup = staticmethod(os.dup)
    fchmod = staticmethod(os.fchmod)
    fdatasync = staticmethod(os.fdatasync)
    flock = staticmethod(fcntl.flock)
    fstat = staticmethod(os.fstat)
    fsync = staticmethod(os.fsync)
    listdir = staticmethod(os.listdir)
    lseek = staticmethod(os.lseek)
    mkdir = staticmethod(os.mkdir)
    open = staticmethod(os.open)
    pread = staticmethod(os.pread)
    pwrite = staticmethod(os.pwrite)
    rename = staticmethod(os.rename)
    set_blocking = staticmethod(os.set_blocking)
    statvfs = staticmethod(os.statvfs)
    unlink = staticmethod(os.unlink)
    writev = staticmethod(os.writev)

    def wait_writable(self, fd: int) -> None:
        """Block until C{fd} takes bytes again, or never will."""
        poll = select.poll()
        poll.register(fd, select.POLLOUT)
        poll.poll()

    def size(self, path: str) -> int:
        """Return the size of a file in bytes; 0 if it is missing."""
        try:
            return os.stat(path).st_size
        except OSError:
            return 0

    def identity(self, path: str) -> tuple[int, int] | None:
        """Return device and inode behind a name; None if it is missing."""
        try:
            status = os.stat(path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def link_owner(self, path: str) -> int | None:
        """
        Return the owner of a symbolic link; None if the name is missing or no symbolic link.

        @raise OSError: the name can't be looked up.
        """
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return None
        return status.st_uid if stat.S_ISLNK(status.st_mode) else None


#: The default floor in bytes, but never more than one part in C{SMALLEST_PART} of a small file system.
DEFAULT_FLOOR: Final = 64 * 1024**2
SMALLEST_PART: Final = 20


def default_floor(total: int) -> int:
    """Return the default floor, in bytes, of a file system of C{total} bytes."""
    return min(DEFAULT_FLOOR, total // SMALLEST_PART)


class Free(NamedTuple):
    """
    Free space on a file system for users other than root, in bytes.

    @ivar floor: the bytes that stay free.
    """

    bytes: int
    floor: int

    @property
    def above_floor(self) -> int:
        """The bytes that may be used; negative when less than the floor is free."""
        return self.bytes - self.floor


class DiskSpace:
    """
    A floor of free space: writers of messages stop while a file system still has room for everything else on it.

    Free space is that of users other than root. A file system that reports no size, or can't be measured, is never too
    full: there the write itself decides.

    @param path: a file or directory on the file system, to measure by and to name in errors.
    @param min_free: the floor in bytes, taken as it is; 0 for none; None for L{default_floor}.
    @param statvfs: C{os.statvfs}, which takes a path or a descriptor.
    """

    def __init__(
        self,
        path: str,
        min_free: int | None = None,
        statvfs: Callable[[str | int], os.statvfs_result] = os.statvfs,
    ) -> None:
        self._path = path
        self._min_free = min_free
        self._statvfs = statvfs

    def check(self, size: int, fd: int | None = None) -> None:
        """
        Check that C{size} more bytes leave the floor untouched.

        @param fd: a descriptor on the file system, which works even when the path is gone.
        @raise OSError: C{ENOSPC}, with the path, what is free and the floor; nothing has been written.
        """
        if self._min_free == 0:
            return
        free = self.measure(fd)
        if free is not None and free.above_floor < size:
            raise OSError(errno.ENOSPC, self.words(free, size), self._path)

    def measure(self, fd: int | None = None) -> Free | None:
        """
        Return the free space; None when the file system doesn't report it.

        @param fd: as for L{check}.
        """
        try:
            status = self._statvfs(self._path if fd is None else fd)
        except OSError:
            return None
        total = status.f_blocks * status.f_frsize
        if not total:
            return None
        floor = default_floor(total) if self._min_free is None else self._min_free
        return Free(status.f_bavail * status.f_frsize, floor)

    @staticmethod
    def words(free: Free, size: int) -> str:
        """Return the error text for C{size} bytes too many."""
        return (
            f"too little room: {free.bytes} bytes are free, {size} more are wanted, "
            f"and {format_size(free.floor)} stay free (min_free)"
        )


_PROC_LOCKS = "/proc/locks"

#: Locks on bytes below this one are for the time of a write; each byte from it on stands for a sharing group.
_GROUPS: Final = 1 << 62
_TO_THE_END: Final = 0

SHARE_YES: Final = 1
"""The sharing group of all processes that are configured to share a file."""

_HOW_TO_SHARE: Final = "appends to it; several may if each of them sets share=yes"


class InUse(OSError):
    """A lock is held by another process, or by another observer of this one; C{strerror} says by which, if known."""


def sharing_group(fd: int) -> int:
    """
    Return the sharing group of all processes that have inherited a descriptor.

    @raise OSError: it is not open.
    """
    # No two files of the kernel's own have one inode number at a time.
    return SHARE_YES + 1 + os.fstat(fd).st_ino % (_GROUPS // 2)


class _HeldLock:
    """A lock of this process on one file: the descriptor that holds it, and the number of its L{FileLock}s."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.users = 0


# The kernel gives a lock to an open file, not to a process: a process that opens the file again, after a failed sync
# or with another option, would lock itself out. So all users in a process share its first lock.
_held_locks: dict[tuple[int, int, int | None], _HeldLock] = {}
_guard = threading.Lock()


class FileLock:
    """
    A lock on a regular file that lines are appended to, until its release or the end of the process (flock(2)), so that
    two receivers never share a file by accident.

    On a file system without locks everybody gets one.

    @param fd: the file, open for writing, and for reading if it is shared; it may be closed before the release.
    @param sharing: the sharing group that may hold the lock together: L{SHARE_YES}, or that of L{sharing_group}; None
        for this process alone.
    @raise InUse: another process holds the lock, and is not of the same sharing group.
    @raise OSError: no descriptor is left to hold it.
    """

    def __init__(self, file_system: FileSystem, fd: int, sharing: int | None = None) -> None:
        self._file_system = file_system
        status = file_system.fstat(fd)
        self._key = (status.st_dev, status.st_ino, sharing)
        with _guard:
            held = _held_locks.get(self._key)
            if held is None:
                _lock(file_system, fd, status, sharing)
                # A duplicate holds the same lock.
                held = _held_locks[self._key] = _HeldLock(file_system.dup(fd))
            held.users += 1
        self._held: _HeldLock | None = held

    def release(self) -> None:
        """Release the lock; the file is free once no other L{FileLock} of this process is left on it."""
        held, self._held = self._held, None
        if held is None:
            return
        with _guard:
            held.users -= 1
            if not held.users:
                del _held_locks[self._key]
                # The descriptor that was locked may still be open, and would keep the lock.
                with suppress(OSError):
                    self._file_system.flock(held.fd, fcntl.LOCK_UN)
                _leave(self._file_system, held.fd)
                # Nothing was written through it, so an error here means nothing.
                with suppress(OSError):
                    self._file_system.close(held.fd)

    def is_removed(self) -> bool:
        """Tell whether the file was removed: its space on the disk is freed when the last descriptor is closed."""
        return self._held is not None and not self._file_system.fstat(self._held.fd).st_nlink


class WriteLock:
    """
    A lock for the time of one write: waits for other processes inside the same file. The kernel releases it when a
    process dies.

    It is of another kind (C{F_OFD_SETLKW}, fcntl(2)) than L{FileLock}, and independent of it.

    @param fd: the file, open for writing.
    """

    __slots__ = ("_control", "_fd")

    def __init__(self, file_system: FileSystem, fd: int) -> None:
        self._control = file_system.control
        self._fd = fd

    def __enter__(self) -> None:
        # On a file system without locks, short writes of two processes can mix.
        with suppress(OSError):
            self._control(self._fd, fcntl.F_OFD_SETLKW, _ACQUIRE)

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._control(self._fd, fcntl.F_OFD_SETLK, _RELEASE)


def _range(kind: int, start: int, length: int) -> bytes:
    """Return a C{struct flock} (fcntl(2)) for a range of bytes."""
    return struct.pack("hhqqi", kind, os.SEEK_SET, start, length, 0)


_ACQUIRE: Final = _range(fcntl.F_WRLCK, 0, _GROUPS)
_RELEASE: Final = _range(fcntl.F_UNLCK, 0, _GROUPS)


def _lock(file_system: FileSystem, fd: int, status: os.stat_result, sharing: int | None) -> None:
    try:
        file_system.flock(fd, (fcntl.LOCK_EX if sharing is None else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = _owner(status)
        who = "another process" if owner is None else f"process {owner}"
        if owner == os.getpid():
            who = "another observer of this process"
        raise InUse(errno.EWOULDBLOCK, f"{who} {_HOW_TO_SHARE}") from None
    except OSError:
        # ENOLCK, EOPNOTSUPP, EINVAL, or another error of a file system without locks.
        return
    if sharing is not None:
        _join(file_system, fd, sharing)


def _join(file_system: FileSystem, fd: int, sharing: int) -> None:
    """
    Lock the byte of a sharing group, and check that no other group has locked one. Of two groups that come at once,
    both may be refused.

    No write reaches that far, and a lock may lie beyond the end of a file.
    """
    place = _GROUPS + sharing
    try:
        file_system.control(fd, fcntl.F_OFD_SETLK, _range(fcntl.F_RDLCK, place, 1))
        others = [
            file_system.control(fd, fcntl.F_OFD_GETLK, _range(fcntl.F_WRLCK, start, length))
            for start, length in ((_GROUPS, sharing), (place + 1, _TO_THE_END))
        ]
    except OSError:
        return
    if any(struct.unpack("hhqqi", other)[0] != fcntl.F_UNLCK for other in others):
        _leave(file_system, fd)
        raise InUse(errno.EWOULDBLOCK, f"another receiver {_HOW_TO_SHARE}")


def _leave(file_system: FileSystem, fd: int) -> None:
    with suppress(OSError):
        file_system.control(fd, fcntl.F_OFD_SETLK, _range(fcntl.F_UNLCK, _GROUPS, _TO_THE_END))


def _owner(status: os.stat_result) -> int | None:
    """Return the id of a process that holds a lock on a file, if the kernel tells (proc(5))."""
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with suppress(OSError, ValueError), open(_PROC_LOCKS, encoding="ascii") as file:
        for line in file:
            words = line.split()
            # "1: FLOCK ADVISORY WRITE 4711 fd:00:2531452 0 EOF"; 0 is a process outside our namespace.
            if len(words) > 5 and (words[1], words[5]) == ("FLOCK", place) and int(words[4]) > 0:
                return int(words[4])
    return None
