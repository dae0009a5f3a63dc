"""
Turns of processes that write to one pipe, terminal or other thing that can't be locked itself.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from mmap import mmap
from typing import Final

_SLOTS: Final = 1 << 20
"""How many things may be told apart; only memory that is used is taken. Two that fall together wait for each other,
and one may get the line end that is meant for the other."""

_INSIDE: Final = 1

_guard = threading.Lock()
_known: dict[tuple[int, int, int], Turns] = {}


class Turns:
    """
    Lets one process at a time write whole lines to one thing, and tells it whether the last one was ended inside. Get
    it from L{turns_for}.

    One byte of a file that all of them have inherited stands for the thing: its lock is the turn, which a process that
    dies gives back; and while it is set somebody is, or was, inside a line.

    The lock is an open file's (C{F_OFD_SETLKW}, fcntl(2)), not a process's: of those, the kernel takes the threads of
    one process for one, and where two write to two pipes it would see them wait for each other in a circle, which it
    refuses (C{EDEADLK}). So each process opens the file for itself; threads that write to one thing take turns by a
    lock of theirs.
    """

    def __init__(self, memory: mmap, fd: int, slot: int) -> None:
        self._memory = memory
        self._fd = fd
        self._slot = slot
        self._lock = threading.Lock()

    def take(self) -> bool:
        """
        Wait for the turn, and tell whether what was written last ends inside a line. L{give_back} must follow.

        @raise OSError: it can't be had.
        """
        self._lock.acquire()
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLKW, _one_byte(fcntl.F_WRLCK, self._slot))
        except BaseException:
            self._lock.release()
            raise
        torn = self._memory[self._slot] == _INSIDE
        self._memory[self._slot] = _INSIDE
        return torn

    def give_back(self, *, torn: bool) -> None:
        """
        Let others have the turn.

        @param torn: what was written last ends inside a line.
        """
        try:
            self._memory[self._slot] = _INSIDE if torn else 0
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _one_byte(fcntl.F_UNLCK, self._slot))
        finally:
            self._lock.release()


def turns_for(turns: int, fd: int) -> Turns:
    """
    Return the turns at what a descriptor leads to. They are the same for as long as the process lives.

    @param turns: descriptor of the file that all who write there have inherited.
    @raise OSError: it is not open, or not a file.
    """
    file, slot = os.fstat(turns), os.fstat(fd).st_ino % _SLOTS
    key = turns, file.st_ino, slot
    with _guard:
        if key not in _known:
            # What is inherited is one open file for all, and so would its locks be.
            own = os.open(f"/proc/self/fd/{turns}", os.O_RDWR | os.O_CLOEXEC)
            try:
                if file.st_size < _SLOTS:
                    os.ftruncate(own, _SLOTS)
                _known[key] = Turns(mmap(own, _SLOTS), own, slot)
            except BaseException:
                os.close(own)
                raise
        return _known[key]


def _one_byte(kind: int, place: int) -> bytes:
    """Return a C{struct flock} for one byte of a file."""
    return struct.pack("hhqqi", kind, os.SEEK_SET, place, 1, 0)
