"""
Files and directories that a configuration names: read with one clear sentence for each failure, watched, replaced.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.filesystem import FileSystem
from webhookrx.settings import FileContents, MiB, Signature

LARGEST_FILE = 16 * MiB
"""A configuration, key or certificate file is far smaller; C{/dev/zero} and a log file named by mistake are larger."""

DATA_FILES: Final = (".yaml", ".yml")
"""The endings of the names of data files."""

LAST_SET: Final = "connectors.json"
"""The name of the last good set of connectors in the state directory."""

_FILE_SYSTEM: Final = FileSystem()

_OTHERS: Final = 0o007
"""Mode bits that give every user of the machine access."""

_WRITABLE: Final = 0o022
"""Mode bits that let others than the owner write."""


def absolute(path: str) -> str:
    """
    Return an absolute path. Relative names start from the current directory, as those of twistd itself do, and those in
    a configuration file, too. twistd changes its directory later.
    """
    return os.path.abspath(path)


def read_file(path: str) -> tuple[bytes, int]:
    """
    Return the content of a regular file, and its mode bits.

    @raise ConfigError: it is missing, not readable, not a regular file, or absurdly large; the text names it.
    """
    name = quoted(path)
    try:
        # Without O_NONBLOCK a FIFO without a writer would block the start for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            mode = os.fstat(handle).st_mode
            if stat.S_ISDIR(mode):
                raise ConfigError(f"{name} is a directory; a file is needed.")
            if not stat.S_ISREG(mode):
                raise ConfigError(f"{name} is not a regular file.")
            with open(handle, "rb", closefd=False) as file:
                content = file.read(LARGEST_FILE + 1)
        finally:
            os.close(handle)
    except OSError as error:
        raise ConfigError(_why_not(name, error)) from None
    except ValueError:
        raise ConfigError(f"{name} is not a file name.") from None
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"{name} is larger than 16 MiB; that is not the file that was meant.")
    return content, stat.S_IMODE(mode)


def list_directory(path: str) -> list[str]:
    """
    Return the names in a directory, sorted.

    @raise ConfigError: it is missing, not readable, or no directory.
    """
    name = quoted(path)
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        raise ConfigError(_why_not(name, error)) from None
    except ValueError:
        raise ConfigError(f"{name} is not a directory name.") from None


def public_warning(path: str, mode: int) -> str:
    """Return the warning for a file of secrets that every user of the machine can read or write; empty for another."""
    return f"{quoted(path)} can be read or written by every user: chmod 640 or less." if mode & _OTHERS else ""


class Snapshot:
    """
    Files as they were when each was first read, so that what is used is what was checked.

    @param known: the contents of some of them; others are read.
    """

    def __init__(self, known: FileContents | None = None) -> None:
        self._contents = dict(known or {})

    def read(self, path: str) -> tuple[bytes, int]:
        """
        Return the content of a regular file, and its mode bits.

        @raise ConfigError: see L{read_file}.
        """
        if path not in self._contents:
            self._contents[path] = read_file(path)
        return self._contents[path]

    def names(self, directory: str) -> list[str]:
        """
        Return the names in a directory, sorted; once files in it have been read, of these alone.

        @raise ConfigError: see L{list_directory}.
        """
        return [os.path.basename(path) for path in self.below(directory)] or list_directory(directory)

    def below(self, directory: str) -> list[str]:
        """Return the paths of the files in a directory that have been read, sorted."""
        return sorted(path for path in self._contents if os.path.dirname(path) == directory)

    def contents(self, paths: Iterable[str]) -> FileContents:
        """Return the contents of those files that could be read."""
        return {path: self._contents[path] for path in paths if path in self._contents}


def _why_not(name: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{name} does not exist."
    if isinstance(error, PermissionError):
        return f"{name} may not be read by the user that webhookrx runs as."
    if isinstance(error, NotADirectoryError):
        return f"{name} is not a directory, or lies below something that is none."
    return f"{name} can't be read: {error.strerror}."


def signature_of(path: str) -> Signature:
    """
    Return a value that changes with a file, and when this process may read it or no longer may. That of a directory
    changes with the data files in it, and not with other files: messages may be written there.
    """
    try:
        found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            names = sorted(name for name in os.listdir(path) if name.endswith(DATA_FILES))
            return (found.st_dev, found.st_ino, *(part for name in names for part in _of_data_file(path, name)))
    except OSError as error:
        return (error.errno or 0,)
    except ValueError:
        return ()
    return _of(path, found)


def _of_data_file(directory: str, name: str) -> Signature:
    path = os.path.join(directory, name)
    try:
        return (zlib.crc32(os.fsencode(name)), *_of(path, os.stat(path)))
    except OSError as error:
        return (zlib.crc32(os.fsencode(name)), error.errno or 0)


def _of(path: str, found: os.stat_result) -> Signature:
    readable = int(os.access(path, os.R_OK, effective_ids=True))
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size, readable


def default_state_dir(environ: Mapping[str, str]) -> str | None:
    """
    Return the state directory of a service without the option; None without one.

    @param environ: environment variables. systemd sets C{STATE_DIRECTORY}; several are separated by colons.
    """
    directory = environ.get("STATE_DIRECTORY", "").partition(":")[0]
    return absolute(directory) if directory else None


CONTROL_SOCKET: Final = "control.sock"
"""The name of the control socket in the runtime directory."""

_LONGEST_SOCKET: Final = 107
"""Bytes of the path of a UNIX socket (unix(7))."""


def default_runtime_dir(environ: Mapping[str, str]) -> str | None:
    """
    Return the runtime directory of a service; None without one.

    @param environ: environment variables. systemd sets C{RUNTIME_DIRECTORY}; several are separated by colons.
    """
    directory = environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    return absolute(directory) if directory else None


def check_socket_path(path: str) -> None:
    """
    Check whether a UNIX socket can have a path, and whether its directory is there.

    @raise ConfigError: not so.
    """
    size = len(os.fsencode(path))
    if size > _LONGEST_SOCKET:
        raise ConfigError(f"The path of a socket has up to {_LONGEST_SOCKET} bytes, and this one {size}.")
    if not os.path.isdir(os.path.dirname(path)):
        raise ConfigError(f"There is no directory {quoted(os.path.dirname(path))} for the socket.")


def check_state_dir(directory: str) -> None:
    """
    Check whether a directory is there or can be made.

    @raise ConfigError: neither.
    """
    if os.path.isdir(directory):
        return
    if os.path.lexists(directory):
        raise ConfigError(f"{quoted(directory)} is not a directory.")
    if not os.path.isdir(os.path.dirname(directory)):
        raise ConfigError(f"The directory {quoted(os.path.dirname(directory))} does not exist.")


def read_state(directory: str, name: str) -> bytes | None:
    """
    Return the content of a file in the state directory; None without one.

    @raise ConfigError: it can't be read; it is a link, or others may write to it: it decides which ports open.
    """
    path = os.path.join(directory, name)
    try:
        found, around = os.lstat(path), os.stat(directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{quoted(path)} can't be read: {error.strerror}.") from None
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{quoted(path)} is not a regular file.")
    if found.st_uid not in (0, os.geteuid(), around.st_uid) or stat.S_IMODE(found.st_mode) & _WRITABLE:
        raise ConfigError(f"{quoted(path)} can be written by others than the user that webhookrx runs as.")
    return read_file(path)[0]


def write_state(directory: str, name: str, content: bytes, file_system: FileSystem = _FILE_SYSTEM) -> None:
    """
    Replace a file in the state directory, atomically and durably. Other users can't read it. A missing directory is
    made.

    @raise OSError: it can't be written; the old file stays.
    """
    if len(content) > LARGEST_FILE:
        raise OSError(f"{len(content)} bytes are more than the {LARGEST_FILE} that a file may have")
    with suppress(FileExistsError):
        file_system.mkdir(directory, 0o700)
    path = os.path.join(directory, name)
    new = f"{path}.new"
    with suppress(FileNotFoundError):
        file_system.unlink(new)  # left by a process that was killed
    handle = file_system.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[file_system.writev(handle, [rest]) :]
            file_system.fsync(handle)
        finally:
            file_system.close(handle)
        file_system.rename(new, path)
    except OSError:
        with suppress(OSError):
            file_system.unlink(new)
        raise
    sync_directory(directory, file_system)


def sync_directory(directory: str, file_system: FileSystem = _FILE_SYSTEM) -> None:
    """
    Make what was renamed in a directory durable.

    @raise OSError: it can't be made so.
    """
    handle = file_system.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        file_system.fsync(handle)
    finally:
        file_system.close(handle)
