"""
Delivers waiting messages to the observer behind a spool, in order, and retries with backoff.

L{Drainer.step} delivers one batch and returns when to call it again, so that tests need no thread and no clock;
L{DrainThread} is the thread.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, cast

from twisted.logger import Logger

from webhookrx.backoff import Backoff
from webhookrx.errors import Rejected, Unavailable
from webhookrx.message.encoders import NotAMessage, decode_stored
from webhookrx.spool.drain_log import NOT_ENCODED, DrainLog, printable
from webhookrx.spool.faults import error_text
from webhookrx.spool.rows import DeadLetter, Row
from webhookrx.store_counts import StoreCounts

if TYPE_CHECKING:
    from webhookrx.interfaces import IMessageObserver, Prepared
    from webhookrx.spool.queue import SpoolQueue

FIRST_PAUSE: Final = 0.1
"""The bound of the first pause after a failure of the observer, in seconds."""
LONGEST_PAUSE: Final = 30.0
"""The largest bound of such a pause, in seconds."""
POLL: Final = 1.0
"""Seconds between two reads of an empty queue: a command may have put dead letters back."""
DISK_PAUSE: Final = 0.5
"""Seconds between two tries while the queue itself can't be read or written."""
PROBLEM_PAUSE: Final = 10.0
"""Seconds between two log lines about failures of the spool itself."""

#: For each message: None when the observer has stored it, else why not.
_Outcomes = Sequence[BaseException | None]

_log = Logger()


class Drainer:
    """
    Moves batches from a queue to an observer. Use it in one thread, but for C{away}, C{is_idle} and L{reopen}.

    @param queue: open; L{close} closes it.
    @param inner: open; L{close} closes it.
    @param path: directory of the queue, for log lines.
    @param jitter: a number from 0 to 1.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: nanoseconds since the epoch.
    @param counts: those of messages that the observer has refused for good.
    @ivar is_idle: nothing waited at the last read.
    """

    def __init__(
        self,
        queue: SpoolQueue,
        inner: IMessageObserver,
        path: str,
        jitter: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], int] = time.time_ns,
        counts: StoreCounts | None = None,
    ) -> None:
        self.is_idle = False
        self._counts = StoreCounts() if counts is None else counts
        self._queue = queue
        self._inner = inner
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, jitter)
        self._clock = clock
        self._wall_clock = wall_clock
        self._drain_log = DrainLog(path, inner.spec, queue.status, clock, wall_clock)
        self._not_before = 0.0
        self._next_vacuum = 0.0
        self._unacked: deque[tuple[list[int], list[DeadLetter]]] = deque()
        self._away: str | None = None
        self._problem: str | None = None
        self._next_problem_line = 0.0
        self._reopen = False

    @property
    def away(self) -> str | None:
        """Why the observer gets no messages; None while it does, or before the first failure."""
        return self._problem or self._away

    def reopen(self) -> None:
        """Reopen the observer before its next batch; call it in any thread."""
        self._reopen = True

    def step(self) -> float:
        """
        Deliver one batch, if one waits and no pause lasts. Never raises.

        @return: seconds until the next step is due, unless L{DrainThread.wake} comes first; 0 for at once.
        """
        try:
            return self._step()
        except BaseException as error:
            # Even SystemExit: a thread that ends here leaves every later message waiting for ever.
            return self._note_failure(error)

    def close(self) -> None:
        """Close the observer and the queue, after the last step."""
        try:
            self._inner.close()
        except BaseException as error:
            self._could_not("close", error)
        finally:
            try:
                self._drain_log.end()
            finally:
                self._queue.close()

    def _step(self) -> float:
        if self._reopen:
            self._reopen = False
            self._reopen_inner()
        # During a pause, too: metrics show the totals, and a command or the disk may have made room.
        self._queue.refresh()
        self._drain_log.tick()
        pause = self._not_before - self._clock()
        if pause > 0:
            return min(pause, POLL)
        pause = self._deliver_batch()
        self._problem = None
        return pause

    def _deliver_batch(self) -> float:
        # First what could not be removed last time, or the observer would get it again and again.
        self._ack()
        # Before the read, so that an append meanwhile wakes this thread.
        self.is_idle = True
        rows = self._queue.next_batch()
        if not rows:
            pause = self._vacuum()
            return min(pause, self._queue.gathers() or pause)
        self.is_idle = False
        letters, failures = self._offer(rows)
        for piece in self._queue.batches.in_pieces(rows):
            done = [row.id for row in piece]
            if letters or failures:
                done = [number for number in done if number not in letters and number not in failures]
            self._unacked.append((done, [letters[row.id] for row in piece if row.id in letters]))
        self._ack()
        failure = next(iter(failures.values()), None)
        if len(failures) + len(letters) < len(rows) or failure is None:
            self._backoff.succeeded()
        if failure is None:
            self._away = None
            self._drain_log.came_back()
            return 0.0
        self._away = error_text(failure)
        self._drain_log.went_away(self._away)
        pause = self._backoff.failed(failure.retry_after if isinstance(failure, Unavailable) else None)
        self._not_before = self._clock() + pause
        return pause

    def _vacuum(self) -> float:
        """
        Return space for one turn, unless the last turn ended less long ago than it took: storing gets at least half of
        the disk's time.
        """
        began = self._clock()
        if began < self._next_vacuum:
            return self._next_vacuum - began
        more = self._queue.vacuum()
        took = self._clock() - began
        self._next_vacuum = began + 2 * took
        return took if more else POLL

    def _ack(self) -> None:
        while self._unacked:
            done, dead = self._unacked[0]
            if done or dead:
                self._queue.ack(done, dead)
            self._unacked.popleft()
            self._drain_log.refused(dead)

    def _note_failure(self, error: BaseException) -> float:
        """Note a failure of the spool itself."""
        self._problem = f"the spool can't be drained: {error_text(error)}"
        now = self._clock()
        # It does not shorten a pause that the observer asked for.
        self._not_before = max(self._not_before, now + DISK_PAUSE)
        if now >= self._next_problem_line:
            self._next_problem_line = now + PROBLEM_PAUSE
            if isinstance(error, (sqlite3.Error, OSError)):
                _log.error("Spool of {spec}: {problem}", spec=self._inner.spec, problem=error_text(error))
            else:
                _log.failure("Spool of {spec} failed", spec=self._inner.spec)
        return DISK_PAUSE

    # -- the observer --------------------------------------------------------------------------------------------

    def _offer(self, rows: Sequence[Row]) -> tuple[dict[int, DeadLetter], dict[int, BaseException]]:
        """Offer a batch; return the dead letters by number, and why a message is neither one nor stored."""
        letters: dict[int, DeadLetter] = {}
        failures: dict[int, BaseException] = {}
        whole: list[Row] = []
        prepared: list[Prepared] = []
        for row in rows:
            item = self._prepare(row)
            if isinstance(item, DeadLetter):
                letters[row.id] = item
            else:
                whole.append(row)
                prepared.append(item)
        for row, outcome in zip(whole, self._store(prepared), strict=True):
            if isinstance(outcome, Rejected):
                letters[row.id] = self._letter(row, error_text(outcome))
                self._counts.refused(1)
            elif outcome is not None:
                failures[row.id] = outcome
        return letters, failures

    def _prepare(self, row: Row) -> Prepared | DeadLetter:
        if not row.is_whole:
            return self._letter(row, "damaged on disk: its checksum is wrong")
        try:
            return self._inner.prepare(decode_stored(row.data))
        except NotAMessage as error:
            return self._letter(row, str(error))
        except MemoryError:
            raise
        except BaseException as error:
            # It depends on the message alone, so every retry would fail the same way.
            return self._letter(row, f"{NOT_ENCODED}: {error_text(error)}")

    def _store(self, prepared: list[Prepared]) -> _Outcomes:
        if not prepared:
            return []
        count = len(prepared)
        try:
            outcomes = self._inner.store(prepared)
        except BaseException as error:
            return [error] * count
        return [None] * count if outcomes is None else outcomes_of(count, outcomes)

    def _letter(self, row: Row, reason: str) -> DeadLetter:
        return DeadLetter(row.id, row.received or 0, row.crc, row.data, reason, self._inner.spec, self._wall_clock())

    def _reopen_inner(self) -> None:
        try:
            self._inner.reopen()
        except BaseException as error:
            self._could_not("reopen", error)

    def _could_not(self, verb: str, error: BaseException) -> None:
        problem = printable(error_text(error))
        _log.error("Observer {spec} could not {verb}: {problem}", spec=self._inner.spec, verb=verb, problem=problem)


