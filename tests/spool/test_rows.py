"""Rows of files that may be damaged."""

from __future__ import annotations

import sqlite3

from twisted.trial.unittest import SynchronousTestCase

from tests.spool.faulty_spool import stored
from tests.spool.test_queue import QueueCase, letter
from webhookrx.spool import rows as rows_module
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.directory import LAST_NUMBER, SpoolDirectory
from webhookrx.spool.faults import Fault, damage, decode_errors_are_damage, fault_of
from webhookrx.spool.rows import (
    DeadLetter,
    ListedMessage,
    Row,
    checksum,
    dead_letter_of,
    first_number,
    oldest_of,
    size_of,
    totals_of,
    whole_numbers,
)


class RowTests(SynchronousTestCase):
    """A message in its file."""

    def test_something_else(self) -> None:
        """Columns that are no message are never whole, whatever the number, and have no moment of receipt."""
        (data,) = stored("one")
        for number in (0, 1, 2, 1 << 32, first_number(2)):
            for crc, found in ((None, None), ("1", data), (1, None), (1, "text"), (1.5, data)):
                row = Row.of(number, crc, found)
                self.assertEqual((number, b"", False, None), (row.id, row.data, row.is_whole, row.received))

    def test_size(self) -> None:
        """A batch counts what its messages count: their bytes, and 64 for each."""
        for batch in ([], [b""], [b"abc", b"", b"x" * 100]):
            self.assertEqual(sum(map(len, batch)) + 64 * len(batch), size_of(batch))
            self.assertEqual(size_of(batch), sum(Row(1, 0, data).size for data in batch))

    def test_on_disk(self) -> None:
        """Numbers and checksums are compatible with existing files."""
        for file, number, crc in (
            (1, 1, 0x34E62BF5),
            (2, 1_000_000_000_001, 0xD8986E17),
            (LAST_NUMBER, 8_999_999_000_000_000_001, 0x41313596),
        ):
            self.assertEqual((number, crc), (first_number(file), checksum(number, b"abc")))
            self.assertLess(first_number(file + 1), 1 << 63)

    def test_whole(self) -> None:
        """A message is whole, and a dead letter, while its bytes and its number are what they were."""
        crc = checksum(7, b"abc")
        for number, data, whole in ((7, b"abc", True), (7, b"abd", False), (8, b"abc", False)):
            self.assertEqual(whole, Row(number, crc, data).is_whole)
            self.assertEqual(whole, DeadLetter(number, 1, crc, data, "reason", "spec", 2).is_whole)


class DamageTests(SynchronousTestCase):
    """Values that can't have been written."""

    def test_damage(self) -> None:
        """It counts as SQLite's error for a damaged file."""
        error = damage("all is wrong")
        self.assertEqual(Fault.DAMAGED, fault_of(error))
        self.assertEqual(
            (sqlite3.SQLITE_CORRUPT, "SQLITE_CORRUPT", "all is wrong"),
            (error.sqlite_errorcode, error.sqlite_errorname, str(error)),
        )

    def test_text(self) -> None:
        """Text that is not UTF-8 is damage; another error stays what it is."""

        def read(error: Exception) -> None:
            with decode_errors_are_damage():
                raise error

        error = self.assertRaises(sqlite3.Error, read, UnicodeDecodeError("utf-8", b"\xff", 0, 1, "wrong"))
        self.assertEqual(Fault.DAMAGED, fault_of(error))
        self.assertRaises(KeyError, read, KeyError())

    def test_numbers(self) -> None:
        """Totals must be numbers, and there must be some."""
        self.assertEqual([1, 0, -3], whole_numbers((1, 0, -3)))
        for wrong in ((), (1, None), ("1",), (1, 2.0), (b"1", 2)):
            error = self.assertRaises(sqlite3.Error, whole_numbers, wrong)
            self.assertEqual(Fault.DAMAGED, fault_of(error), wrong)

    def test_dead_letter(self) -> None:
        """Each column of a dead letter has the right type."""
        right = (1, 2, 3, b"data", "reason", "spec", 4)
        self.assertEqual(right, tuple(dead_letter_of(right)))
        for place in range(len(right)):
            error = self.assertRaises(sqlite3.Error, dead_letter_of, (*right[:place], None, *right[place + 1 :]))
            self.assertEqual(Fault.DAMAGED, fault_of(error), place)

    def test_tables(self) -> None:
        """Missing totals are damage; an empty queue has no oldest message."""
        db = sqlite3.connect(":memory:")
        self.addCleanup(db.close)
        db.execute("CREATE TABLE state(messages, bytes, dead, dead_bytes, next_id, offered)")
        db.execute("CREATE TABLE waiting(id INTEGER PRIMARY KEY, received)")
        self.assertEqual(Fault.DAMAGED, fault_of(self.assertRaises(sqlite3.Error, totals_of, db)))
        db.execute("INSERT INTO state VALUES (1, 2, 3, 4, 5, 6)")
        self.assertEqual((1, 2, 3, 4, 5, 6), tuple(totals_of(db)))

        self.assertIsNone(oldest_of(db))
        db.execute("INSERT INTO waiting VALUES (7, 30), (8, 20)")
        self.assertEqual(30, oldest_of(db))
        db.execute("UPDATE waiting SET received = 'x'")
        self.assertEqual(Fault.DAMAGED, fault_of(self.assertRaises(sqlite3.Error, oldest_of, db)))


