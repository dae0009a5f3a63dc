"""
Long work in the reactor thread, in time slices: between two of them, everything else in the reactor has its turn.

The work is plain code that calls L{webhookrx.yield_point.yield_point} often, however deep in its calls. To stop there
and go on later, it has a stack of its own: that of a thread which runs only while the reactor thread waits for it. So
the two never run Python at the same time, and nothing needs a lock. A thread that did would do worse: each system call
of the reactor gives up the interpreter's lock, and getting it back takes five milliseconds a time. Only a long call of
the compiled path, which needs no lock, works beside the reactor (L{webhookrx.yield_point.run_unlocked}).
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any, Final, NamedTuple, TypeVar

from twisted.logger import Logger
from twisted.python.failure import Failure

from webhookrx.yield_point import pause_by

SLICE: Final = 0.005
"""Seconds of a time slice; there is one a turn of the reactor, however much work there is."""

SHORT: Final = 1024 * 1024
"""Bytes of work that does not wait behind longer work."""

LONGEST_WAIT: Final = 2.0
"""Seconds that work may wait to begin; while it waits longer, no more is taken."""

_log = Logger()

_Result = TypeVar("_Result")


class _Job(NamedTuple):
    """
    A piece of work.

    @ivar since: when it was queued, on the monotonic clock.
    """

    work: Callable[[], Any]
    done: Callable[[Any], None]
    is_wanted: Callable[[], bool]
    since: float


class TimeSlices:
    """
    Does work from two queues, one for short and one for long work, first in, first out. They take turns, slice by
    slice.

    @param later: calls a function in the next turn of the reactor, from whatever thread.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(
        self, later: Callable[[Callable[[], None]], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._later = later
        self._clock = clock
        self._short, self._long = (_WorkQueue(clock, lambda: later(self._come_again)) for _ in range(2))
        self._next = self._short
        self._is_due = False  # whether a turn is to come

    def has_room(self, size: int) -> bool:
        """Tell whether work on so many bytes would begin soon."""
        waiting = self._queue(size).waiting
        return not waiting or self._clock() - waiting[0].since < LONGEST_WAIT

    def run(
        self, work: Callable[[], Any], done: Callable[[Any], None], size: int, is_wanted: Callable[[], bool]
    ) -> None:
        """
        Do C{work} in time slices; then call C{done} in the reactor thread with what it returned, or with the
        L{Failure} if it raised. Never before this returns.

        @param size: bytes to work on.
        @param is_wanted: called before the work begins; if it returns False, C{done} is called with None instead.
        """
        self._queue(size).waiting.append(_Job(work, done, is_wanted, self._clock()))
        self._come_again()

    def _queue(self, size: int) -> _WorkQueue:
        return self._short if size <= SHORT else self._long

    def _come_again(self) -> None:
        if not self._is_due and (self._short.can_go_on or self._long.can_go_on):
            self._is_due = True
            self._later(self._turn)

    def _turn(self) -> None:
        """Resume one queue for one slice."""
        self._is_due = False
        queue = self._next if self._next.can_go_on else self._other(self._next)
        self._next = self._other(queue)
        try:
            queue.resume(self._clock() + SLICE)
        finally:
            self._come_again()

    def _other(self, queue: _WorkQueue) -> _WorkQueue:
        return self._long if queue is self._short else self._short


class _WorkQueue:
    """
    A queue of work, and the thread that does it.

    @param is_back: called in that thread once L{can_go_on} is true again.
    @ivar waiting: work that has not begun.
    """

    def __init__(self, clock: Callable[[], float], is_back: Callable[[], object]) -> None:
        self.waiting: deque[_Job] = deque()
        self._clock = clock
        self._is_back = is_back
        self._is_aside = False  # whether its thread works beside the reactor
        self._job: _Job | None = None
        self._outcome: Any = None
        self._is_working = False
        self._until = 0.0
        # The thread does not survive a fork, so it starts with the first work. The side that waits holds a lock.
        self._thread: Thread | None = None
        self._slice_begins = Lock()
        self._slice_ends = Lock()

    @property
    def has_work(self) -> bool:
        """Whether work is under way or waits."""
        return self._job is not None or bool(self.waiting)

    @property
    def can_go_on(self) -> bool:
        """Whether there is something to do in a time slice."""
        return self.has_work and not self._is_aside

    def resume(self, until: float) -> None:
        """Work until then, or until the queue is empty."""
        self._until = until
        while self.has_work:
            if self._job is None:
                self._job = self.waiting.popleft()
                if not self._job.is_wanted():
                    self._end(None)
                    continue
            self._work()
            if self._is_working:
                return
            outcome, self._outcome = self._outcome, None
            self._end(outcome)
            if self._clock() >= until:
                return

    def _end(self, outcome: Any) -> None:
        job, self._job = self._job, None
        assert job is not None
        try:
            job.done(outcome)
        except Exception:
            _log.failure("The outcome of work in time slices could not be used")

    def _work(self) -> None:
        """Wait while the thread works, until its slice or its work has ended."""
        try:
            self._start_thread()
        except RuntimeError:
            self._outcome = Failure()  # no thread can be had now
            return
        # A collection looks at all that the work has made so far, again and again.
        collects = gc.isenabled()
        gc.disable()
        self._is_working = True
        self._slice_begins.release()
        self._slice_ends.acquire()
        if collects:
            gc.enable()

    def _start_thread(self) -> None:
        if self._thread is None:
            # A daemon, so that a process can end in the middle of it.
            thread = Thread(target=self._loop, name="time slices", daemon=True)
            self._slice_begins.acquire()
            self._slice_ends.acquire()
            try:
                thread.start()
            except RuntimeError:
                self._slice_begins.release()
                self._slice_ends.release()
                raise
            self._thread = thread

    # -- in the thread -------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        pause_by(self._pause, self._aside)
        while True:
            self._slice_begins.acquire()
            assert self._job is not None
            try:
                self._outcome = self._job.work()
            except BaseException:
                # Even SystemExit: without this thread, no other work would ever be done.
                self._outcome = Failure()
            self._is_working = False
            self._slice_ends.release()

    def _pause(self) -> None:
        if self._clock() >= self._until:
            self._slice_ends.release()
            self._slice_begins.acquire()

    def _aside(self, call: Callable[[], _Result]) -> _Result:
        """End the slice, and go on in the next one with what a call has returned that needs no lock."""
        self._is_aside = True
        self._slice_ends.release()
        try:
            return call()
        finally:
            # The next slice may be due before this thread waits for it.
            self._is_aside = False
            self._is_back()
            self._slice_begins.acquire()
