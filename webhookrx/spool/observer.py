"""
C{spool:DIR:observer=SPEC}: keeps messages on disk until another observer, which may be away, has stored them.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from twisted.logger import Logger
from zope.interface import implementer

from webhookrx.errors import ConfigError
from webhookrx.filesystem import DiskSpace
from webhookrx.interfaces import (
    LARGEST_BATCH,
    Backlog,
    IBufferingObserver,
    IMessageObserver,
    IStoreObserver,
    IWaitingObserver,
    Wants,
)
from webhookrx.message.encoders import encode_stored
from webhookrx.promises import is_weaker, word_of
from webhookrx.quantities import format_size
from webhookrx.spool.directory import STILL_OURS, SpoolDirectory, SpoolFileSystem, open_to_others
from webhookrx.spool.drain_log import printable
from webhookrx.spool.drainer import Drainer, DrainThread
from webhookrx.spool.faults import error_text
from webhookrx.spool.queue import SpoolQueue
from webhookrx.spool.quota import Quota
from webhookrx.store_counts import StoreCounts, TakenCounts

if TYPE_CHECKING:
    from webhookrx.interfaces import Prepared

DEFAULT_SIZE: Final = 1024**3
REFUSE: Final = "refuse"
DROP_OLDEST: Final = "drop-oldest"

LAST_BATCH: Final = 5.0
"""Seconds that L{SpoolObserver.finish} waits for the last batch of the observer behind."""
LAST_STEP: Final = 0.2
"""Seconds that L{SpoolObserver.close} waits for the last batch and for closing the files."""

_log = Logger()


@implementer(IBufferingObserver)
class SpoolObserver:
    """
    Stores messages durably in files of its own, and delivers them to another observer, at least once and in order.

    @param spec: the spec string.
    @param directory: absolute path; it is made if its parent exists.
    @param inner: the observer behind.
    @param within: as for L{SpoolDirectory}.
    @param size: as for L{Quota}; so is C{age}.
    @param full: what happens at these limits: C{"refuse"} or C{"drop-oldest"}.
    @param require: the weakest promise of C{inner} with which it is opened.
    @param min_free: bytes that stay free on the file system; None for the default of L{DiskSpace}.
    @param space: replaces C{min_free}.
    @param make_thread: makes the thread that steps the drainer.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: nanoseconds since the epoch.
    @param jitter: a number from 0 to 1.
    """

    promise = "durable"
    #: One function for all spools, so that each message is encoded once.
    prepare = staticmethod(encode_stored)

    def __init__(
        self,
        spec: str,
        directory: str,
        inner: IMessageObserver,
        *,
        within: str | None = None,
        size: int = DEFAULT_SIZE,
        age: float | None = None,
        full: str = REFUSE,
        require: str = "queued",
        min_free: int | None = None,
        space: DiskSpace | None = None,
        file_system: SpoolFileSystem | None = None,
        make_thread: Callable[[Drainer], DrainThread] = DrainThread,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], int] = time.time_ns,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.spec = spec
        self.inner = inner
        self._require = require
        self._wants: Wants | None = inner.wants if IStoreObserver.providedBy(inner) else None
        self._path = directory
        self._queue = SpoolQueue(
            SpoolDirectory(directory, file_system, within),
            Quota(size, age, full == DROP_OLDEST),
            DiskSpace(directory, min_free) if space is None else space,
            clock,
            wall_clock,
            self._wants,
        )
        self._counts = StoreCounts()
        self._make_drainer = partial(Drainer, self._queue, inner, directory, jitter, clock, wall_clock, self._counts)
        self._make_thread = make_thread
        self._drainer: Drainer | None = None
        self._thread: DrainThread | None = None
        self._former: DrainThread | None = None

    def check(self) -> None:
        """
        @raise ConfigError: the promise of the observer behind is weaker than C{require}, or it wants too large batches.
        """
        if self._wants is not None and self._wants.bytes > LARGEST_BATCH:
            raise ConfigError(
                f"observer 'spool': {self.inner.spec} wants batches of {format_size(self._wants.bytes)}, each of which "
                f"would be in memory; {format_size(LARGEST_BATCH)} is the most"
            )
        if is_weaker(self.inner.promise, self._require):
            raise ConfigError(
                f"observer 'spool': require={self._require} is more than {self.inner.spec} can promise: its word means "
                f"{word_of(self.inner)}"
            )

    def open(self) -> None:
        """
        Lock the directory, open the observer behind, and start draining.

        @raise ConfigError: one of them can't be opened; or another receiver has locked the directory, or this one
            still, in a thread that L{close} has not waited for.
        """
        if self._former is not None and not self._former.join(0):
            raise ConfigError(f"observer spool: {self._path!r} can't be opened: {STILL_OURS}")
        self._former = None
        try:
            self._queue.open()
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error_text(error)
            raise ConfigError(f"observer spool: {self._path!r} can't be opened: {reason}") from error
        if problem := open_to_others(self._path):
            _log.warn("Spool {path} {problem}", path=self._path, problem=problem)
        try:
            self.inner.open()
        except BaseException:
            self._queue.close()
            raise
        try:
            # Once more: it is final only now.
            self.check()
        except BaseException:
            try:
                self.inner.close()
            finally:
                self._queue.close()
            raise
        self._drainer = self._make_drainer()
        thread = self._make_thread(self._drainer)
        try:
            thread.start()
        except BaseException:
            self._drainer.close()
            raise
        self._thread = thread

    def store(self, batch: Sequence[Prepared]) -> None:
        """
        Commit a batch.

        @raise webhookrx.errors.NotStored: none of it is stored.
        """
        self._queue.append(cast("Sequence[bytes]", batch))
        thread, drainer = self._thread, self._drainer
        if thread is not None and drainer is not None and drainer.is_idle and not self._queue.gathers():
            thread.wake()

    def reopen(self) -> None:
        """Reopen the observer behind before its next batch."""
        if self._thread is not None and self._drainer is not None:
            self._drainer.reopen()
            self._thread.wake()

    def hurry(self) -> None:
        """
        Stop draining after the current batch; in any thread, any number of times. What waits stays on disk, and what is
        stored from now on goes there, too.
        """
        thread = self._thread
        if thread is not None:
            thread.stop()
        if IWaitingObserver.providedBy(self.inner):
            try:
                self.inner.hurry()
            except BaseException as error:
                problem = printable(error_text(error))
                _log.error("Observer {spec} could not hurry: {problem}", spec=self.inner.spec, problem=problem)

    def finish(self, seconds: float = LAST_BATCH) -> None:
        """Stop draining, and wait for the current batch at most C{seconds} seconds."""
        if self._thread is not None:
            self.hurry()
            self._thread.wait(seconds)

    def close(self) -> None:
        """
        Stop. The draining thread closes the files and the observer behind after its last batch, for which this waits
        L{LAST_STEP} only.
        """
        if self._thread is None:
            return
        thread, self._thread = self._thread, None
        thread.release()
        self.hurry()
        if not thread.join(LAST_STEP):
            self._former = thread
            _log.warn(
                "Observer {spec} has not come back with its last batch; until it does, {path} is not opened again",
                spec=self.inner.spec,
                path=self._path,
            )

    def take_counts(self) -> TakenCounts:
        """Return what was counted since the last call."""
        taken = self._counts.take()
        return taken + self.inner.counts.take() if IStoreObserver.providedBy(self.inner) else taken

    def backlog(self) -> Backlog:
        """Return the backlog."""
        return self._queue.status()._replace(away=None if self._drainer is None else self._drainer.away)
