"""Reading an old file: tries with a failing disk, and the cursor."""

from __future__ import annotations

import sqlite3

from tests.spool.faulty_spool import stored, texts
from tests.spool.test_queue import QueueCase, letter
from webhookrx.spool import old_file
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.old_file import OldFile
from webhookrx.spool.rows import ROW_OVERHEAD, ReadCursor, Totals

READ, READ_DEAD = "SELECT id, crc", "SELECT id, received, crc"


class OldFileTests(QueueCase):
    """A file with four messages, the second of which was offered last, and two dead letters."""

    def setUp(self) -> None:
        """Open it for reading."""
        super().setUp()
        self.patch(old_file, "_READ_TRIES", 3)
        queue = self.open()
        queue.append([*stored("one", received=100), *stored("two", received=200), *stored("bad", "worse")])
        queue.ack([], [letter(row) for row in queue.next_batch()[2:]])
        queue.append([*stored("six", received=300), *stored("ten", received=400)])
        queue.close()
        self.file = SpoolFile(SpoolDirectory(self.path, self.faults), 1, writable=False)
        self.addCleanup(self.file.close)
        self.totals = self.file.read_totals()
        self.faults.statements.clear()
        self.old = self.of()

    def of(self, state: Totals | None = None, passed: ReadCursor | None = None) -> OldFile:
        """Make an old file of it."""
        return OldFile(self.file, self.totals if state is None else state, self.file.oldest(), passed)

    def break_reads(self, times: int, statement: str = READ, error: str = "SQLITE_IOERR_READ") -> None:
        """Let reads fail."""
        self.faults.fail(statement, error, times=times, read_only=True)

    def ack_all(self) -> list[object]:
        """Read and acknowledge everything."""
        taken: list[object] = []
        while rows := self.old.read():
            taken += texts(rows)
            self.old.ack([row.id for row in rows])
        return taken

    def test_offered(self) -> None:
        """The last offered batch comes alone, and again until it is acknowledged; then the others."""
        for _ in range(2):
            self.assertEqual(["one", "two"], texts(self.old.read()))
        self.old.ack([self.old.read()[0].id])
        self.assertEqual(["two"], texts(self.old.read()))
        self.old.ack([self.old.read()[0].id])
        self.assertEqual(["six", "ten"], texts(self.old.read()))

    def test_cursor(self) -> None:
        """The cursor stops before the first unacknowledged message; each acknowledged one reduces the totals."""
        size = len(stored("one")[0]) + ROW_OVERHEAD
        one, two = self.old.read()
        self.assertEqual(ReadCursor(0, 4, 4 * size), self.old.cursor)
        self.old.ack([one.id])
        self.assertEqual(ReadCursor(one.id, 3, 3 * size), self.old.cursor)
        self.old.ack([two.id])
        self.assertEqual(ReadCursor(two.id, 2, 2 * size), self.old.cursor)
        again = self.of(passed=self.old.cursor)
        self.assertEqual(["six", "ten"], texts(again.read()))
        self.ack_all()
        self.assertEqual(ReadCursor(self.totals.next_id - 1, 0, 0), self.old.cursor)

    def test_out_of_order(self) -> None:
        """A message acknowledged before an earlier one is not read again."""
        one, two = self.old.read()
        self.old.ack([two.id])
        self.assertEqual((0, 3), self.old.cursor[:2])
        self.assertEqual(["one"], texts(self.old.read()))
        self.old.ack([one.id])
        self.assertEqual((two.id, 2), self.old.cursor[:2])
        self.assertEqual(["six", "ten"], texts(self.old.read()))

    def test_oldest(self) -> None:
        """The oldest is the first that waits, as far as its moment can be read."""
        for received in (100, 300):
            rows = self.old.read()
            self.assertEqual(received, self.old.oldest)
            self.old.ack([row.id for row in rows])
        self.assertEqual([], self.old.read())
        self.assertEqual(300, self.old.oldest)

    def test_nothing_known(self) -> None:
        """Without totals all messages come, and the counts never go below zero."""
        self.old = self.of(Totals(0, 0, 0, 0, 0, 0))
        self.assertEqual(["one", "two", "six", "ten"], self.ack_all())
        self.assertEqual((0, 0), (self.old.cursor.messages, self.old.cursor.bytes))

    def test_tries(self) -> None:
        """A disk may fail for a while before its data counts as damaged, and again after each successful read."""
        for text in ("one", "six"):
            self.break_reads(2)
            for _ in range(2):
                self.assertRaises(sqlite3.Error, self.old.read)
            rows = self.old.read()
            self.assertEqual(text, texts(rows)[0])
            self.assertFalse(self.old.damaged)
            self.old.ack([row.id for row in rows])

    def test_no_tries_left(self) -> None:
        """After so many failures in a row the file is damaged, and readable messages are searched one by one."""
        self.break_reads(3)
        for _ in range(2):
            self.assertRaises(sqlite3.Error, self.old.read)
        self.assertEqual(["one"], texts(self.old.read()))
        self.assertTrue(self.old.damaged)

    def test_damage_known(self) -> None:
        """Once damage is known, more of it costs no tries; a failing disk gets all tries each time."""
        self.break_reads(3, error="SQLITE_CORRUPT")
        for _ in range(2):
            self.assertRaises(sqlite3.Error, self.old.read)
        self.old.ack([self.old.read()[0].id])
        self.break_reads(1, error="SQLITE_CORRUPT")
        self.assertEqual(["two"], texts(self.old.read()))
        self.old.ack([self.old.read()[0].id])
        self.break_reads(2)
        for _ in range(2):
            self.assertRaises(sqlite3.Error, self.old.read)
        self.assertEqual(["six", "ten"], texts(self.old.read()))

    def test_tries_after_damage(self) -> None:
        """After its tries are used up once, a disk has all of them the next time."""
        self.break_reads(3)
        for _ in range(2):
            self.assertRaises(sqlite3.Error, self.old.read)
        self.old.ack([self.old.read()[0].id])
        self.break_reads(3)
        for _ in range(2):
            self.assertRaises(sqlite3.Error, self.old.read)

        self.assertEqual(["two"], texts(self.old.read()))

    def test_behind_damage(self) -> None:
        """Unreadable messages are skipped up to the first readable one."""
        self.break_reads(4)
        for _ in range(2):
            self.assertRaises(sqlite3.Error, self.old.read)
        self.assertEqual(["two"], texts(self.old.read()))

    def test_unreadable(self) -> None:
        """The search ends at the last number, or after a bounded gap."""
        self.patch(old_file, "_LONGEST_GAP", 50)
        for state, looks in ((self.totals, self.totals.next_id), (Totals(0, 0, 0, 0, 0, 0), 50)):
            self.old = self.of(state)
            self.faults.mend()
            self.break_reads(1000)
            for _ in range(2):
                self.assertRaises(sqlite3.Error, self.old.read)
            self.faults.statements.clear()
            self.assertEqual([], self.old.read())
            self.assertEqual(1 + looks, sum(sql.startswith(READ) for _, sql in self.faults.statements))

    def test_locked(self) -> None:
        """Locks are waited for without limit, and released before the next read by reopening the file."""
        self.break_reads(5, error="SQLITE_BUSY")
        self.break_reads(1, READ_DEAD, "SQLITE_BUSY")
        self.assertEqual(0, self.opened())
        for _ in range(5):
            self.assertRaises(sqlite3.Error, self.old.read)
        self.assertEqual(4, self.opened())
        self.assertRaises(sqlite3.Error, self.old.read_dead, 0)
        self.assertEqual(1, self.opened())
        self.assertEqual(2, len(self.old.read_dead(0)))
        self.assertEqual(1, self.opened())
        self.assertEqual(["one", "two", "six", "ten"], self.ack_all())
        self.assertEqual((0, False), (self.opened(), self.old.damaged))

    def opened(self) -> int:
        """Return how often the file was opened since this was asked last."""
        count = sum(statement == "connect" for _, statement in self.faults.statements)
        self.faults.statements.clear()
        return count

    def test_dead_letters(self) -> None:
        """Dead letters come in order, and are counted until none is left."""
        letters = self.old.read_dead(0)
        self.assertEqual(stored("bad", "worse"), [found.data for found in letters])
        self.assertEqual(2, self.old.dead)
        self.assertEqual([], self.old.read_dead(letters[-1].id))
        self.assertEqual(0, self.old.dead)

    def test_unreadable_dead_letters(self) -> None:
        """Readable messages neither use up tries nor restore those of dead letters."""
        self.ack_all()
        self.break_reads(3, READ_DEAD)
        for _ in range(2):
            self.assertRaises(sqlite3.Error, self.old.read_dead, 0)
            self.assertEqual([], self.old.read())
        self.assertEqual([], self.old.read_dead(0))
        self.assertEqual((True, 2), (self.old.damaged, self.old.dead))
