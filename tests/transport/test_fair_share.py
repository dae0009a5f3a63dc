"""
Tests for L{webhookrx.transport.fair_share}: on a page that each worker maps for itself.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

import tests.examples  # noqa: F401 - how many
from webhookrx.transport.fair_share import (
    ENDPOINTS,
    PATIENCE,
    ROW,
    ROWS,
    SLACK,
    TURNOVER,
    CounterPage,
    Share,
    WorkerRow,
    fair_room,
)

COUNTS = st.integers(0, 2**32 - 2)


class RoomTests(SynchronousTestCase):
    """
    How many a worker may accept.
    """

    def test_room(self) -> None:
        """It may have as many as each would of all, those included that wait; and the last one if none has fewer."""
        for mine, others, waiting, room in (
            (0, [], 7, 7),
            (50, [], 7, 7),
            (0, [0], 64, 32),
            (0, [0], 1, 1),
            (1, [0], 1, 0),
            (1, [1], 1, 1),
            (1, [0], 3, 1),
            (10, [0], 3, 0),
            (0, [10], 3, 6),
            (0, [10], 30, 20),
            (3, [3, 3, 3], 2, 1),
            (4, [3, 3, 4], 2, 0),
            (2, [8, 2], 3, 3),
            (-8, [0], 4, 6),
            (3, [3], 0, 0),
            (3, [], 0, 0),
            (0, [0, 0], 4, 1),
            (1, [1, 1], 1, 1),
            (1, [1, 0], 1, 0),
        ):
            self.assertEqual(room, fair_room(mine, others, waiting), (mine, others, waiting))

    @given(st.lists(st.integers(0, 100), min_size=1, max_size=8), st.integers(1, 200))
    def test_somebody(self, counts: list[int], waiting: int) -> None:
        """Whatever they have, and however few wait, one that has the fewest may accept some."""
        fewest = counts.index(min(counts))
        self.assertGreater(fair_room(counts[fewest], counts[:fewest] + counts[fewest + 1 :], waiting), 0)

    @given(st.integers(2, 8), st.integers(1, 300), st.integers())
    def test_even(self, workers: int, connections: int, seed: int) -> None:
        """However many come at a time, and whoever wakes up first, each has its share in the end."""
        random = Random(seed)
        counts, waiting, rest = [0] * workers, 0, connections
        while waiting or rest:
            come = random.randint(0, rest)
            waiting, rest = waiting + come, rest - come
            me = random.randrange(workers)
            room = min(waiting, fair_room(counts[me], counts[:me] + counts[me + 1 :], waiting))
            counts[me], waiting = counts[me] + room, waiting - room
        self.assertEqual(connections, sum(counts))
        self.assertLessEqual(max(counts) - min(counts), 1)


class PageCase(SynchronousTestCase):
    """
    A page.
    """

    def setUp(self) -> None:
        self.page = CounterPage()
        self.addCleanup(self.page.close)

    def rows(self, count: int) -> list[WorkerRow]:
        """Return as many workers."""
        return [WorkerRow(self.page.descriptor, number, count) for number in range(count)]

    def shares(self, count: int, endpoint: int = 5) -> list[Share]:
        """Return the shares of as many workers."""
        found = [row.share(endpoint) for row in self.rows(count)]
        return [share for share in found if share is not None]

    def joined(self, *counts: int) -> list[Share]:
        """Return workers that accept, with that many connections."""
        shares = self.shares(len(counts))
        for share, count in zip(shares, counts, strict=True):
            share.join()
            for _ in range(count):
                share.began()
        return shares

    def accept(self, share: Share, waiting: int) -> int:
        """Have a worker accept what it may of that many; return how many that is."""
        room = min(waiting, share.room(share.others(), waiting))
        for _ in range(room):
            share.began()
        return room

    def run_out(self, share: Share, waiting: int = 1) -> int:
        """Look until patience runs out; return how often that is."""
        for looks in range(1, 2 * PATIENCE):
            if share.look(share.others(), waiting):
                return looks
        raise AssertionError("there is no end of it")


class PageTests(PageCase):
    """
    What one worker sees of another.
    """

    def test_counted(self) -> None:
        """Connections count from their beginning to their end, while a worker accepts some."""
        one, other = self.shares(2)
        self.assertEqual([], other.others())
        one.began()
        self.assertEqual([], other.others())
        one.join()
        one.began()
        self.assertEqual(([2], []), (other.others(), one.others()))
        one.ended()
        self.assertEqual([1], other.others())
        one.leave()
        self.assertEqual([], other.others())
        one.ended()
        one.tick()
        self.assertEqual([], other.others())
        one.join()
        self.assertEqual([0], other.others())

    def test_endpoints(self) -> None:
        """Each endpoint has its own counts, the last one as well; one more has none."""
        row, other = self.rows(2)
        mine = [row.share(endpoint) for endpoint in (0, 1, ENDPOINTS - 1)]
        theirs = [other.share(endpoint) for endpoint in (0, 1, ENDPOINTS - 1)]
        for count, share in enumerate(mine):
            assert share is not None
            share.join()
            for _ in range(count):
                share.began()
        self.assertEqual([[0], [1], [2]], [share and share.others() for share in theirs])
        self.assertIsNone(row.share(ENDPOINTS))
        self.assertGreater(ENDPOINTS, 2000)
        row.tick()
        self.assertEqual(([1, 0], [1, 0]), (row.ticks.tolist(), other.ticks.tolist()))

    def test_rows(self) -> None:
        """The most workers that there can be have rows, none of which shares a page of memory with another."""
        self.assertEqual(0, ROW % 4096)
        *_, last = self.joined(*range(ROWS))
        self.assertEqual(list(range(ROWS - 1)), last.others())

    def test_alone(self) -> None:
        """One worker has nobody to share with."""
        self.assertEqual([], self.shares(1))

    def test_cleared(self) -> None:
        """What the parent clears is of no worker; the next one there begins with nothing."""
        one, other, third = self.joined(1, 2, 3)
        self.page.clear(1)
        self.assertEqual(([3], [1]), (one.others(), third.others()))
        self.assertEqual([1, 3], other.others())
        again = self.shares(3)[1]
        again.join()
        self.assertEqual([0, 3], one.others())

    def test_mended(self) -> None:
        """What was written over a row is right again with the next tick, and the next connection."""
        one, other = self.joined(5, 5)
        os.pwrite(self.page.descriptor, b"\xff" * ROW, 0)
        self.assertEqual([2**32 - 2], other.others())
        one.tick()
        self.assertEqual([5], other.others())
        os.pwrite(self.page.descriptor, bytes(ROW), 0)
        one.began()
        self.assertEqual([6], other.others())

    def test_wrapped(self) -> None:
        """Counters begin again at 0 after their largest number."""
        row, _ = self.rows(2)
        share = row.share(1)
        assert share is not None
        os.pwrite(self.page.descriptor, b"\xff" * 24, 0)
        row.tick()
        share.join()
        share.began()
        rest = 2**32 - 1
        self.assertEqual([0, rest, rest, 2, 0, rest, 0], [row.column(place)[0] for place in range(7)])

    def test_size(self) -> None:
        """The page can't become shorter, which would end all who map it."""
        self.assertRaises(PermissionError, os.ftruncate, self.page.descriptor, 0)
        self.assertEqual(ROW * ROWS, os.fstat(self.page.descriptor).st_size)
        self.assertFalse(os.get_inheritable(self.page.descriptor))


