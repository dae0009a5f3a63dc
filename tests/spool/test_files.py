"""Which errors retire a file: long locks, and failures while room is measured."""

from __future__ import annotations

import os
import sqlite3

from twisted.logger import LogEvent, formatEvent, globalLogPublisher

from tests.spool.faulty_spool import Disk, FaultySpool, drain, sqlite_error, stored, texts
from tests.spool.test_queue import QueueCase
from webhookrx.errors import NotStored
from webhookrx.spool import old_file
from webhookrx.spool.faults import Fault, fault_of
from webhookrx.spool.files import LOCKED_TIME
from webhookrx.spool.quota import SpoolFull

LOCKS = ("SQLITE_BUSY", "SQLITE_PROTOCOL", "SQLITE_IOERR_LOCK", "SQLITE_IOERR_SHMLOCK", "SQLITE_IOERR_UNLOCK")


class SlowFaults(FaultySpool):
    """
    What fails takes its time.

    @ivar seconds: so much.
    """

    def __init__(self, case: QueueCase) -> None:
        super().__init__()
        self.seconds = 0.0
        self._case = case

    def check(self, statement: str, path: str, read_only: bool = False) -> None:
        """Let time pass before a planned fault."""
        try:
            super().check(statement, path, read_only)
        except Exception:
            self._case.clocks.now += self.seconds
            raise


class LockTests(QueueCase):
    """Locks of another process, and locks that could not be released."""

    def setUp(self) -> None:
        """Let faults take time."""
        super().setUp()
        self.slow = self.faults = SlowFaults(self)

    def test_passing(self) -> None:
        """Short locks, however often, retire no file."""
        queue = self.open()
        for name in LOCKS:
            for _ in range(3):
                self.faults.fail("BEGIN", name, times=2)
                for _ in range(2):
                    self.assertIn(name, str(self.assertRaises(NotStored, queue.append, stored("lost"))))
                    self.clocks.now += 0.8 * LOCKED_TIME
                queue.append(stored("one"))

        self.assertEqual(["one"] * 15, drain(queue))
        self.assertEqual(["00000001.sqlite"], self.names())

    def test_for_long(self) -> None:
        """After some seconds of locks the file is retired; its messages are delivered, and nothing is lost."""
        for name in LOCKS:
            self.path += "x"
            queue = self.open()
            queue.append(stored("one"))
            self.faults.fail("BEGIN", name, times=2)
            self.assertRaises(NotStored, queue.append, stored("lost"))
            self.clocks.now += LOCKED_TIME
            self.assertRaises(NotStored, queue.append, stored("lost"))
            self.assertIn("00000001.failed", self.names(), name)
            queue.append(stored("two"))

            self.assertEqual(["one", "two"], drain(queue), name)
            self.assertEqual(["00000002.sqlite"], self.names())
            queue.close()

    def test_new_file(self) -> None:
        """The time that one file was locked does not count for the next one."""
        queue = self.open()
        self.faults.fail("BEGIN", "SQLITE_BUSY", times=2)
        self.assertRaises(NotStored, queue.append, stored("lost"))
        self.clocks.now += LOCKED_TIME
        self.assertRaises(NotStored, queue.append, stored("lost"))
        queue._files.ensure_newest()
        self.faults.fail("BEGIN", "SQLITE_BUSY")
        self.assertRaises(NotStored, queue.append, stored("lost"))
        queue.append(stored("one"))

        self.assertEqual(["one"], drain(queue))
        self.assertEqual(["00000002.sqlite"], self.names())

    def test_one_try(self) -> None:
        """A single call that takes that long is enough: SQLite itself waits for locks."""
        queue = self.open()
        self.slow.seconds = LOCKED_TIME
        self.faults.fail("BEGIN", "SQLITE_PROTOCOL")
        self.assertRaises(NotStored, queue.append, stored("lost"))
        queue.append(stored("one"))

        self.assertEqual(["one"], drain(queue))
        self.assertEqual(["00000002.sqlite"], self.names())

    def test_reading(self) -> None:
        """The same holds for reading totals and the next batch."""
        for statement in ("SELECT messages", "SELECT id, crc"):
            self.path += "x"
            queue = self.open()
            queue.append(stored("one"))
            self.slow.seconds = LOCKED_TIME
            self.faults.fail(statement, "SQLITE_PROTOCOL", read_only=True)
            queue.refresh()
            self.assertEqual(["one"], texts(queue.next_batch()), statement)
            self.assertIn("00000001.failed", self.names(), statement)
            self.assertEqual(["one"], drain(queue))
            queue.close()

    def test_opened_anew(self) -> None:
        """A file that was retired for its locks is read through a connection without them, each time."""
        queue = self.open()
        queue.append(stored("one", "two"))
        self.slow.seconds = LOCKED_TIME
        self.faults.fail("BEGIN", "SQLITE_PROTOCOL")
        self.assertRaises(NotStored, queue.append, stored("lost"))
        self.faults.statements.clear()
        self.faults.fail("SELECT count(*) FROM sqlite_schema", "SQLITE_PROTOCOL", read_only=True)
        self.assertRaises(sqlite3.Error, queue.next_batch)
        (one, _) = queue.next_batch()
        queue.ack([one.id])
        self.assertEqual(2, self.faults.statements.count(("00000001.sqlite", "connect")))
        self.patch(old_file, "_READ_TRIES", 10)  # so often what can't be read is tried before it counts as damaged
        for _ in range(20):
            self.faults.fail("SELECT id, crc", "SQLITE_PROTOCOL", read_only=True)
            queue._files.old[0]._batch = []
            self.assertRaises(sqlite3.Error, queue.next_batch)
        self.assertEqual(["two"], drain(queue))

        self.assertEqual(2 + 20, self.faults.statements.count(("00000001.sqlite", "connect")))
        self.assertEqual(0, queue.status().damaged)

    def test_without_a_name(self) -> None:
        """A file that was removed meanwhile can't be reopened, and stays open."""
        queue = self.open()
        queue.append(stored("one"))
        self.slow.seconds = LOCKED_TIME
        self.faults.fail("BEGIN", "SQLITE_PROTOCOL")
        self.assertRaises(NotStored, queue.append, stored("lost"))
        os.unlink(os.path.join(self.path, "00000001.sqlite"))

        self.assertEqual(["one"], drain(queue))

    def test_codes(self) -> None:
        """Errors of locks are told from harmless ones, and from those of a failed disk."""
        for name in LOCKS:
            self.assertIs(Fault.LOCKED, fault_of(sqlite_error(name)), name)
        for name in ("SQLITE_IOERR_NOMEM", "SQLITE_IOERR_SHMOPEN", "SQLITE_FULL", "SQLITE_CANTOPEN"):
            self.assertIs(Fault.PASSING, fault_of(sqlite_error(name)), name)
        self.assertIs(Fault.FAILED, fault_of(sqlite_error("SQLITE_IOERR_READ")))


