"""
Reading the files that a configuration names, with one clear sentence for each way in which that fails.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.settings import FileContents, MiB

LARGEST_FILE = 16 * MiB
"""A configuration, key or certificate file is never near this; C{/dev/zero} and a mistaken log file are past it."""


def absolute(path: str) -> str:
    """
    Return the path made absolute from the current directory, as twistd itself reads relative names: also for
    what a configuration file names, wherever that file is. twistd changes its directory later.
    """
    return os.path.abspath(path)


def read_file(path: str) -> tuple[bytes, int]:
    """
    Return the content of a regular file, and its mode bits.

    @raise ConfigError: it is missing, not readable, not a regular file, or absurdly large; the text names it.
    """
    name = quoted(path)
    try:
        # Without O_NONBLOCK a FIFO that nobody writes would hold the start for ever.
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


class Snapshot:
    """
    Files as they were at the first look at each, so that what is used of them is what was checked.

    @param known: what was in some of them; the others are read.
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
        """Return what was in those of some files that could be read."""
        return {path: self._contents[path] for path in paths if path in self._contents}


def _why_not(name: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{name} does not exist."
    if isinstance(error, PermissionError):
        return f"{name} may not be read by the user that webhookrx runs as."
    if isinstance(error, NotADirectoryError):
        return f"{name} is not a directory, or lies below something that is none."
    return f"{name} can't be read: {error.strerror}."
