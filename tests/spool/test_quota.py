"""The quota, to the byte and to the nanosecond, and the free space that a batch must leave."""

from __future__ import annotations

from itertools import product
from typing import cast

from twisted.trial.unittest import SynchronousTestCase

from tests.spool.faulty_spool import Disk, drain, stored, texts
from tests.spool.test_queue import QueueCase, letter
from webhookrx.filesystem import DiskSpace
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.quota import (
    LOG_BYTES,
    NO_FOOTPRINT,
    SMALL_LOG_BYTES,
    BatchSize,
    Footprint,
    Quota,
    SpoolFull,
)
from webhookrx.spool.rows import PAGE, ROW_OVERHEAD, Totals

SECOND = 10**9


class _Undo(Exception):
    """Ends a transaction that is to have no effect."""


class RoomTests(QueueCase):
    """A queue with three messages of 1, 2 and 3 seconds of age, and a dead letter."""

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
                return room.make_room(transaction, elsewhere, incoming, self.now, short)
            except SpoolFull as error:
                return str(error)

    def test_size(self) -> None:
        """A batch may fill the quota to the last byte, and no further, wherever messages wait."""
        room = Quota(6 * self.size)
        self.assertEqual(0, self.make(room, 2 * self.size))
        self.assertIn("the spool is full", str(self.make(room, 2 * self.size + 1)))
        self.assertEqual(0, self.make(room, self.size, elsewhere=self.size))
        self.assertIn("the spool is full", str(self.make(room, self.size, elsewhere=self.size + 1)))

    def test_lack(self) -> None:
        """One byte missing on the disk means no room, however much the size leaves."""
        self.assertEqual(0, self.make(Quota(1 << 30), 1))
        self.assertIn("the spool is full", str(self.make(Quota(1 << 30), 1, short=1)))

    def test_age(self) -> None:
        """A message may be as old as the limit; an older one leaves no room for others."""
        self.assertEqual(0, self.make(Quota(1 << 30, 3.0), 1))
        self.assertIn("longer than 2999ms", str(self.make(Quota(1 << 30, 2.999), 1)))
        self.assertEqual(0, self.make(Quota(1 << 30), 1))

    def test_drop(self) -> None:
        """As few as necessary are dropped: dead letters first, then the oldest."""
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
        """Messages older than the limit are dropped; a dead letter is not, if its room is not needed."""
        self.assertEqual(2, self.make(Quota(1 << 30, 1.0, True), 1))
        self.queue.refresh()
        self.assertEqual(1, self.queue.status().dead)
        self.assertEqual(["1st"], drain(self.queue))

    def test_drop_all(self) -> None:
        """A batch that would not fit even after dropping everything is refused, and nothing is dropped."""
        room = Quota(4 * self.size, drop_oldest=True)
        self.assertIn("whatever is dropped", str(self.make(room, 4 * self.size + 1)))
        self.assertIn("whatever is dropped", str(self.make(room, 1, short=4 * self.size + 1)))
        self.assertEqual(3, len(self.queue.next_batch()))
        self.assertEqual(4, self.make(room, 4 * self.size))

    def test_has_room(self) -> None:
        """has_room agrees with make_room at each limit and next to it."""
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
            would = room.has_room(state, oldest, elsewhere, incoming, self.now, short)
            try:
                with self.file.transaction(durable=False) as transaction:
                    room.make_room(transaction, elsewhere, incoming, self.now, short)
                    raise _Undo
            except (SpoolFull, _Undo) as end:
                self.assertEqual(isinstance(end, _Undo), would, (room, incoming, elsewhere, short))

    def test_has_room_empty(self) -> None:
        """In an empty queue nothing is too old."""
        nothing = Totals(0, 0, 0, 0, 1, 0)
        self.assertTrue(Quota(100, 1.0).has_room(nothing, None, 0, 100, self.now, 0))
        self.assertFalse(Quota(100, 1.0).has_room(nothing, None, 0, 101, self.now, 0))


KIB, MIB = 1024, 1024**2


class BatchSizeTests(SynchronousTestCase):
    """A batch."""

    def test_of(self) -> None:
        """It counts its bytes and 64 for each message, and needs pages that may be half full."""
        for sizes, size, least, most in (
            ((), 0, 32 * KIB, 32 * KIB),
            ((10,), 74, 32 * KIB + 2 * 74, 32 * KIB + 2 * 74),
            ((2100,) * 100, 216_400, 409_600, 500_000),
            ((10_000_000,), 10_000_064, 10_000_064 + 40 * KIB, 10_000_064 + 40 * KIB),
        ):
            incoming = BatchSize.of([bytes(length) for length in sizes])
            self.assertEqual(size, incoming.size)
            self.assertTrue(least <= incoming.pages <= most, incoming)

    def test_real(self) -> None:
        """It is never less than what a message really occupies; see the tests of the queue."""
        self.assertGreater(BatchSize.of(stored("x")).pages, 4096 * 5)


