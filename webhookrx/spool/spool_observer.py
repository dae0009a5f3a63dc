"""
C{spool:DIR:observer=SPEC}: keeps messages on disk until an observer that can be away has them.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from twisted.logger import Logger
from zope.interface import implementer

from webhookrx.disk_space import DiskSpace
from webhookrx.errors import ConfigError
from webhookrx.interfaces import Backlog, IBufferingObserver, IMessageObserver, IWaitingObserver
from webhookrx.message.stored import encode_stored
from webhookrx.quantities import parse_duration, parse_size
from webhookrx.spool.drainer import Drainer, DrainThread
from webhookrx.spool.faults import text_of
from webhookrx.spool.room import Room
from webhookrx.spool.spool_directory import FileSystem, SpoolDirectory
from webhookrx.spool.waiting_queue import WaitingQueue

if TYPE_CHECKING:
    from webhookrx.config.settings import Observer
    from webhookrx.interfaces import Prepared

SPOOL_OPTIONS: Final = ("age", "full", "min_free", "size")
DEFAULT_SIZE: Final = 1024**3
REFUSE: Final = "refuse"
DROP_OLDEST: Final = "drop-oldest"

LAST_BATCH: Final = 5.0
"""Seconds that finishing waits for the observer behind to come back with its last batch."""
LAST_STEP: Final = 0.2
"""Seconds that closing waits for what has no batch any more. The reactor waits with it."""

_log = Logger()


@implementer(IBufferingObserver)
class SpoolObserver:
    """
    Says that a message is safe once it is committed and synced to its own disk, and gives it to another observer, at
    least once and in order, when that one takes it.

    @param spec: the spec string.
    @param directory: absolute path; it is made if the one around it is there.
    @param inner: the observer that may be away.
    @param size: bytes that may wait, see L{Room}.
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
        size: int = DEFAULT_SIZE,
        age: float | None = None,
        full: str = REFUSE,
        min_free: int | None = None,
        space: DiskSpace | None = None,
        file_system: FileSystem | None = None,
        make_thread: Callable[[Drainer], DrainThread] = DrainThread,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], int] = time.time_ns,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.spec = spec
        self._inner = inner
        self._path = directory
        self._queue = WaitingQueue(
            SpoolDirectory(directory, file_system),
            Room(size, age, full == DROP_OLDEST),
            DiskSpace(directory, min_free) if space is None else space,
            clock,
            wall_clock,
        )
        self._drainer = Drainer(self._queue, inner, jitter, clock, wall_clock)
        self._make_thread = make_thread
        self._thread: DrainThread | None = None

    def open(self) -> None:
        """
        Take the directory, open the observer behind, and begin to drain.

        @raise ConfigError: one of them can't be opened, or another receiver has the directory.
        """
        try:
            self._queue.open()
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or text_of(error)
            raise ConfigError(f"observer spool: {self._path!r} can't be opened: {reason}") from error
        try:
            self._inner.open()
        except BaseException:
            self._queue.close()
            raise
        self._thread = self._make_thread(self._drainer)
        self._thread.start()

    def store(self, batch: Sequence[Prepared]) -> None:
        """
        Commit a batch.

        @raise webhookrx.errors.NotStored: none of it is safe.
        """
        self._queue.append(cast("Sequence[bytes]", batch))
        if self._drainer.is_idle and self._thread is not None:
            self._thread.wake()

    def reopen(self) -> None:
        """Let the observer behind open anew, before its next batch."""
        self._drainer.reopen()
        if self._thread is not None:
            self._thread.wake()

    def hurry(self) -> None:
        """Drain no more after the batch that the observer behind has now. What waits stays on disk."""
        if self._thread is not None:
            self._thread.stop()
        if IWaitingObserver.providedBy(self._inner):
            self._inner.hurry()

    def finish(self) -> None:
        """Wait for the batch that the observer behind has, L{LAST_BATCH} seconds at most."""
        if self._thread is not None:
            self.hurry()
            self._thread.join(LAST_BATCH)

    def close(self) -> None:
        """Let go of all of it."""
        if self._thread is None:
            return
        self.hurry()
        thread, self._thread = self._thread, None
        if thread.join(LAST_STEP):
            self._inner.close()
            self._queue.close()
        else:
            # It still uses both. What was committed is safe without being closed; the process ends now.
            _log.warn("Observer {spec} did not come back; what it had is delivered again", spec=self._inner.spec)

    def backlog(self) -> Backlog:
        """Tell what waits."""
        standing = self._queue.standing()
        return Backlog(
            messages=standing.messages,
            bytes=standing.bytes,
            oldest=standing.oldest,
            dead=standing.dead,
            dropped=standing.dropped,
            away=self._drainer.away,
            full=standing.full,
            damaged=standing.damaged,
        )


def build_spool(observer: Observer, inner: IMessageObserver) -> SpoolObserver:
    """
    Make the observer of C{spool:DIR[:size=SIZE:age=TIME:full=refuse|drop-oldest:min_free=SIZE]:observer=SPEC}.

    @param observer: the parsed spec string; its directory is absolute.
    @param inner: the observer that its C{observer=} names.
    @raise ConfigError: an argument or option is wrong.
    """
    options = dict(observer.options)
    for key in options:
        if key not in SPOOL_OPTIONS:
            raise ConfigError(
                f"observer 'spool': unknown option {key!r}; its options are {', '.join(SPOOL_OPTIONS)} and observer"
            )
    if len(observer.args) != 1 or not observer.args[0]:
        raise ConfigError(f"observer 'spool' takes one directory, spool:DIR:observer=SPEC, but got {observer.text!r}")
    full = options.get("full", REFUSE)
    if full not in (REFUSE, DROP_OLDEST):
        raise ConfigError(f"observer 'spool': full={full} is neither {REFUSE} nor {DROP_OLDEST}")
    size = _number(options, "size", parse_size)
    age = _number(options, "age", parse_duration)
    min_free = _number(options, "min_free", parse_size)
    for key, value in (("size", size), ("age", age)):
        if value == 0:
            raise ConfigError(f"observer 'spool': {key}={options[key]} would keep nothing; it must be more than zero")
    return SpoolObserver(
        observer.text,
        observer.args[0],
        inner,
        size=DEFAULT_SIZE if size is None else int(size),
        age=age,
        full=full,
        min_free=None if min_free is None else int(min_free),
    )


def _number(options: Mapping[str, str], key: str, parse: Callable[[str], float]) -> float | None:
    try:
        return parse(options[key]) if key in options else None
    except ValueError as error:
        raise ConfigError(f"observer 'spool': {key}={error}") from None
