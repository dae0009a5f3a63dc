"""
The files of a console: its database, the lock beside it, and opening them for good or for a command.
"""

from __future__ import annotations

import os
from typing import Final

from webhookrx.console.store.database import StoreReader, StoreWriter
from webhookrx.diagnostics import quoted
from webhookrx.errors import CannotStart, StoreUnavailable, UnusableFile
from webhookrx.filesystem import FileLock, FileSystem, InUse

PARTS: Final = ("", "-wal", "-shm")
"""What follows the name of a database in those of its files."""


class StoreFiles:
    """
    The files of a store, which no other console and no command that replaces them has.

    @param path: of the database, absolute.
    @param make: make it when it is missing; else that is an error.
    @raise CannotStart: it can't be opened, or another process has it; the text says why.
    """

    def __init__(self, path: str, *, make: bool = False) -> None:
        if not make and not os.path.exists(path):
            raise CannotStart(f"There is no console in {quoted(path)}: make one with webhookrx console init.")
        self.path = path
        self._lock = lock_store(path)
        try:
            self.writer = StoreWriter(path)
            self.reader = StoreReader(path)
            self.looker = StoreReader(path)
        except (StoreUnavailable, UnusableFile) as error:
            self._lock.release()
            raise CannotStart(f"{path}: {error}") from None
        except OSError as error:
            self._lock.release()
            raise CannotStart(f"{quoted(path)} can't be opened: {error.strerror}.") from None

    def release(self) -> None:
        """Let others have the files."""
        self._lock.release()

    def close(self) -> None:
        """Close the files, and let others have them."""
        self.looker.close()
        self.reader.close()
        self.writer.close()
        self.release()


def lock_store(path: str) -> FileLock:
    """
    Take the lock of a store, without opening it.

    @raise CannotStart: a console or another command has it.
    """
    # Not the database itself: to close a descriptor of it would drop the locks that SQLite has on it (fcntl(2)).
    name = f"{path}.lock"
    try:
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise CannotStart(f"{quoted(name)} can't be opened: {error.strerror}.") from None
    try:
        return FileLock(FileSystem(), fd)
    except InUse:
        raise CannotStart(f"{quoted(path)} is in use by a console that runs, or by another command.") from None
    except OSError as error:
        raise CannotStart(f"{quoted(name)} can't be locked: {error.strerror}.") from None
    finally:
        os.close(fd)
