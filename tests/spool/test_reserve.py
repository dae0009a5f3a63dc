"""The room that a spool leaves on its file system, to the byte."""

from __future__ import annotations

from typing import cast

from twisted.trial.unittest import SynchronousTestCase

from tests.spool.faulty_spool import Disk
from webhookrx.filesystem import DiskSpace
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.footprint import NO_FOOTPRINT, PAGE, BatchSize, Footprint
from webhookrx.spool.quota import SpoolFull
from webhookrx.spool.reserve import DiskReserve
from webhookrx.spool.schema import LOG_BYTES, SMALL_LOG_BYTES

FLOOR = 1000
MIB = 1024**2
BATCH = BatchSize(100_000, 150_000)
LEFT = Footprint(4 * MIB, MIB, 5 * MIB, 50_000)
"""That of a file with something of everything: 100,000 bytes of the batch need new pages."""


class _File:
    """A file that takes so much."""

    def __init__(self, footprint: Footprint) -> None:
        self.footprint = lambda: footprint
        self.limits: list[int] = []

    def limit_log(self, size: int) -> None:
        """Note it."""
        self.limits.append(size)


class ReserveTests(SynchronousTestCase):
    """What is free above the floor against what a batch needs."""

    def shortage(
        self, above_floor: int, footprint: Footprint, *, drop_oldest: bool = False
    ) -> tuple[int | str, list[int]]:
        """Return how much must be dropped, or why there is no room; and what the log was limited to."""
        file = _File(footprint)
        space = DiskSpace("/nowhere", FLOOR, Disk(above_floor + FLOOR).statvfs)
        try:
            found: int | str = DiskReserve(space, drop_oldest=drop_oldest).shortage(cast("SpoolFile", file), BATCH)
        except SpoolFull as error:
            found = str(error)
        return found, file.limits

    def test_log(self) -> None:
        """The log is large as long as that, the batch and 16 MiB leave the floor untouched, and small from then on."""
        for footprint in (NO_FOOTPRINT, LEFT):
            need = footprint.fixed_growth(BATCH.pages, LOG_BYTES) + footprint.new_pages(BATCH.pages) + 16 * MIB
            self.assertEqual((0, [LOG_BYTES]), self.shortage(need, footprint))
            self.assertEqual((0, [SMALL_LOG_BYTES]), self.shortage(need - 1, footprint))

    def test_room(self) -> None:
        """A batch has room as long as it and a small log leave the floor untouched."""
        for footprint in (NO_FOOTPRINT, LEFT):
            need = footprint.fixed_growth(BATCH.pages, SMALL_LOG_BYTES) + footprint.new_pages(BATCH.pages)
            self.assertEqual(0, self.shortage(need, footprint)[0])
            self.assertEqual(0, self.shortage(need, footprint, drop_oldest=True)[0])
            self.assertIn(f"{need} more are wanted", str(self.shortage(need - 1, footprint)[0]))

    def test_drop(self) -> None:
        """So much is dropped as is lacking, and two pages more; no more than the batch has new pages."""
        fixed, new = LEFT.fixed_growth(BATCH.pages, SMALL_LOG_BYTES), LEFT.new_pages(BATCH.pages)
        for lacking, dropped in ((1, 1), (new - 1, new - 1), (new, new), (new + 500, new)):
            found, _ = self.shortage(fixed + new - lacking, LEFT, drop_oldest=True)
            self.assertEqual(dropped + 2 * PAGE, found, lacking)
        without = LEFT._replace(free=BATCH.pages)
        self.assertEqual(0, self.shortage(fixed - 500, without, drop_oldest=True)[0])

    def test_below_the_floor(self) -> None:
        """What the log needs may come from below the floor, and no further."""
        fixed, new = LEFT.fixed_growth(BATCH.pages, SMALL_LOG_BYTES), LEFT.new_pages(BATCH.pages)
        self.assertEqual(new + 2 * PAGE, self.shortage(fixed - FLOOR, LEFT, drop_oldest=True)[0])
        self.assertIn("more are wanted", str(self.shortage(fixed - FLOOR - 1, LEFT, drop_oldest=True)[0]))

    def test_no_file(self) -> None:
        """Before there is a file there is room for as much as for one that takes nothing yet."""
        need = NO_FOOTPRINT.fixed_growth(BATCH.pages, SMALL_LOG_BYTES) + BATCH.pages
        for above_floor, has_room in ((need, True), (need - 1, False)):
            reserve = DiskReserve(DiskSpace("/nowhere", FLOOR, Disk(above_floor + FLOOR).statvfs), drop_oldest=False)
            if has_room:
                self.assertEqual(0, reserve.shortage(None, BATCH))
            else:
                self.assertRaises(SpoolFull, reserve.shortage, None, BATCH)
