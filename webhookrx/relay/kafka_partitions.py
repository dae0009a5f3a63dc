"""
The partitions of a topic that a relay has now, and how far each of them is settled.

Kafka knows one position of a group in a partition: what lies before it is done with. So the position moves up to the
first record that was delivered and is not settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class KafkaPlace(NamedTuple):
    """
    Where a record is.

    @ivar term: which of the times that this consumer has had the partition.
    """

    partition: int
    offset: int
    term: int


class _HeldPartition:
    """A partition that is ours."""

    def __init__(self, term: int) -> None:
        self.term = term
        # In the order of delivery, which is that of offsets.
        self.waiting: dict[int, None] = {}
        self.next: int | None = None  # behind the last that was delivered
        self.committed: int | None = None

    @property
    def position(self) -> int | None:
        """What the next owner begins with; None if nothing was delivered."""
        return next(iter(self.waiting), self.next)


class Partitions:
    """All of them."""

    def __init__(self) -> None:
        self._held: dict[int, _HeldPartition] = {}
        self._term = 0

    @property
    def numbers(self) -> Sequence[int]:
        """The partitions that are ours."""
        return list(self._held)

    @property
    def is_idle(self) -> bool:
        """Whether every record that was delivered is settled, and the broker knows."""
        return not any(held.waiting for held in self._held.values()) and not self.positions()

    def assigned(self, numbers: Iterable[int]) -> None:
        """These are ours from now on, from their positions on, even if they were ours before."""
        self._term += 1
        for number in numbers:
            self._held[number] = _HeldPartition(self._term)

    def lost(self, numbers: Iterable[int]) -> None:
        """These belong to others from now on; what is not settled of them, too."""
        for number in numbers:
            self._held.pop(number, None)

    def lost_all(self) -> None:
        """Nothing is ours any more."""
        self._held.clear()

    def delivered(self, partition: int, offset: int) -> KafkaPlace | None:
        """Note that a record goes to the relay, and return its place; None if its partition is not ours."""
        held = self._held.get(partition)
        if held is None:
            return None
        if held.next is None:
            # Whatever lies before was settled by somebody, or is gone.
            held.committed = offset
        held.waiting[offset] = None
        held.next = offset + 1
        return KafkaPlace(partition, offset, held.term)

    def is_ours(self, place: KafkaPlace) -> bool:
        """Tell whether a record's partition has been ours ever since it was delivered."""
        held = self._held.get(place.partition)
        return held is not None and held.term == place.term

    def settled(self, places: Iterable[KafkaPlace]) -> None:
        """Note that records are done with; those that are lost are passed over."""
        for place in places:
            if self.is_ours(place):
                self._held[place.partition].waiting.pop(place.offset, None)

    def positions(self) -> dict[KafkaPlace, int]:
        """Return the positions that the broker does not know yet, each at the first place of its partition."""
        return {
            KafkaPlace(number, 0, held.term): position
            for number, held in self._held.items()
            if (position := held.position) is not None and position != held.committed
        }

    def begins(self) -> dict[int, int | None]:
        """Return up to where each partition is settled, as the broker knows; None where nothing was delivered yet."""
        return {number: held.committed for number, held in self._held.items()}

    def committed(self, positions: dict[KafkaPlace, int]) -> None:
        """The broker knows these."""
        for place, position in positions.items():
            if self.is_ours(place):
                self._held[place.partition].committed = position
