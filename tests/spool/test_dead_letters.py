"""Dead letters are kept durably, whichever file they come from."""

from __future__ import annotations

import os
import sqlite3

from tests.spool.faulty_spool import drain, stored
from tests.spool.test_queue import QueueCase, letter
from webhookrx.errors import NotStored
from webhookrx.spool import old_file
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.queue import SpoolQueue
from webhookrx.spool.rows import ROW_OVERHEAD


class DeadLetterTests(QueueCase):
    """From a refusal to the newest file."""

    def retire(self, queue: SpoolQueue) -> None:
        """Let the newest file fail, so that it is read-only."""
        self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC")
        self.assertRaises(NotStored, queue.append, stored("lost"))

    def kept(self, number: int) -> list[tuple[int, str]]:
        """Return number and reason of each dead letter of a file."""
        file = SpoolFile(SpoolDirectory(self.path), number, writable=False)
        try:
            return [(each.id, each.reason) for each in file.read_dead(0)]
        finally:
            file.close()

    def how_safe(self) -> set[str]:
        """Return the sync levels of transactions that wrote dead letters since the last call."""
        found, mode = set(), ""
        for _, statement in self.faults.statements:
            if statement.startswith("PRAGMA synchronous="):
                mode = statement.partition("=")[2]
            elif statement.startswith("INSERT OR IGNORE INTO dead"):
                found.add(mode)
        self.faults.statements.clear()
        return found

    def test_all(self) -> None:
        """Each refused message of a batch is on disk before anything else is done."""
        queue = self.open()
        queue.append(stored(*"abcde"))
        a, b, c, d, e = queue.next_batch()
        self.faults.statements.clear()
        queue.ack([b.id, d.id], [letter(a, "1"), letter(c, "3"), letter(e, "5")])

        self.assertEqual({"FULL"}, self.how_safe())
        self.assertEqual((0, 3), (queue.status().messages, queue.status().dead))
        self.assertEqual([(1, "1"), (3, "3"), (5, "5")], self.kept(1))

    def test_without(self) -> None:
        """What was delivered is removed without a sync: a power cut may let it be delivered twice."""
        queue = self.open()
        queue.append(stored("one"))
        rows = queue.next_batch()
        self.faults.statements.clear()
        queue.ack([rows[0].id])

        modes = [sql for _, sql in self.faults.statements if sql.startswith("PRAGMA synchronous")]
        self.assertEqual(["PRAGMA synchronous=NORMAL"], modes)

    def test_of_an_old_file(self) -> None:
        """Each refused message of a read-only file is kept in the newest one, just as durably."""
        queue = self.open()
        queue.append(stored(*"abcd"))
        self.retire(queue)
        a, b, c, _ = queue.next_batch()
        self.faults.statements.clear()
        queue.ack([], [letter(a, "1"), letter(b, "2"), letter(c, "3")])

        self.assertEqual({"FULL"}, self.how_safe())
        self.assertEqual(3, queue.status().dead)
        self.assertEqual([(1, "1"), (2, "2"), (3, "3")], self.kept(2))
        self.assertEqual(["d"], drain(queue))

    def refused(self, count: int, size: int) -> SpoolQueue:
        """Return a queue with so many dead letters of so many bytes in a read-only file."""
        queue = self.open()
        queue.append(stored(*["x" * size] * count))
        while rows := queue.next_batch():
            queue.ack([], [letter(row, str(row.id)) for row in rows])
        self.retire(queue)
        return queue

    def test_carried(self) -> None:
        """The dead letters of an old file go to the newest one before it is removed, however many and large."""
        for count, size, transactions in ((2500, 10, 3), (7, 400_000, 3), (3, 2_000_000, 3)):
            self.path += "x"
            queue = self.refused(count, size)
            self.faults.statements.clear()
            self.assertEqual([], queue.next_batch())
            begun = self.faults.statements.count(("00000002.sqlite", "BEGIN IMMEDIATE"))

            self.assertEqual({"FULL"}, self.how_safe())
            self.assertEqual(["00000002.sqlite"], self.names())
            self.assertEqual(count, queue.status().dead)
            # Besides those of carrying: one that notes how far the old file is done, and one that forgets it.
            self.assertEqual(transactions, begun - 2)
            queue = self.again(queue)
            self.assertEqual(count, queue.status().dead)
            file = SpoolFile(SpoolDirectory(self.path), 2, writable=False)
            self.addCleanup(file.close)
            found = [each.id for each in file.read_dead(0, 10_000, 1 << 40)]
            self.assertEqual(list(range(1, count + 1)), found)
            self.assertGreaterEqual(file.read_totals().dead_bytes, count * (size + ROW_OVERHEAD))
            queue.close()

    def test_log_while_carried(self) -> None:
        """The write-ahead log stays small, however many dead letters are moved."""
        queue = self.refused(30, 900_000)
        self.assertEqual([], queue.next_batch())

        self.assertLess(os.path.getsize(os.path.join(self.path, "00000002.sqlite-wal")), 12 * 1024**2)

    def test_put_back_meanwhile(self) -> None:
        """A dead letter that a command puts back during the move is delivered, and not lost with the file."""
        queue = self.refused(3, 10)
        check = self.faults.check

        def put_back(statement: str, path: str, read_only: bool = False) -> None:
            check(statement, path, read_only)
            if statement.startswith("SELECT id, received, crc"):
                self.patch(self.faults, "check", check)
                command = SpoolFile(SpoolDirectory(self.path), 1, writable=True)
                with command.transaction(durable=True) as transaction:
                    found = transaction.take_dead_letter(2)
                    assert found is not None
                    transaction.append([found.data])
                command.close()

        self.patch(self.faults, "check", put_back)
        self.assertEqual(1, len(queue.next_batch()))
        self.assertEqual(2, queue.status().dead)
        self.assertEqual(["x" * 10], drain(queue))

        self.assertEqual([(1, "1"), (3, "3")], self.kept(2))
        self.assertEqual(["00000002.sqlite"], self.names())

    def test_not_now(self) -> None:
        """A file whose dead letters can't be read for a moment stays until they can."""
        for name in ("SQLITE_BUSY", "SQLITE_IOERR_READ", "SQLITE_NOMEM", "SQLITE_CORRUPT"):
            self.path += "x"
            queue = self.refused(3, 10)
            self.faults.fail("SELECT id, received, crc", name, read_only=True)
            self.assertRaises(sqlite3.Error, queue.next_batch)
            self.assertEqual(3, queue.status().dead)
            self.assertEqual([], queue.next_batch())

            self.assertEqual((3, 0), (queue.status().dead, queue.status().damaged), name)
            self.assertEqual([(1, "1"), (2, "2"), (3, "3")], self.kept(2))
            queue.close()

    def test_never(self) -> None:
        """A file whose dead letters can't be read at all is put aside."""
        for name in ("SQLITE_CORRUPT", "SQLITE_IOERR_READ"):
            self.path += "x"
            queue = self.refused(3, 10)
            self.faults.fail("SELECT id, received, crc", name, read_only=True, times=old_file._READ_TRIES)
            for _ in range(old_file._READ_TRIES - 1):
                self.assertRaises(sqlite3.Error, queue.next_batch)
            self.assertEqual([], queue.next_batch())

            self.assertIn("00000001.sqlite.damaged", self.names())
            self.assertEqual(1, queue.status().damaged)
            queue.close()
