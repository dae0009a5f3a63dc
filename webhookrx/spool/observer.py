"""
C{spool:DIR:observer=SPEC}: keeps messages on disk until an observer that can be away has them.
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
from webhookrx.interfaces import Backlog, IBufferingObserver, IMessageObserver, IWaitingObserver
from webhookrx.message.encoders import encode_stored
from webhookrx.spool.directory import STILL_OURS, SpoolDirectory, SpoolFileSystem
from webhookrx.spool.drain_log import shown
from webhookrx.spool.drainer import Drainer, DrainThread
from webhookrx.spool.faults import error_text
from webhookrx.spool.queue import SpoolQueue
from webhookrx.spool.quota import Quota
from webhookrx.spool.untrusted_files import open_to_others

if TYPE_CHECKING:
    from webhookrx.interfaces import Prepared

DEFAULT_SIZE: Final = 1024**3
REFUSE: Final = "refuse"
DROP_OLDEST: Final = "drop-oldest"

LAST_BATCH: Final = 5.0
"""Seconds that finishing waits for the observer behind to come back with its last batch."""
LAST_STEP: Final = 0.2
"""Seconds that closing waits for what is usually done by then: the last batch, and closing the files."""

_log = Logger()


@implementer(IBufferingObserver)
class SpoolObserver:
    """
    Says that a message is safe once it is committed and synced to its own disk, and gives it to another observer, at
    least once and in order, when that one takes it.

    @param spec: the spec string.
    @param directory: absolute path; it is made if the one around it is there.
    @param inner: the observer that may be away.
    @param within: as for L{SpoolDirectory}.
    @param size: bytes that may wait, see L{Quota}.
    @param age: seconds that the oldest may wait; None for ever.
    @param full: what happens then: C{"refuse"} or C{"drop-oldest"}.
    @param min_free: bytes that stay free on the file system; None for the default of L{DiskSpace}.
    @param space: in place of what C{directory} and C{min_free} say.
    @param make_thread: makes what steps the drainer.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: nanoseconds since the epoch.
    @param jitter: a number from 0 to 1.
    """

    promise = "durable"
    #: One function for all spools, so that its work is done once for a message.
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
        min_free: int | None = None,
        space: DiskSpace | None = None,
        file_system: SpoolFileSystem | None = None,
        make_thread: Callable[[Drainer], DrainThread] = DrainThread,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], int] = time.time_ns,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.spec = spec
        self._inner = inner
        self._path = directory
        self._queue = SpoolQueue(
            SpoolDirectory(directory, file_system, within),
            Quota(size, age, full == DROP_OLDEST),
            DiskSpace(directory, min_free) if space is None else space,
            clock,
            wall_clock,
        )
        self._make_drainer = partial(Drainer, self._queue, inner, directory, jitter, clock, wall_clock)
        self._make_thread = make_thread
        self._drainer: Drainer | None = None
        self._thread: DrainThread | None = None
        self._former: DrainThread | None = None

    def open(self) -> None:
        """
        Take the directory, open the observer behind, and begin to drain.

        @raise ConfigError: one of them can't be opened; or another receiver has the directory, or this one still, in a
            thread that L{close} has not waited for.
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
            self._inner.open()
        except BaseException:
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

        @raise webhookrx.errors.NotStored: none of it is safe.
        """
        self._queue.append(cast("Sequence[bytes]", batch))
        if self._thread is not None and self._drainer is not None and self._drainer.is_idle:
            self._thread.wake()

    def reopen(self) -> None:
        """Let the observer behind open anew, before its next batch."""
        if self._thread is not None and self._drainer is not None:
            self._drainer.reopen()
            self._thread.wake()

    def hurry(self) -> None:
        """
        Drain no more after the batch that the observer behind has now; from any thread, any number of times. What
        waits stays on disk, and what is stored from now on goes there, too.
        """
        thread = self._thread
        if thread is not None:
            thread.stop()
        if IWaitingObserver.providedBy(self._inner):
            try:
                self._inner.hurry()
            except BaseException as error:
                problem = shown(error_text(error))
                _log.error("Observer {spec} could not hurry: {problem}", spec=self._inner.spec, problem=problem)

    def finish(self, patience: float = LAST_BATCH) -> None:
        """Wait for the batch that the observer behind has, C{patience} seconds at most."""
        if self._thread is not None:
            self.hurry()
            self._thread.wait(patience)

    def close(self) -> None:
        """
        Let go of all of it. The thread that drains closes what it uses, as soon as the observer behind comes back with
        its last batch; that is waited for a moment only.
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
                spec=self._inner.spec,
                path=self._path,
            )

    def backlog(self) -> Backlog:
        """Tell what waits."""
        return self._queue.status()._replace(away=None if self._drainer is None else self._drainer.away)
