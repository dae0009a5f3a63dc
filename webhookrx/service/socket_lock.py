"""
The lock of a UNIX socket: one process has the socket, and what a process that was killed has left is taken away.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from webhookrx.filesystem import FileLock, FileSystem, InUse


def lock_socket(path: str) -> FileLock:
    """
    Take the lock of a UNIX socket, a file beside it, and remove the socket that a former process has left.

    Twisted's own lock has the number of its process. After a kill that may be the number of another one, as in a
    container, where each start has the same; then the socket could never be opened again. The kernel ends this lock
    with its process.

    @raise OSError: another process has the socket, or the lock can't be taken; C{strerror} is for people.
    """
    fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        lock = FileLock(FileSystem(), fd)
    except InUse:
        raise OSError(errno.EADDRINUSE, "a receiver that runs has it", path) from None
    finally:
        os.close(fd)
    with suppress(FileNotFoundError):
        # Anything else that a mistaken path names stays, and binding says so.
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            os.unlink(path)
    return lock