class ListingTests(QueueCase):
    """A file with three messages that wait, and one that is dead."""

    def setUp(self) -> None:
        """Open it."""
        super().setUp()
        queue = self.open()
        self.batch = stored("one", "two", "three", "bad", received=1000)
        queue.append(self.batch)
        queue.ack([], [letter(queue.next_batch()[3])])
        queue.close()
        self.file = SpoolFile(SpoolDirectory(self.path, self.faults), 1, writable=False)
        self.addCleanup(self.file.close)

    def test_entries(self) -> None:
        """A listed message has the values of the message itself, whether it waits or is dead."""
        entries = self.file.list_waiting(0, 100)
        self.assertEqual([(1, 1000), (2, 1000), (3, 1000)], [entry[:2] for entry in entries])
        rows = [Row(number, checksum(number, data), data) for number, data in enumerate(self.batch, 1)]
        self.assertEqual([ListedMessage.of(row) for row in rows[:3]], entries)
        self.assertEqual((None, "", 0), entries[0][3:])
        self.assertEqual([ListedMessage.of(letter(rows[3]))], self.file.list_dead(0, 100))

    def test_between(self) -> None:
        """Messages between two numbers are listed, at most a hundred at a time."""
        self.assertEqual([2], [entry.id for entry in self.file.list_waiting(1, 3)])
        self.assertEqual([], self.file.list_dead(4, 100))
        self.patch(rows_module, "LISTED_TOGETHER", 2)
        self.assertEqual([1, 2], [entry.id for entry in self.file.list_waiting(0, 100)])

    def test_damage(self) -> None:
        """Values of a wrong type are left out, and text that is not UTF-8 is shown with replacement characters."""
        db = sqlite3.connect(self.file._reader.execute("PRAGMA database_list").fetchone()[2])
        db.execute("UPDATE waiting SET received = 'x', data = 5")
        db.execute("UPDATE dead SET received = -1, reason = CAST(x'6eff' AS TEXT), spec = 7, died = 'x'")
        db.commit()
        db.close()
        self.assertEqual(ListedMessage(1, None, 1), self.file.list_waiting(0, 100)[0])
        self.assertEqual(ListedMessage(4, None, len(self.batch[3]), "n\ufffd", "7", 0), self.file.list_dead(0, 100)[0])

    def test_no_moment(self) -> None:
        """A dead letter whose moment of receipt was damaged has none."""
        db = sqlite3.connect(self.file._reader.execute("PRAGMA database_list").fetchone()[2])
        db.execute("UPDATE dead SET received = 0")
        db.commit()
        db.close()
        self.assertIsNone(self.file.list_dead(0, 100)[0].received)

    def test_close(self) -> None:
        """A closed file can't be listed."""
        self.file.close()
        self.assertRaises(sqlite3.ProgrammingError, self.file.list_waiting, 0, 100)
