"""
Tries of an observer: until one succeeds or C{retry_for} is over, with backoff, what the other end asked for, and an end
within seconds once the receiver stops.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from threading import Event
from typing import Final, TypeVar

from webhookrx.backoff import LONGEST_RETRY_AFTER, Backoff, Random
from webhookrx.errors import Unavailable

FIRST_PAUSE: Final = 0.25
"""The bound of the first pause between two tries, in seconds."""
LONGEST_PAUSE: Final = 10.0
"""The largest bound of a pause, in seconds."""
STEP: Final = 0.1
"""The most seconds for which a call of a library may wait before it is asked whether the receiver stops."""
HURRY_TIME: Final = 2.0
"""Seconds that a wait may still take once the receiver stops."""
STOP_TIME: Final = 3.0
"""Seconds that a C{store} of many requests may still take once the receiver stops."""

T = TypeVar("T")


class Retries:
    """
    Retries the same again until it succeeds. Use it in the thread of C{store}; L{hurry} in any.

    @param retry_for: seconds from the beginning of a C{store} in which it begins further tries.
    @param clock: seconds on the monotonic clock.
    @param stopping: set when the receiver stops; pauses wait on it.
    """

    def __init__(
        self,
        retry_for: float,
        clock: Callable[[], float] = time.monotonic,
        random: Random = random.random,
        stopping: Event | None = None,
    ) -> None:
        self.stopping = Event() if stopping is None else stopping
        self._retry_for = retry_for
        self._clock = clock
        self._random = random
        self._not_before = clock()
        self._stop_at = 0.0

    def begin(self) -> float:
        """Return the time, on the monotonic clock, until when a C{store} that begins now makes further tries."""
        now = self._clock()
        self._stop_at = now + STOP_TIME
        return now + self._retry_for

    def time_left(self) -> float | None:
        """
        Return the seconds that the present C{store} may still take; None as long as the receiver does not stop.

        @raise Unavailable: there are none.
        """
        if not self.stopping.is_set():
            return None
        left = self._stop_at - self._clock()
        if left <= 0.0:
            raise Unavailable("the receiver stops")
        return left

    def is_over(self, give_up_at: float) -> bool:
        """Tell whether no further tries are to begin: that time has come, or the receiver stops."""
        return self.stopping.is_set() or self._clock() >= give_up_at

    def call(self, attempt: Callable[[], T], give_up_at: float) -> T:
        """
        Call C{attempt} until it returns, and return what it does. There is always one try, but during a pause that the
        other end asked for and that is too long; and no second one once the receiver stops.

        @param attempt: raises L{Unavailable} where a further try may succeed, with C{retry_after} where the other end
            asked for a pause. That holds for later calls, too. Whatever else it raises passes through.
        @param give_up_at: what L{begin} has returned.
        @raise Unavailable: no try succeeded, up to C{give_up_at}; the text is that of the last one.
        """
        problem = "it asked for a pause (Retry-After)"
        pause = self.pause_left()
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, self._random)
        tried = False
        while True:
            if pause or tried:
                if self._clock() + pause > give_up_at:
                    break
                self.stopping.wait(pause)
            tried = True
            try:
                return attempt()
            except Unavailable as error:
                problem = str(error)
                if error.retry_after is not None:
                    self._not_before = self._clock() + min(error.retry_after, LONGEST_RETRY_AFTER)
            # Checked after the try, which may have run for long before the receiver had to stop.
            if self.stopping.is_set():
                break
            pause = backoff.failed(self.pause_left())
        raise Unavailable(problem, retry_after=self.pause_left() or None)

    def pause_left(self) -> float:
        """Return the seconds that are left of the pause that the other end asked for."""
        return max(self._not_before - self._clock(), 0.0)

    def forget_pause(self) -> None:
        """Try again at once: the observer was opened anew, so that what the pause was for may be gone."""
        self._not_before = self._clock()

    def steps(self, seconds: float) -> Iterator[float]:
        """
        Yield how long to wait next, L{STEP} at most, until C{seconds} have passed; once the receiver stops, until
        L{HURRY_TIME} has. The first one always comes.

        A loop over it ends by C{break} when what it waits for has come::

            for step in retries.steps(timeout):
                if producer.flush(step) == 0:
                    break
            else:
                …  # it has not come in time
        """
        end = self._clock() + seconds
        is_hurrying = False
        while True:
            if self.stopping.is_set() and not is_hurrying:
                is_hurrying = True
                end = min(end, self._clock() + HURRY_TIME)
            left = end - self._clock()
            yield min(STEP, max(left, 0.0))
            if self._clock() >= end:
                return

    def hurry(self) -> None:
        """End pauses, and shorten waits, until L{resume}; call it in any thread."""
        if not self.stopping.is_set():
            self._stop_at = self._clock() + STOP_TIME
        self.stopping.set()

    def resume(self) -> None:
        """Undo L{hurry}: the observer is opened again."""
        self.stopping.clear()


def first_of(steps: Iterator[float], seconds: float, clock: Callable[[], float] = time.monotonic) -> Iterator[float]:
    """Yield steps for so many seconds, one at least: a part of the time is for what hangs, the rest for others."""
    end = clock() + seconds
    for step in steps:
        yield step
        if clock() >= end:
            return