class PatienceTests(PageCase):
    """
    Workers that do not accept what they should.
    """

    def test_left_to_others(self) -> None:
        """What is the share of others is left to them; once they have taken it, it goes on as before."""
        one, other = self.joined(0, 0)
        self.assertEqual(2, self.accept(one, 4))
        self.assertEqual(0, self.accept(one, 2))
        self.assertFalse(one.look(one.others(), 2))
        self.assertEqual(2, self.accept(other, 2))
        self.assertTrue(one.look(one.others(), 0))
        self.assertEqual((0, 1), (self.accept(one, 0), self.accept(one, 1)))

    def test_runs_out(self) -> None:
        """After so many looks a worker accepts what is left."""
        one, _ = self.joined(3, 0)
        self.assertEqual(PATIENCE, self.run_out(one))
        self.assertEqual(1, self.accept(one, 1))

    def test_counted_looks(self) -> None:
        """Looks count from when connections are left to others; a tick counts for half of them."""
        one, _ = self.joined(3, 0)
        for _ in range(PATIENCE - 1):
            self.assertFalse(one.look(one.others(), 1))
        self.assertEqual(0, self.accept(one, 0))
        self.assertFalse(one.look(one.others(), 1, PATIENCE // 2))
        self.assertTrue(one.look(one.others(), 1, PATIENCE // 2))

    def test_stopped(self) -> None:
        """A worker that has stopped is passed over until it ticks or accepts something; others count as before."""
        for life in ("ticks", "accepts"):
            self.setUp()
            rows = self.rows(3)
            one, stopped, third = [row.share(0) for row in rows]
            assert one is not None and stopped is not None and third is not None
            for share in (one, stopped, third):
                share.join()
            one.began()
            one.began()
            third.began()
            third.began()
            self.run_out(one)
            self.assertEqual([2], one.others())
            self.assertEqual([3, 0], [self.accept(one, 6), self.accept(one, 1)])
            third.ended()
            self.assertEqual([1], one.others())
            if life == "ticks":
                rows[1].tick()
                self.assertEqual([0, 1], one.others())
            else:
                stopped.began()
                self.assertEqual([1, 1], one.others())

    def test_replaced(self) -> None:
        """The worker that follows one that was passed over counts."""
        one, _ = self.joined(2, 1)
        self.run_out(one)
        self.assertEqual([], one.others())
        self.page.clear(1)
        self.assertEqual([], one.others())
        again = self.shares(2)[1]
        again.join()
        self.assertEqual([0], one.others())

    def test_too_busy(self) -> None:
        """One that takes some, but not all, is helped soon, and ever more; with time patience comes back."""
        one, busy = self.joined(1000, 0)
        looks, taken = [], []
        for _ in range(9):
            looks.append(self.run_out(one, 200))
            taken.append(one.room(one.others()[:0] or [busy.open], 200))
            busy.began()  # so it is not passed over
        self.assertEqual([100, 50, 25, 12, 6, 3, 1, 1, 1], looks)
        self.assertEqual([1, 2, 4, 8, 16, 16, 16, 16, 16], taken)
        for _ in range(3):
            one.tick()
        busy.began()
        self.assertEqual(6, self.run_out(one))
        for _ in range(20):
            one.tick()
        busy.began()
        self.assertEqual(PATIENCE, self.run_out(one))

    def test_short_connections(self) -> None:
        """While many connections end between two ticks, a worker may have some more than its share."""
        for busy in (0, 1):
            shares = self.joined(20, 0)
            one = shares[0]
            one.tick()
            for ended, more in ((TURNOVER - 1, 0), (TURNOVER, SLACK + 1), (0, 0)):
                for _ in range(ended):
                    shares[busy].began()
                    shares[busy].ended()
                one.tick()
                self.assertEqual(bool(more), one.look(one.others(), 1))
                for _ in range(more):
                    self.assertGreater(one.room(one.others(), 1), 0)
                    one.began()
                self.assertEqual(0, one.room(one.others(), 1))
                for _ in range(more):
                    one.ended()
            self.setUp()

    def test_long_connections(self) -> None:
        """However many begin, connections that stay open are not short."""
        one, other = self.joined(1, 0)
        one.tick()
        for _ in range(TURNOVER):
            one.began()
            other.began()
        one.tick()
        self.assertFalse(one.look(one.others(), 1))

    def test_short_connections_of_many(self) -> None:
        """The worker that has the fewest says how many more another may have while connections are short."""
        one, other, _ = self.joined(20, 20, 0)
        one.tick()
        for _ in range(TURNOVER):
            other.began()
            other.ended()
        one.tick()
        self.assertTrue(one.look(one.others(), 1))

    def test_looks_again(self) -> None:
        """Looks are counted anew once nothing waits."""
        one, _ = self.joined(3, 0)
        for _ in range(3):
            for _ in range(PATIENCE - 1):
                self.assertFalse(one.look(one.others(), 1))
            self.assertTrue(one.look(one.others(), 0))

    def test_taken_once(self) -> None:
        """What is taken for want of patience is taken once, and not if nothing waits any more."""
        one, other = self.joined(9, 0)
        self.run_out(one)
        other.began()
        self.assertEqual([1, 0], [one.room(one.others(), waiting) for waiting in (1, 1)])
        self.run_out(one)
        other.began()
        self.assertEqual([0, 0], [one.room(one.others(), waiting) for waiting in (0, 1)])

    @given(st.lists(st.tuples(COUNTS, COUNTS, COUNTS), min_size=1, max_size=4), st.integers(0, 50), st.booleans())
    def test_any_page(self, rows: Sequence[tuple[int, int, int]], mine: int, changing: bool) -> None:
        """Whatever the page says, and goes on to say, a worker accepts after so many looks."""
        page = CounterPage()
        try:
            share = WorkerRow(page.descriptor, 0, len(rows) + 1).share(0)
            assert share is not None
            share.join()
            for _ in range(mine):
                share.began()
            for look in range(PATIENCE + 1):
                for number, values in enumerate(rows, start=1):
                    moved = [(value + look * changing) & 0xFFFFFFFF for value in values]
                    os.pwrite(page.descriptor, b"".join(each.to_bytes(4, "little") for each in moved), number * ROW)
                if share.room(share.others(), 1):
                    return
                share.look(share.others(), 1)
            self.fail("it waits for ever")
        finally:
            page.close()
