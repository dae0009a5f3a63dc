"""
Locks on files that lines are appended to, so that two receivers never share one without knowing it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webhookrx.observers.line_writer import FileSystem

_LOCKS = "/proc/locks"


class InUse(OSError):
    """Somebody else has the file; C{strerror} says who, if that can be found out, and how to share it."""


class _Claim:
    """What this process has of one file: a descriptor that holds the lock, and how many L{FileLock}s rest on it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.users = 0


# The kernel gives a lock to an open file, not to a process: one that opens the file again, after a failed sync or with
# another option, would lock itself out. So all of a process rest on its first lock.
_claims: dict[tuple[int, int, bool], _Claim] = {}
_guard = threading.Lock()


class FileLock:
    """
    A claim on a regular file, for as long as it is not released or the process ends (flock(2)).

    File systems without locks give none, and nobody is refused there.

    @param fd: the file, open for writing; it may be closed before the lock is released.
    @param shared: let others in who share it too.
    @raise InUse: another process has it, and one of the two does not share.
    @raise OSError: there is no descriptor left to hold it.
    """

    def __init__(self, file_system: FileSystem, fd: int, *, shared: bool) -> None:
        self._file_system = file_system
        status = file_system.fstat(fd)
        self._key = (status.st_dev, status.st_ino, shared)
        with _guard:
            claim = _claims.get(self._key)
            if claim is None:
                _lock(file_system, fd, status, shared=shared)
                # A duplicate holds the same lock.
                claim = _claims[self._key] = _Claim(file_system.dup(fd))
            claim.users += 1
        self._claim: _Claim | None = claim

    def release(self) -> None:
        """Let others have the file, once nobody in this process rests on the lock any more."""
        claim, self._claim = self._claim, None
        if claim is None:
            return
        with _guard:
            claim.users -= 1
            if not claim.users:
                del _claims[self._key]
                # The descriptor it was taken with may still be open, and would keep it.
                with suppress(OSError):
                    self._file_system.flock(claim.fd, fcntl.LOCK_UN)
                # Nothing was written through it, so whatever this says is about nothing.
                with suppress(OSError):
                    self._file_system.close(claim.fd)

    def is_removed(self) -> bool:
        """Tell whether the file has no name any more: its room on the disk is free once nobody has it open."""
        return self._claim is not None and not self._file_system.fstat(self._claim.fd).st_nlink


@contextmanager
def one_at_a_time(file_system: FileSystem, fd: int) -> Iterator[None]:
    """
    Write to a shared file while no other process does; wait for those that do. A process that dies gives it back.

    These are locks of another kind (C{F_OFD_SETLKW}, fcntl(2)), which those of L{FileLock} don't meet.
    """
    # A file system without locks: then short writes of two processes can mix.
    with suppress(OSError):
        file_system.control(fd, fcntl.F_OFD_SETLKW, _whole_file(fcntl.F_WRLCK))
    try:
        yield
    finally:
        with suppress(OSError):
            file_system.control(fd, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_UNLCK))


def _whole_file(kind: int) -> bytes:
    """Return a C{struct flock} for all bytes of a file."""
    return struct.pack("hhqqi", kind, os.SEEK_SET, 0, 0, 0)


def _lock(file_system: FileSystem, fd: int, status: os.stat_result, *, shared: bool) -> None:
    try:
        file_system.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = _owner(status)
        who = "another process" if owner is None else f"process {owner}"
        if owner == os.getpid():
            who = "another observer of this process"
        raise InUse(
            errno.EWOULDBLOCK, f"{who} appends to it; with share=yes several may, if all of them say so"
        ) from None
    except OSError:
        # ENOLCK, EOPNOTSUPP, EINVAL, and what else those without locks may say.
        return


def _owner(status: os.stat_result) -> int | None:
    """Return a process that has a lock on a file, if the kernel tells (proc(5))."""
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with suppress(OSError, ValueError), open(_LOCKS, encoding="ascii") as file:
        for line in file:
            words = line.split()
            # "1: FLOCK ADVISORY WRITE 4711 fd:00:2531452 0 EOF"; in a namespace the number may be 0, for none of ours.
            if len(words) > 5 and (words[1], words[5]) == ("FLOCK", place) and int(words[4]) > 0:
                return int(words[4])
    return None
