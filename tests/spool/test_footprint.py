"""How much room a batch needs."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.spool.faulty_spool import stored
from webhookrx.spool.footprint import NO_FOOTPRINT, BatchSize, Footprint

KIB, MIB = 1024, 1024**2


class IncomingTests(SynchronousTestCase):
    """A batch."""

    def test_of(self) -> None:
        """It counts its bytes and so many for each message, and takes pages that may be half full."""
        for sizes, size, least, most in (
            ((), 0, 32 * KIB, 32 * KIB),
            ((10,), 74, 32 * KIB + 2 * 74, 32 * KIB + 2 * 74),
            ((2100,) * 100, 216_400, 409_600, 500_000),
            ((10_000_000,), 10_000_064, 10_000_064 + 40 * KIB, 10_000_064 + 40 * KIB),
        ):
            incoming = BatchSize.of([bytes(length) for length in sizes], 64)
            self.assertEqual(size, incoming.size)
            self.assertTrue(least <= incoming.pages <= most, incoming)

    def test_real(self) -> None:
        """It is never less than what a message of any length really takes; see the queue for that."""
        self.assertGreater(BatchSize.of(stored("x"), 64).pages, 4096 * 5)


class FootprintTests(SynchronousTestCase):
    """A file."""

    def test_new_pages(self) -> None:
        """Pages that hold nothing are taken first."""
        for free, batch, new in ((0, MIB, MIB), (MIB, MIB, 0), (MIB // 2, MIB, MIB // 2), (2 * MIB, MIB, 0)):
            self.assertEqual(new, Footprint(4 * MIB, 0, 4 * MIB, free).new_pages(batch), free)

    def test_fixed_growth(self) -> None:
        """The log needs room up to its limit, and what is not copied yet needs its own."""
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
        """A file that is not there yet takes nothing, and has no pages to spare."""
        self.assertEqual((0, 0, 0, 0), tuple(NO_FOOTPRINT))
