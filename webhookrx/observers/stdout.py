"""
C{stdout}: writes lines to standard output, apart from the service's own log.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from zope.interface import implementer

from webhookrx.config.observers import ObserverSpec
from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.filesystem import FileSystem
from webhookrx.interfaces import ILocalObserver
from webhookrx.observers.writers import (
    LINE_OPTIONS,
    LineWriter,
    PipeWriter,
    RenderLine,
    pipe_lock,
    render_line_for,
)
from webhookrx.settings import ALONE, Group

if TYPE_CHECKING:
    from webhookrx.interfaces import Prepared

STDOUT_SPEC = ObserverSpec(LINE_OPTIONS)


@implementer(ILocalObserver)
class StdoutObserver:
    """
    Writes messages as lines to a duplicate of a file descriptor.

    C{twistd} replaces C{sys.stdout} by its log, so a descriptor is used. With C{--ack durable} a regular file is
    synced; a pipe or terminal has no disk, so there its promise is C{"written"}. After a failed sync the file behind
    the descriptor is opened again through C{/proc}, if it was opened for appending. If not, every batch fails until the
    service is restarted: other users of the descriptor would overwrite our lines.

    @param ack: the C{--ack} level.
    @param fd: the descriptor; standard output outside tests.
    @param lock_fd: as for L{pipe_lock}, if other processes write to it, too; else None.
    """

    def __init__(
        self,
        spec: str,
        render_line: RenderLine,
        ack: str,
        fd: int = 1,
        file_system: FileSystem | None = None,
        lock_fd: int | None = None,
    ) -> None:
        self.spec = spec
        self.prepare = render_line
        self.promise = "durable" if ack == "durable" else "written"
        self._sync_wanted = ack == "durable"
        self._fd = fd
        self._file_system = FileSystem() if file_system is None else file_system
        self._lock_fd = lock_fd
        self._identity = self._identify()
        self._writer: LineWriter | None = None

    def open(self) -> None:
        """
        Take the duplicate.

        @raise ConfigError: standard output is closed, or no longer what it was when the process started.
        """
        if self._identify() != self._identity:
            raise ConfigError("observer stdout: standard output is lost in the background; run twistd with --nodaemon")
        self._writer = self._writer_to(self._file_system.dup(self._fd))
        if not self._writer.is_regular:
            self.promise = "written"

    def store(self, batch: Sequence[Prepared]) -> None:
        """
        Write a batch.

        @raise OSError: no message of it counts as safe.
        """
        writer = self._writer
        if writer is None or writer.is_closed:
            writer = self._writer = self._open_anew()
        writer.append(cast("Sequence[bytes]", batch), sync=self._sync_wanted)

    def reopen(self) -> None:
        """Do nothing: standard output has no name to open again."""

    def close(self) -> None:
        """Close the duplicate."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()

    def _open_anew(self) -> LineWriter:
        """
        Open the file behind the descriptor again, so that a sync means something again.

        @raise OSError: it can't be opened, or must not be.
        """
        file_system = self._file_system
        if not file_system.control(self._fd, fcntl.F_GETFL) & os.O_APPEND:
            raise OSError(
                errno.EBADF,
                "a sync of standard output failed, and it can't be opened again: it was not opened for appending",
            )
        return self._writer_to(
            file_system.open(f"/proc/self/fd/{self._fd}", os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
        )

    def _writer_to(self, fd: int) -> LineWriter:
        if self._lock_fd is None:
            return LineWriter(self._file_system, fd)
        return PipeWriter(self._file_system, fd, pipe_lock(self._lock_fd, fd))

    def _identify(self) -> tuple[int, int]:
        try:
            status = self._file_system.fstat(self._fd)
        except OSError as error:
            raise ConfigError(f"observer stdout: standard output can't be used: {error.strerror}") from error
        return status.st_dev, status.st_ino


def build_stdout(
    spec: str, args: Sequence[str], options: Mapping[str, str], ack: str, group: Group = ALONE
) -> StdoutObserver:
    """
    Make the observer of C{stdout[:format=json|template:template=TEXT]}.

    @param group: its workers write to one standard output, one at a time.
    @raise ConfigError: it has an argument, an option is wrong, or standard output is closed.
    """
    if args:
        raise ConfigError("observer 'stdout' takes no argument, only options such as format=json")
    return StdoutObserver(spec, render_line_for(SpecOptions("stdout", options)), ack, lock_fd=group.lock_fd)
