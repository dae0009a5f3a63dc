"""Locks on files, and the floor of free space."""

from __future__ import annotations

import errno
import fcntl
import os

from twisted.trial.unittest import SynchronousTestCase

from tests.faulty_file_system import FaultyFileSystem
from webhookrx import filesystem
from webhookrx.filesystem import SHARE_YES, DiskSpace, FileLock, InUse, WriteLock, default_floor, sharing_group

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
        """A file system that can't be measured is never too full: the write itself decides."""
        DiskSpace("/nonexistent/file", 1 << 60).check(1)

    def test_real(self) -> None:
        """A real file system has less than everything, and more than nothing."""
        DiskSpace(os.curdir, 1).check(1)
        self.assertRaises(OSError, DiskSpace(os.curdir, 1 << 62).check, 1)


class FileLockTests(SynchronousTestCase):
    """Which processes get a lock."""

    def setUp(self) -> None:
        """Make a file."""
        self.path = os.path.abspath(self.mktemp())
        self.fd = self.open()
        self.file_system = FaultyFileSystem()

    def open(self) -> int:
        """Open it once more."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT)
        self.addCleanup(os.close, fd)
        return fd

    def lock(self, fd: int | None = None, sharing: int | None = None) -> FileLock:
        """Lock it."""
        lock = FileLock(self.file_system, self.fd if fd is None else fd, sharing)
        self.addCleanup(lock.release)
        return lock

    def refused(self) -> bool:
        """Whether another process is refused."""
        fd = os.open(self.path, os.O_RDWR)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def test_one_process(self) -> None:
        """All locks of a process on a file are one, held until the last is released, however often that is said."""
        first, second = self.lock(), self.lock(self.open())
        self.assertEqual(1, len(self.file_system.named("flock")))
        first.release()
        first.release()
        self.assertTrue(self.refused())
        second.release()

        self.assertFalse(self.refused())
        self.assertEqual(set(), self.file_system.descriptors)

    def test_again(self) -> None:
        """A file whose lock was released can be locked again, and others are refused then."""
        self.lock().release()
        self.lock()
        self.assertTrue(self.refused())

    def test_who(self) -> None:
        """The error says which process has it, as far as the kernel tells."""
        status = os.fstat(self.fd)
        place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        cases = (
            (f"1: FLOCK  ADVISORY  WRITE 4711 {place} 0 EOF\n", "process 4711 appends"),
            (f"1: FLOCK  ADVISORY  WRITE {os.getpid()} {place} 0 EOF\n", "another observer of this process appends"),
            (f"1: POSIX  ADVISORY  WRITE 4711 {place} 0 EOF\n", "another process appends"),
            (f"1: -> FLOCK  ADVISORY  WRITE 4711 {place} 0 EOF\n", "another process appends"),
            (f"1: FLOCK  ADVISORY  WRITE 0 {place} 0 EOF\n", "another process appends"),
            (f"1: FLOCK  ADVISORY  WRITE 4711 {place}1 0 EOF\n", "another process appends"),
            ("nonsense\n\n1: FLOCK ADVISORY WRITE none there 0 EOF\n", "another process appends"),
            (None, "another process appends"),
        )
        fcntl.flock(self.open(), fcntl.LOCK_EX)
        for text, who in cases:
            locks = self.mktemp()
            if text is not None:
                with open(locks, "w") as file:
                    file.write(text)
            self.patch(filesystem, "_PROC_LOCKS", locks)
            error = self.assertRaises(InUse, self.lock)

            self.assertIn(who, str(error))
            self.assertIn("share=yes", error.strerror)

    def test_kernel_tells(self) -> None:
        """The kernel's own list is read."""
        if not os.path.exists("/proc/locks"):
            self.skipTest("there is no /proc/locks")
        fcntl.flock(self.open(), fcntl.LOCK_EX)

        self.assertIn("process", self.assertRaises(InUse, self.lock).strerror)

    def test_no_descriptor_left(self) -> None:
        """Without a descriptor to hold it there is no lock, and nothing stays behind."""
        self.file_system.plans["dup"] = [OSError(24, "Too many open files")]
        self.assertRaises(OSError, self.lock)
        self.assertTrue(self.lock().is_removed() is False)

    def test_removed(self) -> None:
        """It tells when the file has lost its name; once released it has nothing to tell of."""
        lock = self.lock()
        os.remove(self.path)
        self.assertTrue(lock.is_removed())
        lock.release()

        self.assertFalse(lock.is_removed())

    def test_sharing_groups(self) -> None:
        """Members of one sharing group share a file; others are refused, and a refused one keeps no lock."""
        groups = (None, SHARE_YES, self.new_group(), self.new_group())
        for mine in groups:
            first = self.lock(sharing=mine)
            for theirs in groups:
                other = self.open_elsewhere()
                another_process = self.patch(filesystem, "_held_locks", {})
                if theirs == mine is not None:
                    self.lock(other, theirs).release()
                else:
                    self.assertIn("share=yes", self.assertRaises(InUse, self.lock, other, theirs).strerror)
                    self.assertEqual({}, filesystem._held_locks)
                os.close(other)
                another_process.restore()
            first.release()
            self.assertFalse(self.refused())

    def open_elsewhere(self) -> int:
        """Open the file as another process does; the caller closes it."""
        return os.open(self.path, os.O_RDWR)

    def new_group(self) -> int:
        """Return a new sharing group."""
        fd = os.memfd_create("lock")
        self.addCleanup(os.close, fd)
        self.assertEqual(sharing_group(fd), sharing_group(fd))
        return sharing_group(fd)

    def test_write_with_sharing_group(self) -> None:
        """A lock of a sharing group does not exclude locks for a write."""
        self.lock(sharing=SHARE_YES)
        other = self.open()
        fcntl.fcntl(other, fcntl.F_OFD_SETLK, filesystem._ACQUIRE)

    def test_released_sharing_group(self) -> None:
        """After a release another sharing group gets the lock, though the descriptor is still open."""
        self.lock(sharing=SHARE_YES).release()

        self.lock(self.open(), self.new_group())

    def test_no_byte_locks(self) -> None:
        """On a file system with locks on files but not on bytes, every sharing group gets the lock."""
        for step in (OSError(22, "Invalid argument"), None):
            self.file_system.plans["control"] = [step, OSError(22, "Invalid argument")]
            lock = self.lock(sharing=self.new_group())
            self.assertTrue(self.refused())
            lock.release()

    def test_no_locks(self) -> None:
        """On a file system without locks on files, locks on bytes are not tried."""
        self.file_system.plans["flock"] = [OSError(95, "Operation not supported")]
        self.lock(sharing=SHARE_YES)
        self.assertEqual([], self.file_system.named("control"))

    def test_write_lock(self) -> None:
        """One process at a time writes to a shared file; a failure inside releases the lock."""

        def locked() -> bool:
            try:
                fcntl.fcntl(other, fcntl.F_OFD_SETLK, filesystem._ACQUIRE)
            except BlockingIOError:
                return True
            fcntl.fcntl(other, fcntl.F_OFD_SETLK, filesystem._RELEASE)
            return False

        other = self.open()
        with self.assertRaises(ValueError), WriteLock(self.file_system, self.fd):
            self.assertTrue(locked())
            raise ValueError
        self.assertFalse(locked())
