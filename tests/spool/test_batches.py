"""How large batches are, and when there is one."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.spool.faulty_spool import Clocks
from webhookrx.interfaces import LARGEST_BATCH, MOST_MESSAGES, Wants
from webhookrx.settings import MiB
from webhookrx.spool.batches import Batches
from webhookrx.spool.database import BATCH_BYTES, BATCH_MESSAGES
from webhookrx.spool.quota import Quota
from webhookrx.spool.rows import NO_TOTALS, ROW_OVERHEAD, Row, Totals

GiB = 1024 * MiB
SECOND = 1_000_000_000
LARGE = Wants(1000, MiB, 300.0)


def totals(messages: int, size: int = 0) -> Totals:
    """Return the totals of a file."""
    return NO_TOTALS._replace(messages=messages, bytes=size)


class CountTests(SynchronousTestCase):
    """The count of messages in a new batch."""

    def test_usual(self) -> None:
        """A batch is a quarter of what waits, within its bounds."""
        batches = Batches(None, Quota(GiB))

        for waiting, count in ((0, 32), (131, 32), (132, 33), (3999, 999), (4000, 1000), (10**6, 1000)):
            self.assertEqual(count, batches.count_for(waiting))
        self.assertEqual((BATCH_MESSAGES, BATCH_BYTES), (batches.messages, batches.bytes))

    def test_larger(self) -> None:
        """An observer that wants larger ones without waiting for them gets a quarter, up to its own bound."""
        batches = Batches(Wants(5000, 5 * MiB), Quota(GiB))

        for waiting, count in ((0, 32), (4000, 1000), (20_000, 5000), (10**6, 5000)):
            self.assertEqual(count, batches.count_for(waiting))
        self.assertEqual(5 * MiB, batches.bytes)

    def test_gathered(self) -> None:
        """One that has gathered is as large as it may be, in messages and in bytes."""
        self.assertEqual(10_000, Batches(Wants(10_000, MiB, 1.0), Quota(GiB)).count_for(40))
        self.assertEqual(MOST_MESSAGES, Batches(Wants(None, MiB, 1.0), Quota(GiB)).count_for(40))

    def test_bound(self) -> None:
        """No observer gets more than the memory for it."""
        batches = Batches(Wants(10**9, GiB, 1.0), Quota(GiB))
        self.assertEqual((MOST_MESSAGES, LARGEST_BATCH), (batches.messages, batches.bytes))


class GatherTests(SynchronousTestCase):
    """Waiting for more messages."""

    def setUp(self) -> None:
        """Take the clocks into one's own hands."""
        self.clocks = Clocks()

    def make(self, quota: Quota, wants: Wants | None = LARGE) -> Batches:
        """Make batches."""
        return Batches(wants, quota, self.clocks.monotonic, self.clocks.time_ns)

    def gathers(self, batches: Batches, found: Totals, oldest: int | None = None, *, is_full: bool = False) -> float:
        """Ask it."""
        return batches.gathers(found, self.clocks.time_ns() if oldest is None else oldest, is_full=is_full)

    def test_usual(self) -> None:
        """Without a wish nothing waits, nor with one that has no time."""
        self.assertEqual(0.0, self.gathers(self.make(Quota(GiB), None), totals(1)))
        self.assertEqual(0.0, self.gathers(self.make(Quota(GiB), Wants(5000, 5 * MiB)), totals(1)))

    def test_nothing(self) -> None:
        """Where nothing waits, nothing gathers, and no time begins."""
        batches = self.make(Quota(GiB))
        self.assertEqual(0.0, self.gathers(batches, totals(0)))
        self.clocks.now += 200.0

        self.assertEqual(300.0, self.gathers(batches, totals(1)))

    def test_enough(self) -> None:
        """It ends when enough messages or bytes wait."""
        batches = self.make(Quota(GiB))

        self.assertEqual(300.0, self.gathers(batches, totals(999, MiB - 1)))
        self.assertEqual(0.0, self.gathers(batches, totals(1000, 1)))
        self.assertEqual(0.0, self.gathers(batches, totals(1, MiB)))

    def test_age(self) -> None:
        """It ends when the oldest message is old enough, by its receipt: also after a restart."""
        received = self.clocks.time_ns() - 290 * SECOND

        self.assertAlmostEqual(10.0, self.gathers(self.make(Quota(GiB)), totals(1), received))
        self.assertEqual(0.0, self.gathers(self.make(Quota(GiB)), totals(1), received - 11 * SECOND))

    def test_clock_set_back(self) -> None:
        """It ends in time though the wall clock was set back, or the receipt can't be read."""
        for oldest in (self.clocks.time_ns() + 10**6 * SECOND, None):
            batches = self.make(Quota(GiB))
            batches.gathers(totals(1), oldest, is_full=False)
            self.clocks.now += 299.0
            self.assertAlmostEqual(1.0, batches.gathers(totals(1), oldest, is_full=False))
            self.clocks.now += 1.0
            self.assertEqual(0.0, batches.gathers(totals(1), oldest, is_full=False))

    def test_again(self) -> None:
        """Once a batch is offered, the time of the next one begins."""
        batches = self.make(Quota(GiB))
        self.gathers(batches, totals(1))
        self.clocks.now += 299.0
        batches.offered()

        self.assertEqual(300.0, self.gathers(batches, totals(1)))

    def test_full(self) -> None:
        """A spool that refuses messages gathers no more."""
        self.assertEqual(0.0, self.gathers(self.make(Quota(GiB)), totals(1), is_full=True))

    def test_small_quota(self) -> None:
        """It ends at half of the room, or of the time, that the spool has."""
        self.assertEqual(300.0, self.gathers(self.make(Quota(1000)), totals(3, 499)))
        self.assertEqual(0.0, self.gathers(self.make(Quota(1000)), totals(3, 500)))
        self.assertEqual(30.0, self.gathers(self.make(Quota(GiB, 60.0)), totals(1)))


