"""
How much a spool keeps, and what happens then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhookrx.errors import NotStored
from webhookrx.quantities import format_duration, format_size

if TYPE_CHECKING:
    from webhookrx.spool.rows import Totals
    from webhookrx.spool.transaction import Transaction

_NANOSECONDS = 1_000_000_000


class SpoolFull(NotStored):
    """There is no room for a batch, and nothing may be dropped for it."""


class Quota(NamedTuple):
    """
    The limits.

    @ivar size: bytes of messages that wait and of dead letters, as they are kept, and C{ROW_OVERHEAD} for each.
    @ivar age: seconds since the oldest that waits was received; None: as old as they get.
    @ivar drop_oldest: make room by dropping, instead of taking no more.
    """

    size: int
    age: float | None = None
    drop_oldest: bool = False

    def make(self, transaction: Transaction, elsewhere: int, incoming: int, now: int, short: int) -> int:
        """
        Make room for a batch, if need be.

        @param elsewhere: bytes that count and are out of reach.
        @param incoming: bytes that the batch counts.
        @param now: nanoseconds since the epoch.
        @param short: bytes that the file system lacks, and that must be dropped for it.
        @return: how many messages were dropped.
        @raise SpoolFull: there is no room.
        """
        state = transaction.totals()
        missing = self._missing(state, elsewhere, incoming, short)
        before = self._before(now)
        if not self.drop_oldest:
            if missing > 0:
                raise SpoolFull(f"the spool is full: {format_size(self.size)} wait (size)")
            oldest = transaction.oldest() if before else None
            if oldest is not None and oldest < before:
                age = format_duration(self.age or 0.0)
                raise SpoolFull(f"the spool is full: its oldest message has waited longer than {age} (age)")
            return 0
        if missing > state.bytes + state.dead_bytes:
            raise SpoolFull(self._no_room(incoming))
        # Refused for good, and looked at by nobody so far: less is lost with them.
        dead, freed = transaction.drop_oldest_dead(missing)
        dropped, more = self._drop(transaction, missing - freed, before)
        if freed + more < missing:
            raise SpoolFull(self._no_room(incoming))
        return dead + dropped

    @staticmethod
    def _drop(transaction: Transaction, size: int, before: int) -> tuple[int, int]:
        """Drop until it is enough, or nothing is left; return how many, and their bytes."""
        dropped = freed = 0
        while True:
            count, more = transaction.drop_oldest(size - freed, before=before)
            dropped, freed = dropped + count, freed + more
            if freed >= size or not count:
                return dropped, freed

    @staticmethod
    def _no_room(incoming: int) -> str:
        return f"the spool has no room for {format_size(incoming)} more, whatever is dropped (size, min_free)"

    def would_make(
        self, state: Totals, oldest: int | None, elsewhere: int, incoming: int, now: int, short: int
    ) -> bool:
        """
        Tell whether L{make} would find room, as far as totals tell. Parameters are as there.

        @param oldest: when the first message that waits was received; None when none waits.
        """
        missing = self._missing(state, elsewhere, incoming, short)
        if self.drop_oldest:
            return missing <= state.bytes + state.dead_bytes
        return missing <= 0 and (oldest is None or oldest >= self._before(now))

    def _missing(self, state: Totals, elsewhere: int, incoming: int, short: int) -> int:
        return max(state.bytes + state.dead_bytes + elsewhere + incoming - self.size, short)

    def _before(self, now: int) -> int:
        """Return the moment before which a message is too old; 0 when none is."""
        return 0 if self.age is None else now - int(self.age * _NANOSECONDS)
