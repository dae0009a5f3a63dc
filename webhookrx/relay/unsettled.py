"""
Records that a consumer has been given and has not settled: those that were fetched, and those that wait to be.

The broker gives a record to another one unless it hears of it in time. When it gave it to us once more, that is noted,
and the record does not come a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from webhookrx.relay.consumer import Record


class UnsettledRecord:
    """
    A record that is not settled.

    @ivar token: what settles it: that of its latest delivery.
    @ivar kept: when the broker gave it to us, or last heard that it is here; seconds on the monotonic clock.
    """

    __slots__ = ("kept", "record", "token")

    def __init__(self, record: Record, token: str, kept: float) -> None:
        self.record = record
        self.token = token
        self.kept = kept


class Unsettled:
    """
    All deliveries of a consumer.

    @param clock: seconds on the monotonic clock.
    @ivar keep_for: seconds after which the broker gives a record to another one.
    """

    def __init__(self, keep_for: float, clock: Callable[[], float]) -> None:
        self.keep_for = keep_for
        self._clock = clock
        self._arrived: dict[str, UnsettledRecord] = {}
        self._fetched: dict[str, UnsettledRecord] = {}

    @property
    def arrived(self) -> int:
        """How many wait to be fetched."""
        return len(self._arrived)

    def all(self) -> list[UnsettledRecord]:
        """Return all, those first that were fetched."""
        return [*self._fetched.values(), *self._arrived.values()]

    def deliver(self, record: Record, token: str, asked: float) -> None:
        """
        Note a record that was delivered, perhaps once more.

        @param asked: when the broker was asked for it: it counts its time from then on, or later.
        """
        known = self._fetched.get(record.origin) or self._arrived.get(record.origin)
        if known is not None and not self._is_lost(known, self._clock()):
            known.token, known.kept = token, max(known.kept, asked)
            return
        self.forget(record.origin)
        self._arrived[record.origin] = UnsettledRecord(record, token, asked)

    def take(self, messages: int, size: int) -> list[Record]:
        """
        Return records that have arrived, in their order.

        @param messages: at most so many.
        @param size: at most so many bytes, or one that is larger.
        """
        records: list[Record] = []
        for origin, delivery in list(self._arrived.items()):
            size -= delivery.record.size
            if len(records) >= messages or (size < 0 and records):
                break
            del self._arrived[origin]
            self._fetched[origin] = delivery
            records.append(delivery.record)
        return records

    def find(self, records: Sequence[Record]) -> list[UnsettledRecord]:
        """Return the deliveries of those records that are here and were not lost meanwhile."""
        found = (self._fetched.get(record.origin) for record in records)
        return [
            delivery
            for delivery, record in zip(found, records, strict=True)
            if delivery is not None and delivery.record.place is record.place
        ]

    def is_ours(self, record: Record) -> bool:
        """Tell whether a record is here, and no other one can have it."""
        found = self.find([record])
        return bool(found) and not self._is_lost(found[0], self._clock())

    def forget(self, origin: str) -> None:
        """Forget a record: it is settled."""
        self._fetched.pop(origin, None)
        self._arrived.pop(origin, None)

    def forget_lost(self) -> None:
        """Forget records that the broker may have given to another one."""
        now = self._clock()
        for delivery in self.all():
            if self._is_lost(delivery, now):
                self.forget(delivery.record.origin)

    def due(self) -> list[UnsettledRecord]:
        """Return those of which the broker should hear again."""
        due = self._clock() - self.keep_for / 3
        return [delivery for delivery in self.all() if delivery.kept <= due]

    def keep(self, deliveries: Sequence[UnsettledRecord], heard: float) -> None:
        """
        Note that the broker has heard of these.

        @param heard: when it was told, or earlier.
        """
        for delivery in deliveries:
            delivery.kept = max(delivery.kept, heard)

    def _is_lost(self, delivery: UnsettledRecord, now: float) -> bool:
        return now - delivery.kept >= self.keep_for
