"""
C{file:PATH}: appends lines to a file.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from zope.interface import implementer

from webhookrx.errors import ConfigError
from webhookrx.interfaces import IMessageObserver
from webhookrx.observers.line_writer import FileSystem, LineWriter
from webhookrx.observers.lines import LINE_OPTIONS, RenderLine, render_line_for

if TYPE_CHECKING:
    from webhookrx.interfaces import Prepared

FILE_OPTIONS = (*LINE_OPTIONS, "mode")
DEFAULT_MODE = 0o640

# O_NONBLOCK is for the open of a FIFO alone: without a reader it fails instead of hanging the start.
_FLAGS = os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
_MODE = re.compile(r"0?[0-7]{3}")


@implementer(IMessageObserver)
class FileObserver:
    """
    Appends messages to a file as lines, one write and, with C{--ack durable}, one C{fdatasync} a batch.

    Several processes may append to one file. It is opened again by name on L{reopen}, after a failed sync, and when it
    was removed; a file that is moved without a reopen goes on to get the lines, as with any logger.

    @param spec: the spec string.
    @param path: absolute path.
    @param render_line: makes a line of a message.
    @param ack: the C{--ack} level.
    @param mode: permission bits of a file that is created, whatever the umask.
    """

    def __init__(
        self,
        spec: str,
        path: str,
        render_line: RenderLine,
        ack: str,
        mode: int = DEFAULT_MODE,
        file_system: FileSystem | None = None,
    ) -> None:
        self.spec = spec
        self.prepare = render_line
        self.promise = "durable" if ack == "durable" else "written"
        self._path = path
        self._sync_wanted = ack == "durable"
        self._mode = mode
        self._file_system = FileSystem() if file_system is None else file_system
        self._writer: LineWriter | None = None

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

    def open(self) -> None:
        """
        Open the file, creating it if need be. A FIFO must have a reader already.

        @raise ConfigError: it can't be opened.
        """
        self.check()
        try:
            self._writer = self._open()
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
        self._append(lines)
        if self._writer is not None and self._writer.is_removed():
            # Nobody will ever read what went there. It was removed by name, so open it by name.
            self.reopen()
            self._append(lines)

    def _append(self, lines: Sequence[bytes]) -> None:
        writer = self._writer
        if writer is None or writer.is_closed:
            # An earlier batch failed to sync.
            writer = self._writer = self._open()
        writer.append(lines, sync=self._sync_wanted)

    def reopen(self) -> None:
        """
        Open the file by name, then close the old one.

        @raise OSError: it can't be opened; the old one stays in use, so that nothing is lost meanwhile.
        """
        old, self._writer = self._writer, self._open()
        if old is not None:
            old.close()

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()

    def _open(self) -> LineWriter:
        file_system = self._file_system
        try:
            fd = file_system.open(self._path, _FLAGS)
            created = False
        except FileNotFoundError:
            fd = file_system.open(self._path, _FLAGS | os.O_CREAT, self._mode)
            created = True
        try:
            file_system.set_blocking(fd, True)
            if created:
                file_system.fchmod(fd, self._mode)
                if self._sync_wanted:
                    self._sync_directory()
            return LineWriter(file_system, fd, torn=not created and self._ends_inside_line(fd))
        except BaseException:
            file_system.close(fd)
            raise

    def _sync_directory(self) -> None:
        """Make the name of a new file survive a power cut; its own sync would not."""
        directory = os.path.dirname(os.path.realpath(self._path))
        fd = self._file_system.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._file_system.fsync(fd)
        finally:
            self._file_system.close(fd)

    def _ends_inside_line(self, fd: int) -> bool:
        """Tell whether a crash has left the file without a line end. Not readable is taken for yes: it costs a byte."""
        size = self._file_system.fstat(fd).st_size
        if not size:
            return False
        try:
            reader = self._file_system.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except PermissionError:
            return True
        try:
            return self._file_system.pread(reader, 1, size - 1) != b"\n"
        finally:
            self._file_system.close(reader)


def build_file(spec: str, args: Sequence[str], options: Mapping[str, str], ack: str) -> FileObserver:
    """
    Make the observer of C{file:PATH[:format=json|template:template=TEXT:mode=0640]}.

    @raise ConfigError: an argument or option is wrong, or the file can't be there.
    """
    if len(args) != 1 or not args[0]:
        raise ConfigError(
            f"observer 'file' takes one path, file:PATH, but {spec!r} has {len(args)}; "
            r"a colon that belongs to a path or a template is written \:"
        )
    text = options.get("mode", f"{DEFAULT_MODE:04o}")
    if not _MODE.fullmatch(text):
        raise ConfigError(f"observer 'file': mode={text} is not three octal digits, such as 0640")
    observer = FileObserver(spec, args[0], render_line_for("file", options), ack, int(text, 8))
    observer.check()
    return observer
