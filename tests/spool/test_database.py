"""A spool file: reading, transactions, and when its log is copied."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from tests.spool.faulty_spool import _Connection, sqlite_error, stored
from tests.spool.test_queue import QueueCase, letter
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.faults import Fault, fault_of
from webhookrx.spool.quota import SMALL_LOG_BYTES
from webhookrx.spool.rows import ROW_OVERHEAD

COPY = "PRAGMA wal_checkpoint(PASSIVE)"
TRANSACTION = 16 * 1024
"""Bytes that a transaction counts besides those of its messages."""


class SpoolFileTests(QueueCase):
    """A file that is written."""

    def setUp(self) -> None:
        """Open a file whose log is copied after half a mebibyte."""
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
        """Copy the log if that is due, and return how often it was copied since the last call."""
        self.file.checkpoint()
        return self.written("00000001.sqlite").count(COPY)

    def test_due(self) -> None:
        """The log is copied once its limit is written, overhead included, and not a byte earlier; then it restarts."""
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
        """The limit is exact."""
        for _ in range(2):
            self.append(SMALL_LOG_BYTES - TRANSACTION)
            self.assertEqual(1, self.copies())

    def test_read_meanwhile(self) -> None:
        """A reader keeps some of the log from being copied; then the next copy is due after half the limit."""
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
        """The log that a former process left counts as written."""
        self.append(SMALL_LOG_BYTES // 2)
        self.file.stop_writing()
        self.file = self.reopened()
        self.append(SMALL_LOG_BYTES // 2)
        self.assertEqual(1, self.copies())

    def test_retired(self) -> None:
        """After stop_writing the file is not copied, vacuumed or written; it can be read."""
        with self.file.transaction(durable=True) as transaction:
            transaction.append(stored("one"))
        self.written("00000001.sqlite")
        self.file.stop_writing()
        self.file.checkpoint()
        self.file.truncate_log()
        self.assertFalse(self.file.vacuum(self.clocks.monotonic))
        self.assertRaises(sqlite3.Error, self.append, 100)
        self.assertEqual(
            (False, False, []), (self.file.is_writable, self.file.is_stuck, self.written("00000001.sqlite"))
        )
        self.assertEqual(stored("one"), [row.data for row in self.file.read(0)])

    def test_not_opened(self) -> None:
        """A file that can't be opened for writing leaves no connection open."""
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


class _TornCursor:
    """A cursor that fails after some rows."""

    def __init__(self, cursor: sqlite3.Cursor, good: int) -> None:
        self._cursor = cursor
        self._good = good
        self.close = cursor.close

    def __iter__(self) -> Iterator[Any]:
        for _, row in zip(range(self._good), self._cursor, strict=False):
            yield row
        raise sqlite_error("SQLITE_CORRUPT")


