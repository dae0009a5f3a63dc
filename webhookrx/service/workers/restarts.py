"""
When a worker that has ended is started again.
"""

from __future__ import annotations

from math import inf

from webhookrx.backoff import Backoff, Random

FIRST_PAUSE = 0.1
"""The bound of the first pause, in seconds."""
LONGEST_PAUSE = 30.0
"""The largest bound of a pause, in seconds."""
SETTLED = 60.0
"""Seconds after which a worker has shown that it can live."""


class Restarts:
    """
    The starts and ends of one worker. All times are seconds on the monotonic clock.

    @param random: a number from 0 to 1, as C{random.random}.
    @ivar due: when it is to be started again; never while it lives.
    """

    def __init__(self, random: Random) -> None:
        self.due = inf
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, random)
        self._started = inf

    def started(self, now: float) -> None:
        """It was started."""
        self._started = now
        self.due = inf

    def ended(self, now: float) -> None:
        """It has ended, or could not be started: the more often soon after its start, the longer the pause."""
        if now - self._started >= SETTLED:
            self._backoff.succeeded()
        self._started = inf  # one that can't even be started has not lived
        self.due = now + self._backoff.failed()

    def at_once(self, now: float) -> None:
        """It has ended as it was told to, and another one is wanted."""
        self.due = now
