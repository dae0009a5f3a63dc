"""A spool whose files are removed, renamed or replaced while it runs."""

from __future__ import annotations

import fcntl
import os
import shutil

from twisted.logger import LogEvent, formatEvent, globalLogPublisher

from tests.spool.faulty_spool import drain, make_queue, stored
from tests.spool.test_queue import QueueCase
from webhookrx.errors import NotStored
from webhookrx.filesystem import InUse
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.queue import SpoolQueue

NAME = "00000001.sqlite"


class MovedTests(QueueCase):
    """An acknowledged message is in a file that the next process finds."""

    def remove(self, *endings: str) -> None:
        """Remove parts of the first file."""
        for ending in endings:
            os.unlink(os.path.join(self.path, NAME + ending))

    def found(self, queue: SpoolQueue) -> list[object]:
        """End without closing, as a kill does, and return what the next process finds."""
        copy = self.path + "-copy"
        shutil.copytree(self.path, copy)
        os.unlink(os.path.join(copy, "lock"))
        other = make_queue(copy)
        other.open()
        self.addCleanup(other.close)
        return drain(other)

    def test_removed(self) -> None:
        """Whatever was removed, the next batch is safe, and earlier messages are delivered first."""
        for name, change in (
            ("database", lambda: self.remove("")),
            ("log", lambda: self.remove("-wal")),
            ("index", lambda: self.remove("-shm")),
            ("all", lambda: self.remove("", "-wal", "-shm")),
            ("directory", lambda: shutil.rmtree(self.path)),
            ("renamed directory", lambda: os.rename(self.path, self.path + "-old")),
            ("renamed file", lambda: os.rename(os.path.join(self.path, NAME), os.path.join(self.path, "other"))),
        ):
            self.path += "x"
            queue = self.open()
            queue.append(stored("one"))
            change()
            queue.append(stored("two"))
            self.assertIn("two", self.found(queue), name)
            self.assertEqual(2, queue.status().messages)
            self.assertEqual(["one", "two"], drain(queue), name)
            queue.append(stored("three"))
            self.assertEqual(["three"], self.found_again(queue), name)
            queue.close()

    def found_again(self, queue: SpoolQueue) -> list[object]:
        """As L{found}, once more."""
        shutil.rmtree(self.path + "-copy")
        return self.found(queue)

    def test_told(self) -> None:
        """It is noticed without any message, and numbers are not used again."""
        queue = self.open()
        first = queue.append(stored("one"))
        shutil.rmtree(self.path)
        queue.refresh()
        self.assertGreater(queue.append(stored("two"))[0], first[0])

        self.assertEqual(["00000002.sqlite"], self.names())
        self.assertEqual(["one", "two"], drain(queue))

    def test_ack(self) -> None:
        """A batch that was read from a file removed since can be acknowledged."""
        queue = self.open()
        queue.append(stored("one"))
        (one,) = queue.next_batch()
        self.remove("", "-wal")
        queue.ack([one.id])

        self.assertEqual([], queue.next_batch())
        self.assertEqual(0, queue.status().messages)

    def test_meanwhile(self) -> None:
        """A batch whose file is removed between the write and the answer is not acknowledged."""
        queue = self.open()
        connect = self.faults.check

        def remove_at_commit(statement: str, path: str, read_only: bool = False) -> None:
            connect(statement, path, read_only)
            if statement == "COMMIT" and os.path.exists(self.path):
                shutil.rmtree(self.path)

        self.patch(self.faults, "check", remove_at_commit)
        self.assertIn("removed", str(self.assertRaises(NotStored, queue.append, stored("one"))))

    def test_replaced(self) -> None:
        """Another file in the place of a delivered one is not removed, and the log says so."""
        lines: list[str] = []

        def note(event: LogEvent) -> None:
            lines.append(formatEvent(event))

        globalLogPublisher.addObserver(note)
        self.addCleanup(globalLogPublisher.removeObserver, note)
        queue = self.open()
        queue.append(stored("one"))
        path = os.path.join(self.path, NAME)
        os.rename(path, path + ".mine")
        shutil.copy(path + ".mine", path)
        queue.append(stored("two"))
        self.assertEqual(["one", "two"], drain(queue))

        self.assertIn(NAME, self.names())
        self.assertEqual(f"Another file is in the place of {path}; it is left alone", lines[-1])

    def test_directory_for_good(self) -> None:
        """Where the directory can't be made again nothing is acknowledged; readable messages are delivered."""
        os.mkdir(self.path)
        around, self.path = self.path, os.path.join(self.path, "spool")
        queue = self.open()
        queue.append(stored("one", "two"))
        shutil.rmtree(around)
        self.assertRaises(NotStored, queue.append, stored("three"))
        queue.refresh()
        rows = queue.next_batch()
        queue.ack([rows[0].id])
        self.assertEqual(1, queue.status().messages)
        os.mkdir(around)
        self.clocks.now += 1.0
        queue.append(stored("three"))

        self.assertEqual(["two", "three"], drain(queue))

    def test_lock(self) -> None:
        """A removed lock is made again; while another process holds it nothing is stored."""
        queue = self.open()
        queue.append(stored("one"))
        os.unlink(os.path.join(self.path, "lock"))
        queue.append(stored("two"))
        self.assertRaises(InUse, make_queue(self.path).open)
        os.rename(self.path, self.path + "-old")
        other = make_queue(self.path)
        other.open()
        self.addCleanup(other.close)
        error = self.assertRaises(NotStored, queue.append, stored("three"))
        self.assertIn("uses it", str(error))
        other.close()
        queue.append(stored("three"))

        self.assertEqual(["one", "two", "three"], drain(queue))

    def test_lock_of_another(self) -> None:
        """A renamed lock of ours that another process holds now counts as held by another."""
        directory = SpoolDirectory(self.path, self.faults)
        directory.make()
        directory.lock()
        self.addCleanup(directory.unlock)
        lock = os.path.join(self.path, "lock")
        os.rename(lock, lock + "-old")
        directory.restore_lock()
        directory.unlock()
        os.rename(lock + "-old", lock)
        with open(lock) as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            self.assertIn("another receiver uses it", str(self.assertRaises(InUse, directory.lock)))

    def test_parent(self) -> None:
        """The name of an existing directory is synced, too, where that is possible."""
        os.mkdir(self.path)
        self.open()
        around = os.path.dirname(self.path)
        self.assertIn(("open", around), [(call, path) for call, path in self.faults.calls if call == "open"])

        self.path += "x"
        os.mkdir(self.path)
        self.faults.fail("open", PermissionError(13, "Permission denied"))
        self.open()
