"""
Turns of processes that write to one pipe, terminal or other thing that can't be locked itself.
"""

from __future__ import annotations

import fcntl
import os
import threading
from mmap import mmap
from typing import Final

_SLOTS: Final = 4096
"""How many things may be told apart; two that fall together just wait for each other."""

_INSIDE: Final = 1

_guard = threading.Lock()
_known: dict[tuple[int, int, int], Turns] = {}


class Turns:
    """
    Lets one process at a time write whole lines to one thing, and tells it whether the last one was ended inside. Get
    it from L{turns_for}.

    One byte of a file that all of them have inherited stands for the thing: its record lock (fcntl(2)) is the turn,
    which a process that dies gives back; and while it is set somebody is, or was, inside a line. The locks are the
    process's, so its own threads take turns by a lock of theirs.
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
            fcntl.lockf(self._fd, fcntl.LOCK_EX, 1, self._slot)
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
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, self._slot)
        finally:
            self._lock.release()


def turns_for(turns: int, fd: int) -> Turns:
    """
    Return the turns at what a descriptor leads to. They are the same for as long as the process lives: were any
    descriptor of the file closed, the process would lose all its locks on it (fcntl(2)).

    @param turns: descriptor of the file that all who write there have inherited.
    @raise OSError: it is not open, or not a file.
    """
    file, slot = os.fstat(turns), os.fstat(fd).st_ino % _SLOTS
    key = turns, file.st_ino, slot
    with _guard:
        if key not in _known:
            if file.st_size < _SLOTS:
                os.ftruncate(turns, _SLOTS)
            _known[key] = Turns(mmap(turns, _SLOTS), turns, slot)
        return _known[key]