class RoomTests(QueueCase):
    """Errors while room is measured."""

    def test_before_a_batch(self) -> None:
        """A file that can't be measured is retired; the next batch goes to a new one."""
        for statement in ("PRAGMA page_count", "PRAGMA freelist_count", "PRAGMA journal_size_limit"):
            self.path += "x"
            queue = self.open()
            queue.append(stored("one"))
            queue._files.newest.log_limit = 1  # type: ignore[union-attr]  # so that it is said anew
            self.faults.fail(statement, "SQLITE_IOERR_READ")
            self.assertRaises(NotStored, queue.append, stored("lost"))
            self.assertEqual(["00000001.failed", "00000001.sqlite"], self.names(), statement)
            queue.append(stored("two"))

            self.assertEqual(["one", "two"], drain(queue), statement)
            queue.close()

    def test_after_a_refusal(self) -> None:
        """The same holds for the check whether there is room again, and for the vacuum that makes some."""
        for statement, name in (
            ("PRAGMA page_count", "SQLITE_IOERR_READ"),
            ("PRAGMA incremental", "SQLITE_IOERR_WRITE"),
            ("COMMIT", "SQLITE_IOERR_WRITE"),
        ):
            self.path += "x"
            disk = Disk()
            queue = self.open(disk=disk)
            queue.append(stored(*["x" * 10_000] * 100))
            drain(queue)
            disk.free = 1000
            self.assertRaises(SpoolFull, queue.append, stored("y"))
            self.faults.fail(statement, name)
            queue.refresh()
            self.assertIn("00000001.failed", self.names(), statement)
            queue.close()

    def test_full_meanwhile(self) -> None:
        """A full disk during a vacuum is no fault."""
        disk = Disk()
        queue = self.open(disk=disk)
        queue.append(stored(*["x" * 10_000] * 100))
        drain(queue)
        disk.free = 1000
        self.assertRaises(SpoolFull, queue.append, stored("y"))
        self.faults.fail("PRAGMA incremental", "SQLITE_FULL")
        queue.refresh()

        self.assertEqual(["00000001.sqlite"], self.names())

    def test_said(self) -> None:
        """Retiring a file is logged in one line, with the error."""
        lines: list[str] = []

        def note(event: LogEvent) -> None:
            lines.append(formatEvent(event))

        globalLogPublisher.addObserver(note)
        self.addCleanup(globalLogPublisher.removeObserver, note)
        queue = self.open()
        self.faults.fail("PRAGMA page_count", "SQLITE_IOERR_READ")
        self.assertRaises(NotStored, queue.append, stored("lost"))

        (line,) = lines
        self.assertIn("SQLITE_IOERR_READ", line)
