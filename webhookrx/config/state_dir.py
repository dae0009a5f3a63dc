"""
The directory for what a restart needs: small files, each replaced as a whole.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from webhookrx.config.files import LARGEST_FILE, absolute, read_file
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError

#: Mode bits that let others than the owner write.
_WRITABLE: Final = 0o022


def default_state_dir(environ: Mapping[str, str]) -> str | None:
    """
    Return the directory of a service that names none; None where it has none.

    @param environ: the environment; C{STATE_DIRECTORY} is what systemd sets, several separated by colons.
    """
    directory = environ.get("STATE_DIRECTORY", "").partition(":")[0]
    return absolute(directory) if directory else None


def check_state_dir(directory: str) -> None:
    """
    Find out whether there can be a directory of that name.

    @raise ConfigError: there can't.
    """
    if os.path.isdir(directory):
        return
    if os.path.lexists(directory):
        raise ConfigError(f"{quoted(directory)} is no directory.")
    if not os.path.isdir(os.path.dirname(directory)):
        raise ConfigError(f"The directory {quoted(os.path.dirname(directory))} does not exist.")


def read_state(directory: str, name: str) -> bytes | None:
    """
    Return what is in a file; None when it is not there.

    @raise ConfigError: it can't be read; or it is a link, or others may write to it: it says what is opened, and where.
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


def write_state(directory: str, name: str, content: bytes) -> None:
    """
    Put a file in the place of another: whole or not at all, and so that it outlives a power cut. Nobody else can read
    it. The directory is made when it is not there.

    @raise OSError: it can't be written; what was there stays.
    """
    if len(content) > LARGEST_FILE:
        raise OSError(f"{len(content)} bytes are more than the {LARGEST_FILE} that a file may have")
    with suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    path = os.path.join(directory, name)
    new = f"{path}.new"
    with suppress(FileNotFoundError):
        os.unlink(new)  # that of a process which was killed
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
        os.rename(new, path)
    except OSError:
        with suppress(OSError):
            os.unlink(new)
        raise
    # The name is safe once the directory is.
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
