"""
Long work of the reactor's in time slices: between two of them, everything else that waits for the reactor has its turn.

The work is plain code that calls L{webhookrx.yield_point.yield_point} often, however deep in its calls. To stop there
and go on later, it has a stack of its own: that of a thread which runs only while the reactor thread waits for it. So
the two never run at the same time, and nothing needs a lock. A thread that runs beside the reactor would do worse: each
system call of the reactor gives up the interpreter's lock, and getting it back takes five milliseconds a time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any, Final

from twisted.logger import Logger
from twisted.python.failure import Failure

from webhookrx.yield_point import pause_by

SLICE: Final = 0.005
"""Seconds of a time slice; there is one a turn of the reactor, however much work there is."""

_log = Logger()


class TimeSlices:
    """
    Does work in the order in which it came, one after the other.

    @param later: calls what it is given in the reactor thread, once others that wait for the reactor had their turn.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(
        self, later: Callable[[Callable[[], None]], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._later = later
        self._clock = clock
        self._waiting: deque[tuple[Callable[[], Any], Callable[[Any], None]]] = deque()
        self._outcome: Any = None
        self._is_working = False
        self._until = 0.0
        # Each is held by who has to wait. The thread does not survive a fork, so it begins with the first work.
        self._thread: Thread | None = None
        self._slice_begins = Lock()
        self._slice_ends = Lock()

    def run(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """
        Do C{work} in time slices; then call C{done} in the reactor thread with what it returned, or with the
        L{Failure} if it raised. Never before this returns.
        """
        self._waiting.append((work, done))
        if len(self._waiting) == 1:
            self._later(self._turn)

    def _turn(self) -> None:
        """Let the work go on for one slice."""
        self._until = self._clock() + SLICE
        while self._waiting and self._clock() < self._until:
            self._go_on()
            if self._is_working:
                break
            _, done = self._waiting[0]
            outcome, self._outcome = self._outcome, None
            try:
                done(outcome)
            except Exception:
                _log.failure("What was done in time slices could not be dealt with")
            finally:
                self._waiting.popleft()
        if self._waiting:
            self._later(self._turn)

    def _go_on(self) -> None:
        """Wait while the thread works, until its slice or its work has ended."""
        if self._thread is None:
            self._slice_begins.acquire()
            self._slice_ends.acquire()
            # A daemon, so that a process can end in the middle of it.
            self._thread = Thread(target=self._loop, name="time slices", daemon=True)
            self._thread.start()
        self._is_working = True
        self._slice_begins.release()
        self._slice_ends.acquire()

    # -- in the thread -------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        pause_by(self._pause)
        while True:
            self._slice_begins.acquire()
            work = self._waiting[0][0]
            try:
                self._outcome = work()
            except BaseException:
                # Even SystemExit: without this thread, no other work would ever be done.
                self._outcome = Failure()
            del work
            self._is_working = False
            self._slice_ends.release()

    def _pause(self) -> None:
        if self._clock() >= self._until:
            self._slice_ends.release()
            self._slice_begins.acquire()
