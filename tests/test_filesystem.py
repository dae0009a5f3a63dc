"""The floor of free space."""

from __future__ import annotations

import errno
import os

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.filesystem import DiskSpace, default_floor

MIB = 1024**2


def said(*, total: int, free: int, unit: int = 1024) -> os.statvfs_result:
    """Return what is said of a file system; root has twice as much free as others."""
    return os.statvfs_result((4096, unit, total // unit, 2 * free // unit, free // unit, 0, 0, 0, 0, 255))


class DiskSpaceTests(SynchronousTestCase):
    """When there is room."""

    def test_default_floor(self) -> None:
        """It is 64 MiB, but never more than a twentieth of the whole."""
        cases = ((0, 0), (8 * MIB, 8 * MIB // 20), (1280 * MIB, 64 * MIB), (1 << 50, 64 * MIB))
        for total, floor in cases:
            self.assertEqual(floor, default_floor(total))

    def test_check(self) -> None:
        """A batch fits when the floor is free after it, for users other than root."""
        large, small = 1 << 40, 8 * MIB
        floor = default_floor(small)
        cases = (
            (None, large, 64 * MIB + 10_240, 10_240, True),
            (None, large, 64 * MIB + 10_240, 10_241, False),
            (None, small, 8 * MIB, 8 * MIB - floor, True),
            (None, small, 8 * MIB, 8 * MIB - floor + 1, False),
            (100 * MIB, small, 8 * MIB, 1, False),
            (MIB, large, MIB, 0, True),
            (MIB, large, MIB, 1, False),
            (0, large, 0, 1000, True),
            # Of no size at all: a file system that says nothing.
            (None, 0, 0, 1000, True),
            (MIB, 0, 0, 1000, True),
        )
        for min_free, total, free, size, fits in cases:
            room = DiskSpace("/x/y", min_free, lambda _, total=total, free=free: said(total=total, free=free))
            if fits:
                room.check(size)
                continue
            error = self.assertRaises(OSError, room.check, size)
            self.assertEqual((errno.ENOSPC, "/x/y"), (error.errno, error.filename), (min_free, total, free, size))

    def test_words(self) -> None:
        """The error has the path, what is free, what was wanted, and the floor."""
        room = DiskSpace("/x/y", MIB, lambda _: said(total=1 << 40, free=2048))
        text = str(self.assertRaises(OSError, room.check, 100))
        for part in ("/x/y", "2048 bytes are free", "100 more", "1MiB stay free"):
            self.assertIn(part, text)

    def test_where(self) -> None:
        """It asks by the path, or by a descriptor when there is one; without a floor it asks nothing."""
        asked: list[str | int] = []

        def statvfs(where: str | int) -> os.statvfs_result:
            asked.append(where)
            return said(total=1 << 40, free=1 << 40)

        DiskSpace("/x", None, statvfs).check(1)
        DiskSpace("/x", None, statvfs).check(1, 7)
        DiskSpace("/x", 0, statvfs).check(1)
        self.assertEqual(["/x", 7], asked)

    def test_cannot_be_asked(self) -> None:
        """A file system that can't be asked stops nobody: the write itself will tell."""
        DiskSpace("/nonexistent/file", 1 << 60).check(1)

    def test_real(self) -> None:
        """A real file system has less than everything, and more than nothing."""
        DiskSpace(os.curdir, 1).check(1)
        self.assertRaises(OSError, DiskSpace(os.curdir, 1 << 62).check, 1)
