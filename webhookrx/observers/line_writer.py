"""
Appends whole batches of lines to a file descriptor, so that one bad write never spoils the next.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from webhookrx.filesystem import WriteLock

if TYPE_CHECKING:
    from webhookrx.filesystem import DiskSpace, FileSystem
    from webhookrx.observers.turns import Turns

#: More pieces than this the kernel refuses in one call (C{IOV_MAX}, Linux).
MAX_PIECES = 1024

#: Bytes that are asked for beside those of a batch, so that the next ones have their room already.
AHEAD = 1024**2
#: Seconds for which that answer holds.
ASKED_AGAIN = 0.1

_LINE_END = ord("\n")


class RoomAhead:
    """
    Asks a disk for the room of many batches at once, where it has that much: most of them are small.

    What is written by leave of this never takes the disk below its floor. What others write meanwhile is seen
    L{ASKED_AGAIN} seconds later at most.

    @param disk_space: knows the floor.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(self, disk_space: DiskSpace, clock: Callable[[], float]) -> None:
        self._disk_space = disk_space
        self._clock = clock
        self._left = 0
        self._until = clock()

    def take(self, size: int, fd: int) -> None:
        """
        Take room for some bytes, which are written next.

        @raise OSError: as L{DiskSpace.check}; there is room for none of them.
        """
        now = self._clock()
        if size > self._left or now >= self._until:
            self._left = 0
            try:
                self._disk_space.check(size + AHEAD, fd)
            except OSError:
                # So near the floor, each batch asks for itself.
                self._disk_space.check(size, fd)
                return
            self._left = size + AHEAD
            self._until = now + ASKED_AGAIN
        self._left -= size


class LineWriter:
    """
    Owns one file descriptor that lines are appended to.

    A write that fails may leave part of a line behind. It can't be cut off again, since the file may have other
    writers; so the next batch begins with a line end. The torn bytes stay visible, on a line of their own.

    @param torn: what is there already ends inside a line.
    @param disk_space: says whether the disk has room for a batch, if there is a disk; see L{RoomAhead}.
    @param clock: seconds on the monotonic clock.
    @ivar torn: the file ends inside a line, as far as this writer knows. Who else writes may set it.
    @ivar is_regular: it is a regular file, so that a sync makes it survive a power cut.
    @ivar is_closed: it can't be used any more.
    """

    def __init__(
        self,
        file_system: FileSystem,
        fd: int,
        torn: bool = False,
        disk_space: DiskSpace | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file_system = file_system
        self._fd = fd
        self._room = None if disk_space is None else RoomAhead(disk_space, clock)
        self.torn = torn
        self.is_regular = stat.S_ISREG(file_system.fstat(fd).st_mode)
        self.is_closed = False

    def append(self, lines: Sequence[bytes], *, sync: bool) -> None:
        """
        Append all the lines, and bring them to the disk if C{sync} is set and there is one.

        @raise OSError: none of it counts as safe. After a failed sync the writer is closed.
        """
        self.write(lines)
        if sync and self.is_regular:
            try:
                self.sync()
            except OSError:
                # Its error is the one to tell, whatever close() has to add.
                with suppress(OSError):
                    self.close()
                raise

    def write(self, lines: Sequence[bytes]) -> None:
        """
        Append all the lines, each with its line end.

        @raise OSError: some of it, or all, is not written.
        """
        if self._room is not None and self.is_regular:
            self._room.take(sum(map(len, lines)), self._fd)
        self._write_lines(lines)

    def sync(self) -> None:
        """
        Bring everything written to the disk.

        @raise OSError: what was written since the last sync may be lost. The kernel may have forgotten about it, so a
            second sync would succeed and mean nothing: this descriptor must not be synced again.
        """
        self._file_system.fdatasync(self._fd)

    def is_removed(self) -> bool:
        """Tell whether the file has no name any more, so that what is written is gone with the descriptor."""
        return self.is_regular and not self._file_system.fstat(self._fd).st_nlink

    def close(self) -> None:
        """
        Close the descriptor, if that is not done.

        @raise OSError: some file systems tell only now that they lost a write. It is closed all the same.
        """
        if not self.is_closed:
            self.is_closed = True
            self._file_system.close(self._fd)

    def _write_lines(self, lines: Sequence[bytes]) -> None:
        if self.torn:
            lines = [b"\n", *lines]
        for start in range(0, len(lines), MAX_PIECES):
            self._write_pieces(lines[start : start + MAX_PIECES])

    def _write_pieces(self, pieces: Sequence[bytes]) -> None:
        size = sum(map(len, pieces))
        written = self._write_some(pieces)
        if written < size:
            # As one piece from here on: the kernel rarely needs a third call.
            rest = memoryview(b"".join(pieces))
            while written < size:
                self.torn = rest[written - 1] != _LINE_END
                written += self._write_some([rest[written:]])
        self.torn = False

    def _write_some(self, pieces: Sequence[bytes | memoryview]) -> int:
        """Write what the kernel takes in one call, at least one byte."""
        while True:
            try:
                # A signal does not end it: writev goes on after EINTR by itself (PEP 475).
                written = self._file_system.writev(self._fd, pieces)
            except BlockingIOError:
                # Whoever shares the open file made it non-blocking, and may need it so.
                self._file_system.wait_writable(self._fd)
                continue
            if not written:
                raise OSError(errno.EIO, "the operating system took no bytes and gave no reason")
            return written


class SharedLineWriter(LineWriter):
    """
    A L{LineWriter} to a regular file that other processes write to as well.

    One of them may have left a torn line behind, and another may be inside a line after a short write. So each batch
    waits for its turn, and looks at the end of the file first. A sync waits for nobody.

    @param fd: open for reading too.
    """

    def __init__(
        self,
        file_system: FileSystem,
        fd: int,
        disk_space: DiskSpace | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(file_system, fd, disk_space=disk_space, clock=clock)
        self._write_lock = WriteLock(file_system, fd)

    def _write_lines(self, lines: Sequence[bytes]) -> None:
        with self._write_lock:
            self.torn = ends_inside_line(self._file_system, self._fd)
            super()._write_lines(lines)


class TurnTakingWriter(LineWriter):
    """
    A L{LineWriter} to what other processes have inherited, too, and what can't be locked, such as a pipe.

    @param turns: those of all that write there.
    """

    def __init__(self, file_system: FileSystem, fd: int, turns: Turns) -> None:
        super().__init__(file_system, fd)
        self._turns = turns

    def _write_lines(self, lines: Sequence[bytes]) -> None:
        self.torn = self._turns.take()
        try:
            super()._write_lines(lines)
        finally:
            self._turns.give_back(torn=self.torn)


def ends_inside_line(file_system: FileSystem, fd: int) -> bool:
    """
    Tell whether a crash, or somebody else, has left a file without a line end.

    @param fd: open for reading; its position changes.
    """
    # Less work than fstat(2), whose result Python has to take apart.
    size = file_system.lseek(fd, 0, os.SEEK_END)
    return bool(size) and file_system.pread(fd, 1, size - 1) != b"\n"
