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

from webhookrx.config.spec_options import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.filesystem import SHARE_YES, DiskSpace, FileSystem, sharing_group
from webhookrx.interfaces import IMessageObserver
from webhookrx.observers.line_file import LineFile
from webhookrx.observers.line_writer import LineWriter
from webhookrx.observers.lines import LINE_OPTIONS, RenderLine, render_line_for
from webhookrx.settings import ALONE, Group

if TYPE_CHECKING:
    from webhookrx.filesystem import FileLock
    from webhookrx.interfaces import Prepared

FILE_OPTIONS = (*LINE_OPTIONS, "min_free", "mode", "share")
DEFAULT_MODE = 0o640

_MODE = re.compile(r"0?[0-7]{3}")

#: After these the open file is as good as before, once there is room.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@implementer(IMessageObserver)
class FileObserver:
    """
    Appends messages to a file as lines, one write and, with C{--ack durable}, one C{fdatasync} a batch.

    The file is this process's alone, unless all that append to it share it. It is opened again by name on L{reopen},
    when it was removed, and after a failure that has to do with the file and not with want of room: a sync of the same
    descriptor after one that failed would succeed and mean nothing. A file that is moved without a reopen goes on to
    get the lines, as with any logger.

    @param spec: the spec string.
    @param path: absolute path.
    @param render_line: makes a line of a message.
    @param ack: the C{--ack} level.
    @param mode: permission bits of a file that is created, whatever the umask.
    @param min_free: bytes of the disk that stay free; None for what L{DiskSpace} takes then.
    @param sharing: who else may append to it, as for L{FileLock}; None: nobody.
    @param turns: as for L{LineFile}.
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
        turns: int | None = None,
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
            turns=turns,
            disk_space=DiskSpace(path, min_free, file_system.statvfs),
            clock=clock,
        )
        self._writer: LineWriter | None = None
        self._lock: FileLock | None = None
        self._reopen_due = False
        self._end_in_doubt = False

    def check(self) -> None:
        """
        Look whether the file could be there at all, without opening or creating anything.

        @raise ConfigError: its directory is missing, or something that can't be written to has its name.
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

        @raise ConfigError: it can't be opened, or another process has it.
        """
        self.check()
        try:
            # A process before us may have been ended just after a sync of its own failed.
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

        @raise OSError: none of it counts as safe.
        """
        lines = cast("Sequence[bytes]", batch)
        try:
            writer = self._ready_writer()
            writer.append(lines, sync=self._sync_wanted)
            if writer.is_removed():
                # Nobody will ever read what went there. It was removed by name, so open it by name.
                self.reopen()
                self._ready_writer().append(lines, sync=self._sync_wanted)
        except OSError as error:
            self._give_up(error)
            raise

    def reopen(self) -> None:
        """
        Open the file by name, then close the old one.

        @raise OSError: it can't be opened; the old one stays in use, so that nothing is lost meanwhile, and each batch
            tries again. Or the new one is in use, and the old one tells only now that it lost a write.
        """
        self._reopen_due = True
        self._use(*self._file.open(end_in_doubt=self._end_in_doubt))

    def _use(self, writer: LineWriter, lock: FileLock | None) -> None:
        """
        Write to a file that was opened, and close the one before.

        @raise OSError: that one lost a write.
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
        writer, self._writer = self._writer, None
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()
        if writer is not None:
            writer.close()

    def _ready_writer(self) -> LineWriter:
        """Return what to write with: the file opened anew, where that is due and can be had."""
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
        """Let go of a file after a failure, so that the next batch opens it by name, unless it only wants room."""
        writer, lock = self._writer, self._lock
        if writer is None or lock is None:
            # No regular file: a FIFO that has lost its reader is as good as new once it has another.
            return
        try:
            removed = lock.is_removed()
        except OSError:
            removed = True
        if removed:
            # Held open, it would keep its room on the disk for ever.
            lock.release()
        if removed or writer.is_closed or error.errno not in _NO_ROOM:
            self._end_in_doubt = True
            with suppress(OSError):
                writer.close()


def build_file(
    spec: str, args: Sequence[str], options: Mapping[str, str], ack: str, group: Group = ALONE
) -> FileObserver:
    """
    Make the observer of C{file:PATH[:format=json|template:template=TEXT:mode=0640:min_free=64MiB:share=yes]}.

    @param group: the workers of one group share the file with each other, and with others only if told to.
    @raise ConfigError: an argument or option is wrong, or the file can't be there.
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
        turns=group.turns,
    )
    observer.check()
    return observer


def _sharing(*, share: bool, group: Group) -> int | None:
    if share:
        return SHARE_YES
    return None if group.turns is None else sharing_group(group.turns)


def _mode(text: str) -> int:
    if not _MODE.fullmatch(text):
        raise ValueError("it takes three octal digits, such as 0640")
    return int(text, 8)
