"""
Keeps the garbage collector from looking at all routers and what they have counted, again and again: what has lasted is
put aside, so that no collection holds the reactor for long.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, Final

INTERVAL: Final = 2.0
"""Seconds after which what has lasted is put aside."""

COUNT_INTERVAL: Final = 60.0
"""Seconds after which what is aside is counted."""

GROWTH: Final = 1.5
"""By how much what is aside may grow until all of it is looked at: garbage is not found there before."""

FEWEST: Final = 200_000
"""Objects below which that is not done: what a console with some hundred routers has."""


class LastingObjects:
    """
    A generation of objects beyond those of the garbage collector. Most of what leaves it needs no collector; for what
    does, all is looked at whenever much has come.

    @param seconds: monotonic.
    @param collector: the module C{gc}.
    """

    def __init__(self, seconds: Callable[[], float], collector: Any = gc) -> None:
        self._seconds = seconds
        self._collector = collector
        self._settled_at = self._counted_at = seconds()
        self._most = FEWEST

    def start(self) -> None:
        """Put aside all that is there, after a look at all of it."""
        self._collector.unfreeze()
        self._settle()
        self._settled_at = self._counted_at = self._seconds()
        self._most = max(FEWEST, int(self._collector.get_freeze_count() * GROWTH))

    def tick(self) -> None:
        """Put aside what has lasted since the last time, each L{INTERVAL}."""
        now = self._seconds()
        if now - self._settled_at < INTERVAL:
            return
        self._settled_at = now
        if now - self._counted_at >= COUNT_INTERVAL:
            self._counted_at = now
            if self._collector.get_freeze_count() > self._most:
                self.start()
                return
        self._settle()

    def _settle(self) -> None:
        # What is garbage by now would stay aside for long.
        self._collector.collect()
        self._collector.freeze()
