"""
How fast a queue drains, and so when there should be room again. No clock.
"""

from __future__ import annotations

from math import ceil, exp

#: Seconds that count for most of the rate.
MEMORY = 2.0
#: What a sender is told at most.
LONGEST = 60


class Outflow:
    """
    Measures bytes and messages that leave, from tick to tick.

    @param now: seconds on the monotonic clock, as everywhere here.
    """

    def __init__(self, now: float) -> None:
        self._ticked = now
        self._drained = now  # when something left, or nothing was there that could
        self._bytes = self._messages = 0  # left since the last tick
        self._bytes_rate = self._messages_rate = 0.0
        self._has_rate = False

    def left(self, messages: int, size: int) -> None:
        """Count messages that are done with."""
        self._messages += messages
        self._bytes += size

    def tick(self, now: float, waiting: int) -> None:
        """
        Take the rates since the last tick, if there was anything to do.

        @param waiting: how many messages wait.
        """
        seconds = now - self._ticked
        if seconds <= 0:
            return
        self._ticked = now
        if self._messages or not waiting:
            self._drained = now
        if self._messages or waiting:
            weight = 1 - exp(-seconds / MEMORY) if self._has_rate else 1.0
            self._bytes_rate += weight * (self._bytes / seconds - self._bytes_rate)
            self._messages_rate += weight * (self._messages / seconds - self._messages_rate)
            self._has_rate = True
        self._bytes = self._messages = 0

    def seconds_for(self, now: float, messages: float, size: float) -> int:
        """
        Return after how many whole seconds so many messages and bytes should have left, from 1 to 60.

        When nothing leaves at all, the best guess is that it goes on for as long again as it has lasted.
        """
        seconds = max(now - self._drained, 1.0) if messages > 0 or size > 0 else 1.0
        if self._drained >= self._ticked:
            for amount, rate in ((size, self._bytes_rate), (messages, self._messages_rate)):
                if amount > 0 and rate > 0:
                    seconds = max(seconds, amount / rate)
        return min(ceil(seconds), LONGEST)
