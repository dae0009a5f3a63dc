"""Messages that wait on disk, whatever the disk does."""

from __future__ import annotations

import os
import sqlite3
import stat
from itertools import product
from unittest import mock

from twisted.trial.unittest import SynchronousTestCase

from tests.spool.faulty_spool import (
    Clocks,
    Disk,
    FaultySpool,
    SmallDisk,
    _Connection,
    drain,
    make_queue,
    sqlite_error,
    stored,
    texts,
)
from webhookrx.errors import NotStored
from webhookrx.filesystem import InUse
from webhookrx.spool import database, old_file
from webhookrx.spool.database import SpoolFile
from webhookrx.spool.directory import LAST_NUMBER, SpoolDirectory
from webhookrx.spool.queue import FULL_LAPSES, SpoolQueue
from webhookrx.spool.quota import Quota, SpoolFull
from webhookrx.spool.rows import ROW_OVERHEAD, DeadLetter, Row, checksum, first_number


def letter(row: Row, reason: str = "no") -> DeadLetter:
    """Refuse a message."""
    return DeadLetter(row.id, 1, row.crc, row.data, reason, "memory", 2)


class QueueCase(SynchronousTestCase):
    """A directory, with faults."""

    def setUp(self) -> None:
        """Name a directory that does not exist yet."""
        self.path = self.mktemp()
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.path = os.path.abspath(self.path)
        self.faults = FaultySpool()
        self.clocks = Clocks()

    def open(self, room: Quota | None = None, disk: Disk | SmallDisk | None = None) -> SpoolQueue:
        """Open a queue."""
        room = Quota(1 << 30) if room is None else room
        queue = make_queue(self.path, self.faults, room, self.clocks, disk)
        queue.open()
        self.addCleanup(queue.close)
        return queue

    def again(self, queue: SpoolQueue) -> SpoolQueue:
        """Close a queue, and open it anew."""
        queue.close()
        return self.open()

    def names(self) -> list[str]:
        """Return what is in the directory, but for the lock and what SQLite puts beside its files."""
        return sorted(name for name in os.listdir(self.path) if name != "lock" and not name.endswith(("-wal", "-shm")))

    def written(self, name: str) -> list[str]:
        """Return the statements that wrote to a file since the last call."""
        words = ("BEGIN", "COMMIT", "INSERT", "UPDATE", "DELETE", "PRAGMA wal", "PRAGMA incremental")
        found = [sql for file, sql in self.faults.statements if file == name and sql.startswith(words)]
        self.faults.statements.clear()
        return found


