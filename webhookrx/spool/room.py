"""
How much a spool keeps, and what happens then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhookrx.errors import NotStored
from webhookrx.quantities import format_duration, format_size

if TYPE_CHECKING:
    from webhookrx.spool.spool_file import Transaction

_NANOSECONDS = 1_000_000_000


class SpoolFull(NotStored):
    """There is no room for a batch, and nothing may be dropped for it."""


class Room(NamedTuple):
    """
    The limits.

    @ivar size: bytes of messages that wait and of dead letters, as they are kept, and C{ROW_OVERHEAD} for each.
    @ivar age: seconds since the oldest that waits was received; None: as old as they get.
    @ivar drop_oldest: make room by dropping, instead of taking no more.
    """

    size: int
    age: float | None = None
    drop_oldest: bool = False

    def make(self, transaction: Transaction, elsewhere: int, incoming: int, now: int, *, short: bool) -> int:
        """
        Make room for a batch, if need be.

        @param elsewhere: bytes that count and are out of reach.
        @param incoming: bytes that the batch counts.
        @param now: nanoseconds since the epoch.
        @param short: the file system has reached its floor: only what is dropped makes room.
        @return: how many messages were dropped.
        @raise SpoolFull: there is no room.
        """
        state = transaction.state()
        missing = max(state.bytes + state.dead_bytes + elsewhere + incoming - self.size, incoming if short else 0)
        before = 0 if self.age is None else now - int(self.age * _NANOSECONDS)
        if not self.drop_oldest:
            if missing > 0:
                raise SpoolFull(f"the spool is full: {format_size(self.size)} wait (size)")
            oldest = transaction.oldest() if before else None
            if oldest is not None and oldest < before:
                age = format_duration(self.age or 0.0)
                raise SpoolFull(f"the spool is full: its oldest message has waited longer than {age} (age)")
            return 0
        # Refused for good, and looked at by nobody so far: less is lost with them.
        dead, freed = transaction.drop_oldest_dead(missing)
        dropped, more = transaction.drop_oldest(missing - freed, before=before)
        if freed + more < missing:
            raise SpoolFull(f"the spool has no room for {format_size(incoming)} more, whatever is dropped (size)")
        return dead + dropped
