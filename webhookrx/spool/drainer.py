"""
Gives what waits to the observer, in order, until it has it.

L{Drainer.step} does one batch and says when to come back, so that it needs no thread and no clock to be tested;
L{DrainThread} is the thread.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from twisted.logger import Logger

from webhookrx.errors import Rejected
from webhookrx.message.stored import NotAMessage, decode_stored
from webhookrx.spool.backoff import Backoff
from webhookrx.spool.faults import text_of
from webhookrx.spool.spool_file import DeadLetter, Row

if TYPE_CHECKING:
    from webhookrx.interfaces import IMessageObserver, Prepared
    from webhookrx.spool.waiting_queue import WaitingQueue

POLL: Final = 1.0
"""Seconds after which a queue that is empty is looked at again: a person may have put something back."""
DISK_PAUSE: Final = 0.5
"""Seconds between two tries when the queue itself can't be read or written."""
LOG_PAUSE: Final = 10.0
"""Seconds between two log lines that say that the observer is away, or that the disk fails."""

#: What became of a message: None when the observer has it.
_Outcomes = Sequence[BaseException | None]

_log = Logger()


class Drainer:
    """
    Takes batches from a queue to an observer. All of it belongs to one thread, but for C{away} and C{is_idle}.

    @param queue: open.
    @param inner: open.
    @param jitter: a number from 0 to 1.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: nanoseconds since the epoch.
    @ivar away: why the observer does not take messages; None when it does, as far as is known.
    @ivar is_idle: nothing waited when it was last looked at.
    """

    def __init__(
        self,
        queue: WaitingQueue,
        inner: IMessageObserver,
        jitter: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.away: str | None = None
        self.is_idle = False
        self._queue = queue
        self._inner = inner
        self._backoff = Backoff(jitter)
        self._clock = clock
        self._wall_clock = wall_clock
        self._not_before = 0.0
        self._unsettled: tuple[list[int], list[DeadLetter]] = ([], [])
        self._said_away = False
        self._next_line = 0.0
        self._next_disk_line = 0.0
        self._reopen = False

    def reopen(self) -> None:
        """Let the observer open anew before its next batch, from any thread."""
        self._reopen = True

    def step(self) -> float:
        """
        Do one batch, if there is one and it is time.

        @return: seconds until there is something to do, if nothing happens before: 0 when there is at once.
        """
        if self._reopen:
            self._reopen = False
            self._reopen_inner()
        pause = self._not_before - self._clock()
        if pause > 0:
            return pause
        try:
            return self._do_batch()
        except (sqlite3.Error, OSError) as error:
            if self._clock() >= self._next_disk_line:
                self._next_disk_line = self._clock() + LOG_PAUSE
                _log.error("Spool of {spec}: {problem}", spec=self._inner.spec, problem=text_of(error))
            return self._pause(DISK_PAUSE)

    def _do_batch(self) -> float:
        # What could not be noted last time goes before all else, or the observer would get it again and again.
        self._settle()
        self._queue.refresh()
        # Before it looks, so that what is appended meanwhile wakes it.
        self.is_idle = True
        rows = self._queue.next_batch()
        if not rows:
            return 0.0 if self._queue.tidy() else POLL
        self.is_idle = False
        done, dead, failure = self._offer(rows)
        self._unsettled = (done, dead)
        self._settle()
        if failure is None:
            self._is_back()
            return 0.0
        if done:
            self._backoff.succeeded()
        self._is_away(failure)
        return self._pause(self._backoff.failed(getattr(failure, "retry_after", None)))

    def _settle(self) -> None:
        done, dead = self._unsettled
        if done or dead:
            self._queue.settle(done, dead)
            self._unsettled = ([], [])

    def _pause(self, seconds: float) -> float:
        self._not_before = self._clock() + seconds
        return seconds

    # -- the observer --------------------------------------------------------------------------------------------

    def _offer(self, rows: Sequence[Row]) -> tuple[list[int], list[DeadLetter], BaseException | None]:
        """Offer a batch; return what the observer has, what is dead, and why something is neither."""
        dead: list[DeadLetter] = []
        whole: list[Row] = []
        prepared: list[Prepared] = []
        for row in rows:
            item = self._prepare(row)
            if isinstance(item, DeadLetter):
                dead.append(item)
            else:
                whole.append(row)
                prepared.append(item)
        done: list[int] = []
        failure: BaseException | None = None
        for row, outcome in zip(whole, self._store(prepared), strict=True):
            if outcome is None:
                done.append(row.id)
            elif isinstance(outcome, Rejected):
                dead.append(self._letter(row, str(outcome) or type(outcome).__name__))
            elif failure is None:
                failure = outcome
        return done, dead, failure

    def _prepare(self, row: Row) -> Prepared | DeadLetter:
        if not row.is_whole:
            return self._letter(row, "damaged on disk: its checksum is wrong")
        try:
            return self._inner.prepare(decode_stored(row.data))
        except NotAMessage as error:
            return self._letter(row, str(error))
        except Exception as error:
            # It depends on the message alone, so it would fail the same way every time.
            return self._letter(row, f"it can't be encoded: {text_of(error)}")

    def _store(self, prepared: list[Prepared]) -> _Outcomes:
        if not prepared:
            return []
        count = len(prepared)
        try:
            outcomes = self._inner.store(prepared)
        except BaseException as error:
            # Even SystemExit: a thread that ends here leaves every later message waiting for ever.
            return [error] * count
        if outcomes is None:
            return [None] * count
        if len(outcomes) != count:
            return [RuntimeError(f"store() returned {len(outcomes)} entries for {count} messages")] * count
        return outcomes

    def _letter(self, row: Row, reason: str) -> DeadLetter:
        return DeadLetter(row.id, row.received or 0, row.crc, row.data, reason, self._inner.spec, self._wall_clock())

    def _reopen_inner(self) -> None:
        try:
            self._inner.reopen()
        except Exception as error:
            _log.error("Observer {spec} could not reopen: {problem}", spec=self._inner.spec, problem=text_of(error))

    # -- what people see -----------------------------------------------------------------------------------------

    def _is_away(self, failure: BaseException) -> None:
        self.away = text_of(failure)
        now = self._clock()
        if not self._said_away and now >= self._next_line:
            self._said_away = True
            self._next_line = now + LOG_PAUSE
            self._say("Observer {spec} does not take messages: {problem}; {waiting} wait in the spool")

    def _is_back(self) -> None:
        self._backoff.succeeded()
        if self._said_away:
            self._said_away = False
            self._say("Observer {spec} takes messages again; {waiting} wait in the spool")
        self.away = None

    def _say(self, sentence: str) -> None:
        _log.warn(sentence, spec=self._inner.spec, problem=self.away, waiting=self._queue.standing().messages)


class DrainThread:
    """
    A thread that steps a drainer.

    @param drainer: nobody else steps it.
    @param name: the thread's name, for debuggers and C{top -H}.
    """

    def __init__(self, drainer: Drainer, name: str = "webhookrx-spool") -> None:
        self._drainer = drainer
        self._wake = Event()
        self._stopping = False
        # A daemon: an observer that hangs must not keep a process alive past its drain limit.
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; after the process has gone to the background."""
        self._thread.start()

    def wake(self) -> None:
        """Let it look now whether there is something to do, from any thread."""
        self._wake.set()

    def stop(self) -> None:
        """Let it end after the batch that the observer has, from any thread."""
        self._stopping = True
        self._wake.set()

    def join(self, seconds: float) -> bool:
        """Wait for its end after L{stop}, and tell whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping:
            try:
                pause = self._drainer.step()
            except Exception:
                _log.failure("The drainer of a spool failed")
                pause = DISK_PAUSE
            if pause:
                # Event.wait goes by the monotonic clock.
                self._wake.wait(pause)
                self._wake.clear()
