"""
Writes whole batches of lines to a file descriptor, so that a failed write never spoils the next line.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from mmap import mmap
from typing import TYPE_CHECKING, Final

from webhookrx.filesystem import WriteLock
from webhookrx.message.encoders import encode_line
from webhookrx.message.message import Message
from webhookrx.message.template import Template

if TYPE_CHECKING:
    from webhookrx.config.specs import SpecOptions
    from webhookrx.filesystem import DiskSpace, FileSystem

#: The most pieces that the kernel takes in one call (C{IOV_MAX}, Linux).
MAX_PIECES = 1024

#: Bytes that are checked for beyond those of a batch, so that the next batches need no check.
AHEAD = 1024**2
#: Seconds for which such a check holds.
CHECK_INTERVAL = 0.1

_LINE_END = ord("\n")

_SLOTS: Final = 1 << 20
"""One for each pipe; memory is taken only for those in use. Two pipes that share a slot wait for each other, and one
may get the line end that is meant for the other."""

_INSIDE_LINE: Final = 1

_guard = threading.Lock()
_pipe_locks: dict[tuple[int, int, int], PipeLock] = {}

#: A message as one line, its line end included.
RenderLine = Callable[[Message], bytes]

#: The options that L{render_line_for} reads.
LINE_OPTIONS = ("format", "template")

_FORMATS = ("json", "template")


def render_line_for(options: SpecOptions) -> RenderLine:
    """
    Read the options that every observer of lines shares, and return the function that makes a line of a message.

    @raise webhookrx.errors.ConfigError: the format is unknown, the template does not parse, or the two do not go
        together.
    """
    template = options.read("template", None, Template.parse)
    wanted = options.choice("format", _FORMATS, "json" if template is None else "template")
    if wanted == "json":
        if template is not None:
            raise options.problem("template= goes with format=template, not with format=json")
        return encode_line
    if template is None:
        raise options.problem("format=template needs template=TEXT")
    return template.render_line


class RoomAhead:
    """
    Checks the free space on a disk for many small batches at once.

    Our own writes never take the disk below its floor. Writes of other programs are noticed after L{CHECK_INTERVAL}
    seconds at most.

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

        @raise OSError: as L{DiskSpace.check}; nothing was taken.
        """
        now = self._clock()
        if size > self._left or now >= self._until:
            self._left = 0
            try:
                self._disk_space.check(size + AHEAD, fd)
            except OSError:
                # Near the floor, each batch is checked on its own.
                self._disk_space.check(size, fd)
                return
            self._left = size + AHEAD
            self._until = now + CHECK_INTERVAL
        self._left -= size


class LineWriter:
    """
    Owns one file descriptor that lines are appended to.

    A failed write may leave a partial line behind. It can't be truncated, since the file may have other writers; so
    the next batch begins with a line end, and the partial line stays visible on a line of its own.

    @param partial: the file ends with a partial line already.
    @param disk_space: the floor of free space, if there is a disk; see L{RoomAhead}.
    @param clock: seconds on the monotonic clock.
    @ivar partial: whether the file ends with a partial line, as far as this writer knows.
    @ivar is_regular: whether it is a regular file, which a sync makes safe from a power cut.
    """

    def __init__(
        self,
        file_system: FileSystem,
        fd: int,
        partial: bool = False,
        disk_space: DiskSpace | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file_system = file_system
        self._fd = fd
        self._room = None if disk_space is None else RoomAhead(disk_space, clock)
        self.partial = partial
        self.is_regular = stat.S_ISREG(file_system.fstat(fd).st_mode)
        self.is_closed = False

    def append(self, lines: Sequence[bytes], *, sync: bool) -> None:
        """
        Append all the lines, and sync them if C{sync} is set and the file is on a disk.

        @raise OSError: no line counts as safe. After a failed sync the writer is closed.
        """
        self.write(lines)
        if sync and self.is_regular:
            try:
                self.sync()
            except OSError:
                # The error of the sync is the one to report, whatever close() adds.
                with suppress(OSError):
                    self.close()
                raise

    def write(self, lines: Sequence[bytes]) -> None:
        """
        Append all the lines, each with its line end.

        @raise OSError: some or all of them are not written.
        """
        if self._room is not None and self.is_regular:
            self._room.take(sum(map(len, lines)), self._fd)
        self._write_lines(lines)

    def sync(self) -> None:
        """
        Bring all written lines to the disk.

        @raise OSError: lines written since the last sync may be lost. The kernel may have dropped them, so a second
            sync would succeed and mean nothing: this descriptor must not be synced again.
        """
        self._file_system.fdatasync(self._fd)

    def is_removed(self) -> bool:
        """Tell whether the file was removed, so that its lines vanish when the descriptor is closed."""
        return self.is_regular and not self._file_system.fstat(self._fd).st_nlink

    def close(self) -> None:
        """
        Close the descriptor, once.

        @raise OSError: some file systems report a lost write only now. It is closed all the same.
        """
        if not self.is_closed:
            self.is_closed = True
            self._file_system.close(self._fd)

    def _write_lines(self, lines: Sequence[bytes]) -> None:
        if self.partial:
            lines = [b"\n", *lines]
        for start in range(0, len(lines), MAX_PIECES):
            self._write_pieces(lines[start : start + MAX_PIECES])

    def _write_pieces(self, pieces: Sequence[bytes]) -> None:
        size = sum(map(len, pieces))
        written = self._write_some(pieces)
        if written < size:
            # The rest goes as one piece: the kernel rarely needs a third call.
            rest = memoryview(b"".join(pieces))
            while written < size:
                self.partial = rest[written - 1] != _LINE_END
                written += self._write_some([rest[written:]])
        self.partial = False

    def _write_some(self, pieces: Sequence[bytes | memoryview]) -> int:
        """Write what the kernel takes in one call, at least one byte."""
        while True:
            try:
                # writev is retried after EINTR by Python itself (PEP 475).
                written = self._file_system.writev(self._fd, pieces)
            except BlockingIOError:
                # Another process that shares the open file made it non-blocking, and may rely on that.
                self._file_system.wait_writable(self._fd)
                continue
            if not written:
                raise OSError(errno.EIO, "the operating system took no bytes and gave no reason")
            return written


class SharedLineWriter(LineWriter):
    """
    A L{LineWriter} to a regular file that other processes write to, too.

    One of them may have left a partial line behind, and another may be inside a line after a short write. So each batch
    waits for the write lock, and looks at the end of the file first. A sync needs no lock.

    @param fd: the file, open for reading, too.
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
            self.partial = ends_with_partial_line(self._file_system, self._fd)
            super()._write_lines(lines)


