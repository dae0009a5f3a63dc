"""Links in the place of a spool's directory or lock."""

from __future__ import annotations

import errno
import os
from unittest import mock

from twisted.trial.unittest import SynchronousTestCase

from tests.spool.faulty_spool import FaultySpool, drain, make_queue, stored
from tests.spool.test_observer import SpoolCase
from webhookrx.errors import ConfigError, NotStored
from webhookrx.filesystem import FileSystem, InUse
from webhookrx.spool.admin import AdminError, DirectoryAdmin
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.untrusted_files import UntrustedFileSystem

STRANGER = 54321
OURSELVES = 1234


class OtherOwners(FaultySpool):
    """
    Links belong to whom a test says.

    @ivar owners: the ends of their paths to user numbers.
    """

    def __init__(self, owners: dict[str, int]) -> None:
        super().__init__()
        self.owners = owners

    def link_owner(self, path: str) -> int | None:
        """Try to lock it."""
        owner = super().link_owner(path)
        return owner if owner is None else self.owners.get(os.path.basename(path), owner)


class LockTests(SynchronousTestCase):
    """A directory belongs to one receiver."""

    def test_descriptors(self) -> None:
        """Finding it locked leaves no descriptor open."""
        path = os.path.abspath(self.mktemp())
        first, second = (SpoolDirectory(path) for _ in range(2))
        first.make()
        first.lock()
        self.addCleanup(first.unlock)
        with mock.patch.object(second.file_system, "close", wraps=os.close) as close:
            self.assertRaises(InUse, second.lock)
        self.assertEqual(1, close.call_count)


class LinkTests(SynchronousTestCase):
    """Links of which users are followed."""

    def setUp(self) -> None:
        """Make what links lead to."""
        self.around = os.path.abspath(self.mktemp())
        os.makedirs(os.path.join(self.around, "elsewhere"))
        self.path = os.path.join(self.around, "spool")
        self.faults = OtherOwners({})
        self.patch(os, "geteuid", lambda: OURSELVES)

    def refused(self, name: str) -> None:
        """Check that nothing is opened, and that the error says why."""
        before = sorted(os.listdir(os.path.join(self.around, "elsewhere")))
        error = self.assertRaises(OSError, make_queue(self.path, self.faults).open)
        self.assertIn(f"{name}' is a symbolic link of another user (uid {STRANGER})", str(error))
        self.assertEqual(before, sorted(os.listdir(os.path.join(self.around, "elsewhere"))))

    def test_directory(self) -> None:
        """A directory behind a link of root or our user is accepted; behind one of another user it is left alone."""
        os.symlink("elsewhere", self.path)
        for owner, taken in ((STRANGER, False), (0, True), (OURSELVES, True)):
            self.faults.owners["spool"] = owner
            if not taken:
                self.refused("/spool")
                continue
            queue = make_queue(self.path, self.faults)
            queue.open()
            queue.append(stored("one"))
            self.assertEqual(["one"], drain(queue))
            queue.close()

    def test_lock(self) -> None:
        """The same holds for the lock; a link of another user creates no file at its target."""
        os.mkdir(self.path)
        os.symlink("../elsewhere/file", os.path.join(self.path, "lock"))
        for owner, taken in ((STRANGER, False), (0, True), (OURSELVES, True)):
            self.faults.owners["lock"] = owner
            if not taken:
                self.refused("/lock")
                continue
            queue = make_queue(self.path, self.faults)
            queue.open()
            queue.close()
        self.assertEqual(["file"], os.listdir(os.path.join(self.around, "elsewhere")))

    def test_lock_alone(self) -> None:
        """Nothing is made behind a link of another user that appears after the directory was made."""
        os.symlink("elsewhere", self.path)
        self.faults.owners["spool"] = STRANGER
        self.assertRaises(OSError, SpoolDirectory(self.path, self.faults).lock)
        self.assertEqual([], os.listdir(os.path.join(self.around, "elsewhere")))

    def test_owner_of_link(self) -> None:
        """The owner of the link counts, not of its target; a dangling link is a link, too."""
        os.symlink("nothing", self.path)
        files = FileSystem()
        self.assertEqual(os.getuid(), files.link_owner(self.path))
        self.assertIsNone(files.link_owner(os.path.join(self.around, "elsewhere")))
        self.assertIsNone(files.link_owner(os.path.join(self.around, "nothing")))
        self.assertRaises(OSError, files.link_owner, __file__ + "/x")
        if os.getuid() == 0:
            os.lchown(self.path, STRANGER, STRANGER)
            self.assertEqual(STRANGER, files.link_owner(self.path))
            self.assertRaises(OSError, make_queue(self.path).open)

    def test_worker(self) -> None:
        """The directory of a worker is checked, and so is that of the spool around it."""
        os.symlink("elsewhere", self.path)
        os.mkdir(os.path.join(self.path, "worker-1"))
        self.faults.owners["spool"] = STRANGER
        directory = SpoolDirectory(os.path.join(self.path, "worker-1"), self.faults, self.path)
        for method in (directory.make, directory.lock):
            self.assertIn("another user", str(self.assertRaises(OSError, method)))

    def exchange_at(self, call: str, exchange: object) -> None:
        """Let names be exchanged just before a call of the system."""
        real = getattr(self.faults, call)

        def exchanged(*args: object) -> object:
            setattr(self.faults, call, real)
            exchange()  # type: ignore[operator]
            return real(*args)

        setattr(self.faults, call, exchanged)

    def test_link_meanwhile(self) -> None:
        """A link that replaces the lock after the check is not followed."""
        os.mkdir(self.path)
        lock = os.path.join(self.path, "lock")
        self.exchange_at("open", lambda: os.symlink("../elsewhere/file", lock))
        error = self.assertRaises(OSError, SpoolDirectory(self.path, self.faults).lock)

        self.assertEqual(errno.ELOOP, error.errno)
        self.assertEqual([], os.listdir(os.path.join(self.around, "elsewhere")))

    def test_directory_meanwhile(self) -> None:
        """A directory that is exchanged for a link or another directory during locking is refused."""
        for link in (True, False):
            os.mkdir(self.path)

            def exchange(link: bool = link) -> None:
                os.rename(self.path, f"{self.path}-{link}")
                if link:
                    self.faults.owners["spool"] = STRANGER
                    os.symlink("elsewhere", self.path)
                else:
                    os.mkdir(self.path)

            directory = SpoolDirectory(self.path, self.faults)
            self.exchange_at("flock", exchange)
            error = self.assertRaises(OSError, directory.lock)
            self.assertIn("another user" if link else "exchanged", str(error))
            self.assertFalse(directory.is_locked)
            if link:
                os.unlink(self.path)
                self.faults.owners.clear()

    def test_while_it_runs(self) -> None:
        """Once a link has replaced the directory nothing is acknowledged, and nothing is written behind it."""
        queue = make_queue(self.path, self.faults)
        queue.open()
        self.addCleanup(queue.close)
        queue.append(stored("one"))
        os.rename(self.path, self.path + "-old")
        os.symlink("elsewhere", self.path)
        self.faults.owners["spool"] = STRANGER
        error = self.assertRaises(NotStored, queue.append, stored("two"))

        self.assertIn("symbolic link of another user", str(error))
        (one,) = queue.next_batch()
        queue.ack([one.id])
        self.assertRaises(OSError, queue.next_batch)
        self.assertEqual([], os.listdir(os.path.join(self.around, "elsewhere")))

    def test_command(self) -> None:
        """Commands do not follow it either."""
        os.symlink("elsewhere", self.path)
        queue = make_queue(self.path, self.faults)
        queue.open()
        queue.close()
        self.patch(UntrustedFileSystem, "link_owner", lambda _, path: STRANGER if path == self.path else None)

        self.assertIn("another user", str(self.assertRaises(AdminError, DirectoryAdmin, self.path)))


