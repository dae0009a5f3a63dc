"""Records that are not settled: what is fetched, kept, lost, and delivered once more."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.fake_time import FakeTime
from webhookrx.relay.consumer import Record
from webhookrx.relay.unsettled import Unsettled


def record(origin: str, size: int = 10) -> Record:
    """Make a record of so many bytes in all."""
    return Record(b"x" * (size - len(origin)), "", origin, None, object())


class UnsettledTests(SynchronousTestCase):
    """All of it."""

    def setUp(self) -> None:
        """Make one whose records are lost after 30 s."""
        self.time = FakeTime()
        self.unsettled = Unsettled(30.0, self.time)

    def deliver(self, *records: Record, token: str = "t") -> None:
        """Deliver records."""
        for each in records:
            self.unsettled.deliver(each, token, self.time.now)

    def test_taken_in_order(self) -> None:
        """Records are taken in the order of their arrival, by number and size; a large one alone."""
        records = [record("a"), record("b"), record("c"), record("d", 100), record("e")]
        self.deliver(*records)

        self.assertEqual(records[:2], self.unsettled.take(2, 1000))
        self.assertEqual(records[2:3], self.unsettled.take(9, 15))
        self.assertEqual(records[3:4], self.unsettled.take(9, 15))
        self.assertEqual(1, self.unsettled.arrived)
        self.assertEqual(records[4:], self.unsettled.take(9, 15))
        self.assertEqual([], self.unsettled.take(9, 15))

    def test_delivered_again(self) -> None:
        """What is delivered once more does not come a second time, and is settled by its latest token."""
        first = record("a")
        self.deliver(first, record("b"))
        self.unsettled.take(1, 1000)

        self.deliver(record("a"), record("b"), token="second")

        self.assertEqual(["b"], [each.origin for each in self.unsettled.take(9, 1000)])
        self.assertEqual(["second"], [each.token for each in self.unsettled.find([first])])

    def test_lost(self) -> None:
        """What nobody has kept in time is lost; given to us again it is another record."""
        first = record("a")
        self.deliver(first)
        self.unsettled.take(1, 1000)
        self.time.now += 29.9
        self.assertTrue(self.unsettled.is_ours(first))
        self.time.now += 0.1
        self.assertFalse(self.unsettled.is_ours(first))
        again = record("a")

        self.deliver(again)

        self.assertEqual([again], self.unsettled.take(9, 1000))
        self.assertTrue(self.unsettled.is_ours(again))
        self.assertFalse(self.unsettled.is_ours(first))
        self.assertEqual([], self.unsettled.find([first]))

    def test_lost_while_it_waits(self) -> None:
        """What was lost before it was fetched is not fetched any more."""
        self.deliver(record("a"))
        self.time.now += 30.0

        self.unsettled.forget_lost()

        self.assertEqual([], self.unsettled.take(9, 1000))

    def test_kept(self) -> None:
        """A third of the time after the broker has heard of it last, it should hear again, also of what waits."""
        first, second = record("a"), record("b")
        self.deliver(first, second)
        self.unsettled.take(1, 1000)
        self.time.now += 9.9
        self.assertEqual([], self.unsettled.due())
        self.time.now += 0.1
        due = self.unsettled.due()
        self.assertEqual([first, second], [each.record for each in due])

        self.unsettled.keep(due, self.time.now)

        self.assertEqual([], self.unsettled.due())
        self.time.now += 29.9
        self.unsettled.forget_lost()
        self.assertTrue(self.unsettled.is_ours(first))

    def test_heard_earlier(self) -> None:
        """What the broker heard before it delivered once more does not make that older."""
        self.deliver(first := record("a"))
        self.unsettled.take(1, 1000)
        self.time.now += 20.0
        self.deliver(record("a"))

        self.unsettled.keep(self.unsettled.all(), self.time.now - 15.0)

        self.time.now += 29.0
        self.assertTrue(self.unsettled.is_ours(first))

    def test_asked_earlier(self) -> None:
        """The time of the broker begins when it was asked: nothing is ours for longer than that."""
        first = record("a")
        self.unsettled.deliver(first, "t", self.time.now - 1.0)
        self.unsettled.take(1, 1000)

        self.time.now += 29.0

        self.assertFalse(self.unsettled.is_ours(first))

    def test_settled(self) -> None:
        """What is forgotten is not ours any more, and nothing that belongs to others ever is."""
        first = record("a")
        self.deliver(first)
        self.unsettled.take(1, 1000)

        self.unsettled.forget("a")
        self.unsettled.forget("a")

        self.assertFalse(self.unsettled.is_ours(first))
        self.assertFalse(self.unsettled.is_ours(record("never")))
        self.assertEqual([], self.unsettled.all())
