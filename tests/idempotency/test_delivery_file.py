"""
Tests for L{webhookrx.idempotency.delivery_file}.
"""

from __future__ import annotations

import os
import sqlite3
import stat

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import UnusableFile
from webhookrx.filesystem import DiskSpace
from webhookrx.idempotency.delivery_file import DeliveryFile, connect, put_aside
from webhookrx.idempotency.key_ring import ENTRY

CAPACITY = 10


def entries(*numbers: int) -> bytes:
    """Return entries for a file."""
    return b"".join(number.to_bytes(ENTRY, "little") for number in numbers)


class DeliveryFileTests(SynchronousTestCase):
    """
    Tests for L{DeliveryFile}.
    """

    def setUp(self) -> None:
        self.path = os.path.join(os.path.abspath(self.mktemp()), "deliveries.sqlite")

    def open(self, disk_space: DiskSpace | None = None) -> DeliveryFile:
        """Open the file, for as long as the test takes."""
        file = DeliveryFile(self.path, disk_space=disk_space, capacity=CAPACITY)
        self.addCleanup(file.close)
        return file

    def open_and_read(self) -> None:
        """Open the file, read it, and close it."""
        file = DeliveryFile(self.path)
        try:
            file.read()
        finally:
            file.close()

    def rows(self) -> list[tuple[int, int]]:
        """Return number and time of each row."""
        db = sqlite3.connect(self.path)
        self.addCleanup(db.close)
        return db.execute("SELECT last, newest FROM deliveries ORDER BY last").fetchall()

    def test_again(self) -> None:
        """What was written is there in its order when the file is opened again, and nobody else can read it."""
        file = self.open()
        self.assertEqual([], file.read())
        file.append(entries(1), 100, 1)
        file.append(entries(2, 3), 101, 1)
        file.close()
        file = self.open()
        self.assertEqual(entries(1, 2, 3), b"".join(file.read()))
        file.append(entries(4), 102, 1)
        self.assertEqual(entries(1, 2, 3, 4), b"".join(file.read()))
        for part in os.listdir(os.path.dirname(self.path)):
            path = os.path.join(os.path.dirname(self.path), part)
            self.assertEqual(0o600, stat.S_IMODE(os.stat(path).st_mode), part)

    def test_killed(self) -> None:
        """What was committed is there although the file was never closed."""
        child = os.fork()
        if not child:
            try:
                DeliveryFile(self.path, capacity=CAPACITY).append(entries(1), 100, 1)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual([entries(1)], self.open().read())

    def test_capacity(self) -> None:
        """No more rows are kept than are needed for the newest keys."""
        file = self.open()
        for number in range(0, 60, 3):
            file.append(entries(number, number + 1, number + 2), 100, 1)
        self.assertEqual(entries(*range(48, 60)), b"".join(file.read()))
        file.close()
        self.assertEqual([51, 54, 57, 60], [last for last, _ in self.rows()])

    def test_age(self) -> None:
        """Rows whose newest key is too old are cut off."""
        file = self.open()
        for time in range(100, 110):
            file.append(entries(time), time, time - 4)
        file.close()
        self.assertEqual(list(range(105, 110)), [newest for _, newest in self.rows()])

    def test_all_too_old(self) -> None:
        """When all but the new row are too old, that one stays."""
        file = self.open()
        for time in (100, 101, 102, 500):
            file.append(entries(time), time, time - 50)
        file.close()
        self.assertEqual([(4, 500)], self.rows())

    def test_in_use(self) -> None:
        """A file that another one has open can't be used, and is as good as before."""
        file = self.open()
        file.append(entries(1), 100, 1)
        error = self.assertRaises(sqlite3.OperationalError, DeliveryFile, self.path)
        self.assertEqual("database is locked", str(error))
        file.append(entries(2), 100, 1)
        self.assertEqual(entries(1, 2), b"".join(file.read()))

    def test_disk_full(self) -> None:
        """Where too little of the disk is free nothing is written, and the rest of the disk is left to messages."""
        file = self.open(DiskSpace(os.path.dirname(os.path.dirname(self.path)), 1 << 62))
        self.assertIn("too little room", str(self.assertRaises(OSError, file.append, entries(1), 100, 1)))
        self.assertEqual([], file.read())

    def test_no_directory(self) -> None:
        """A directory that can't be made is an error of the system."""
        self.assertRaises(OSError, DeliveryFile, os.path.join(self.path, "a", "b"))

    def test_later_version(self) -> None:
        """A file of a later version is left alone."""
        self.open().close()
        db = connect(self.path)
        db.execute("PRAGMA user_version = 2")
        db.close()
        self.assertIn("later version", str(self.assertRaises(OSError, DeliveryFile, self.path)))

    def test_damaged(self) -> None:
        """A file that is no database, not ours, or whose rows are not whole is damaged."""
        self.open().close()
        with open(self.path, "rb") as opened:
            whole = opened.read()
        for content in (b"x" * 8192, whole[:100] + bytes(len(whole) - 100)):
            with open(self.path, "wb") as damaged:
                damaged.write(content)
            self.assertRaises(UnusableFile, self.open_and_read)
        for statement in (
            "CREATE TABLE other (a)",
            "INSERT INTO deliveries VALUES (1, 1, x'0011')",
            "INSERT INTO deliveries VALUES (1, 1, 'text')",
        ):
            with open(self.path, "wb") as opened_again:
                opened_again.write(b"" if "other" in statement else whole)
            db = connect(self.path)
            db.execute(statement)
            db.close()
            self.assertRaises(UnusableFile, self.open_and_read)

    def test_taken_number(self) -> None:
        """A row that is there already is damage: somebody else has written."""
        file = self.open()
        file.append(entries(1), 100, 1)
        file._last = 0
        self.assertRaises(UnusableFile, file.append, entries(2), 100, 1)

    def test_put_aside(self) -> None:
        """A damaged file goes in the place of an earlier one, and nothing of it is left for the next."""
        for content in ("1", "2"):
            self.open().close()
            for part in ("", "-wal", "-shm"):
                with open(self.path + part, "w", encoding="ascii") as file:
                    file.write(content)
            self.assertEqual(self.path + ".damaged", put_aside(self.path))
        names = sorted(os.listdir(os.path.dirname(self.path)))
        self.assertEqual(["deliveries.sqlite-wal.damaged", "deliveries.sqlite.damaged"], names)
        with open(self.path + ".damaged", encoding="ascii") as file:
            self.assertEqual("2", file.read())
        self.assertEqual([], self.open().read())
