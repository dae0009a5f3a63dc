"""One database of a spool: when its log is copied, what stays of it, and what it was opened for."""

from __future__ import annotations

import sqlite3

from tests.spool.faulty_spool import stored
from tests.spool.test_queue import QueueCase
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.rows import ROW_OVERHEAD
from webhookrx.spool.schema import SMALL_LOG_BYTES

COPY = "PRAGMA wal_checkpoint(PASSIVE)"
TRANSACTION = 16 * 1024
"""Bytes that are counted for one besides those of its messages."""


class SpoolFileTests(QueueCase):
    """A file that is written."""

    def setUp(self) -> None:
        """Have one, the log of which is copied after half a mebibyte."""
        super().setUp()
        self.open().close()
        self.directory = SpoolDirectory(self.path, self.faults)
        self.file = self.reopened()

    def reopened(self, *, writable: bool = True) -> SpoolFile:
        """Open it."""
        file = SpoolFile(self.directory, 1, writable=writable)
        self.addCleanup(file.close)
        return file

    def append(self, size: int) -> None:
        """Write a message that counts so many bytes."""
        with self.file.transaction(durable=True) as transaction:
            transaction.append([bytes(size - ROW_OVERHEAD)])

    def copies(self) -> int:
        """Copy the log if that is due, and return how often that was done since this was asked last."""
        self.file.checkpoint_if_due()
        return self.written("00000001.sqlite").count(COPY)

    def test_due(self) -> None:
        """The log is copied once so much was written, transactions included, and not a byte earlier; then anew."""
        self.assertEqual(0, self.copies())
        for _ in range(2):
            self.append(SMALL_LOG_BYTES - 2 * TRANSACTION - 1000)
            self.assertEqual(0, self.copies())
            self.append(999)
            self.assertEqual(0, self.copies())
            with self.file.transaction(durable=True):
                pass
            self.assertEqual(1, self.copies())
            self.assertEqual(0, self.copies())

    def test_exactly(self) -> None:
        """So much is enough."""
        for _ in range(2):
            self.append(SMALL_LOG_BYTES - TRANSACTION)
            self.assertEqual(1, self.copies())

    def test_read_meanwhile(self) -> None:
        """While somebody reads, some of the log can't be copied, and half of what it may have is due the next time."""
        self.append(5000)
        reader = sqlite3.connect(f"file:{self.directory.path_of(1)}?mode=ro", uri=True)
        self.addCleanup(reader.close)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM waiting").fetchone()
        self.append(SMALL_LOG_BYTES - TRANSACTION)
        self.assertEqual(1, self.copies())
        self.append(SMALL_LOG_BYTES // 2 - TRANSACTION - 1)
        self.assertEqual(0, self.copies())
        reader.execute("COMMIT")
        self.append(100)
        self.assertEqual(1, self.copies())
        self.append(SMALL_LOG_BYTES // 2)
        self.assertEqual(0, self.copies())

    def test_left_over(self) -> None:
        """What those before have left in the log counts as written."""
        self.append(SMALL_LOG_BYTES // 2)
        self.file.stop_writing()
        self.file = self.reopened()
        self.append(SMALL_LOG_BYTES // 2)
        self.assertEqual(1, self.copies())

    def test_given_up(self) -> None:
        """One that is not written any more is not copied, gives nothing back, and takes nothing; it can be read."""
        with self.file.transaction(durable=True) as transaction:
            transaction.append(stored("one"))
        self.written("00000001.sqlite")
        self.file.stop_writing()
        self.file.checkpoint()
        self.file.give_back_log()
        self.assertFalse(self.file.give_back(0, 100, lambda: False))
        self.assertRaises(sqlite3.Error, self.append, 100)
        self.assertEqual(
            (False, False, []), (self.file.is_writable, self.file.is_stuck, self.written("00000001.sqlite"))
        )
        self.assertEqual(stored("one"), [row.data for row in self.file.read(0)])

    def test_not_opened(self) -> None:
        """One that can't be opened for writing leaves nothing open."""
        self.file.close()
        opened: list[sqlite3.Connection] = []
        connect = self.faults.connect

        def noting(path: str, *, read_only: bool) -> sqlite3.Connection:
            opened.append(connect(path, read_only=read_only))
            return opened[-1]

        self.patch(self.faults, "connect", noting)
        self.faults.fail("PRAGMA journal_size_limit", "SQLITE_IOERR_READ")
        self.assertRaises(sqlite3.Error, self.reopened)
        self.assertEqual(2, len(opened))
        for db in opened:
            self.assertRaises(sqlite3.ProgrammingError, db.execute, "SELECT 1")

    def test_undone(self) -> None:
        """A transaction that ends with an error leaves nothing, and what it wrote is not counted."""
        for _ in range(2):
            try:
                with self.file.transaction(durable=True) as transaction:
                    transaction.append([bytes(SMALL_LOG_BYTES)])
                    raise KeyError
            except KeyError:
                pass
        self.assertEqual((0, [], False), (self.copies(), self.file.read(0), self.file.is_stuck))
        self.assertEqual(0, self.file.read_totals().messages)
