"""Locks on files."""

from __future__ import annotations

import fcntl
import os

from twisted.trial.unittest import SynchronousTestCase

from tests.observers.faulty_file_system import FaultyFileSystem
from webhookrx.observers import file_lock
from webhookrx.observers.file_lock import KNOWINGLY, FileLock, InUse, Turn, party_of


class FileLockTests(SynchronousTestCase):
    """Who is let in."""

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

    def lock(self, fd: int | None = None, party: int | None = None) -> FileLock:
        """Lock it."""
        lock = FileLock(self.file_system, self.fd if fd is None else fd, party)
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
            self.patch(file_lock, "_LOCKS", locks)
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

    def test_parties(self) -> None:
        """Those of one party share a file; others are refused, and none of them keeps the file from anybody then."""
        parties = (None, KNOWINGLY, self.party(), self.party())
        for mine in parties:
            first = self.lock(party=mine)
            for theirs in parties:
                other = self.open_elsewhere()
                another_process = self.patch(file_lock, "_claims", {})
                if theirs == mine is not None:
                    self.lock(other, theirs).release()
                else:
                    self.assertIn("share=yes", self.assertRaises(InUse, self.lock, other, theirs).strerror)
                    self.assertEqual({}, file_lock._claims)
                os.close(other)
                another_process.restore()
            first.release()
            self.assertFalse(self.refused())

    def open_elsewhere(self) -> int:
        """Open the file as another process does; the caller closes it."""
        return os.open(self.path, os.O_RDWR)

    def party(self) -> int:
        """Return a new party."""
        fd = os.memfd_create("turns")
        self.addCleanup(os.close, fd)
        self.assertEqual(party_of(fd), party_of(fd))
        return party_of(fd)

    def test_party_with_turns(self) -> None:
        """A party keeps nobody from taking turns at writing."""
        self.lock(party=KNOWINGLY)
        other = self.open()
        fcntl.fcntl(other, fcntl.F_OFD_SETLK, file_lock._TAKE_TURN)

    def test_released_party(self) -> None:
        """Once released, a party leaves room for others, though the descriptor is open still."""
        self.lock(party=KNOWINGLY).release()

        self.lock(self.open(), self.party())

    def test_no_parties(self) -> None:
        """Where there are locks on files but none on their bytes, all that share are let in."""
        for step in (OSError(22, "Invalid argument"), None):
            self.file_system.plans["control"] = [step, OSError(22, "Invalid argument")]
            lock = self.lock(party=self.party())
            self.assertTrue(self.refused())
            lock.release()

    def test_turns(self) -> None:
        """Of those that write to a shared file, one at a time does; a failure inside gives the turn back."""

        def locked() -> bool:
            try:
                fcntl.fcntl(other, fcntl.F_OFD_SETLK, file_lock._TAKE_TURN)
            except BlockingIOError:
                return True
            fcntl.fcntl(other, fcntl.F_OFD_SETLK, file_lock._GIVE_TURN_BACK)
            return False

        other = self.open()
        with self.assertRaises(ValueError), Turn(self.file_system, self.fd):
            self.assertTrue(locked())
            raise ValueError
        self.assertFalse(locked())
