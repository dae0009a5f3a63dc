"""A store for tests that calls each function at once, on a file in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from webhookrx.console.store.database import StoreReader, StoreWriter
from webhookrx.console.store.history import StoreTransaction

T = TypeVar("T")


class DirectStore:
    """
    A C{ConsoleStore} in the thread of its caller: C{await} never waits.

    @param path: the file; another one is not opened twice.
    @param clock: seconds since the epoch.
    """

    def __init__(self, path: str, clock: Callable[[], float] = lambda: 1_800_000_000.0) -> None:
        self.writer = StoreWriter(path, clock)
        self.reader = StoreReader(path)

    async def write(self, work: Callable[[StoreTransaction], T]) -> T:
        """See C{ConsoleStore.write}."""
        return self.writer.write(work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """See C{ConsoleStore.read}."""
        return self.reader.read(work)

    async def look(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """See C{ConsoleStore.look}."""
        return self.reader.read(work)

    def close(self) -> None:
        """Close the file."""
        self.reader.close()
        self.writer.close()
