"""
A floor of free space on a disk, so that what writes messages stops while there is still room for everybody else.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Final, NamedTuple

from webhookrx.quantities import format_size

#: The floor when nobody names one: so many bytes, but never more than this part of a small file system.
DEFAULT_FLOOR: Final = 64 * 1024**2
SMALLEST_PART: Final = 20


def default_floor(total: int) -> int:
    """Return how many bytes are left free on a file system of C{total} bytes when nobody has said how many."""
    return min(DEFAULT_FLOOR, total // SMALLEST_PART)


class Free(NamedTuple):
    """
    What is free on a file system, in bytes, for users other than root.

    @ivar floor: how many of them stay free.
    """

    bytes: int
    floor: int

    @property
    def above_floor(self) -> int:
        """How many may be taken; less than none when the floor is not free."""
        return self.bytes - self.floor


class DiskSpace:
    """
    Tells whether a file system has room, by what is free for users other than root.

    A file system that tells nothing of its size, or can't be asked, is never too full: there the write itself decides.

    @param path: a file or directory on the file system; for the words of the error, and to ask by.
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
        See that C{size} more bytes leave the floor untouched.

        @param fd: a descriptor on the file system, which finds it even when the path has gone.
        @raise OSError: C{ENOSPC}, with the path, what is free and the floor; nothing has been written.
        """
        if self._min_free == 0:
            return
        free = self.measure(fd)
        if free is not None and free.above_floor < size:
            raise OSError(errno.ENOSPC, self.words(free, size), self._path)

    def measure(self, fd: int | None = None) -> Free | None:
        """
        Tell what is free; None when the file system tells nothing.

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
        """Say that C{size} more bytes are too many."""
        return (
            f"too little room: {free.bytes} bytes are free, {size} more are wanted, "
            f"and {format_size(free.floor)} stay free (min_free)"
        )
