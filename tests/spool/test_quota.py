"""How much a spool keeps: the limits to the byte and to the nanosecond, and that a look says what an append finds."""

from __future__ import annotations

from itertools import product

from tests.spool.faulty_spool import drain, stored, texts
from tests.spool.test_queue import QueueCase, letter
from webhookrx.spool.quota import Quota, SpoolFull
from webhookrx.spool.rows import ROW_OVERHEAD, Totals

SECOND = 10**9


class _Undo(Exception):
    """Ends a transaction that is to have no effect."""


class RoomTests(QueueCase):
    """A room, with three messages of 1, 2 and 3 seconds of age, and a dead letter."""

    def setUp(self) -> None:
        """Let them wait."""
        super().setUp()
        self.now = self.clocks.wall
        self.queue = self.open()
        self.queue.append(stored("bad", received=self.now))
        self.queue.ack([], [letter(self.queue.next_batch()[0])])
        for age in (3, 2, 1):
            self.queue.append(stored(f"{age}st", received=self.now - age * SECOND))
        self.size = len(stored("1st")[0]) + ROW_OVERHEAD
        file = self.queue._files.newest
        assert file is not None
        self.file = file

    def make(self, room: Quota, incoming: int, elsewhere: int = 0, short: int = 0) -> int | str:
        """Make room; return how many were dropped, or why there is none."""
        with self.file.transaction(durable=False) as transaction:
            try:
                return room.make(transaction, elsewhere, incoming, self.now, short)
            except SpoolFull as error:
                return str(error)

    def test_size(self) -> None:
        """It takes a batch that fills it to the last byte, and no larger one, whatever waits elsewhere."""
        room = Quota(6 * self.size)
        self.assertEqual(0, self.make(room, 2 * self.size))
        self.assertIn("the spool is full", str(self.make(room, 2 * self.size + 1)))
        self.assertEqual(0, self.make(room, self.size, elsewhere=self.size))
        self.assertIn("the spool is full", str(self.make(room, self.size, elsewhere=self.size + 1)))

    def test_lack(self) -> None:
        """Where the file system lacks as little as a byte there is no room, however much the limit leaves."""
        self.assertEqual(0, self.make(Quota(1 << 30), 1))
        self.assertIn("the spool is full", str(self.make(Quota(1 << 30), 1, short=1)))

    def test_age(self) -> None:
        """A message may be as old as the limit; one that is older leaves no room for others."""
        self.assertEqual(0, self.make(Quota(1 << 30, 3.0), 1))
        self.assertIn("longer than 2999ms", str(self.make(Quota(1 << 30, 2.999), 1)))
        self.assertEqual(0, self.make(Quota(1 << 30), 1))

    def test_drop(self) -> None:
        """As few go as make room: dead letters first, then the oldest."""
        for room, incoming, gone, left in (
            (Quota(5 * self.size, drop_oldest=True), self.size, 0, ["3st", "2st", "1st"]),
            (Quota(4 * self.size, drop_oldest=True), 1, 1, ["3st", "2st", "1st"]),
            (Quota(4 * self.size, drop_oldest=True), self.size, 0, ["3st", "2st", "1st"]),
            (Quota(4 * self.size, drop_oldest=True), self.size + 1, 1, ["2st", "1st"]),
            (Quota(2 * self.size, drop_oldest=True), self.size + 1, 2, []),
        ):
            self.assertEqual(gone, self.make(room, incoming), (room, incoming))
            self.assertEqual(left, texts(self.queue.next_batch()))

    def test_drop_old(self) -> None:
        """Those go that are older than the limit, and a dead letter that is in nobody's way does not."""
        self.assertEqual(2, self.make(Quota(1 << 30, 1.0, True), 1))
        self.queue.refresh()
        self.assertEqual(1, self.queue.status().dead)
        self.assertEqual(["1st"], drain(self.queue))

    def test_drop_all(self) -> None:
        """What would not fit if all were dropped is refused, and nothing is dropped for it."""
        room = Quota(4 * self.size, drop_oldest=True)
        self.assertIn("whatever is dropped", str(self.make(room, 4 * self.size + 1)))
        self.assertIn("whatever is dropped", str(self.make(room, 1, short=4 * self.size + 1)))
        self.assertEqual(3, len(self.queue.next_batch()))
        self.assertEqual(4, self.make(room, 4 * self.size))

    def test_would_make(self) -> None:
        """A look at the totals says what an append finds, at each limit and next to it."""
        state, oldest = self.file.read_totals(), self.file.oldest()
        for size, age, drop_oldest, incoming, elsewhere, short in product(
            (4 * self.size, 5 * self.size),
            (None, 3.0, 2.999),
            (False, True),
            (self.size, self.size + 1, 4 * self.size, 4 * self.size + 1, 5 * self.size, 5 * self.size + 1),
            (0, 1),
            (0, 1, 4 * self.size, 4 * self.size + 1),
        ):
            room = Quota(size, age, drop_oldest)
            would = room.would_make(state, oldest, elsewhere, incoming, self.now, short)
            try:
                with self.file.transaction(durable=False) as transaction:
                    room.make(transaction, elsewhere, incoming, self.now, short)
                    raise _Undo
            except (SpoolFull, _Undo) as end:
                self.assertEqual(isinstance(end, _Undo), would, (room, incoming, elsewhere, short))

    def test_would_make_empty(self) -> None:
        """Where nothing waits nothing is too old."""
        nothing = Totals(0, 0, 0, 0, 1, 0)
        self.assertTrue(Quota(100, 1.0).would_make(nothing, None, 0, 100, self.now, 0))
        self.assertFalse(Quota(100, 1.0).would_make(nothing, None, 0, 101, self.now, 0))
