"""A file system with faults on demand, and other helpers of the tests of the spool."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, cast

from webhookrx.filesystem import DiskSpace
from webhookrx.interfaces import Wants
from webhookrx.message.encoders import decode_stored, encode_stored
from webhookrx.spool.directory import SpoolDirectory, SpoolFileSystem
from webhookrx.spool.queue import SpoolQueue
from webhookrx.spool.quota import Quota
from webhookrx.spool.rows import Row
from webhookrx.testing import make_message

ROOMY = Quota(1 << 30)


def sqlite_error(name: str) -> sqlite3.Error:
    """Return an error of SQLite's, such as C{SQLITE_FULL}."""
    error = sqlite3.OperationalError(name.lower())
    error.sqlite_errorname = name
    error.sqlite_errorcode = getattr(sqlite3, name)
    return error


class FaultySpool(SpoolFileSystem):
    """
    The real file system and SQLite, but statements and calls fail as planned, and nothing is ever synced: no test of
    this process can cut the power, and syncs take their time.

    @ivar statements: what was done, as (base name of the file, statement).
    @ivar calls: what was asked of the file system, as (call, first argument).
    """

    def __init__(self) -> None:
        self.statements: list[tuple[str, str]] = []
        self.calls: list[tuple[str, str]] = []
        self._allowed: list[tuple[str, str]] = []
        self._plans: list[tuple[str, bool, Exception]] = []
        for name in ("mkdir", "listdir", "open", "close", "fsync", "flock", "rename", "unlink"):
            setattr(self, name, self._planned(name, getattr(type(self), name)))

    def fail(self, beginning: str, error: Exception | str, *, times: int = 1, read_only: bool = False) -> None:
        """Let the next statements, or calls, that begin like this fail."""
        planned = sqlite_error(error) if isinstance(error, str) else error
        self._plans += [(beginning, read_only, planned)] * times

    def allow(self, beginning: str, ending: str) -> None:
        """Exempt statements that begin like this, for files whose names end like that."""
        self._allowed.append((beginning, ending))

    def mend(self) -> None:
        """Plan no more faults."""
        self._plans.clear()

    def connect(self, path: str, *, read_only: bool) -> sqlite3.Connection:
        """Open a database."""
        self.check("connect", path, read_only)
        return cast(
            "sqlite3.Connection", _Connection(self, path, read_only, super().connect(path, read_only=read_only))
        )

    def check(self, statement: str, path: str, read_only: bool = False) -> None:
        """Record a statement, and raise its planned error."""
        self.statements.append((os.path.basename(path), statement))
        if any(statement.startswith(start) and path.endswith(end) for start, end in self._allowed):
            return
        for plan in self._plans:
            beginning, for_reader, error = plan
            if statement.startswith(beginning) and for_reader == read_only:
                self._plans.remove(plan)
                raise error

    @staticmethod
    def fsync(_: int) -> None:
        """Do nothing."""

    def _planned(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.calls.append((name, str(args[0])))
            self.check(name, str(args[0]))
            return real(*args)

        return call


class _Connection:
    """A connection whose statements may fail."""

    def __init__(self, faults: FaultySpool, path: str, read_only: bool, real: sqlite3.Connection) -> None:
        self._faults = faults
        self._path = path
        self._read_only = read_only
        self._real = real

    def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
        self._faults.check(statement, self._path, self._read_only)
        if statement.startswith("PRAGMA synchronous="):
            statement = "PRAGMA synchronous=OFF"
        return self._real.execute(statement, *parameters)

    def executemany(self, statement: str, parameters: Any) -> sqlite3.Cursor:
        self._faults.check(statement, self._path, self._read_only)
        return self._real.executemany(statement, parameters)

    def executescript(self, script: str) -> sqlite3.Cursor:
        self._faults.check(script, self._path, self._read_only)
        return self._real.executescript(script)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class Clocks:
    """
    A monotonic and a wall clock that stand still.

    @ivar now: seconds.
    @ivar wall: nanoseconds since the epoch.
    """

    def __init__(self) -> None:
        self.now = 1000.0
        self.wall = 2_000_000_000_000_000_000

    def monotonic(self) -> float:
        """Return the seconds."""
        return self.now

    def time_ns(self) -> int:
        """Return the nanoseconds."""
        return self.wall


class Disk:
    """
    Free space by word.

    @ivar free: bytes.
    """

    def __init__(self, free: int = 1 << 40) -> None:
        self.free = free

    def statvfs(self, _: str | int) -> os.statvfs_result:
        """Tell it."""
        return os.statvfs_result((1, 1, 1 << 40, self.free, self.free, 0, 0, 0, 0, 255))


class SmallDisk:
    """
    A file system of so many bytes that only a spool takes room from.

    @ivar taken: bytes that others have taken.
    """

    def __init__(self, path: str, size: int) -> None:
        self.taken = 0
        self._path = path
        self._size = size

    @property
    def free(self) -> int:
        """Bytes that are left."""
        names = os.listdir(self._path) if os.path.isdir(self._path) else []
        return self._size - self.taken - sum(os.path.getsize(os.path.join(self._path, name)) for name in names)

    def statvfs(self, _: str | int) -> os.statvfs_result:
        """Tell it."""
        free = max(0, self.free)
        return os.statvfs_result((1, 1, self._size, free, free, 0, 0, 0, 0, 255))


def make_queue(
    path: str,
    faults: SpoolFileSystem | None = None,
    room: Quota = ROOMY,
    clocks: Clocks | None = None,
    disk: Disk | SmallDisk | None = None,
    floor: int = 1000,
    wants: Wants | None = None,
) -> SpoolQueue:
    """Make a queue that is not open yet."""
    clocks = Clocks() if clocks is None else clocks
    space = DiskSpace(path, floor, (Disk() if disk is None else disk).statvfs)
    return SpoolQueue(SpoolDirectory(path, faults), room, space, clocks.monotonic, clocks.time_ns, wants)


def stored(*texts: str, received: int | None = None) -> list[bytes]:
    """Return messages of these texts as they are stored."""
    moment = {} if received is None else {"received": received}
    return [encode_stored(make_message(text, **moment)) for text in texts]


def texts(rows: Sequence[Row]) -> list[object]:
    """Return the texts of messages that were stored."""
    return [decode_stored(row.data).values["MESSAGE"] for row in rows]


def drain(queue: SpoolQueue) -> list[object]:
    """Drain a queue, and return the texts."""
    taken: list[object] = []
    while rows := queue.next_batch():
        taken += texts(rows)
        queue.ack([row.id for row in rows])
    return taken
