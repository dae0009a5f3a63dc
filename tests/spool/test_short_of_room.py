"""A spool on a small disk, or on one that others have filled."""

from __future__ import annotations

import os
import sqlite3
from itertools import count

from twisted.logger import formatEvent, globalLogPublisher

from tests.spool.faulty_spool import Disk, SmallDisk, drain, make_queue, stored, texts
from tests.spool.test_queue import QueueCase, letter
from webhookrx.errors import NotStored
from webhookrx.spool import database, quota
from webhookrx.spool.queue import SpoolQueue
from webhookrx.spool.quota import Quota, SpoolFull

MIB = 1024**2
FLOOR = 1000
"""Of all disks here."""


class SmallDiskTests(QueueCase):
    """A disk that only the spool fills."""

    def fill(self, queue: SpoolQueue, disk: SmallDisk, length: int, together: int = 5) -> list[str]:
        """Append until there is no room, and return what was stored."""
        taken: list[str] = []
        numbers = count()
        while True:
            batch = [f"{number:08d}" + "x" * length for number in (next(numbers) for _ in range(together))]
            try:
                queue.append(stored(*batch))
            except SpoolFull:
                return taken
            taken += batch
            self.assertGreaterEqual(disk.free, FLOOR)

    def test_fill_and_drain(self) -> None:
        """
        It is filled to a part that leaves room for removing, and keeps the floor all the time; once it is drained it
        takes as much again, from room that is its own.
        """
        for size, length in ((8 * MIB, 100), (8 * MIB, 2000), (8 * MIB, 50_000)):
            self.path += "x"
            disk = SmallDisk(self.path, size)
            queue = self.open(disk=disk)
            for _ in range(2):
                taken = self.fill(queue, disk, length, 100_000 // length)
                self.assertGreater(len(taken) * length, size // 4, length)
                self.assertTrue(queue.status().full)
                left: list[object] = []
                while rows := queue.next_batch():
                    left += texts(rows)
                    queue.ack([row.id for row in rows])
                    self.assertGreaterEqual(disk.free, FLOOR)
                self.assertEqual(taken, left)
                queue.refresh()
                self.assertFalse(queue.status().full)
            self.assertEqual(["00000001.sqlite"], self.names())
            queue.close()

    def test_part_drained(self) -> None:
        """The space of a delivered batch is used by the next one, without waiting for the rest."""
        disk = SmallDisk(self.path, 8 * MIB)
        queue = self.open(disk=disk)
        self.fill(queue, disk, 5000)
        for _ in range(3):
            queue.ack([row.id for row in queue.next_batch()])
        queue.append(stored("one"))

    def test_gives_back(self) -> None:
        """Once nothing waits, all space is returned: others may need it."""
        disk = SmallDisk(self.path, 8 * MIB)
        queue = self.open(disk=disk)
        self.fill(queue, disk, 5000)
        drain(queue)
        while queue.vacuum():
            pass

        self.assertGreater(disk.free, 7 * MIB)
        queue.append(stored("one"))
        self.assertEqual(["one"], drain(queue))

    def test_gives_back_while_full(self) -> None:
        """Where not even free pages help they are returned, until a batch is accepted again."""
        disk = SmallDisk(self.path, 8 * MIB)
        queue = self.open(disk=disk)
        self.fill(queue, disk, 5000)
        while queue.status().bytes > MIB:
            queue.ack([row.id for row in queue.next_batch()])
        disk.taken = disk.free - FLOOR - 500_000
        self.assertRaises(SpoolFull, queue.append, stored("x" * 10_000))
        for _ in range(4):
            queue.refresh()
        self.assertFalse(queue.status().full)
        queue.append(stored("x" * 10_000))

    def test_drop_oldest(self) -> None:
        """Only as much is dropped as is necessary, again and again."""
        disk = SmallDisk(self.path, 8 * MIB)
        queue = self.open(Quota(1 << 30, drop_oldest=True), disk)
        for number in range(3000):
            queue.append(stored(f"{number:08d}" + "x" * 8000))
            self.assertGreaterEqual(disk.free, FLOOR)
        waiting = queue.status().messages

        self.assertGreater(waiting, 450)
        self.assertEqual(3000, waiting + queue.status().dropped)
        self.assertEqual(3000 - waiting, int(str(drain(queue)[0])[:8]))

    def test_large_for_small(self) -> None:
        """A large message replaces as many small ones as necessary."""
        queue = self.open(Quota(4 * MIB, drop_oldest=True))
        small = stored(*["x"] * 25_000)
        while not queue.status().dropped:
            queue.append(small)
        queue.append(stored("y" * 3 * MIB))

        self.assertGreater(queue.status().dropped, 12_000)

    def test_drop_oldest_at_floor(self) -> None:
        """Where others have used all space above the floor, each batch replaces what is dropped for it."""
        disk = SmallDisk(self.path, 80 * MIB)
        queue = make_queue(self.path, self.faults, Quota(1 << 30, drop_oldest=True), self.clocks, disk, 4 * MIB)
        queue.open()
        self.addCleanup(queue.close)
        for _ in range(20):
            queue.append(stored(*["x" * 10_000] * 50))
        disk.taken += disk.free - 3 * MIB
        for _ in range(10):
            queue.append(stored(*["y" * 10_000] * 50))
        self.assertGreater(queue.status().messages, 850)
        drain(queue)
        queue.append(stored("z" * 300_000))
        disk.taken += disk.free
        self.assertIn("too little", str(self.assertRaises(SpoolFull, queue.append, stored("z" * 2_000_000))))

    def test_drops_are_told(self) -> None:
        """All dropped messages are logged, but not each by a line of its own."""
        lines: list[str] = []

        def note(event: dict[str, object]) -> None:
            lines.append(formatEvent(event))

        globalLogPublisher.addObserver(note)  # type: ignore[arg-type]
        self.addCleanup(globalLogPublisher.removeObserver, note)
        queue = self.open(Quota(300, drop_oldest=True))
        for number in range(20):
            queue.append(stored(str(number)))
            self.clocks.now += 1.0

        found = [line for line in lines if "dropped" in line]
        self.assertEqual([f"Spool {self.path} is full: {count} oldest messages dropped" for count in (1, 10)], found)
        unsaid = queue.status().dropped - 11
        self.clocks.now += 10.0
        queue.append(stored("20"))
        self.assertIn(f"is full: {unsaid + 1} oldest", lines[-1])

    def test_log_limit(self) -> None:
        """The log is small while room is short, and large otherwise."""
        disk = SmallDisk(self.path, 80 * MIB)
        queue = self.open(disk=disk)
        log = os.path.join(self.path, "00000001.sqlite-wal")
        batch = stored(*["x" * 10_000] * 20)

        def size() -> int:
            for _ in range(80):
                queue.append(batch)
                drain(queue)
            return os.path.getsize(log)

        self.assertGreater(size(), 2 * MIB)
        disk.taken = disk.free - 9 * MIB
        self.assertLess(size(), 3 * MIB // 2)
        disk.taken = 0
        self.assertGreater(size(), 2 * MIB)

    def test_unknown(self) -> None:
        """On a file system that does not report free space the write decides."""
        disk = Disk()
        queue = self.open(disk=disk)

        def nothing(_: str | int) -> os.statvfs_result:
            raise OSError(38, "not implemented")

        self.patch(queue._space, "_statvfs", nothing)
        queue.append(stored("one"))
        self.assertEqual(["one"], drain(queue))

    def test_words(self) -> None:
        """The refusal says how much room there is."""
        disk = Disk(5000)
        queue = self.open(disk=disk)
        error = self.assertRaises(SpoolFull, queue.append, stored("one"))

        self.assertIn("5000 bytes are free", str(error))
        self.assertIn("(min_free)", str(error))


class FullDiskTests(QueueCase):
    """A disk that others have filled to the last byte."""

    def full(self, times: int = 10_000) -> None:
        """Let nothing be written from now on."""
        for beginning in ("INSERT", "UPDATE", "DELETE", "COMMIT", "PRAGMA wal_checkpoint", "PRAGMA incremental"):
            self.faults.fail(beginning, "SQLITE_FULL", times=times)
        self.faults.fail("open", OSError(28, "No space left on device"), times=times)

    def test_deliver(self) -> None:
        """All messages are delivered, in order and once, and the file is removed; then there is room again."""
        queue = self.open()
        queue.append(stored(*map(str, range(200))))
        self.full()
        self.faults.allow("open", "failed")
        self.faults.allow("open", self.path)
        self.assertRaises(NotStored, queue.append, stored("lost"))
        self.assertTrue(queue.status().full)
        self.assertEqual(list(map(str, range(200))), drain(queue))
        self.assertEqual((0, 0), queue.status()[:2])
        self.assertEqual(["00000001.failed"], self.names())
        self.assertFalse(queue.vacuum())
        queue.refresh()
        self.faults.mend()
        self.clocks.now += 1.0
        queue.append(stored("new"))
        self.assertEqual(["00000002.sqlite"], self.names())
        queue = self.again(queue)

        self.assertEqual(["new"], drain(queue))

    def test_number_is_kept(self) -> None:
        """A file number is not used again, even with a restart in between."""
        queue = self.open()
        queue.append(stored("one"))
        self.full()
        self.faults.allow("open", "failed")
        self.faults.allow("open", self.path)
        drain(queue)
        queue.close()
        self.faults.mend()
        queue = self.open()

        self.assertEqual(["00000002.sqlite"], self.names())
        self.assertEqual(range(10**12 + 1, 10**12 + 2), queue.append(stored("two")))

    def test_start(self) -> None:
        """A process without room for a new file delivers the messages of a read-only one."""
        queue = self.open()
        queue.append(stored("one"))
        self.faults.fail("COMMIT", "SQLITE_IOERR_FSYNC")
        self.assertRaises(NotStored, queue.append, stored("lost"))
        queue.close()
        self.faults.fail("connect", "SQLITE_FULL")
        self.faults.fail("rename", OSError(28, "No space left on device"))
        queue = self.open()
        (one,) = queue.next_batch()
        queue.ack([one.id])
        self.faults.mend()

        queue.append(stored("two"))
        self.assertEqual(["two"], drain(queue))
        self.assertEqual(["00000002.sqlite"], self.names())

    def test_number_is_not_kept(self) -> None:
        """A file whose number can't be kept stays until there is room."""
        queue = self.open()
        queue.append(stored("one"))
        self.full()
        (one,) = queue.next_batch()
        queue.ack([one.id])
        self.assertRaises(OSError, queue.next_batch)
        self.assertEqual(["00000001.sqlite"], self.names())
        self.faults.mend()
        self.clocks.now += 1.0

        self.assertEqual([], queue.next_batch())
        self.assertEqual(["00000002.sqlite"], self.names())

    def test_dead_letters_stay(self) -> None:
        """A file with dead letters stays until there is room for them elsewhere."""
        queue = self.open()
        queue.append(stored("one", "two"))
        one, two = queue.next_batch()
        queue.ack([], [letter(one)])
        self.full()
        self.faults.allow("open", "failed")
        self.faults.allow("open", self.path)
        queue.ack([two.id])
        self.assertRaises(OSError, queue.next_batch)
        self.assertIn("00000001.sqlite", self.names())
        self.faults.mend()
        self.clocks.now += 1.0

        self.assertEqual([], queue.next_batch())
        self.assertEqual(1, queue.status().dead)
        self.assertEqual(["00000002.sqlite"], self.names())

    def test_for_a_moment(self) -> None:
        """If copying the log makes enough room, the file stays in use."""
        queue = self.open()
        queue.append(stored("one", "two"))
        one, two = queue.next_batch()
        for statement in ("DELETE", "COMMIT"):
            self.faults.fail(statement, "SQLITE_FULL")
            queue.ack([one.id])
            queue.ack([two.id])
            self.assertIn("PRAGMA wal_checkpoint(PASSIVE)", self.written("00000001.sqlite"))
            self.assertEqual([], queue.next_batch())
            queue.append(stored("one", "two"))
            one, two = queue.next_batch()
        self.assertEqual(["00000001.sqlite"], self.names())

    def test_log_begins_anew(self) -> None:
        """
        Whatever finds the disk full, storing, offering, or noting what is done, the log is copied at once: what is in
        it would otherwise keep room that removing needs.
        """
        queue = self.open()
        queue.append(stored("one"))
        self.written("00000001.sqlite")
        self.faults.fail("INSERT", "SQLITE_FULL")
        self.assertRaises(NotStored, queue.append, stored("lost"))
        self.assertIn("PRAGMA wal_checkpoint(PASSIVE)", self.written("00000001.sqlite"))
        self.faults.fail("UPDATE state SET offered", "SQLITE_FULL")
        (one,) = queue.next_batch()
        self.assertIn("PRAGMA wal_checkpoint(PASSIVE)", self.written("00000001.sqlite"))
        self.faults.fail("DELETE", "SQLITE_FULL")
        queue.ack([one.id])
        self.assertIn("PRAGMA wal_checkpoint(PASSIVE)", self.written("00000001.sqlite"))
        queue.append(stored("two"))
        self.assertNotIn("PRAGMA wal_checkpoint(PASSIVE)", self.written("00000001.sqlite"))

    def test_same_batch(self) -> None:
        """A batch whose end could not be saved stays the same while the process runs."""
        queue = self.open()
        queue.append(stored("one", "two"))
        self.faults.fail("UPDATE state SET offered", "SQLITE_FULL")
        self.assertEqual(["one", "two"], texts(queue.next_batch()))
        queue.append(stored("three"))
        queue.refresh()
        self.assertEqual(["one", "two"], texts(queue.next_batch()))
        self.faults.fail("DELETE", "SQLITE_FULL", times=2)
        queue.ack([queue.next_batch()[0].id])
        self.assertEqual(["two"], texts(queue.next_batch()))

        self.assertEqual(["two", "three"], drain(queue))

    def test_busy(self) -> None:
        """A file that another process is writing is not retired."""
        queue = self.open()
        queue.append(stored("one"))
        (one,) = queue.next_batch()
        self.faults.fail("BEGIN", "SQLITE_BUSY")
        self.assertRaises(sqlite3.Error, queue.ack, [one.id])
        queue.ack([one.id])

        self.assertEqual(["00000001.sqlite"], self.names())

    def test_constants(self) -> None:
        """The pages moved at a time while room is short fit into the reserve for removing."""
        self.assertLess(database.TIGHT_PAGES * 4096, 512 * 1024)
        self.assertGreater(quota._NEAR_FLOOR, 0)