class OrderTests(QueueCase):
    """First in, first out."""

    def test_order(self) -> None:
        """Messages come in the order of their numbers, and are gone once acknowledged."""
        queue = self.open()
        self.assertEqual(range(1, 3), queue.append(stored("one", "two")))
        self.assertEqual(range(3, 4), queue.append(stored("three")))

        self.assertEqual(["one", "two", "three"], drain(queue))
        self.assertEqual([], queue.next_batch())
        self.assertEqual((0, 0, None), queue.status()[:3])

    def test_restart(self) -> None:
        """Messages survive a restart; numbers are never used again."""
        queue = self.open()
        queue.append(stored("one", "two"))
        rows = queue.next_batch()
        queue.ack([rows[0].id])
        queue = self.again(queue)

        self.assertEqual(1, queue.status().messages)
        self.assertEqual(["two"], drain(queue))
        queue = self.again(queue)
        self.assertEqual(range(3, 4), queue.append(stored("three")))

    def test_batch_bounds(self) -> None:
        """A batch is a quarter of what waits: 32 to 1000 messages, or a mebibyte at most, or one message."""
        queue = self.open()
        queue.append(stored(*map(str, range(4400))))
        sizes = self.batches(queue)
        self.assertEqual(([1000, 850, 637], 32), (sizes[:3], sizes[-2]))
        self.assertEqual(4400, sum(sizes))
        queue.append(stored(*["x" * 400_000] * 4, "x" * 3_000_000))
        self.assertEqual([3, 2], self.batches(queue))

    def batches(self, queue: SpoolQueue) -> list[int]:
        """Drain the queue, and return the sizes of the batches."""
        sizes = []
        while rows := queue.next_batch():
            sizes.append(len(rows))
            queue.ack([row.id for row in rows])
        return sizes

    def test_same_batch(self) -> None:
        """An offered batch is offered again as it was, also after a restart."""
        queue = self.open()
        queue.append(stored("one", "two"))
        self.assertEqual(["one", "two"], texts(queue.next_batch()))
        queue.append(stored("three"))
        self.assertEqual(["one", "two"], texts(queue.next_batch()))
        queue = self.again(queue)
        rows = queue.next_batch()
        self.assertEqual(["one", "two"], texts(rows))
        queue.ack([rows[1].id])
        self.assertEqual(["one"], texts(queue.next_batch()))
        queue.ack([rows[0].id])
        self.assertEqual(["three"], texts(queue.next_batch()))

    def test_end_of_batch(self) -> None:
        """The last message of an offered batch is offered again alone, whatever came later; in an old file, too."""
        for fails in (False, True):
            self.path += "x"
            queue = self.open()
            queue.append(stored("one", "two"))
            one, _ = queue.next_batch()
            queue.append(stored("three"))
            if fails:
                self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC")
            queue.ack([one.id])
            self.assertEqual(["two"], texts(queue.next_batch()), fails)
            queue.ack([row.id for row in queue.next_batch()])
            self.assertEqual(["three"], texts(queue.next_batch()), fails)

    def test_end_of_batch_after_restart(self) -> None:
        """The same holds for an old file of a former process."""
        queue = self.open()
        queue.append(stored("one", "two"))
        one, _ = queue.next_batch()
        queue.append(stored("three"))
        self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC")
        self.assertRaises(NotStored, queue.append, stored("lost"))
        queue.append(stored("four"))
        queue.ack([one.id])
        queue = self.again(queue)

        self.assertEqual(["two"], texts(queue.next_batch()))
        self.assertEqual(["two", "three", "four"], drain(queue))

    def test_still_there(self) -> None:
        """A removed message that is still there is damage: it comes once more, and not again and again."""
        queue = self.open()
        queue.append(stored("one", "two"))
        rows = queue.next_batch()
        queue.ack([row.id for row in rows])
        other = sqlite3.connect(os.path.join(self.path, "00000001.sqlite"))
        for row in rows:
            other.execute("INSERT INTO waiting VALUES (?, 1, ?, ?)", row)
        other.commit()
        other.close()
        self.assertEqual(["one", "two"], drain(queue))

        self.assertEqual([], queue.next_batch())
        self.assertEqual(1, queue.status().damaged)

    def test_opened_anew(self) -> None:
        """Numbers removed before a close do not count after a reopen with a new directory."""
        queue = self.open()
        queue.append(stored("one"))
        drain(queue)
        queue.close()
        os.rename(self.path, self.path + "-old")
        queue.open()
        self.assertEqual(range(1, 2), queue.append(stored("two")))
        self.assertEqual(["two"], drain(queue))

        self.assertEqual(["00000001.sqlite"], self.names())

    def test_status(self) -> None:
        """The backlog has number, bytes and age."""
        queue = self.open()
        first, second = stored("one", received=5), stored("two", received=7)
        queue.append(first)
        queue.append(second)
        size = len(first[0]) + len(second[0]) + 2 * ROW_OVERHEAD
        self.assertEqual((2, size, 5, 0, 0, None, False, 0), tuple(queue.status()))
        (one, _) = queue.next_batch()
        queue.ack([one.id])
        self.assertEqual((1, len(second[0]) + ROW_OVERHEAD, 7), queue.status()[:3])

    def test_dead(self) -> None:
        """A dead letter waits no more, and is kept."""
        queue = self.open()
        queue.append(stored("one", "two"))
        one, two = queue.next_batch()
        queue.ack([two.id], [letter(one, "too odd")])

        self.assertEqual((0, 0, None, 1), queue.status()[:4])
        file = SpoolFile(SpoolDirectory(self.path), 1, writable=False)
        self.addCleanup(file.close)
        self.assertEqual([letter(one, "too odd")], file.read_dead(0, 10))

    def test_files(self) -> None:
        """Directory and files are for their owner alone; no file is left open or behind."""
        queue = self.open()
        queue.append(stored("one"))

        self.assertEqual(0o700, stat.S_IMODE(os.stat(self.path).st_mode))
        for name in os.listdir(self.path):
            self.assertEqual(0o600, stat.S_IMODE(os.stat(os.path.join(self.path, name)).st_mode), name)
        queue.close()
        self.assertEqual(["00000001.sqlite", "lock"], sorted(os.listdir(self.path)))
        calls = [call for call, _ in self.faults.calls]
        self.assertEqual(calls.count("open"), calls.count("close"))

    def test_log_stays_small(self) -> None:
        """The write-ahead log restarts regularly while messages come and go."""
        queue = self.open()
        for _ in range(60):
            queue.append(stored(*["x" * 10_000] * 50))
            drain(queue)

        self.assertLess(os.path.getsize(os.path.join(self.path, "00000001.sqlite-wal")), 12 * 1024**2)

    def test_vacuum(self) -> None:
        """Free pages go back to the file system while nothing waits."""
        self.patch(database, "IDLE_PAGES", 256)
        queue = self.open()
        path = os.path.join(self.path, "00000001.sqlite")
        for _ in range(5):
            queue.append(stored(*["x" * 100_000] * 10))
        self.assertFalse(queue.vacuum())
        drain(queue)
        self.assertTrue(queue.vacuum())
        while queue.vacuum():
            pass

        self.assertLess(os.path.getsize(path), 2 * 1024**2)
        queue.append(stored("one"))
        self.assertEqual(["one"], drain(queue))

    def test_in_use(self) -> None:
        """A second queue is refused, and touches nothing; after the first is closed it opens."""
        queue = self.open()
        queue.append(stored("one"))
        before = os.listdir(self.path)
        other = make_queue(self.path)
        self.assertRaises(InUse, other.open)
        self.assertEqual(before, os.listdir(self.path))
        queue.close()
        other.open()
        self.addCleanup(other.close)

        self.assertEqual(["one"], drain(other))

    def test_foreign_files(self) -> None:
        """Other files in the directory are left alone, whatever their names."""
        os.mkdir(self.path)
        foreign = ["00000000.sqlite", "000000001.sqlite", "99999999.sqlite", "99999999.sqlite.damaged", "1.sqlite", "x"]
        for name in foreign:
            with open(os.path.join(self.path, name), "w") as file:
                file.write("mine")
        queue = self.open()
        self.assertEqual(range(1, 2), queue.append(stored("one")))

        self.assertEqual(["one"], drain(queue))
        self.assertEqual(sorted([*foreign, "00000001.sqlite"]), self.names())

    def test_last_number(self) -> None:
        """Message numbers fit for every allowed file number; beyond the last one there is no start."""
        os.mkdir(self.path)
        with open(os.path.join(self.path, f"{LAST_NUMBER - 1:08d}.sqlite.damaged"), "w"):
            pass
        queue = self.open()
        queue.append(stored("one"))
        self.assertEqual([first_number(LAST_NUMBER)], [row.id for row in queue.next_batch()])
        self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC")
        self.assertRaises(NotStored, queue.append, stored("lost"))

        self.assertIn("no file number is left", str(self.assertRaises(NotStored, queue.append, stored("two"))))

    def test_closed(self) -> None:
        """A closed queue refuses batches: another process may have the directory."""
        queue = self.open()
        queue.close()
        self.assertIn("closed", str(self.assertRaises(NotStored, queue.append, stored("one"))))

        self.assertEqual(["00000001.sqlite"], self.names())

    def test_no_directory(self) -> None:
        """The parent directory must exist; another file in its place is an error."""
        self.assertRaises(FileNotFoundError, make_queue(os.path.join(self.path, "no", "spool")).open)
        with open(self.path, "w"):
            pass
        self.assertRaises(NotADirectoryError, make_queue(self.path).open)

    def test_changed_by_others(self) -> None:
        """Changes of a command are seen at the next refresh."""
        queue = self.open()
        other = SpoolFile(SpoolDirectory(self.path), 1, writable=True)
        self.addCleanup(other.close)
        with other.transaction(durable=True) as transaction:
            transaction.append(stored("put back"))
        queue.refresh()

        self.assertEqual(1, queue.status().messages)
        self.assertEqual(["put back"], drain(queue))


