"""
Giving room back to the file system, in turns that hold up nobody for long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webhookrx.spool.database import SpoolFile

IDLE_PAGES: Final = 4096
"""So many pages that hold nothing are kept; what comes next needs no new ones."""
TIGHT_PAGES: Final = 64
"""The same, while room is short. So many are given back in one turn then: each may first be moved, through the log."""

TURN_PAGES: Final = 256
"""So many are given back in one turn otherwise."""
TURN_TIME: Final = 0.02
"""Seconds after which no more are given back in one turn."""


def give_back(file: SpoolFile, clock: Callable[[], float]) -> bool:
    """
    Do one turn, and tell whether there is more to give.

    @param clock: seconds on the monotonic clock.
    @raise sqlite3.Error: nothing was given back.
    """
    keep, most = (TIGHT_PAGES, TIGHT_PAGES) if file.is_tight else (IDLE_PAGES, TURN_PAGES)
    late = clock() + TURN_TIME
    return file.give_back(keep, most, lambda: clock() >= late)
