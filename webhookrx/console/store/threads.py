"""
The store with its three threads: one that writes, one that reads, and one for looks, none of them that of the reactor.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, Final, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

from webhookrx.console.store.database import StoreReader, StoreWriter
from webhookrx.console.store.history import StoreTransaction, newest_revision
from webhookrx.errors import StoreUnavailable, UnusableFile

MOST_WAITING: Final = 1000
"""Calls that may wait for one of the threads; more are refused."""

T = TypeVar("T")


class _Side:
    """One thread, and the calls that wait for it."""

    def __init__(self, reactor: Any, name: str) -> None:
        self._reactor = reactor
        self._pool = ThreadPool(1, 1, name)
        self.waiting = 0
        self.running = False

    def start(self) -> None:
        self._pool.start()
        self.running = True

    def stop(self) -> None:
        if self.running:
            self.running = False
            self._pool.stop()

    def call(self, work: Callable[..., T], *arguments: object) -> Deferred[T]:
        if not self.running:
            raise StoreUnavailable("The store is closed.")
        if self.waiting >= MOST_WAITING:
            raise StoreUnavailable("The store has too much to do.")
        self.waiting += 1
        called: Deferred[T] = deferToThreadPool(self._reactor, self._pool, work, *arguments)
        return called.addBoth(self._done)

    def _done(self, result: Any) -> Any:
        self.waiting -= 1
        return result


class StoreThreads:
    """
    A L{webhookrx.console.store.interface.ConsoleStore} that runs each function in one of three threads.

    @param writer: the open file.
    @param reader: the same file, open for reading; C{looker} likewise.
    @ivar revision: the newest one that was written, or read at the start.
    @ivar writes: transactions that are on disk.
    @ivar failed_writes: those that could not be written.
    @ivar problem: why the last one could not be; empty when it could.
    """

    def __init__(self, reactor: Any, writer: StoreWriter, reader: StoreReader, looker: StoreReader) -> None:
        self._writer = writer
        self._reader = reader
        self._looker = looker
        self._writing = _Side(reactor, "webhookrx-console-write")
        self._reading = _Side(reactor, "webhookrx-console-read")
        self._looking = _Side(reactor, "webhookrx-console-look")
        self.revision = reader.read(newest_revision)
        self.writes = 0
        self.failed_writes = 0
        self.problem = ""

    @property
    def waiting(self) -> int:
        """The calls under way or waiting."""
        return self._writing.waiting + self._reading.waiting + self._looking.waiting

    def start(self) -> None:
        """Start the threads."""
        self._writing.start()
        self._reading.start()
        self._looking.start()

    def stop(self) -> None:
        """Finish what is under way and waits, and close the file. It blocks until then."""
        self._writing.stop()
        self._reading.stop()
        self._looking.stop()
        self._reader.close()
        self._looker.close()
        self._writer.close()

    async def write(self, work: Callable[[StoreTransaction], T]) -> T:
        """See L{webhookrx.console.store.interface.ConsoleStore.write}."""
        try:
            result: T
            result, revision = await self._writing.call(self._write, work)
        except (StoreUnavailable, UnusableFile) as error:
            self.failed_writes += 1
            self.problem = str(error)
            raise
        self.writes += 1
        self.problem = ""
        self.revision = max(self.revision, revision)
        return result

    def _write(self, work: Callable[[StoreTransaction], T]) -> tuple[T, int]:
        return self._writer.write(lambda transaction: (work(transaction), newest_revision(transaction.db)))

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """See L{webhookrx.console.store.interface.ConsoleStore.read}."""
        return await self._reading.call(self._reader.read, work)

    async def look(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """See L{webhookrx.console.store.interface.ConsoleStore.look}."""
        return await self._looking.call(self._looker.read, work)
