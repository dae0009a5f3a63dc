"""
What a file of a spool takes of its file system, and what a batch would take more.

A batch goes to the write-ahead log first, and its pages are copied into the database later: that needs room a second
time, unless the database has pages that hold nothing. What the log has taken is written over once all of it is copied.
So what is free on the file system says little by itself: of an empty spool that has been large, all room is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

PAGE: Final = 4096
"""Bytes of a page."""

#: What a batch costs besides its messages: the pages of the tree above them, and of the totals.
_TREE: Final = 8 * PAGE
#: What a removal writes to the log: the pages that are left, not those that are freed.
_REMOVAL: Final = 512 * 1024
#: The C{-shm} file, and what the file system writes of its own.
_SLACK: Final = 64 * 1024


class BatchSize(NamedTuple):
    """
    A batch that wants to be kept.

    @ivar size: bytes that it counts against the limit of the spool.
    @ivar pages: bytes of pages that it takes at most.
    """

    size: int
    pages: int

    @classmethod
    def of(cls, stored: Sequence[bytes], overhead: int) -> BatchSize:
        """
        Return what messages take.

        @param overhead: bytes that are counted for each besides its own.
        """
        size = sum(map(len, stored)) + overhead * len(stored)
        # A page has room for one message of more than half a page; a longer one has pages of its own, and one of these
        # and one of the tree are filled in part.
        return cls(size, size + min(size, 2 * PAGE * len(stored)) + _TREE)


class Footprint(NamedTuple):
    """
    What a file takes now, in bytes.

    @ivar file: the database as it is on the file system; C{log}, its write-ahead log.
    @ivar pages: the database once all of its log is copied into it.
    @ivar free: those of its pages that hold nothing.
    """

    file: int
    log: int
    pages: int
    free: int

    def fixed_growth(self, batch: int, log_limit: int) -> int:
        """
        Return how much more is needed whatever is dropped: for the log, the copying of what is in it, and for removing
        what waits; without this a spool that is full could not even be emptied.

        @param batch: bytes of pages.
        @param log_limit: bytes after which the log is copied; a transaction may count half of what it writes.
        """
        log = 2 * log_limit + max(batch, _REMOVAL)
        return max(0, log - self.log) + max(0, self.pages - self.file) + _SLACK

    def new_pages(self, batch: int) -> int:
        """Return how much the database grows: what does not fit into pages that hold nothing."""
        return max(0, batch - self.free)


NO_FOOTPRINT: Final = Footprint(0, 0, 0, 0)
"""Of a file that is not there yet."""