class FootprintTests(SynchronousTestCase):
    """A file."""

    def test_new_pages(self) -> None:
        """Free pages are used first."""
        for free, batch, new in ((0, MIB, MIB), (MIB, MIB, 0), (MIB // 2, MIB, MIB // 2), (2 * MIB, MIB, 0)):
            self.assertEqual(new, Footprint(4 * MIB, 0, 4 * MIB, free).new_pages(batch), free)

    def test_fixed_growth(self) -> None:
        """The log needs room up to its limit, and so do pages that are not copied yet."""
        for file, log, pages, grown in (
            (4 * MIB, 0, 4 * MIB, 2 * MIB),
            (4 * MIB, MIB, 4 * MIB, MIB),
            (4 * MIB, 9 * MIB, 4 * MIB, 0),
            (4 * MIB, 9 * MIB, 5 * MIB, MIB),
            (4 * MIB, 9 * MIB, 3 * MIB, 0),
        ):
            footprint = Footprint(file, log, pages, 0)
            self.assertEqual(grown + 64 * KIB, footprint.fixed_growth(MIB, 512 * KIB), (file, log, pages))

    def test_removal(self) -> None:
        """However small a batch, the log has room for removing what waits."""
        for batch in (0, 1, 512 * KIB):
            self.assertEqual((1536 + 64) * KIB, NO_FOOTPRINT.fixed_growth(batch, 512 * KIB), batch)
        self.assertEqual((1536 + 64) * KIB + 1, NO_FOOTPRINT.fixed_growth(512 * KIB + 1, 512 * KIB))

    def test_not_there(self) -> None:
        """A file that does not exist yet has no size and no free pages."""
        self.assertEqual((0, 0, 0, 0), tuple(NO_FOOTPRINT))


FLOOR = 1000
MIB = 1024**2
BATCH = BatchSize(100_000, 150_000)
LEFT = Footprint(4 * MIB, MIB, 5 * MIB, 50_000)
"""A file with a log, uncopied pages and free pages: 100,000 bytes of the batch need new pages."""


class _File:
    """A file with this footprint."""

    def __init__(self, footprint: Footprint) -> None:
        self.footprint = lambda: footprint
        self.limits: list[int] = []

    def limit_log(self, size: int) -> None:
        """Note it."""
        self.limits.append(size)


class ReserveTests(SynchronousTestCase):
    """Free space above the floor, compared with the needs of a batch."""

    def shortage(
        self, above_floor: int, footprint: Footprint, *, drop_oldest: bool = False
    ) -> tuple[int | str, list[int]]:
        """Return how much must be dropped, or why there is no room; and what the log was limited to."""
        file = _File(footprint)
        space = DiskSpace("/nowhere", FLOOR, Disk(above_floor + FLOOR).statvfs)
        try:
            found: int | str = Quota(1 << 30, None, drop_oldest).shortage(space, cast("SpoolFile", file), BATCH)
        except SpoolFull as error:
            found = str(error)
        return found, file.limits

    def test_log(self) -> None:
        """The log is large while it, the batch and 16 MiB leave the floor untouched, and small below that."""
        for footprint in (NO_FOOTPRINT, LEFT):
            need = footprint.fixed_growth(BATCH.pages, LOG_BYTES) + footprint.new_pages(BATCH.pages) + 16 * MIB
            self.assertEqual((0, [LOG_BYTES]), self.shortage(need, footprint))
            self.assertEqual((0, [SMALL_LOG_BYTES]), self.shortage(need - 1, footprint))

    def test_room(self) -> None:
        """A batch has room if it and a small log leave the floor untouched."""
        for footprint in (NO_FOOTPRINT, LEFT):
            need = footprint.fixed_growth(BATCH.pages, SMALL_LOG_BYTES) + footprint.new_pages(BATCH.pages)
            self.assertEqual(0, self.shortage(need, footprint)[0])
            self.assertEqual(0, self.shortage(need, footprint, drop_oldest=True)[0])
            self.assertIn(f"{need} more are wanted", str(self.shortage(need - 1, footprint)[0]))

    def test_drop(self) -> None:
        """As much is dropped as is missing, and two pages more; at most the new pages of the batch."""
        fixed, new = LEFT.fixed_growth(BATCH.pages, SMALL_LOG_BYTES), LEFT.new_pages(BATCH.pages)
        for lacking, dropped in ((1, 1), (new - 1, new - 1), (new, new), (new + 500, new)):
            found, _ = self.shortage(fixed + new - lacking, LEFT, drop_oldest=True)
            self.assertEqual(dropped + 2 * PAGE, found, lacking)
        without = LEFT._replace(free=BATCH.pages)
        self.assertEqual(0, self.shortage(fixed - 500, without, drop_oldest=True)[0])

    def test_below_the_floor(self) -> None:
        """The log may use space below the floor, as far as there is any."""
        fixed, new = LEFT.fixed_growth(BATCH.pages, SMALL_LOG_BYTES), LEFT.new_pages(BATCH.pages)
        self.assertEqual(new + 2 * PAGE, self.shortage(fixed - FLOOR, LEFT, drop_oldest=True)[0])
        self.assertIn("more are wanted", str(self.shortage(fixed - FLOOR - 1, LEFT, drop_oldest=True)[0]))

    def test_no_file(self) -> None:
        """Without a file there is as much room as with an empty one."""
        need = NO_FOOTPRINT.fixed_growth(BATCH.pages, SMALL_LOG_BYTES) + BATCH.pages
        for above_floor, has_room in ((need, True), (need - 1, False)):
            space = DiskSpace("/nowhere", FLOOR, Disk(above_floor + FLOOR).statvfs)
            if has_room:
                self.assertEqual(0, Quota(1 << 30).shortage(space, None, BATCH))
            else:
                self.assertRaises(SpoolFull, Quota(1 << 30).shortage, space, None, BATCH)
