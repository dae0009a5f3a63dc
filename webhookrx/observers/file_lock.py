"""
Locks on files that lines are appended to, so that two receivers never share one without knowing it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webhookrx.observers.line_writer import FileSystem

_LOCKS = "/proc/locks"

#: From this byte on there are locks that say who shares a file, and before it those of who writes to it.
_PARTIES: Final = 1 << 62
_TO_THE_END: Final = 0

KNOWINGLY: Final = 1
"""The party of those that were told to share a file."""

_SAY_SO: Final = "appends to it; with share=yes several may, if all of them say so"


def party_of(fd: int) -> int:
    """
    Return the party of those that have inherited this descriptor, and share what belongs to all of them.

    @raise OSError: it is not open.
    """
    # No two files of the kernel's own have one number at a time.
    return KNOWINGLY + 1 + os.fstat(fd).st_ino % (_PARTIES // 2)


class InUse(OSError):
    """Somebody else has the file; C{strerror} says who, if that can be found out, and how to share it."""


class _Claim:
    """What this process has of one file: a descriptor that holds the lock, and how many L{FileLock}s rest on it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.users = 0


# The kernel gives a lock to an open file, not to a process: one that opens the file again, after a failed sync or with
# another option, would lock itself out. So all of a process rest on its first lock.
_claims: dict[tuple[int, int, int | None], _Claim] = {}
_guard = threading.Lock()


class FileLock:
    """
    A claim on a regular file, for as long as it is not released or the process ends (flock(2)).

    File systems without locks give none, and nobody is refused there.

    @param fd: the file, open for writing, and for reading if it is shared; it may be closed before the lock is
        released.
    @param party: let others in who are of the same party: L{KNOWINGLY}, or one of L{party_of}. None: nobody.
    @raise InUse: somebody else has it, who is not of the same party.
    @raise OSError: there is no descriptor left to hold it.
    """

    def __init__(self, file_system: FileSystem, fd: int, party: int | None = None) -> None:
        self._file_system = file_system
        status = file_system.fstat(fd)
        self._key = (status.st_dev, status.st_ino, party)
        with _guard:
            claim = _claims.get(self._key)
            if claim is None:
                _lock(file_system, fd, status, party)
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
                _leave(self._file_system, claim.fd)
                # Nothing was written through it, so whatever this says is about nothing.
                with suppress(OSError):
                    self._file_system.close(claim.fd)

    def is_removed(self) -> bool:
        """Tell whether the file has no name any more: its room on the disk is free once nobody has it open."""
        return self._claim is not None and not self._file_system.fstat(self._claim.fd).st_nlink


class Turn:
    """
    What is done inside is done while no other process does it with the same file; those that do are waited for. A
    process that dies gives its turn back.

    These are locks of another kind (C{F_OFD_SETLKW}, fcntl(2)), which those of L{FileLock} don't meet.

    @param fd: the file, open for writing.
    """

    __slots__ = ("_control", "_fd")

    def __init__(self, file_system: FileSystem, fd: int) -> None:
        self._control = file_system.control
        self._fd = fd

    def __enter__(self) -> None:
        # A file system without locks: then short writes of two processes can mix.
        with suppress(OSError):
            self._control(self._fd, fcntl.F_OFD_SETLKW, _TAKE_TURN)

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._control(self._fd, fcntl.F_OFD_SETLK, _GIVE_TURN_BACK)


def _range(kind: int, start: int, length: int) -> bytes:
    """Return a C{struct flock} for some bytes of a file."""
    return struct.pack("hhqqi", kind, os.SEEK_SET, start, length, 0)


_TAKE_TURN: Final = _range(fcntl.F_WRLCK, 0, _PARTIES)
_GIVE_TURN_BACK: Final = _range(fcntl.F_UNLCK, 0, _PARTIES)


def _lock(file_system: FileSystem, fd: int, status: os.stat_result, party: int | None) -> None:
    try:
        file_system.flock(fd, (fcntl.LOCK_EX if party is None else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = _owner(status)
        who = "another process" if owner is None else f"process {owner}"
        if owner == os.getpid():
            who = "another observer of this process"
        raise InUse(errno.EWOULDBLOCK, f"{who} {_SAY_SO}") from None
    except OSError:
        # ENOLCK, EOPNOTSUPP, EINVAL, and what else those without locks may say.
        return
    if party is not None:
        _join(file_system, fd, party)


def _join(file_system: FileSystem, fd: int, party: int) -> None:
    """
    Claim the byte of a party, and look whether another party has one. Of two that come at once, both may be refused.

    Nobody writes that far out, and no file has to be that long to have locks there.
    """
    place = _PARTIES + party
    try:
        file_system.control(fd, fcntl.F_OFD_SETLK, _range(fcntl.F_RDLCK, place, 1))
        others = [
            file_system.control(fd, fcntl.F_OFD_GETLK, _range(fcntl.F_WRLCK, start, length))
            for start, length in ((_PARTIES, party), (place + 1, _TO_THE_END))
        ]
    except OSError:
        return
    if any(struct.unpack("hhqqi", other)[0] != fcntl.F_UNLCK for other in others):
        _leave(file_system, fd)
        raise InUse(errno.EWOULDBLOCK, f"another receiver {_SAY_SO}")


def _leave(file_system: FileSystem, fd: int) -> None:
    with suppress(OSError):
        file_system.control(fd, fcntl.F_OFD_SETLK, _range(fcntl.F_UNLCK, _PARTIES, _TO_THE_END))


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
