"""
How much a spool keeps: its limits of size and age, and the free space that each batch must leave on the disk.

A batch goes to the write-ahead log first, and its pages are copied into the database later: that needs the space a
second time, unless the database has free pages. What the log occupies is overwritten once all of it is copied. So free
space on the disk says little by itself: an empty spool that has been large owns all the space it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from webhookrx.errors import NotStored
from webhookrx.quantities import format_duration, format_size
from webhookrx.spool.rows import PAGE, size_of

if TYPE_CHECKING:
    from webhookrx.filesystem import DiskSpace
    from webhookrx.spool.database import SpoolFile
    from webhookrx.spool.rows import Totals, Transaction

LOG_BYTES: Final = 4 * 1024**2
SMALL_LOG_BYTES: Final = 512 * 1024
"""Bytes after which the write-ahead log is copied into the database; the second while free space is short."""

#: What a batch costs besides its messages: the pages of the tree above them, and of the totals.
_TREE: Final = 8 * PAGE
#: What a removal writes to the log: the remaining pages, not the freed ones.
_REMOVAL: Final = 512 * 1024
#: The C{-shm} file, and metadata of the file system.
_SLACK: Final = 64 * 1024
#: Bytes above the floor below which free space counts as short.
_NEAR_FLOOR: Final = 16 * 1024**2
_NANOSECONDS: Final = 1_000_000_000


class SpoolFull(NotStored):
    """There is no room for a batch, and nothing may be dropped for it."""


class BatchSize(NamedTuple):
    """
    The size of a batch.

    @ivar size: bytes that it counts against the quota.
    @ivar pages: bytes of pages that it occupies at most.
    """

    size: int
    pages: int

    @classmethod
    def of(cls, stored: Sequence[bytes]) -> BatchSize:
        """Measure a batch."""
        size = size_of(stored)
        # A page has room for one message of more than half a page; a longer one has pages of its own, and one of these
        # and one of the tree are filled in part.
        return cls(size, size + min(size, 2 * PAGE * len(stored)) + _TREE)


class Footprint(NamedTuple):
    """
    What a spool file occupies now, in bytes.

    @ivar file: the size of the database file; C{log}, of its write-ahead log.
    @ivar pages: the size of the database once all of its log is copied into it.
    @ivar free: those of its pages that are free.
    """

    file: int
    log: int
    pages: int
    free: int

    def fixed_growth(self, batch: int, log_limit: int) -> int:
        """
        Return how much more is needed whatever is dropped: for the log, for copying it, and for removing what waits;
        without this a full spool could not even be emptied.

        @param batch: bytes of pages.
        @param log_limit: bytes after which the log is copied; a transaction may count half of what it writes.
        """
        log = 2 * log_limit + max(batch, _REMOVAL)
        return max(0, log - self.log) + max(0, self.pages - self.file) + _SLACK

    def new_pages(self, batch: int) -> int:
        """Return how much the database grows: what does not fit into free pages."""
        return max(0, batch - self.free)


NO_FOOTPRINT: Final = Footprint(0, 0, 0, 0)
"""That of a file that does not exist yet."""


class Quota(NamedTuple):
    """
    The limits of one spool directory.

    @ivar size: bytes of waiting messages and dead letters, and C{ROW_OVERHEAD} for each.
    @ivar age: seconds since the oldest waiting message was received; None for no limit.
    @ivar drop_oldest: make room by dropping, instead of refusing batches.
    """

    size: int
    age: float | None = None
    drop_oldest: bool = False

    def shortage(self, space: DiskSpace, file: SpoolFile | None, incoming: BatchSize) -> int:
        """
        Return how many bytes must be dropped for the disk to keep its floor: those of new pages that don't fit.
        Dropping makes no other room; the log may then take its space from below the floor.

        The log of the file is kept small from now on while space is short.

        @param file: the newest file; None when there is none yet.
        @raise SpoolFull: there is no room, and dropping is not allowed, or would not help.
        @raise sqlite3.Error: the file can't be measured.
        """
        free = space.measure()
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
        if not self.drop_oldest or fixed > free.bytes:
            raise SpoolFull(space.words(free, fixed + new))
        # The last page of what is dropped may still hold other rows.
        return min(short, new) + 2 * PAGE if new else 0

    def make_room(self, transaction: Transaction, elsewhere: int, incoming: int, now: int, short: int) -> int:
        """
        Make room for a batch, if necessary.

        @param elsewhere: bytes that count but can't be dropped: those in older files.
        @param incoming: bytes that the batch counts.
        @param now: nanoseconds since the epoch.
        @param short: bytes that the disk lacks, and that must be dropped for it.
        @return: how many messages were dropped.
        @raise SpoolFull: there is no room.
        """
        totals = transaction.totals()
        missing = self._missing(totals, elsewhere, incoming, short)
        before = self._before(now)
        if not self.drop_oldest:
            if missing > 0:
                raise SpoolFull(f"the spool is full: {format_size(self.size)} wait (size)")
            oldest = transaction.oldest() if before else None
            if oldest is not None and oldest < before:
                age = format_duration(self.age or 0.0)
                raise SpoolFull(f"the spool is full: its oldest message has waited longer than {age} (age)")
            return 0
        if missing > totals.bytes + totals.dead_bytes:
            raise SpoolFull(self._no_room(incoming))
        # Dead letters first: the observer has refused them already, so less is lost.
        dead, freed = transaction.drop_oldest_dead(missing)
        dropped, more = self._drop(transaction, missing - freed, before)
        if freed + more < missing:
            raise SpoolFull(self._no_room(incoming))
        return dead + dropped

    @staticmethod
    def _drop(transaction: Transaction, size: int, before: int) -> tuple[int, int]:
        """Drop messages until C{size} bytes are free, or nothing is left; return how many, and their bytes."""
        dropped = freed = 0
        while True:
            count, more = transaction.drop_oldest(size - freed, before)
            dropped, freed = dropped + count, freed + more
            if freed >= size or not count:
                return dropped, freed

    @staticmethod
    def _no_room(incoming: int) -> str:
        return f"the spool has no room for {format_size(incoming)} more, whatever is dropped (size, min_free)"

    def has_room(self, totals: Totals, oldest: int | None, elsewhere: int, incoming: int, now: int, short: int) -> bool:
        """
        Tell whether L{make_room} would find room, judging by totals alone. Parameters are as there.

        @param oldest: when the first waiting message was received; None when none waits.
        """
        missing = self._missing(totals, elsewhere, incoming, short)
        if self.drop_oldest:
            return missing <= totals.bytes + totals.dead_bytes
        return missing <= 0 and (oldest is None or oldest >= self._before(now))

    def _missing(self, totals: Totals, elsewhere: int, incoming: int, short: int) -> int:
        return max(totals.bytes + totals.dead_bytes + elsewhere + incoming - self.size, short)

    def _before(self, now: int) -> int:
        """Return the moment before which a message is too old; 0 without a limit of age."""
        return 0 if self.age is None else now - int(self.age * _NANOSECONDS)
