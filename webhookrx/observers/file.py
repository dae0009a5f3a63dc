"""
C{file:PATH}: appends lines to a file.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from zope.interface import implementer

from webhookrx.config.observers import Argument, ObserverSpec
from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.filesystem import SHARE_YES, DiskSpace, FileLock, FileSystem, WriteLock, sharing_group
from webhookrx.interfaces import ILocalObserver
from webhookrx.observers.writers import (
    LINE_OPTIONS,
    LineWriter,
    PipeWriter,
    RenderLine,
    SharedLineWriter,
    ends_with_partial_line,
    pipe_lock,
    render_line_for,
)
from webhookrx.settings import ALONE, Group

if TYPE_CHECKING:
    from webhookrx.interfaces import Prepared

FILE_SPEC = ObserverSpec((*LINE_OPTIONS, "min_free", "mode", "share"), Argument.FILE)
DEFAULT_MODE = 0o640

_MODE = re.compile(r"0?[0-7]{3}")

#: Errors of a full disk: the open file works again once there is room.
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# O_NONBLOCK makes the open of a FIFO without a reader fail instead of hanging the start.
_FLAGS = os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


class LineFile:
    """
    Opens a file to append lines to, so that a partial line of a crash never spoils the next one.

    @param path: absolute path.
    @param mode: permission bits of a created file, whatever the umask.
    @param durable: whether its name must survive a power cut.
    @param sharing: the sharing group, as for L{FileLock}.
    @param lock_fd: as for L{pipe_lock}, for workers that write to a FIFO or device; None without other workers.
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
        lock_fd: int | None,
        disk_space: DiskSpace,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file_system = file_system
        self._path = path
        self._mode = mode
        self._durable = durable
        self._sharing = sharing
        self._lock_fd = lock_fd
        self._disk_space = disk_space
        self._clock = clock

    def open(self, *, end_in_doubt: bool = False) -> tuple[LineWriter, FileLock | None]:
        """
        Open the file, creating it if need be.

        @param end_in_doubt: its last bytes may be missing on the disk, though the kernel takes them for written.
        @return: its writer, and the lock on it; None if it is no regular file.
        @raise webhookrx.filesystem.InUse: another process holds the lock.
        @raise OSError: it can't be opened, or its name can't be made safe.
        """
        file_system = self._file_system
        # Of a shared file the end is read. A FIFO that is open for reading, too, would never lack a reader.
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
                writer.partial = not created and self._ends_with_partial_line(fd, end_in_doubt)
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
        if self._lock_fd is not None:
            return PipeWriter(self._file_system, fd, pipe_lock(self._lock_fd, fd))
        return LineWriter(self._file_system, fd, disk_space=self._disk_space, clock=self._clock)

    def _sync_directory(self, *, created: bool) -> None:
        """
        Make the name of the file survive a power cut, which its own sync does not.

        Existing files need it, too: the process that created one may have ended before this, or failed here.
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

    def _ends_with_partial_line(self, fd: int, end_in_doubt: bool) -> bool:
        """
        Tell whether the file ends with a partial line. An unreadable file counts as one that does: it costs a byte.

        @param fd: the file, open for writing.
        """
        try:
            reader = self._file_system.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except PermissionError:
            return True
        try:
            if not end_in_doubt:
                return ends_with_partial_line(self._file_system, reader)
            # No other process may append between the look at the last byte and the write.
            with WriteLock(self._file_system, fd):
                partial = ends_with_partial_line(self._file_system, reader)
                size = self._file_system.fstat(reader).st_size
                if size and not partial:
                    try:
                        self._renew_line_end(size)
                    except OSError:
                        return True  # then the next line begins with a line end of its own
            return partial
        finally:
            self._file_system.close(reader)

    def _renew_line_end(self, size: int) -> None:
        """
        Write the last line end again in its place, after a failed sync.

        The kernel takes a page for written that it could not write. Without this, no later sync would bring that line
        end to the disk, and after a power cut the next line would follow whatever bytes are in its place.
        """
        # Without O_APPEND: with it, Linux appends whatever the offset (pwrite(2)).
        fd = self._file_system.open(self._path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            self._file_system.pwrite(fd, b"\n", size - 1)
        finally:
            self._file_system.close(fd)


@implementer(ILocalObserver)
class FileObserver:
    """
    Appends messages to a file as lines, one write and, with C{--ack durable}, one C{fdatasync} a batch.

    The file belongs to this process alone, unless all its writers are configured to share it. It is opened again by
    name on L{reopen}, when it was removed, and after every failure but a full disk: a second sync of a descriptor whose
    sync has failed would succeed and mean nothing. A file that is moved without a reopen still gets the lines, as with
    any logger.

    @param ack: the C{--ack} level.
    @param min_free: as for L{DiskSpace}.
    @param sharing: as for L{LineFile}, and so are C{path}, C{mode} and C{lock_fd}.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(
        self,
        spec: str,
        path: str,
        render_line: RenderLine,
        ack: str,
        mode: int = DEFAULT_MODE,
        *,
        min_free: int | None = None,
        sharing: int | None = None,
        lock_fd: int | None = None,
        file_system: FileSystem | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.spec = spec
        self.prepare = render_line
        self.promise = "durable" if ack == "durable" else "written"
        self._path = path
        self._sync_wanted = ack == "durable"
        self._share_yes = sharing == SHARE_YES
        file_system = FileSystem() if file_system is None else file_system
        self._file = LineFile(
            file_system,
            path,
            mode,
            durable=self._sync_wanted,
            sharing=sharing,
            lock_fd=lock_fd,
            disk_space=DiskSpace(path, min_free, file_system.statvfs),
            clock=clock,
        )
        self._writer: LineWriter | None = None
        self._lock: FileLock | None = None
        self._reopen_due = False
        self._end_in_doubt = False

    def check(self) -> None:
        """
        Check that the file can exist, without opening or creating anything.

        @raise ConfigError: its directory is missing, or its name belongs to a directory or an unsuitable device.
        """
        parent = os.path.dirname(self._path)
        try:
            is_directory = stat.S_ISDIR(os.stat(parent).st_mode)
        except OSError as error:
            raise ConfigError(f"observer file: {self._path!r}: directory {parent!r}: {error.strerror}") from error
        if not is_directory:
            raise ConfigError(f"observer file: {self._path!r}: {parent!r} is not a directory")
        if os.path.isdir(self._path):
            raise ConfigError(f"observer file: {self._path!r} is a directory; name a file")
        if self._share_yes and os.path.exists(self._path) and not os.path.isfile(self._path):
            raise ConfigError(f"observer file: {self._path!r} is not a regular file; share=yes is for those alone")

    def open(self) -> None:
        """
        Open the file, creating it if need be. A FIFO must have a reader already.

        @raise ConfigError: it can't be opened, or another process holds the lock.
        """
        self.check()
        try:
            # A process before us may have ended just after a failed sync.
            self._writer, self._lock = self._file.open(end_in_doubt=self._sync_wanted)
        except OSError as error:
            reason = error.strerror
            if error.errno == errno.ENXIO:
                reason = "nobody reads from this FIFO, or there is no such device"
            raise ConfigError(f"observer file: {self._path!r} can't be opened for appending: {reason}") from error
        if not self._writer.is_regular:
            # A FIFO or a device has no disk to sync to.
            self.promise = "written"

    def store(self, batch: Sequence[Prepared]) -> None:
        """
        Append a batch.

        @raise OSError: no message of it counts as safe.
        """
        lines = cast("Sequence[bytes]", batch)
        try:
            writer = self._ready_writer()
            writer.append(lines, sync=self._sync_wanted)
            if writer.is_removed():
                # These lines vanish with the descriptor. Write them to a new file of that name.
                self.reopen()
                self._ready_writer().append(lines, sync=self._sync_wanted)
        except OSError as error:
            self._give_up(error)
            raise

    def reopen(self) -> None:
        """
        Open the file by name, then close the old one.

        @raise OSError: it can't be opened; the old file stays in use, and each batch tries to open it again. Or the new
            file is in use, and closing the old one reports a lost write.
        """
        self._reopen_due = True
        self._use(*self._file.open(end_in_doubt=self._end_in_doubt))

    def _use(self, writer: LineWriter | None, lock: FileLock | None) -> None:
        """
        Switch to another file, or to none, and close the one before.

        @raise OSError: closing reports a lost write.
        """
        self._reopen_due = self._end_in_doubt = False
        old, self._writer = self._writer, writer
        old_lock, self._lock = self._lock, lock
        if old_lock is not None:
            old_lock.release()
        if old is not None:
            old.close()

    def close(self) -> None:
        """Close the file."""
        self._use(None, None)

    def _ready_writer(self) -> LineWriter:
        """Return the writer, after opening the file again if that is due and possible."""
        if self._writer is None or self._writer.is_closed:
            self.reopen()
        elif self._reopen_due:
            try:
                opened = self._file.open(end_in_doubt=self._end_in_doubt)
            except OSError:
                pass
            else:
                self._use(*opened)
        return cast("LineWriter", self._writer)

    def _give_up(self, error: OSError) -> None:
        """Close the file after a failure, so that the next batch opens it by name; but not if only the disk is full."""
        writer, lock = self._writer, self._lock
        if writer is None or lock is None:
            # A FIFO that has lost its reader works again once it has another.
            return
        try:
            removed = lock.is_removed()
        except OSError:
            removed = True
        if removed:
            # A removed file that is held open keeps its space on the disk.
            lock.release()
        if removed or writer.is_closed or error.errno not in _DISK_FULL:
            self._end_in_doubt = True
            with suppress(OSError):
                writer.close()


def build_file(
    spec: str, args: Sequence[str], options: Mapping[str, str], ack: str, group: Group = ALONE
) -> FileObserver:
    """
    Make the observer of C{file:PATH[:format=json|template:template=TEXT:mode=0640:min_free=64MiB:share=yes]}.

    @param group: its workers share the file with each other, and with other processes only with C{share=yes}.
    @raise ConfigError: an argument or option is wrong, or the file can't exist.
    """
    reader = SpecOptions("file", options)
    if len(args) != 1 or not args[0]:
        raise ConfigError(
            f"observer 'file' takes one path, file:PATH, but {spec!r} has {len([arg for arg in args if arg])}; "
            r"a colon that belongs to a path or a template is written \:"
        )
    observer = FileObserver(
        spec,
        args[0],
        render_line_for(reader),
        ack,
        reader.read("mode", DEFAULT_MODE, _mode),
        min_free=reader.size("min_free", None),
        sharing=_sharing(share=reader.flag("share", False), group=group),
        lock_fd=group.lock_fd,
    )
    observer.check()
    return observer


def _sharing(*, share: bool, group: Group) -> int | None:
    if share:
        return SHARE_YES
    return None if group.lock_fd is None else sharing_group(group.lock_fd)


def _mode(text: str) -> int:
    if not _MODE.fullmatch(text):
        raise ValueError("it takes three octal digits, such as 0640")
    return int(text, 8)