class LinkWordsTests(SpoolCase):
    """The error of a start."""

    def test_words(self) -> None:
        """The error of the start names the link and its owner."""
        self.faults = OtherOwners({"spool": STRANGER})
        os.mkdir(self.path)
        os.symlink("..", os.path.join(self.path, "spool"))
        self.path = os.path.join(self.path, "spool")
        error = self.assertRaises(ConfigError, self.make_observer().open)

        self.assertIn(f"{self.path!r} is a symbolic link of another user (uid {STRANGER})", str(error))


class EarlyRemovalTests(SynchronousTestCase):
    """Removing a file before there is one of a higher number."""

    def setUp(self) -> None:
        """Make a file with its log and its mark."""
        self.path = os.path.abspath(self.mktemp())
        os.mkdir(self.path)
        self.faults = FaultySpool()
        self.directory = SpoolDirectory(self.path, self.faults)
        self.names = [f"00000001.sqlite{part}" for part in ("", "-journal", "-shm", "-wal")]
        for name in self.names:
            with open(os.path.join(self.path, name), "w"):
                pass

    def test_number(self) -> None:
        """Its number is not used again: the mark keeps it until a higher one exists."""
        self.directory.remove_last(1)
        self.assertEqual(["00000001.failed"], os.listdir(self.path))
        self.assertEqual(([], 2), (self.directory.numbers(), self.directory.next_number()))
        self.directory.remove_marks()
        self.assertEqual([], os.listdir(self.path))

    def test_order(self) -> None:
        """The number is safe on disk before the file goes, and the file goes after what belongs to it."""
        self.directory.remove_last(1)
        calls = [(call, os.path.basename(path)) for call, path in self.faults.calls if call in ("fsync", "unlink")]
        self.assertEqual("fsync", calls[0][0])
        self.assertEqual({("unlink", name) for name in self.names}, set(calls[1:]))
        self.assertEqual("00000001.sqlite", calls[-1][1])

    def test_no_mark(self) -> None:
        """The file stays when its mark can't be made or synced."""
        for call, failure in (("open", OSError(errno.ENOSPC, "full")), ("fsync", OSError(errno.EIO, "broken"))):
            self.faults.fail(call, failure)
            error = self.assertRaises(OSError, self.directory.remove_last, 1)
            self.assertEqual(failure.errno, error.errno)
            self.assertEqual(self.names, [name for name in sorted(os.listdir(self.path)) if "sqlite" in name])