def outcomes_of(count: int, returned: object) -> _Outcomes:
    """
    Read what C{store} returned, other than None, as one entry a message: None, or why it is not stored.

    Where an observer breaks its contract, none of the messages count as stored.
    """
    try:
        outcomes = list(islice(cast("Iterable[object]", returned), count + 1))
    except BaseException:
        return [RuntimeError(f"store() returned {type(returned).__name__}, not None or a list")] * count
    if len(outcomes) != count:
        entries = f"{len(outcomes)} entries" if len(outcomes) < count else "more entries than messages,"
        return [RuntimeError(f"store() returned {entries} for {count} messages")] * count
    return [
        outcome if outcome is None or isinstance(outcome, BaseException) else RuntimeError(error_text(outcome))
        for outcome in outcomes
    ]


class DrainThread:
    """
    A thread that steps a drainer until it is stopped, and closes it after L{release}.

    The thread closes the drainer because C{store} of the observer may return later than anybody waits for it.

    @param drainer: only this thread steps or closes it.
    @param name: the thread's name, for debuggers and C{top -H}.
    """

    def __init__(self, drainer: Drainer, name: str = "webhookrx-spool") -> None:
        self._drainer = drainer
        self._wake = Event()
        self._stopping = False
        self._stopped = Event()
        self._released = Event()
        # A daemon: an observer that hangs must not keep a process alive past its drain limit.
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """
        Start; call it after the process has gone to the background.

        @raise RuntimeError: the system has no thread left.
        """
        self._thread.start()

    def wake(self) -> None:
        """End its pause; call it in any thread."""
        self._wake.set()

    def stop(self) -> None:
        """Stop draining after the current batch; call it in any thread."""
        self._stopping = True
        self._wake.set()

    def wait(self, seconds: float) -> bool:
        """Wait for the current batch after L{stop}, and tell whether draining has ended."""
        return self._stopped.wait(seconds)

    def release(self) -> None:
        """Stop it, and let it close the drainer: nothing is appended any more."""
        self.stop()
        self._released.set()

    def join(self, seconds: float) -> bool:
        """Wait for its end after L{release}, and tell whether all is closed."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stopping:
                if pause := self._step():
                    # Event.wait goes by the monotonic clock.
                    self._wake.wait(pause)
                    self._wake.clear()
            self._stopped.set()
            self._released.wait()
        finally:
            self._drainer.close()

    def _step(self) -> float:
        try:
            return self._drainer.step()
        except BaseException:
            # Too little memory even for a log line, or a log that fails. The next step may succeed.
            return DISK_PAUSE