class RoomTests(QueueCase):
    """The quota."""

    def test_refuse(self) -> None:
        """At its size it refuses batches, and is full until something is acknowledged."""
        size = len(stored("one")[0]) + ROW_OVERHEAD
        queue = self.open(Quota(2 * size))
        queue.append(stored("one", "two"))
        error = self.assertRaises(SpoolFull, queue.append, stored("six"))
        self.assertIn("the spool is full", str(error))
        self.assertTrue(queue.status().full)
        (one, _) = queue.next_batch()
        queue.ack([one.id])
        self.assertTrue(queue.status().full)
        queue.refresh()
        self.assertFalse(queue.status().full)
        queue.append(stored("six"))

        self.assertEqual(["two", "six"], drain(queue))
        self.assertEqual(0, queue.status().dropped)

    def test_full_until_there_is_room(self) -> None:
        """It is full until the refused batch would be accepted, at each limit."""
        size = len(stored("one")[0]) + ROW_OVERHEAD
        long_ago = self.clocks.wall - 11 * 10**9
        for room, free, received in (
            (Quota(2 * size), 1 << 40, None),
            (Quota(1 << 30, 10.0), 1 << 40, long_ago),
            (Quota(1 << 30), 1000, None),
            (Quota(2 * size, drop_oldest=True), 1000, None),
        ):
            self.path += "x"
            disk = Disk()
            queue = self.open(room, disk)
            queue.append(stored("one", "two", received=received))
            if room.drop_oldest:
                drain(queue)  # so that nothing is left to drop
            disk.free = free
            self.assertRaises(SpoolFull, queue.append, stored("six"))
            queue.refresh()
            self.assertTrue(queue.status().full, room)
            disk.free = 1 << 40
            drain(queue)
            queue.refresh()
            self.assertFalse(queue.status().full, room)

    def test_taken_again(self) -> None:
        """A stored batch ends the state C{full} at once."""
        size = len(stored("one")[0]) + ROW_OVERHEAD
        queue = self.open(Quota(2 * size))
        queue.append(stored("one"))
        self.assertRaises(SpoolFull, queue.append, stored("two", "six"))
        self.assertTrue(queue.status().full)
        queue.append(stored("two"))
        self.assertFalse(queue.status().full)
        self.faults.fail("COMMIT", "SQLITE_FULL")
        drain(queue)
        self.faults.fail("COMMIT", "SQLITE_FULL")
        self.assertRaises(NotStored, queue.append, stored("six"))
        self.assertTrue(queue.status().full)
        queue.append(stored("six"))

        self.assertFalse(queue.status().full)

    def test_full_lapses(self) -> None:
        """Without further checks for room, a refusal counts for a while."""
        queue = self.open(Quota(200))
        queue.append(stored("one"))
        self.assertRaises(SpoolFull, queue.append, stored("six"))
        for _ in range(3):
            self.clocks.now += 0.9 * FULL_LAPSES
            self.assertTrue(queue.status().full)
            queue.refresh()
        self.clocks.now += FULL_LAPSES

        self.assertFalse(queue.status().full)

    def test_never_fits(self) -> None:
        """A batch too large for an empty spool does not make it full for others."""
        for drop_oldest in (False, True):
            self.path += "x"
            queue = self.open(Quota(200, drop_oldest=drop_oldest))
            self.assertRaises(SpoolFull, queue.append, stored("x" * 1000))
            self.assertFalse(queue.status().full)

    def test_dead_letters_count(self) -> None:
        """Dead letters count against the size, too."""
        size = len(stored("one")[0]) + ROW_OVERHEAD
        queue = self.open(Quota(2 * size))
        queue.append(stored("one", "two"))
        queue.ack([], [letter(row) for row in queue.next_batch()])

        self.assertRaises(SpoolFull, queue.append, stored("six"))

    def test_drop_oldest(self) -> None:
        """The oldest make room for the newest, dead letters before those that wait, and are counted."""
        size = len(stored("one")[0]) + ROW_OVERHEAD
        queue = self.open(Quota(3 * size, drop_oldest=True))
        queue.append(stored("one", "two", "six"))
        queue.ack([], [letter(queue.next_batch()[0])])
        queue.append(stored("ten"))
        self.assertEqual((0, 1), (queue.status().dead, queue.status().dropped))
        queue.append(stored("1st", "2nd"))

        self.assertEqual(["ten", "1st", "2nd"], drain(queue))
        self.assertEqual(3, queue.status().dropped)
        error = self.assertRaises(SpoolFull, queue.append, stored(*"abcd"))
        self.assertIn("whatever is dropped", str(error))
        self.assertEqual(3, queue.status().dropped)

    def test_age(self) -> None:
        """Once the oldest is too old, batches are refused, or it is dropped."""
        now = self.clocks.wall
        for drop_oldest in (False, True):
            self.path += "x"
            queue = self.open(Quota(1 << 30, 10.0, drop_oldest))
            queue.append(stored("old", received=now - 11 * 10**9))
            if drop_oldest:
                queue.append(stored("new", received=now))
                self.assertEqual(["new"], drain(queue))
                self.assertEqual(1, queue.status().dropped)
            else:
                error = self.assertRaises(SpoolFull, queue.append, stored("new", received=now))
                self.assertIn("10s", str(error))


