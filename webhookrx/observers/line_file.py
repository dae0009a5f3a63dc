"""
A file of lines by its name, opened so that nothing that is there spoils what comes, and nothing that comes gets lost.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from webhookrx.filesystem import FileLock, WriteLock
from webhookrx.observers.line_writer import (
    LineWriter,
    SharedLineWriter,
    TurnTakingWriter,
    ends_inside_line,
)
from webhookrx.observers.turns import turns_for

if TYPE_CHECKING:
    from webhookrx.filesystem import DiskSpace, FileSystem

# O_NONBLOCK is for the open of a FIFO alone: without a reader it fails instead of hanging the start.
_FLAGS = os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


class LineFile:
    """
    Opens a file to append lines to, as often as need be.

    @param path: absolute path.
    @param mode: permission bits of a file that is created, whatever the umask.
    @param durable: its name is to survive a power cut.
    @param sharing: who else may append to it, as for L{FileLock}; None: nobody.
    @param turns: as for L{turns_for}, in case that the workers of a group write to what is no regular file.
    @param disk_space: says whether the disk has room.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(
        self,
        file_system: FileSystem,
        path: str,
        mode: int,
        *,
        durable: bool,
        sharing: int | None,
        turns: int | None,
        disk_space: DiskSpace,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file_system = file_system
        self._path = path
        self._mode = mode
        self._durable = durable
        self._sharing = sharing
        self._turns = turns
        self._disk_space = disk_space
        self._clock = clock

    def open(self, *, end_in_doubt: bool = False) -> tuple[LineWriter, FileLock | None]:
        """
        Open it, creating it if need be.

        @param end_in_doubt: what was written to it last may not be on the disk, though the kernel takes it for written.
        @return: what writes to it, and the lock on it; None for what is no regular file.
        @raise webhookrx.filesystem.InUse: another process has it.
        @raise OSError: it can't be opened, or its name can't be made safe.
        """
        file_system = self._file_system
        # Where others append, the end is looked at. A FIFO that is open for reading, too, would never lack a reader.
        shared = self._sharing is not None and self._may_be_regular()
        flags = _FLAGS | (os.O_RDWR if shared else os.O_WRONLY)
        try:
            fd = file_system.open(self._path, flags)
            created = False
        except FileNotFoundError:
            fd = file_system.open(self._path, flags | os.O_CREAT, self._mode)
            created = True
        lock = None
        try:
            file_system.set_blocking(fd, True)
            writer = self._writer(fd, shared=shared)
            if writer.is_regular:
                lock = FileLock(file_system, fd, self._sharing)
                if created:
                    file_system.fchmod(fd, self._mode)
                if self._durable:
                    self._sync_directory(created=created)
                writer.torn = not created and self._ends_inside_line(fd, end_in_doubt)
        except BaseException:
            if lock is not None:
                lock.release()
            with suppress(OSError):
                file_system.close(fd)
            raise
        return writer, lock

    def _may_be_regular(self) -> bool:
        try:
            return stat.S_ISREG(os.stat(self._path).st_mode)
        except OSError:
            return True

    def _writer(self, fd: int, *, shared: bool) -> LineWriter:
        if shared:
            return SharedLineWriter(self._file_system, fd, self._disk_space, self._clock)
        if self._turns is not None:
            return TurnTakingWriter(self._file_system, fd, turns_for(self._turns, fd))
        return LineWriter(self._file_system, fd, disk_space=self._disk_space, clock=self._clock)

    def _sync_directory(self, *, created: bool) -> None:
        """
        Make the name of the file survive a power cut; its own sync would not.

        That of a file that was there, too: whoever created it may have been ended before this, or have failed in it.
        """
        directory = os.path.dirname(os.path.realpath(self._path))
        try:
            fd = self._file_system.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except PermissionError:
            if created:
                raise
            return
        try:
            self._file_system.fsync(fd)
        finally:
            self._file_system.close(fd)

    def _ends_inside_line(self, fd: int, end_in_doubt: bool) -> bool:
        """
        Tell whether a crash has left the file without a line end. Not readable is taken for yes: it costs a byte.

        @param fd: the file, open for writing.
        """
        try:
            reader = self._file_system.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except PermissionError:
            return True
        try:
            if not end_in_doubt:
                return ends_inside_line(self._file_system, reader)
            # The last byte must not become another process's between the look at it and the write.
            with WriteLock(self._file_system, fd):
                torn = ends_inside_line(self._file_system, reader)
                size = self._file_system.fstat(reader).st_size
                if size and not torn:
                    try:
                        self._renew_line_end(size)
                    except OSError:
                        return True  # then the next line brings one of its own
            return torn
        finally:
            self._file_system.close(reader)

    def _renew_line_end(self, size: int) -> None:
        """
        Write the last line end once more, in its place, after a sync that failed.

        The kernel takes for written what it could not write. Without this, no later sync would bring that line end to
        the disk, and after a power cut the next line would follow on whatever is there in its place.
        """
        # Without O_APPEND: with it, Linux appends whatever the offset (pwrite(2)).
        fd = self._file_system.open(self._path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            self._file_system.pwrite(fd, b"\n", size - 1)
        finally:
            self._file_system.close(fd)