class AckedTests(SynchronousTestCase):
    """Which messages can't wait any more."""

    def acked(self, batches: Batches) -> list[int]:
        """Return those of the first ten numbers that are removed."""
        return [number for number in range(10) if batches.is_acked(Row(number, 0, b""))]

    def test_pieces(self) -> None:
        """All pieces of the last batch are removed; those of the one before are forgotten then."""
        batches = Batches(LARGE, Quota(GiB))
        batches.offered()
        batches.acked([1, 2])
        batches.acked([3])
        self.assertEqual([1, 2, 3], self.acked(batches))
        batches.offered()
        self.assertEqual([1, 2, 3], self.acked(batches))
        batches.acked([4, 5])
        batches.acked([6])
        self.assertEqual([4, 5, 6], self.acked(batches))
        batches.forget()

        self.assertEqual([], self.acked(batches))


class PieceTests(SynchronousTestCase):
    """What is removed in one transaction."""

    def rows(self, *sizes: int) -> list[Row]:
        """Return rows of these sizes."""
        return [Row(number, 0, bytes(size - ROW_OVERHEAD)) for number, size in enumerate(sizes, 1)]

    def sizes(self, rows: list[Row]) -> list[int]:
        """Cut them, and check that nothing is lost."""
        pieces = list(Batches(LARGE, Quota(GiB)).in_pieces(rows))
        self.assertEqual(rows, [row for piece in pieces for row in piece])
        return [len(piece) for piece in pieces]

    def test_usual(self) -> None:
        """A usual batch is one piece."""
        self.assertEqual([], self.sizes([]))
        self.assertEqual([1], self.sizes(self.rows(3 * MiB)))
        self.assertEqual([BATCH_MESSAGES], self.sizes(self.rows(*[100] * BATCH_MESSAGES)))
        self.assertEqual([2], self.sizes(self.rows(BATCH_BYTES - 1, MiB)))

    def test_not_wanted(self) -> None:
        """Where nobody wants larger ones, a batch is not looked at."""
        rows = self.rows(100, 200)
        self.assertEqual([rows], list(Batches(None, Quota(GiB)).in_pieces(rows)))

    def test_large(self) -> None:
        """A larger one is several, none of them larger than a usual batch."""
        self.assertEqual([1000, 1000, 1], self.sizes(self.rows(*[100] * 2001)))
        self.assertEqual([2, 2, 1], self.sizes(self.rows(*[MiB // 2] * 5)))
        self.assertEqual([1, 1], self.sizes(self.rows(3 * MiB, 100)))