class FaultTests(QueueCase):
    """A disk that fails."""

    def test_failed_sync(self) -> None:
        """
        A batch whose sync fails is not stored, its file is never written again, and the next batch goes to a new one;
        what was stored comes first, and the old file goes once it is drained.
        """
        for name in ("SQLITE_IOERR_FSYNC", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_TRUNCATE", "SQLITE_CORRUPT"):
            self.path += "x"
            queue = self.open()
            queue.append(stored("one", "two"))
            self.faults.fail("COMMIT", name)
            self.assertRaises(NotStored, queue.append, stored("lost"))
            self.written("00000001.sqlite")
            queue.append(stored("three"))
            self.assertEqual(3, queue.status().messages)
            (one, _) = queue.next_batch()
            queue.ack([one.id])

            self.assertEqual(["two", "three"], drain(queue), name)
            self.assertEqual([], self.written("00000001.sqlite"))
            expected = ["00000001.sqlite.damaged"] if name == "SQLITE_CORRUPT" else []
            self.assertEqual([*expected, "00000002.sqlite"], [n for n in self.names() if "-" not in n], name)
            queue.close()

    def test_restart_after_failure(self) -> None:
        """After a restart a failed file is read-only, and is drained from its cursor on."""
        queue = self.open()
        queue.append(stored("one", "two"))
        self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC")
        self.assertRaises(NotStored, queue.append, stored("lost"))
        queue.append(stored("three"))
        queue.ack([queue.next_batch()[0].id])
        queue = self.again(queue)
        self.written("00000001.sqlite")

        self.assertEqual(2, queue.status().messages)
        self.assertEqual(["two", "three"], drain(queue))
        self.assertEqual([], self.written("00000001.sqlite"))
        self.assertEqual(["00000002.sqlite"], self.names())

    def test_restart_after_failures(self) -> None:
        """However many files have failed, a restart drains them in order."""
        queue = self.open()
        for text in ("one", "two", "three"):
            queue.append(stored(text))
            self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC")
            self.assertRaises(NotStored, queue.append, stored("lost"))
        queue.append(stored("four"))

        self.assertEqual(["one", "two", "three", "four"], drain(self.again(queue)))

    def test_noted_without_a_sync(self) -> None:
        """The cursor of an old file is saved without a sync: after a power cut some is delivered again."""
        queue = self.open()
        queue.append(stored("one", "two"))
        self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC")
        self.assertRaises(NotStored, queue.append, stored("lost"))
        queue.append(stored("six"))
        one, _ = queue.next_batch()
        self.faults.statements.clear()
        queue.ack([one.id])
        said = [sql for _, sql in self.faults.statements if sql.startswith(("PRAGMA synchronous", "INSERT"))]
        self.assertEqual(["PRAGMA synchronous=NORMAL", "INSERT OR REPLACE INTO passed VALUES (?, ?, ?, ?)"], said)

    def test_synced(self) -> None:
        """A batch is synced before its numbers are returned, whatever was written without a sync before it."""
        queue = self.open()
        for text in ("one", "two"):
            self.faults.statements.clear()
            queue.append(stored(text))
            said = [sql for _, sql in self.faults.statements if sql.startswith(("PRAGMA synchronous", "COMMIT"))]
            self.assertEqual(["PRAGMA synchronous=FULL", "COMMIT"], said[-2:])
            queue.ack([queue.next_batch()[0].id])

    def test_status_of_all_files(self) -> None:
        """Number and bytes are those of all files."""
        queue = self.open()
        one, two = stored("one"), stored("two")
        queue.append(one)
        self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC")
        self.assertRaises(NotStored, queue.append, stored("lost"))
        queue.append(two)
        self.assertEqual((2, len(one[0]) + len(two[0]) + 2 * ROW_OVERHEAD), queue.status()[:2])

    def test_oldest_of_all_files(self) -> None:
        """The oldest message may be in any file: clocks are set back at times."""
        for moments, oldest in (((100, 200), 100), ((200, 100), 100)):
            self.path += "x"
            queue = self.open()
            queue.append(stored("one", received=moments[0]))
            self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC")
            self.assertRaises(NotStored, queue.append, stored("lost"))
            queue.append(stored("two", received=moments[1]))
            self.assertEqual(oldest, queue.status().oldest)
            one = queue.next_batch()[0]
            queue.ack([one.id])
            self.assertEqual(moments[1], queue.status().oldest)

    def test_restart_before_new_file(self) -> None:
        """The same holds if the process ended before it began a new file."""
        queue = self.open()
        queue.append(stored("one"))
        self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC")
        self.assertRaises(NotStored, queue.append, stored("lost"))
        self.assertIn("00000001.failed", self.names())
        queue = self.again(queue)
        queue.append(stored("two"))

        self.assertEqual("one", drain(queue)[0])
        self.assertEqual(["00000002.sqlite"], self.names())

    def test_full_disk(self) -> None:
        """A full disk fails the batch; the file stays in use, and the next batch is stored."""
        queue = self.open()
        for beginning, name in (
            ("COMMIT", "SQLITE_FULL"),
            ("INSERT", "SQLITE_FULL"),
            ("BEGIN", "SQLITE_BUSY"),
            ("BEGIN", "SQLITE_IOERR_SHMSIZE"),
            ("COMMIT", "SQLITE_READONLY"),
        ):
            self.faults.fail(beginning, name)
            error = self.assertRaises(NotStored, queue.append, stored("lost"))
            self.assertIn(name, str(error))
        queue.append(stored("one"))

        self.assertEqual(["one"], drain(queue))
        self.assertEqual(["00000001.sqlite"], self.names())

    def test_stuck_transaction(self) -> None:
        """A transaction that can't even be rolled back retires its file."""
        queue = self.open()
        self.faults.fail("COMMIT", "SQLITE_FULL")
        self.faults.fail("ROLLBACK", "SQLITE_FULL")
        self.assertRaises(NotStored, queue.append, stored("lost"))
        queue.append(stored("one"))

        self.assertEqual(["one"], drain(queue))
        self.assertEqual(["00000002.sqlite"], self.names())

    def test_new_file_is_closed(self) -> None:
        """A new file whose first transaction fails is closed again."""
        queue = self.open()
        self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC")
        self.assertRaises(NotStored, queue.append, stored("lost"))
        self.faults.fail("PRAGMA synchronous=NORMAL", "SQLITE_IOERR_WRITE")
        with mock.patch.object(SpoolFile, "close", autospec=True, side_effect=SpoolFile.close) as close:
            self.assertRaises(NotStored, queue.append, stored("lost"))
        self.assertEqual([2], [call.args[0].number for call in close.call_args_list])

    def test_new_file_fails(self) -> None:
        """Creating a file is tried every half second at most, and leaves nothing behind on failure."""
        queue = self.open()
        self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC", times=2)
        self.assertRaises(NotStored, queue.append, stored("lost"))
        self.assertRaises(NotStored, queue.append, stored("lost"))
        tries = len(self.faults.statements)
        error = self.assertRaises(NotStored, queue.append, stored("lost"))
        self.assertIn("SQLITE_IOERR_FSYNC", str(error))
        self.assertEqual(tries, len(self.faults.statements))
        for step in (
            "open",
            "connect",
            "PRAGMA journal_mode",
            "PRAGMA wal_autocheckpoint",
            "rename",
            "fsync",
            "PRAGMA synchronous=NORMAL",
        ):
            self.clocks.now += 0.5
            self.faults.fail(step, OSError(5, "I/O error") if step.islower() else sqlite_error("SQLITE_IOERR_WRITE"))
            self.assertRaises(NotStored, queue.append, stored("lost"))
            self.assertEqual(["00000001.failed", "00000001.sqlite"], self.names(), step)
        self.clocks.now += 0.6
        queue.append(stored("one"))

        self.assertEqual(["one"], drain(queue))
        self.assertEqual(["00000002.sqlite"], self.names())

    def test_failed_checkpoint(self) -> None:
        """A failed checkpoint loses no batch, but retires the file."""
        queue = self.open()
        self.faults.fail("PRAGMA wal_checkpoint", "SQLITE_IOERR_FSYNC")
        queue.append(stored("x" * 5_000_000))
        queue.append(stored("one"))

        self.assertEqual(["x" * 5_000_000, "one"], drain(queue))
        self.assertEqual(["00000002.sqlite"], self.names())
        self.faults.fail("PRAGMA wal_checkpoint", "SQLITE_FULL")
        queue.append(stored("x" * 5_000_000))
        self.assertEqual(1, len(drain(queue)))
        self.assertEqual(["00000002.sqlite"], self.names())

    def test_busy_checkpoint(self) -> None:
        """A log that another process was copying is copied soon after."""
        queue = self.open()
        execute = _Connection.execute

        def busy(connection: _Connection, statement: str, *parameters: object) -> sqlite3.Cursor:
            if statement.startswith("PRAGMA wal_checkpoint"):
                # As SQLite answers then.
                return execute(connection, "SELECT 1, -1, -1")
            return execute(connection, statement, *parameters)

        with mock.patch.object(_Connection, "execute", busy):
            queue.append(stored("x" * 5_000_000))
        self.written("00000001.sqlite")
        queue.append(stored("x" * 3_000_000))

        self.assertIn("PRAGMA wal_checkpoint(PASSIVE)", self.written("00000001.sqlite"))

    def test_ack_without_the_lock(self) -> None:
        """The search in a file that was retired a moment ago does not hold the lock."""
        queue = self.open()
        queue.append(stored("one", "two"))
        one, _ = queue.next_batch()
        held: list[bool] = []
        read, leave = old_file.OldFile.read, queue._detach_missing_files

        def noting(file: old_file.OldFile) -> list[Row]:
            if not file._batch:
                held.append(queue._files.lock._is_held)
            return read(file)

        def retire() -> None:
            leave()
            newest = queue._files.newest
            if newest is not None:
                queue._files.retire(newest, "a test")

        self.patch(old_file.OldFile, "read", noting)
        self.patch(queue, "_detach_missing_files", retire)
        queue.ack([one.id])

        self.assertEqual([False], held)
        self.assertEqual(["two"], texts(queue.next_batch()))

    def test_ack_fails(self) -> None:
        """A batch can be acknowledged while the file fails; unacknowledged messages stay the same batch."""
        queue = self.open()
        queue.append(stored("one", "two"))
        one, _ = queue.next_batch()
        queue.append(stored("three"))
        self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC")
        queue.ack([one.id])
        self.assertEqual(["two"], texts(queue.next_batch()))
        self.assertEqual(2, queue.status().messages)

        self.assertEqual(["two", "three"], drain(queue))
        queue.append(stored("four"))
        self.assertEqual(["four"], drain(queue))

    def test_dead_while_failing(self) -> None:
        """A dead letter of a failed file is moved to the next one."""
        queue = self.open()
        queue.append(stored("one", "two", "three"))
        one, two, _ = queue.next_batch()
        queue.ack([], [letter(one)])
        self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC")
        queue.ack([], [letter(two)])
        self.assertEqual(["three"], drain(queue))
        queue.refresh()

        self.assertEqual(2, queue.status().dead)
        self.assertEqual(["00000002.sqlite"], self.names())
        file = SpoolFile(SpoolDirectory(self.path), 2, writable=False)
        self.addCleanup(file.close)
        self.assertEqual([one.id, two.id], [dead.id for dead in file.read_dead(0, 10)])

    def test_name_of_log(self) -> None:
        """The name of the log is synced before the first batch; where that fails, the batch does not go there."""
        queue = self.open()
        self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC")
        self.assertRaises(NotStored, queue.append, stored("lost"))
        directories = [call for call in self.faults.statements if call[1] == "fsync"]
        self.assertEqual(4, len(directories))  # the one around it, the file, its name, and the name of its log
        real = self.faults.fsync
        calls: list[int] = []

        def last_fails(fd: int) -> None:
            calls.append(fd)
            if len(calls) == 3:
                raise OSError(5, "I/O error")
            real(fd)

        self.faults.fsync = last_fails  # type: ignore[method-assign, assignment]
        self.assertRaises(NotStored, queue.append, stored("lost"))
        self.assertEqual(["00000001.failed", "00000001.sqlite"], self.names())
        self.clocks.now += 1.0
        queue.append(stored("one"))
        self.assertEqual(["one"], drain(queue))

    def test_no_write_ahead_log(self) -> None:
        """Without a write-ahead log there is no start."""

        class NoLog(FaultySpool):
            def connect(self, path: str, *, read_only: bool) -> sqlite3.Connection:
                connection = super().connect(path, read_only=read_only)
                connection.execute("PRAGMA locking_mode=EXCLUSIVE")
                connection.execute("CREATE TABLE IF NOT EXISTS other(x)")
                connection.execute("BEGIN")
                connection.execute("SELECT * FROM other").fetchall()
                return connection

        self.faults = NoLog()
        self.assertRaises(sqlite3.Error, self.open)
        self.assertEqual([], self.names())

    def test_cannot_begin(self) -> None:
        """A start that can't create a file fails, and unlocks the directory."""
        self.faults.fail("rename", OSError(5, "I/O error"))
        self.assertRaises(OSError, self.open)
        self.faults.fail("flock", OSError(37, "No locks available"))
        self.assertRaises(OSError, self.open)

        self.open()
        self.assertEqual(["00000001.sqlite"], self.names())

    def test_leftovers(self) -> None:
        """A half-made file that a crash left is removed."""
        os.mkdir(self.path)
        for name in ("new.sqlite", "new.sqlite-journal"):
            with open(os.path.join(self.path, name), "w"):
                pass
        self.open()

        self.assertEqual(["00000001.sqlite"], self.names())

    def test_read_fails(self) -> None:
        """A read that fails for a moment is an error, and loses nothing."""
        queue = self.open()
        queue.append(stored("one"))
        self.faults.fail("SELECT id, crc", "SQLITE_BUSY", read_only=True)
        self.assertRaises(sqlite3.Error, queue.next_batch)
        self.faults.fail("SELECT id, crc", "SQLITE_IOERR_READ", times=2, read_only=True)
        self.assertRaises(sqlite3.Error, queue.next_batch)

        self.assertEqual(["one"], drain(queue))


class DamageTests(QueueCase):
    """Damaged files."""

    def setUp(self) -> None:
        """Make one try only, and a short gap: the search goes one by one."""
        super().setUp()
        self.patch(old_file, "_LONGEST_GAP", 4000)
        self.patch(old_file, "_READ_TRIES", 1)

    def fill(self, count: int = 3000) -> str:
        """Store so many messages, close, and return the path of the file."""
        queue = self.open()
        queue.append(stored(*(f"{number:06d}" for number in range(count))))
        queue.close()
        return os.path.join(self.path, "00000001.sqlite")

    def reopen_and_drain(self) -> tuple[list[object], SpoolQueue]:
        """Open the directory, store a message, and return all that is delivered."""
        queue = self.open()
        queue.append(stored("new"))
        taken: list[object] = []
        while rows := queue.next_batch():
            taken += texts([row for row in rows if row.is_whole])
            queue.ack([row.id for row in rows])
        return taken, queue

    def test_flipped_message(self) -> None:
        """A wrong byte of a message is found by its checksum."""
        path = self.fill(3)
        with open(path, "rb") as file:
            content = file.read()
        with open(path, "wb") as file:
            file.write(content.replace(b"000001", b"00x001"))
        queue = self.open()

        self.assertEqual([True, False, True], [row.is_whole for row in queue.next_batch()])

    def test_became_text(self) -> None:
        """Data whose type a flipped bit made text, and not UTF-8 either, does not stop the other messages."""
        for number, column in product((1, 2), ("data", "received")):
            self.path += "x"
            path = self.fill(3)
            db = sqlite3.connect(path)
            db.execute(f"UPDATE waiting SET {column} = CAST(x'ff' AS TEXT) WHERE id = {number}")
            db.commit()
            db.close()
            taken, queue = self.reopen_and_drain()
            expected = ["000000", "000001", "000002", "new"]
            if column == "data":
                del expected[number - 1]
            self.assertEqual((expected, 0), (taken, queue.status().messages), (number, column))

    def test_unreadable_page(self) -> None:
        """Without one page, all other messages are delivered, and the file is put aside."""
        path = self.fill()
        size = os.path.getsize(path)
        with open(path, "r+b") as file:
            file.seek(size // 2 // 4096 * 4096)
            file.write(b"\xff" * 4096)
        taken, queue = self.reopen_and_drain()

        self.assertGreater(len(taken), 2900)
        self.assertLess(len(taken), 3001)
        self.assertEqual(taken, sorted(taken, key=str))
        self.assertEqual("new", taken[-1])
        self.assertEqual(1, queue.status().damaged)
        self.assertIn("00000001.sqlite.damaged", self.names())
        self.assertEqual(0, queue.status().messages)

    def test_not_a_database(self) -> None:
        """A file that is no database is put aside at the start; a new one takes messages."""
        for content in (b"", b"x" * 5000, b"SQLite format 3\x00" + b"\xff" * 5000):
            self.path += "x"
            os.mkdir(self.path)
            with open(os.path.join(self.path, "00000001.sqlite"), "wb") as file:
                file.write(content)
            taken, queue = self.reopen_and_drain()

            self.assertEqual(["new"], taken)
            self.assertEqual(1, queue.status().damaged)
            self.assertEqual(["00000001.sqlite.damaged", "00000002.sqlite"], self.names())

    def test_truncated(self) -> None:
        """A file truncated anywhere never stops the receiver, and what is delivered is right and in order."""
        path = self.fill(200)
        with open(path, "rb") as file:
            content = file.read()
        everything = [f"{number:06d}" for number in range(200)]
        for size in range(0, len(content), 4096 + 1511):
            self.path += "x"
            os.mkdir(self.path)
            with open(os.path.join(self.path, "00000001.sqlite"), "wb") as file:
                file.write(content[:size])
            taken, queue = self.reopen_and_drain()
            queue.close()

            self.assertEqual("new", taken[-1])
            self.assertEqual([text for text in everything if text in taken], taken[:-1], size)
            self.assertEqual(1, queue.status().damaged)
        # What is not cut off is delivered.
        self.assertGreater(len(taken), 100)

    def test_flipped_bytes(self) -> None:
        """Wherever bytes are wrong, it goes on, and delivers nothing wrong."""
        path = self.fill(60)
        with open(path, "rb") as file:
            content = file.read()
        everything = [f"{number:06d}" for number in range(60)]
        for place in range(0, len(content), 797):
            self.path += "x"
            os.mkdir(self.path)
            damaged = bytearray(content)
            damaged[place] ^= 0xFF
            with open(os.path.join(self.path, "00000001.sqlite"), "wb") as file:
                file.write(damaged)
            taken, queue = self.reopen_and_drain()
            queue.close()

            self.assertIn("new", taken, place)
            self.assertLessEqual(set(taken), {*everything, "new"}, place)

    def test_damaged_while_reading(self) -> None:
        """Damage that shows up later costs only what can't be read."""
        queue = self.open()
        queue.append(stored("one"))
        self.faults.fail("SELECT id, crc", "SQLITE_CORRUPT", times=2, read_only=True)
        self.assertEqual(["one"], drain(queue))
        queue.append(stored("two"))

        self.assertEqual(["two"], drain(queue))
        self.assertEqual(1, queue.status().damaged)

    def test_for_a_moment(self) -> None:
        """
        What can't be read for a moment is delivered all the same, in order and whole: a disk that fails looks like one
        that has lost something. Once that was waited for, the rest of the file is not waited for again.
        """
        self.patch(old_file, "_READ_TRIES", 10)
        queue = self.open()
        queue.append(stored(*map(str, range(50))))
        # The first one ends the writing of the file, and at the ninth of those that follow there is patience left.
        self.faults.fail("SELECT id, crc", "SQLITE_CORRUPT", times=10, read_only=True)
        for _ in range(9):
            self.assertRaises(sqlite3.Error, queue.next_batch)
        self.assertEqual(list(map(str, range(50))), drain(queue))
        self.assertEqual(0, queue.status().messages)

        queue.append(stored("one", "two"))
        self.faults.fail("SELECT id, crc", "SQLITE_CORRUPT", times=11, read_only=True)
        for _ in range(9):
            self.assertRaises(sqlite3.Error, queue.next_batch)
        (one,) = queue.next_batch()
        queue.ack([one.id])
        self.faults.fail("SELECT id, crc", "SQLITE_CORRUPT", read_only=True)
        self.assertEqual(["two"], texts(queue.next_batch()))

    def test_unreadable_totals(self) -> None:
        """Damaged totals are handled, too."""
        queue = self.open()
        queue.append(stored("one"))
        self.faults.fail("SELECT messages", "SQLITE_CORRUPT", read_only=True)
        queue.refresh()
        queue.append(stored("two"))

        self.assertEqual(["one", "two"], drain(queue))

    def test_next_number(self) -> None:
        """A next number that is wrong, or taken, is damage."""
        for wrong in (-5, 10**12 + 2, 2**62, 2):
            self.path += "x"
            path = self.fill(3)
            db = sqlite3.connect(path)
            db.execute("UPDATE state SET next_id = ?", (wrong,))
            db.commit()
            db.close()
            queue = self.open()
            queue.append(stored("new"))

            self.assertEqual(["000000", "000001", "000002", "new"], drain(queue), wrong)
            self.assertEqual(1, queue.status().damaged)

    def test_wrong_totals(self) -> None:
        """Totals that can't be right are damage; all is delivered, and nothing is full for them."""
        for wrong in (
            "bytes = bytes + (1 << 40)",
            "messages = -1",
            "messages = 0, bytes = 0",
            "dead_bytes = 5",
            "dead = 1",
            "bytes = 1",
        ):
            self.path += "x"
            path = self.fill(3)
            db = sqlite3.connect(path)
            db.execute(f"UPDATE state SET {wrong}")
            db.commit()
            db.close()
            taken, queue = self.reopen_and_drain()

            self.assertEqual(["000000", "000001", "000002", "new"], taken, wrong)
            self.assertEqual(1, queue.status().damaged)

    def test_unused_number_taken(self) -> None:
        """A number that turns out to be there already is damage, too."""
        queue = self.open()
        queue.append(stored("one"))
        self.faults.fail("INSERT", "SQLITE_CONSTRAINT_PRIMARYKEY")
        self.assertRaises(NotStored, queue.append, stored("lost"))
        queue.append(stored("new"))

        self.assertEqual(["one", "new"], drain(queue))

    def test_version(self) -> None:
        """A file of a later version prevents the start; an impossible version is damage."""
        for version, starts in ((0, True), (2, False), (99, False), (100, True)):
            self.path += "x"
            path = self.fill(3)
            db = sqlite3.connect(path)
            db.execute(f"PRAGMA user_version = {version}")
            db.close()
            if starts:
                self.assertEqual(["000000", "000001", "000002", "new"], self.reopen_and_drain()[0])
            else:
                error = self.assertRaises(OSError, self.open)
                self.assertIn(f"later version of webhookrx (version {version})", str(error))
                self.assertEqual(["00000001.sqlite"], self.names())

    def test_checksum(self) -> None:
        """The checksum is of the bytes and of the number."""
        self.assertTrue(Row(1, checksum(1, b"abc"), b"abc").is_whole)
        self.assertFalse(Row(1, checksum(1, b"abc"), b"abd").is_whole)
        self.assertFalse(Row(2, checksum(1, b"abc"), b"abc").is_whole)
