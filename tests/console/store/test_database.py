"""
Tests for L{webhookrx.console.store.database}.
"""

from __future__ import annotations

import os
import sqlite3
import stat

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.console.store.database import StoreReader, StoreWriter
from webhookrx.console.store.history import Author, Change, StoreTransaction, newest_revision, read_history
from webhookrx.console.store.schema import VERSION
from webhookrx.errors import StoreFull, StoreUnavailable, UnusableFile
from webhookrx.filesystem import DiskSpace

MARA = Author("mara", "api")


def one_revision(transaction: StoreTransaction) -> int:
    """Append a revision of one change."""
    return transaction.revise(MARA, [Change("setting", "masks", "update", ["a"], ["a", "b"])])


class StoreCase(SynchronousTestCase):
    """A store in a directory of its own."""

    def setUp(self) -> None:
        self.path = os.path.abspath(self.mktemp())

    def writer(self, **options: object) -> StoreWriter:
        """Open the store for writing."""
        writer = StoreWriter(self.path, lambda: 1000.0, **options)  # type: ignore[arg-type]
        self.addCleanup(writer.close)
        return writer

    def reader(self) -> StoreReader:
        """Open the store for reading."""
        reader = StoreReader(self.path)
        self.addCleanup(reader.close)
        return reader


class OpeningTests(StoreCase):
    """Which files are stores."""

    def test_new(self) -> None:
        """A new file has the tables, the version, and mode 0600, as the files beside it have."""
        writer = self.writer()
        writer.write(one_revision)
        for name in (self.path, f"{self.path}-wal", f"{self.path}-shm"):
            self.assertEqual(0o600, stat.S_IMODE(os.stat(name).st_mode), name)
        reader = self.reader()
        self.assertEqual((VERSION,), reader.read(lambda db: db.execute("PRAGMA user_version").fetchone()))

    def test_again(self) -> None:
        """A store that is opened again has what was written."""
        writer = self.writer()
        writer.write(one_revision)
        writer.close()
        self.assertEqual(2, self.writer().write(one_revision))

    def test_older_version(self) -> None:
        """A store of an older version gets what it lacks, and is the same as a new one then."""
        self.writer().close()
        db = sqlite3.connect(self.path)
        schema = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name"
        new = db.execute(schema).fetchall()
        db.executescript(
            "DROP TABLE alarm_post; DROP INDEX series_counted; ALTER TABLE series DROP COLUMN counted_day;"
            "INSERT INTO series (router, connector) VALUES ('g', 'a'); PRAGMA user_version = 1"
        )
        db.close()
        self.writer().close()
        db = sqlite3.connect(self.path)
        self.addCleanup(db.close)
        self.assertEqual(
            (new, (VERSION,)), (db.execute(schema).fetchall(), db.execute("PRAGMA user_version").fetchone())
        )
        # What it has counted is not old already.
        ((day,),) = db.execute("SELECT counted_day FROM series")
        self.assertGreater(day, 1_700_000_000)

    def test_later_version(self) -> None:
        """A store of a later version is left alone."""
        self.writer().close()
        db = sqlite3.connect(self.path)
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
        db.close()
        with open(self.path, "rb") as file:
            before = file.read()
        self.assertIn("later version", str(self.assertRaises(UnusableFile, self.writer)))
        with open(self.path, "rb") as file:
            self.assertEqual(before, file.read())

    def test_other_database(self) -> None:
        """A database of another program is left alone."""
        db = sqlite3.connect(self.path)
        db.execute("CREATE TABLE other (a)")
        db.close()
        self.assertIn("no store of a console", str(self.assertRaises(UnusableFile, self.writer)))

    def test_no_database(self) -> None:
        """A file that is no database is said to be damaged, and left alone."""
        with open(self.path, "wb") as file:
            file.write(b"#" * 5000)
        self.assertIn("damaged", str(self.assertRaises(UnusableFile, self.writer)))

    def test_unwritable(self) -> None:
        """A directory that is missing is an OSError that names the file."""
        self.path = os.path.join(self.path, "console.sqlite")
        self.assertIn(self.path, str(self.assertRaises(OSError, self.writer)))


class WritingTests(StoreCase):
    """Transactions."""

    def test_undone(self) -> None:
        """An error of the function comes out as it is, and nothing of the transaction stays."""
        writer = self.writer()

        def fail(transaction: StoreTransaction) -> None:
            one_revision(transaction)
            raise KeyError("no")

        self.assertRaises(KeyError, writer.write, fail)
        self.assertEqual(0, self.reader().read(newest_revision))
        self.assertEqual(1, writer.write(one_revision))

    def test_reader_follows(self) -> None:
        """A read sees what a write that has returned has written."""
        writer, reader = self.writer(), self.reader()
        for number in range(1, 4):
            writer.write(one_revision)
            self.assertEqual(number, reader.read(newest_revision))

    def test_reader_does_not_write(self) -> None:
        """The connection that reads refuses to write."""
        self.writer()
        reader = self.reader()
        self.assertRaises(StoreUnavailable, reader.read, lambda db: db.execute("DELETE FROM rule"))

    def test_append_only(self) -> None:
        """No statement changes or deletes what the history has."""
        writer = self.writer()
        writer.write(one_revision)
        for statement in (
            "DELETE FROM revision",
            "DELETE FROM change",
            "UPDATE revision SET by = 'eve'",
            "UPDATE change SET after = NULL",
        ):
            error = self.assertRaises(
                sqlite3.IntegrityError, writer.write, lambda transaction, text=statement: transaction.execute(text)
            )
            self.assertIn("append-only", str(error))
        (entry,) = self.reader().read(read_history)
        self.assertEqual(("mara", ["a", "b"]), (entry.by, entry.after))

    def test_floor(self) -> None:
        """A write that would leave too little room on the disk is refused before it begins; reads go on."""
        self.writer().write(one_revision)
        writer = self.writer(disk_space=DiskSpace(os.path.dirname(self.path), 1 << 60))
        self.assertRaises(StoreFull, writer.write, one_revision)
        self.assertEqual(1, self.reader().read(newest_revision))

    def test_full(self) -> None:
        """A write that the disk has no room for is undone as a whole; once there is room, writing goes on."""
        writer = self.writer()
        writer.write(one_revision)
        writer._db.execute("PRAGMA max_page_count = 1").fetchall()

        def write_much(transaction: StoreTransaction) -> None:
            one_revision(transaction)
            transaction.execute("INSERT INTO setting VALUES ('a', ?)", ("b" * 1_000_000,))

        self.assertRaises(StoreFull, writer.write, write_much)
        self.assertEqual(1, self.reader().read(newest_revision))
        writer._db.execute("PRAGMA max_page_count = 1000000").fetchall()
        self.assertEqual(2, writer.write(one_revision))
