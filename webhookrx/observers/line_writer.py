"""
Appends whole batches of lines to a file descriptor, so that one bad write never spoils the next.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Sequence

#: More pieces than this the kernel refuses in one call (C{IOV_MAX}, Linux).
MAX_PIECES = 1024

_LINE_END = ord("\n")


class FileSystem:
    """
    The operating system as observers use it, so that tests can make any call fail. Everything raises C{OSError}.
    """

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    dup = staticmethod(os.dup)
    fstat = staticmethod(os.fstat)
    fchmod = staticmethod(os.fchmod)
    fsync = staticmethod(os.fsync)
    fdatasync = staticmethod(os.fdatasync)
    pread = staticmethod(os.pread)
    set_blocking = staticmethod(os.set_blocking)
    writev = staticmethod(os.writev)

    def wait_writable(self, fd: int) -> None:
        """Block until C{fd} takes bytes again, or never will."""
        poll = select.poll()
        poll.register(fd, select.POLLOUT)
        poll.poll()


class LineWriter:
    """
    Owns one file descriptor that lines are appended to.

    A write that fails may leave part of a line behind. It can't be cut off again, since the file may have other
    writers; so the next batch begins with a line end. The torn bytes stay visible, on a line of their own.

    @param torn: what is there already ends inside a line.
    @ivar is_regular: it is a regular file, so that a sync makes it survive a power cut.
    @ivar is_closed: it can't be used any more.
    """

    def __init__(self, file_system: FileSystem, fd: int, torn: bool = False) -> None:
        self._file_system = file_system
        self._fd = fd
        self._torn = torn
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
                self.close()
                raise

    def write(self, lines: Sequence[bytes]) -> None:
        """
        Append all the lines, each with its line end.

        @raise OSError: some of it, or all, is not written.
        """
        if self._torn:
            lines = [b"\n", *lines]
        for start in range(0, len(lines), MAX_PIECES):
            self._write_pieces(lines[start : start + MAX_PIECES])

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
        """Close the descriptor, if that is not done."""
        if not self.is_closed:
            self.is_closed = True
            self._file_system.close(self._fd)

    def _write_pieces(self, pieces: Sequence[bytes]) -> None:
        size = sum(map(len, pieces))
        written = self._write_some(pieces)
        if written < size:
            # As one piece from here on: the kernel rarely needs a third call.
            rest = memoryview(b"".join(pieces))
            while written < size:
                self._torn = rest[written - 1] != _LINE_END
                written += self._write_some([rest[written:]])
        self._torn = False

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
