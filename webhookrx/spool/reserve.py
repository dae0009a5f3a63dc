"""
The room that a spool leaves: the floor of the file system, and what it needs itself to get rid of what it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhookrx.spool.footprint import NO_FOOTPRINT, PAGE, BatchSize
from webhookrx.spool.quota import SpoolFull
from webhookrx.spool.schema import LOG_BYTES, SMALL_LOG_BYTES

if TYPE_CHECKING:
    from webhookrx.filesystem import DiskSpace
    from webhookrx.spool.database import SpoolFile

_NEAR_FLOOR: Final = 16 * 1024**2
"""Bytes above the floor below which room counts as short."""


class DiskReserve:
    """
    Tells whether there is room for a batch.

    @param space: knows what is free.
    @param drop_oldest: room may be made by dropping.
    """

    def __init__(self, space: DiskSpace, *, drop_oldest: bool) -> None:
        self._space = space
        self._drop_oldest = drop_oldest

    def shortage(self, file: SpoolFile | None, incoming: BatchSize) -> int:
        """
        Return how many bytes must be dropped for the file system to keep its floor: those of the new pages that there
        is no room for. Dropping makes no other room; what the log needs may come from below the floor then.

        The log of the file is kept small from now on while room is short.

        @param file: the one that is written; None when there is none yet.
        @raise SpoolFull: there is no room, and dropping may not, or would not, make it.
        @raise sqlite3.Error: the file can't be asked.
        """
        free = self._space.measure()
        if free is None:
            return 0
        footprint = NO_FOOTPRINT if file is None else file.footprint()
        new = footprint.new_pages(incoming.pages)
        roomy = footprint.fixed_growth(incoming.pages, LOG_BYTES) + new + _NEAR_FLOOR <= free.above_floor
        log_limit = LOG_BYTES if roomy else SMALL_LOG_BYTES
        if file is not None:
            file.limit_log(log_limit)
        fixed = footprint.fixed_growth(incoming.pages, log_limit)
        short = fixed + new - free.above_floor
        if short <= 0:
            return 0
        if not self._drop_oldest or fixed > free.bytes:
            raise SpoolFull(self._space.words(free, fixed + new))
        # The last page of what is dropped may still hold something.
        return min(short, new) + 2 * PAGE if new else 0