class ReadTests(QueueCase):
    """A file with four messages, and three dead letters."""

    def setUp(self) -> None:
        """Open it."""
        super().setUp()
        queue = self.open()
        self.batch = stored("one", "two", "six", "ten", "bad", "worse", "worst")
        queue.append(self.batch)
        queue.ack([], [letter(row) for row in queue.next_batch()[4:]])
        queue.close()
        self.reader = SpoolFile(SpoolDirectory(self.path, self.faults), 1, writable=False)
        self.addCleanup(self.reader._reader.close)

    def messages(self, *args: int, **bounds: int) -> list[bytes]:
        """Read messages."""
        return [row.data for row in self.reader.read(*args, **bounds)]

    def dead(self, *args: int, **bounds: int) -> list[bytes]:
        """Read dead letters."""
        return [found.data for found in self.reader.read_dead(*args, **bounds)]

    def test_bounds(self) -> None:
        """Reading is limited to a count and to bytes, but returns at least one row, after a number."""
        size = len(self.batch[0]) + ROW_OVERHEAD
        read: Callable[..., list[bytes]]
        for read, first, data in ((self.messages, 0, self.batch[:4]), (self.dead, 4, self.batch[4:])):
            self.assertEqual(data, read(first))
            self.assertEqual(data[2:], read(first + 2))
            self.assertEqual([], read(first + len(data)))
            self.assertEqual(data[:2], read(first, count=2))
            self.assertEqual(data[:1], read(first, size=1))
            self.assertEqual(data[:1], read(first, size=size))
            self.assertEqual(data[:2], read(first, size=size + 1))

    def test_damage(self) -> None:
        """Rows before the damage are read; damage in the first row is an error."""
        execute = _Connection.execute
        for good in (0, 1, 2):

            def torn(connection: _Connection, statement: str, *parameters: Any, good: int = good) -> Any:
                return _TornCursor(execute(connection, statement, *parameters), good)

            with mock.patch.object(_Connection, "execute", torn):
                for read, first in ((self.messages, 0), (self.dead, 4)):
                    if good:
                        self.assertEqual(self.batch[first : first + good], read(first))
                    else:
                        self.assertEqual(Fault.DAMAGED, fault_of(self.assertRaises(sqlite3.Error, read, first)))

    def test_text(self) -> None:
        """Text that is not UTF-8 damages one message, or else counts as damage of the file."""
        db = sqlite3.connect(os.path.join(self.path, "00000001.sqlite"))
        db.execute("INSERT INTO passed VALUES (5, 1, 2, 3)")
        for table, column in (
            ("waiting", "data"),
            ("waiting", "received"),
            ("dead", "reason"),
            ("passed", "bytes"),
            ("state", "next_id"),
        ):
            db.execute(f"UPDATE {table} SET {column} = CAST(x'6e6fff' AS TEXT) WHERE rowid IN (1, 5)")
        db.commit()
        db.close()
        row = self.reader.read_one(1)
        assert row is not None
        self.assertFalse(row.is_whole)
        self.assertEqual([False, True, True, True], [row.is_whole for row in self.reader.read(0)])
        self.assertEqual(["no\ufffd", "no", "no"], [found.reason for found in self.reader.read_dead(0)])
        for read in (self.reader.oldest, self.reader.read_cursors, self.reader.read_totals):
            self.assertEqual(Fault.DAMAGED, fault_of(self.assertRaises(sqlite3.Error, read)))

    def test_quoted_damage(self) -> None:
        """An error of SQLite that quotes damaged text counts as damage of the file, in every read."""
        quoted = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
        for read, *arguments in (
            (self.reader.read_totals,),
            (self.reader.check_totals,),
            (self.reader.oldest,),
            (self.reader.read_cursors,),
            (self.reader.read, 0),
            (self.reader.read_dead, 0),
            (self.reader.read_one, 1),
            (self.reader.list_waiting, 0, 9),
            (self.reader.list_dead, 0, 9),
        ):
            self.faults.fail("SELECT", quoted, read_only=True)
            error = self.assertRaises(sqlite3.Error, read, *arguments)
            self.assertEqual(Fault.DAMAGED, fault_of(error), read)

    def test_one(self) -> None:
        """A waiting message is found by its number; any other number gives None."""
        row = self.reader.read_one(2)
        assert row is not None
        self.assertEqual((2, self.batch[1]), (row.id, row.data))
        for number in (0, 5, 8):
            self.assertIsNone(self.reader.read_one(number))

    def test_nothing_stays_open(self) -> None:
        """A file that can't be read is closed again."""
        self.faults.fail("PRAGMA user_version", "SQLITE_IOERR_READ", read_only=True)
        opened: list[sqlite3.Connection] = []
        connect = self.faults.connect

        def noting(path: str, *, read_only: bool) -> sqlite3.Connection:
            opened.append(connect(path, read_only=read_only))
            return opened[-1]

        self.patch(self.faults, "connect", noting)
        self.assertRaises(sqlite3.Error, SpoolFile, SpoolDirectory(self.path, self.faults), 1, writable=False)
        (db,) = opened
        self.assertRaises(sqlite3.ProgrammingError, db.execute, "SELECT 1")
