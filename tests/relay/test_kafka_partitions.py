"""
Tests for L{webhookrx.relay.kafka_partitions}.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.relay.kafka_partitions import KafkaPlace, Partitions


class PartitionsTests(SynchronousTestCase):
    """Which position a group may have."""

    def setUp(self) -> None:
        """Have two partitions."""
        self.partitions = Partitions()
        self.partitions.assigned([0, 1])

    def deliver(self, *offsets: int, partition: int = 0) -> list[KafkaPlace]:
        """Deliver records with these offsets."""
        places = [self.partitions.delivered(partition, offset) for offset in offsets]
        return [place for place in places if place is not None]

    def positions(self) -> dict[int, int]:
        """Return the positions to commit by partition."""
        return {place.partition: position for place, position in self.partitions.positions().items()}

    def test_nothing_settled(self) -> None:
        """As long as nothing is settled there is nothing to commit."""
        self.deliver(5, 6)

        self.assertEqual({}, self.positions())
        self.assertFalse(self.partitions.is_idle)

    def test_gaps(self) -> None:
        """Where offsets have gaps, as in compacted topics, the position is the next record's, or behind the last."""
        first, second, third = self.deliver(5, 9, 20)
        self.partitions.settled([first])
        self.assertEqual({0: 9}, self.positions())
        self.partitions.settled([third])
        self.assertEqual({0: 9}, self.positions())
        self.partitions.settled([second])
        self.assertEqual({0: 21}, self.positions())

    def test_known(self) -> None:
        """What the broker knows is not committed again."""
        self.partitions.settled(self.deliver(0, 1))
        self.partitions.committed(self.partitions.positions())

        self.assertEqual({}, self.positions())
        self.assertTrue(self.partitions.is_idle)

    def test_lost(self) -> None:
        """What is lost is settled by others: nothing is committed for it, though it may be ours again."""
        places = self.deliver(0, 1)
        kept = self.deliver(7, partition=1)
        self.partitions.lost([0])
        self.assertFalse(self.partitions.is_ours(places[0]))
        self.assertIsNone(self.partitions.delivered(0, 2))
        self.partitions.assigned([0])
        self.assertFalse(self.partitions.is_ours(places[0]))
        self.partitions.settled([*places, *kept])

        self.assertEqual({1: 8}, self.positions())
        self.partitions.lost_all()
        self.assertEqual({}, self.positions())

    def test_late_answer(self) -> None:
        """The answer to a commit of an earlier term changes nothing."""
        self.partitions.settled(self.deliver(0))
        positions = self.partitions.positions()
        self.partitions.lost([0])
        self.partitions.assigned([0])
        self.partitions.settled(self.deliver(0))
        self.partitions.committed(positions)

        self.assertEqual({0: 1}, self.positions())

    @given(st.lists(st.integers(1, 3), min_size=1, max_size=20), st.data())
    def test_never_past_what_is_not_settled(self, steps: list[int], data: st.DataObject) -> None:
        """In whatever order records are settled, the position is never past one that is not."""
        self.setUp()
        offsets = [sum(steps[:count]) for count in range(1, len(steps) + 1)]
        places = self.deliver(*offsets)
        settled = data.draw(st.sets(st.sampled_from(places)))
        for place in data.draw(st.permutations(sorted(settled))):
            self.partitions.settled([place])

        left = [place.offset for place in places if place not in settled]
        position = self.positions().get(0, offsets[0])
        self.assertEqual(min(left, default=offsets[-1] + 1), position)
