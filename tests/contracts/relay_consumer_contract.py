"""What every consumer that a relay reads from keeps to, a real one or a fake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from webhookrx.relay.consumer import Consumer, Record

if TYPE_CHECKING:
    from twisted.trial.unittest import SynchronousTestCase as _Base
else:
    _Base = object

MiB = 1024 * 1024

#: Fetches, of half a second each, after which what was published should be there.
_FETCHES = 60


class RelayConsumerContract(_Base):
    """
    Mix into a C{SynchronousTestCase} that says how to make consumers and how to publish. Each test has a topic of its
    own, and nothing in it at the start.
    """

    def make_consumer(self, group: str = "g") -> Consumer:
        """Make a consumer of the topic that is not open yet. The test closes it."""
        raise NotImplementedError

    def publish(self, values: Sequence[bytes], ids: Sequence[str] | None = None) -> None:
        """Publish values in order, each with an id beside it if there are ids."""
        raise NotImplementedError

    def kill(self, consumer: Consumer) -> None:
        """End a consumer as if its process were killed: it leaves the group without a word."""
        raise NotImplementedError

    def opened(self, group: str = "g") -> Consumer:
        """Make a consumer and open it."""
        consumer = self.make_consumer(group)
        consumer.open()
        return consumer

    def fetched(self, consumer: Consumer, count: int, messages: int = 100, size: int = MiB) -> list[Record]:
        """Fetch until there are so many records."""
        records: list[Record] = []
        for _ in range(_FETCHES):
            if len(records) >= count:
                break
            records += consumer.fetch(messages, size, 0.5)
        self.assertEqual(count, len(records))
        return records

    def nothing_comes(self, consumer: Consumer) -> None:
        """Fetch several times, and get nothing."""
        for _ in range(3):
            self.assertEqual([], list(consumer.fetch(100, MiB, 0.2)))

    def test_records_come_in_order(self) -> None:
        """Values and ids come as they were published, in order."""
        self.publish([b"one", b"\x00\xff two", b"{}"], ["id-1", "id-2", "id-3"])
        consumer = self.opened()
        self.addCleanup(consumer.close)

        records = self.fetched(consumer, 3)

        self.assertEqual([b"one", b"\x00\xff two", b"{}"], [record.value for record in records])
        self.assertEqual(["id-1", "id-2", "id-3"], [record.id for record in records])

    def test_record_without_id(self) -> None:
        """A record without an id has an empty one."""
        self.publish([b"one"])
        consumer = self.opened()
        self.addCleanup(consumer.close)

        self.assertEqual("", self.fetched(consumer, 1)[0].id)

    def test_origins_are_unique_and_stay(self) -> None:
        """Each record has an origin of its own, the same one when it is delivered again, and to another group."""
        self.publish([b"same", b"same"])
        first, other = self.opened(), self.opened("other")
        self.addCleanup(other.close)

        origins = [record.origin for record in self.fetched(first, 2)]
        first.close()
        again = self.opened()
        self.addCleanup(again.close)

        self.assertEqual(2, len(set(origins)))
        self.assertEqual(sorted(origins), sorted(record.origin for record in self.fetched(again, 2)))
        self.assertEqual(origins, [record.origin for record in self.fetched(other, 2)])

    def test_no_more_than_asked_for(self) -> None:
        """No more records come than were asked for, in number and about in size; the others come next."""
        self.publish([b"%d" % number * 100 for number in range(10)])
        consumer = self.opened()
        self.addCleanup(consumer.close)

        for _ in range(_FETCHES):
            first = consumer.fetch(3, MiB, 0.5)
            if first:
                break
        second = self.fetched(consumer, 10 - len(first), messages=3)

        self.assertIn(len(first), (1, 2, 3))
        self.assertEqual([b"%d" % n * 100 for n in range(10)], [record.value for record in [*first, *second]])

    def test_large_record_comes(self) -> None:
        """A record that is larger than what was asked for comes nevertheless."""
        self.publish([b"x" * 10_000, b"y"])
        consumer = self.opened()
        self.addCleanup(consumer.close)

        records = self.fetched(consumer, 2, size=100)

        self.assertEqual([10_000, 1], [len(record.value) for record in records])

    def test_settled_records_never_come_again(self) -> None:
        """The next consumer of the group gets what was not settled, and nothing that was."""
        self.publish([b"one", b"two", b"three"])
        consumer = self.opened()
        records = self.fetched(consumer, 3)
        consumer.settle(records[:2])
        consumer.close()

        after = self.opened()
        self.addCleanup(after.close)

        self.assertEqual([b"three"], [record.value for record in self.fetched(after, 1)])

    def test_settled_out_of_order(self) -> None:
        """What is settled before an earlier record does not take that with it."""
        self.publish([b"one", b"two", b"three"])
        consumer = self.opened()
        records = self.fetched(consumer, 3)
        consumer.settle([records[2]])
        consumer.settle([records[1]])
        consumer.close()

        after = self.opened()
        self.addCleanup(after.close)
        seen: list[bytes] = []
        for _ in range(_FETCHES):
            seen += [record.value for record in after.fetch(100, MiB, 0.5)]
            if b"one" in seen:
                break

        self.assertIn(b"one", seen)

    def test_settling_twice_is_harmless(self) -> None:
        """Settling again what is settled changes nothing."""
        self.publish([b"one", b"two"])
        consumer = self.opened()
        self.addCleanup(consumer.close)
        records = self.fetched(consumer, 2)

        consumer.settle(records)
        consumer.settle(records)

        self.nothing_comes(consumer)

    def test_records_are_ours_until_settled(self) -> None:
        """What was fetched belongs to the consumer while it is kept alive, and does not come a second time."""
        self.publish([b"one"])
        consumer = self.opened()
        self.addCleanup(consumer.close)
        (record,) = self.fetched(consumer, 1)

        for _ in range(3):
            consumer.keep_alive()

        self.assertTrue(consumer.is_ours(record))
        self.nothing_comes(consumer)
        consumer.settle([record])

    def test_groups_are_apart(self) -> None:
        """Each group gets everything."""
        self.publish([b"one"])
        one, two = self.opened("one"), self.opened("two")
        self.addCleanup(one.close)
        self.addCleanup(two.close)

        one.settle(self.fetched(one, 1))

        self.assertEqual([b"one"], [record.value for record in self.fetched(two, 1)])

    def test_new_consumer_reads_from_the_beginning(self) -> None:
        """A new group begins with the oldest record, and goes on with those that are published later."""
        self.publish([b"before"])
        consumer = self.opened()
        self.addCleanup(consumer.close)
        consumer.settle(self.fetched(consumer, 1))

        self.publish([b"after"])

        self.assertEqual([b"after"], [record.value for record in self.fetched(consumer, 1)])

    def test_dead_one_loses_what_it_holds(self) -> None:
        """What a killed consumer has not settled goes to another one of the group, which is told so or not."""
        self.publish([b"one", b"two"])
        dead = self.opened()
        records = self.fetched(dead, 2)
        dead.settle(records[:1])
        self.kill(dead)

        after = self.opened()
        self.addCleanup(after.close)

        self.assertEqual([b"two"], [record.value for record in self.fetched(after, 1)])

    def test_hurry(self) -> None:
        """After hurry, called twice, a fetch returns soon, and what was fetched can still be settled."""
        self.publish([b"one"])
        consumer = self.opened()
        records = self.fetched(consumer, 1)

        consumer.hurry()
        consumer.hurry()
        consumer.fetch(100, MiB, 3600.0)
        consumer.settle(records)
        consumer.close()

        after = self.opened()
        self.addCleanup(after.close)
        self.nothing_comes(after)

    def test_lag(self) -> None:
        """The lag is a count or unknown, and nothing once all is settled, if it is known."""
        self.publish([b"one"])
        consumer = self.opened()
        self.addCleanup(consumer.close)
        consumer.settle(self.fetched(consumer, 1))

        self.nothing_comes(consumer)

        self.assertIn(consumer.lag(), (0, None))

    def test_reopen_keeps_records(self) -> None:
        """Reading secrets again loses nothing."""
        self.publish([b"one", b"two"])
        consumer = self.opened()
        records = self.fetched(consumer, 2)

        consumer.reopen()
        consumer.settle(records)
        consumer.close()

        after = self.opened()
        self.addCleanup(after.close)
        self.nothing_comes(after)
