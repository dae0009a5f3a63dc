"""
The log lines of a relay on messages that were refused for good: few, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twisted.logger import Logger

from webhookrx.spool.drain_log import NOT_ENCODED, printable

COUNT_PAUSE: Final = 60.0
"""Seconds between two lines that count them."""

_log = Logger()


class RefusalLog:
    """
    Counts messages that an observer has refused for good. L{tick} and L{end} write the lines that were held back.

    @param spec: the observer's, fit for a log line.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(self, spec: str, clock: Callable[[], float]) -> None:
        self._spec = spec
        self._clock = clock
        self._count = 0
        self._reason = ""
        self._others = False
        self._next = clock()

    def refused(self, reason: str) -> None:
        """A message was refused."""
        # What an encoder trips over is a sender's text, which its error may quote.
        reason = NOT_ENCODED if reason.startswith(NOT_ENCODED) else reason
        if self._count and reason != self._reason:
            self._others = True
        else:
            self._reason = reason
        self._count += 1

    def tick(self) -> None:
        """Write the line that is due."""
        now = self._clock()
        if not self._count or now < self._next:
            return
        self._next = now + COUNT_PAUSE
        count, self._count = self._count, 0
        others, self._others = self._others, False
        _log.warn(
            "{count} rejected permanently by {spec}: {reason}{others}",
            count="1 message was" if count == 1 else f"{count} messages were",
            spec=self._spec,
            reason=printable(self._reason),
            others=", and for other reasons" if others else "",
        )

    def end(self) -> None:
        """Write what was held back."""
        self._next = self._clock()
        self.tick()
