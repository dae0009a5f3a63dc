"""
Memory that all workers map, and locks that end with the worker that has them.

The locks are those of open files (C{F_OFD_SETLK}, fcntl(2)), which the kernel releases when a process dies, however it
dies. Nobody waits for one in the kernel: whoever is stopped while it has a lock stops nobody else.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

_TRIES: Final = 16
"""Of a L{ByteLock}, each of about a microsecond: those who have it are soon done."""
_YIELD: Final = 8
"""Tries after which the processor is offered to others: twice at most, since each may take them a time slice."""

# The kernel compares a lock with each other lock of the same file.
LOCK_FILES: Final = 16
"""Files over which the locks of keys are spread."""

_LOCK: Final = struct.Struct("hhqqi4x")
_LOCKED: Final = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
_FREE: Final = _LOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, 0, 1, 0)


def memory_file(name: str, size: int) -> int:
    """
    Return the descriptor of a file in memory, of zeros; it takes memory only where something is written.

    @param name: for people who look into /proc.
    @raise OSError: there is no descriptor or memory left.
    """
    fd = os.memfd_create(f"webhookrx-{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, size)
        # To access a map of a file that has become shorter is the end of the process (mmap(2), SIGBUS).
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    except BaseException:
        os.close(fd)
        raise
    return fd


def map_memory(fd: int | None, size: int) -> mmap.mmap:
    """
    Map a file in memory.

    @param fd: it may be closed afterwards; None for memory that no other process has.
    @raise OSError: there is no memory for the map.
    """
    return mmap.mmap(-1 if fd is None else fd, size)


def _own(fd: int) -> int:
    """
    Open the file behind an inherited descriptor again: that is one open file for all processes, and so would its locks
    be.
    """
    return os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)


class ByteLock:
    """
    A lock on a file, which processes have for some microseconds at a time. Of the threads of a process, one uses it.

    @param fd: a file that all processes have.
    """

    def __init__(self, fd: int) -> None:
        self._fd = _own(fd)

    def acquire(self) -> bool:
        """Take the lock, and return whether that was possible soon. Only then must L{release} follow."""
        for tries in range(_TRIES):
            with suppress(OSError):
                fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _LOCKED)
                return True
            if tries % _YIELD == _YIELD - 1:
                # Whoever has it may wait for this processor.
                os.sched_yield()
        return False

    def release(self) -> None:
        """Give it back."""
        with suppress(OSError):
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _FREE)

    def close(self) -> None:
        os.close(self._fd)


class KeyLocks:
    """
    Locks of keys, each of which one process has for as long as it likes.

    @param fds: L{LOCK_FILES} files that all processes have, and that are used for nothing else.
    """

    def __init__(self, fds: Sequence[int]) -> None:
        self._fds = [_own(fd) for fd in fds]

    def acquire(self, key: bytes) -> bool:
        """
        Take the lock of a key, and return whether no other process has it.

        @param key: at least 8 bytes, which are evenly distributed. Two keys with the same 59 bits share a lock.
        """
        fd, place = self._place(key)
        try:
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0))
        except OSError:
            return False
        return True

    def release(self, key: bytes) -> None:
        """Give the lock of a key back."""
        fd, place = self._place(key)
        with suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, place, 1, 0))

    def _place(self, key: bytes) -> tuple[int, int]:
        number = int.from_bytes(key[:8], "little")
        return self._fds[number % LOCK_FILES], number >> 5

    def close(self) -> None:
        """Give all locks back."""
        for fd in self._fds:
            os.close(fd)