class PipeLock:
    """
    A lock on a pipe, terminal or device, which can't be locked itself: one process at a time writes whole lines to it,
    and learns whether the last one left a partial line. Made by L{pipe_lock}.

    One byte of a lock file, inherited by all processes, stands for the pipe. The lock is a record lock on that byte,
    which the kernel releases when a process dies; the byte is set while a process is, or was, inside a line.

    It is a lock of an open file (C{F_OFD_SETLKW}, fcntl(2)), not of a process: the kernel takes all threads of a
    process for one owner, and would refuse two of them that wait at two pipes as a deadlock (C{EDEADLK}). So each
    process opens the lock file itself, and its threads exclude each other by a lock of their own.
    """

    def __init__(self, memory: mmap, fd: int, slot: int) -> None:
        self._memory = memory
        self._fd = fd
        self._slot = slot
        self._lock = threading.Lock()

    def acquire(self) -> bool:
        """
        Wait for the lock, and return whether the pipe ends with a partial line. L{release} must follow.

        @raise OSError: the file system has no such locks.
        """
        self._lock.acquire()
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLKW, _one_byte(fcntl.F_WRLCK, self._slot))
        except BaseException:
            self._lock.release()
            raise
        partial = self._memory[self._slot] == _INSIDE_LINE
        self._memory[self._slot] = _INSIDE_LINE
        return partial

    def release(self, *, partial: bool) -> None:
        """
        Release the lock.

        @param partial: the pipe now ends with a partial line.
        """
        try:
            self._memory[self._slot] = _INSIDE_LINE if partial else 0
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _one_byte(fcntl.F_UNLCK, self._slot))
        finally:
            self._lock.release()


def pipe_lock(lock_fd: int, fd: int) -> PipeLock:
    """
    Return the lock of the pipe behind C{fd}: the same one for as long as the process lives.

    @param lock_fd: descriptor of the lock file, inherited by all processes that write to the pipe.
    @raise OSError: C{lock_fd} is not open, or not a file.
    """
    file, slot = os.fstat(lock_fd), os.fstat(fd).st_ino % _SLOTS
    key = lock_fd, file.st_ino, slot
    with _guard:
        if key not in _pipe_locks:
            # The inherited descriptor is one open file for all processes, and so would its locks be.
            own = os.open(f"/proc/self/fd/{lock_fd}", os.O_RDWR | os.O_CLOEXEC)
            try:
                if file.st_size < _SLOTS:
                    os.ftruncate(own, _SLOTS)
                _pipe_locks[key] = PipeLock(mmap(own, _SLOTS), own, slot)
            except BaseException:
                os.close(own)
                raise
        return _pipe_locks[key]


def _one_byte(kind: int, place: int) -> bytes:
    """Return a C{struct flock} for one byte of a file."""
    return struct.pack("hhqqi", kind, os.SEEK_SET, place, 1, 0)


class PipeWriter(LineWriter):
    """
    A L{LineWriter} to a pipe, terminal or device that other processes write to, too.
    """

    def __init__(self, file_system: FileSystem, fd: int, lock: PipeLock) -> None:
        super().__init__(file_system, fd)
        self._lock = lock

    def _write_lines(self, lines: Sequence[bytes]) -> None:
        self.partial = self._lock.acquire()
        try:
            super()._write_lines(lines)
        finally:
            self._lock.release(partial=self.partial)


def ends_with_partial_line(file_system: FileSystem, fd: int) -> bool:
    """
    Tell whether a file ends with a partial line, after a crash or a failed write.

    @param fd: open for reading; its position changes.
    """
    # Cheaper than fstat(2), whose result becomes a Python object of many fields.
    size = file_system.lseek(fd, 0, os.SEEK_END)
    return bool(size) and file_system.pread(fd, 1, size - 1) != b"\n"
