"""A spool as people see it: how little is read, how long others are kept waiting, and files of somebody else."""

from __future__ import annotations

import os
import sqlite3
import tracemalloc
from collections.abc import Iterable
from itertools import count, islice
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.spool.faulty_spool import Clocks, make_queue, stored, texts
from webhookrx.message.encoders import encode_stored
from webhookrx.spool import untrusted_files
from webhookrx.spool.admin import AdminError, ChangeResult, DirectoryAdmin, NoSpool, SpoolAdmin, SpoolTotals
from webhookrx.spool.directory import open_to_others
from webhookrx.spool.rows import DeadLetter
from webhookrx.spool.untrusted_files import TIME_LIMIT, NoSpoolFile, UntrustedFileSystem
from webhookrx.testing import RECEIVED, make_message

MIB = 1024**2


class SteppingClocks(Clocks):
    """
    A monotonic clock that can go on by itself.

    @ivar step: seconds that each look takes.
    """

    step = 0.0

    def monotonic(self) -> float:
        """Return the seconds."""
        self.now += self.step
        return super().monotonic()


class DeskCase(SynchronousTestCase):
    """A spool that a receiver has open."""

    def setUp(self) -> None:
        """Make it."""
        self.path = os.path.abspath(self.mktemp())
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.clocks = SteppingClocks()
        self.queue = make_queue(self.path)
        self.queue.open()
        self.addCleanup(self.queue.close)
        self.pauses: list[float] = []

    def desk(self) -> DirectoryAdmin:
        """Sit down."""
        desk = DirectoryAdmin(self.path, UntrustedFileSystem(self.clocks.monotonic), self.pause, self.clocks.monotonic)
        self.addCleanup(desk.close)
        return desk

    def pause(self, seconds: float) -> None:
        """Be the receiver, which stores something when it has its turn."""
        self.pauses.append(seconds)
        self.queue.append(stored("meanwhile"))

    def refuse(self, count: int, size: int) -> None:
        """Refuse messages of so many bytes for good."""
        for _ in range(count):
            self.queue.append([encode_stored(make_message("x" * size))])
        while rows := self.queue.next_batch():
            self.queue.ack(
                [], [DeadLetter(row.id, RECEIVED, row.crc, row.data, "HTTP 422", "http:x", RECEIVED) for row in rows]
            )

    def waiting(self) -> list[object]:
        """Take what waits, and return its texts."""
        found: list[object] = []
        while rows := self.queue.next_batch():
            found += texts(rows)
            self.queue.ack([row.id for row in rows])
        return found


class ReadTests(DeskCase):
    """Lists."""

    def test_no_data(self) -> None:
        """A list reads no message, however large they are."""
        self.refuse(5, 4 * MIB)
        self.queue.append([encode_stored(make_message("y" * 4 * MIB))])
        desk = self.desk()
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        totals = desk.totals()
        dead = list(islice(desk.dead(), 3))
        waiting = list(desk.waiting())
        _, peak = tracemalloc.get_traced_memory()

        self.assertEqual((1, 5, RECEIVED), (totals.messages, totals.dead, totals.oldest))
        self.assertEqual([(1, "HTTP 422"), (2, "HTTP 422"), (3, "HTTP 422")], [(item.id, item.reason) for item in dead])
        self.assertGreater(dead[0].size, 4 * MIB)
        self.assertEqual([(6, None)], [(item.id, item.reason) for item in waiting])
        self.assertLess(peak, MIB)

    def test_pages(self) -> None:
        """However many there are, all are listed, in order."""
        self.queue.append(stored(*map(str, range(250))))

        self.assertEqual(list(range(1, 251)), [entry.id for entry in self.desk().waiting()])

    def test_not_in_order(self) -> None:
        """Numbers that are none, in a file of somebody else, end a list."""
        self.queue.close()
        path = os.path.join(self.path, "00000001.sqlite")
        db = sqlite3.connect(path)
        db.execute("DROP TABLE dead")
        db.execute("CREATE TABLE dead(id, received, data, reason, spec, died)")
        db.execute("INSERT INTO dead VALUES (1.5, NULL, NULL, NULL, NULL, NULL)")
        db.commit()
        db.close()
        error = self.assertRaises(sqlite3.Error, lambda: list(self.desk().dead()))

        self.assertIn("not in order", str(error))


class ChangeTests(DeskCase):
    """Putting back and dropping, beside a receiver."""

    def numbers(self, outcomes: Iterable[ChangeResult]) -> list[int]:
        """Return the numbers of what was done."""
        return [outcome.id for outcome in outcomes if not outcome.problem]

    def test_by_bytes(self) -> None:
        """Large messages are put back one at a time, and the receiver has its turn between any two."""
        self.refuse(4, MIB)

        self.assertEqual([1, 2, 3, 4], self.numbers(self.desk().replay(None)))
        self.assertEqual(3, len(self.pauses))
        self.assertEqual(7, len(self.waiting()))

    def test_by_count(self) -> None:
        """Small ones are changed a hundred at a time; what comes meanwhile is left alone."""
        self.queue.append(stored(*map(str, range(250))))

        self.assertEqual(list(range(1, 251)), self.numbers(self.desk().drop(None, waiting=True)))
        self.assertEqual([0.025, 0.025], self.pauses)
        self.assertEqual(["meanwhile"] * 2, self.waiting())

    def test_refused_again(self) -> None:
        """What is refused again while others are put back is not put back once more."""
        self.refuse(150, 10)

        for _ in self.desk().replay(None):
            self.refuse(0, 0)
        self.assertEqual(151, self.desk().totals().dead)

    def test_slow(self) -> None:
        """A pause is as long as what went before it."""
        self.refuse(150, 10)
        sync = os.listdir

        def slow(path: str) -> list[str]:
            self.clocks.now += 2.0
            return sync(path)

        self.patch(UntrustedFileSystem, "listdir", staticmethod(slow))
        self.numbers(self.desk().drop(None, waiting=False))

        self.assertEqual([2.0], self.pauses)

    def test_by_time(self) -> None:
        """Where each one takes long there are fewer in one go."""
        self.refuse(10, 10)
        desk = self.desk()
        now = count(0.0, 0.02)
        self.patch(desk, "_clock", lambda: next(now))

        self.assertEqual(list(range(1, 11)), self.numbers(desk.drop(None, waiting=False)))
        self.assertEqual(3, len(self.pauses))

    def test_log_stays_small(self) -> None:
        """Without a receiver the write-ahead log is copied now and then."""
        self.refuse(20, MIB)
        self.queue.close()
        desk = DirectoryAdmin(self.path, None, lambda _: None)
        self.addCleanup(desk.close)
        sizes = [
            os.path.getsize(os.path.join(self.path, "00000001.sqlite-wal")) for outcome in desk.replay(None) if outcome
        ]

        self.assertEqual(20, len(sizes))
        self.assertLess(max(sizes), 12 * MIB)


class HostileTests(DeskCase):
    """Directories of somebody else."""

    def setUp(self) -> None:
        """End the receiver."""
        super().setUp()
        self.queue.append(stored("one"))
        self.queue.close()
        self.file = os.path.join(self.path, "00000001.sqlite")

    def execute(self, *statements: str) -> None:
        """Change the file."""
        db = sqlite3.connect(self.file)
        for statement in statements:
            db.execute(statement)
        db.commit()
        db.close()

    def test_no_regular_file(self) -> None:
        """A FIFO is not waited for, and a link is not followed, whatever part of the file it stands for."""
        real = self.file + ".real"
        os.rename(self.file, real)
        for part in ("", "-wal", "-shm", "-journal"):
            for make in (os.mkfifo, lambda path: os.symlink(real, path)):
                if part:
                    os.link(real, self.file)
                make(self.file + part)
                self.assertIn("is no regular file", str(self.assertRaises(NoSpoolFile, self.desk)))
                for name in (self.file, self.file + part):
                    if os.path.lexists(name):
                        os.unlink(name)

    def test_exchanged(self) -> None:
        """A file that is exchanged while it is opened is not read."""
        identities = iter([(1, 1), (1, 2)])
        self.patch(untrusted_files, "_identity", lambda path: next(identities))

        self.assertRaises(NoSpoolFile, self.desk)

    def test_code(self) -> None:
        """A file with triggers or views is not one that a spool has made."""
        self.execute("CREATE TRIGGER t AFTER DELETE ON dead BEGIN DELETE FROM waiting; END")
        self.assertIn("is no file of a spool", str(self.assertRaises(NoSpoolFile, self.desk)))
        self.execute("DROP TRIGGER t", "DROP TABLE dead", "CREATE VIEW dead AS SELECT * FROM waiting")
        self.assertRaises(NoSpoolFile, self.desk)

    def test_long(self) -> None:
        """What computes for too long is ended: here all is sorted for each page."""
        self.execute(
            "DROP TABLE waiting",
            "CREATE TABLE waiting(id, received, data)",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000)"
            " INSERT INTO waiting SELECT i, i, '' FROM n",
        )
        desk = self.desk()
        self.assertEqual(10_000, len(list(desk.waiting())))
        self.clocks.step = TIME_LIMIT / 2 + 1
        error = self.assertRaises(NoSpoolFile, lambda: list(desk.waiting()))

        self.assertIn("it took longer than 30 s", str(error))

    def test_only_read(self) -> None:
        """Who looks opens no file for writing."""
        asked: list[bool] = []
        connect = UntrustedFileSystem.connect

        def noting(files: UntrustedFileSystem, path: str, *, read_only: bool) -> sqlite3.Connection:
            asked.append(read_only)
            return connect(files, path, read_only=read_only)

        self.patch(UntrustedFileSystem, "connect", noting)
        desk = self.desk()
        desk.totals()
        list(desk.waiting())
        self.assertEqual({True}, set(asked))

    def test_nothing_stays_open(self) -> None:
        """When one file can't be read, those before it are closed again."""
        with open(os.path.join(self.path, "00000002.sqlite"), "wb") as file:
            file.write(b"x" * 5000)
        opened: list[sqlite3.Connection] = []
        connect = UntrustedFileSystem.connect

        def noting(files: UntrustedFileSystem, path: str, *, read_only: bool) -> sqlite3.Connection:
            opened.append(connect(files, path, read_only=read_only))
            return opened[-1]

        self.patch(UntrustedFileSystem, "connect", noting)
        self.assertRaises(sqlite3.DatabaseError, DirectoryAdmin, self.path)
        self.assertNotEqual([], opened)
        for db in opened:
            self.assertRaises(sqlite3.ProgrammingError, db.execute, "SELECT 1")

    def test_odd_totals(self) -> None:
        """Totals that can't be are nothing."""
        self.execute("UPDATE state SET messages = -5, bytes = -5, dead = -1, dead_bytes = -1")

        self.assertEqual((0, 0, 0, 0), (lambda found: (*found[:2], *found[3:]))(self.desk().totals()))

    def test_busy(self) -> None:
        """Any other error is told as what it is."""
        self.execute("UPDATE state SET messages = 'x'")

        self.assertIn("not numbers", str(self.assertRaises(sqlite3.Error, self.desk().totals)))

    def test_nothing(self) -> None:
        """Where there is no spool, that is said."""
        os.rename(self.file, self.file + ".x")
        self.assertIn("holds no spool", str(self.assertRaises(AdminError, self.desk)))

    def test_open_to_others(self) -> None:
        """A directory that its owner alone writes to is fine, and so is one that is not there."""
        for mode, fine in ((0o700, True), (0o755, True), (0o770, False), (0o702, False), (0o1777, False)):
            os.chmod(self.path, mode)
            self.assertEqual(fine, open_to_others(self.path) is None, oct(mode))
        self.assertIsNone(open_to_others(self.path + "x"))


class _Desk:
    """That of one worker, who has a message for each letter of the name of its directory."""

    def __init__(self, path: str) -> None:
        self.name = os.path.basename(path)
        self.caution = "is open to all" if self.name == "worker-2" else None
        self.is_closed = False

    def totals(self) -> SpoolTotals:
        return SpoolTotals(len(self.name), 10, 1000 - len(self.name), 1, 5)

    def close(self) -> None:
        self.is_closed = True


class GroupDeskTests(SynchronousTestCase):
    """Three workers, the second of whom has no spool."""

    def setUp(self) -> None:
        """Make their directories."""
        self.path = os.path.join(os.path.abspath(self.mktemp()), "spool")
        for number in (1, 2):
            os.makedirs(os.path.join(self.path, f"worker-{number}"))
        self.desks: list[_Desk] = []
        self.missing = {"worker-1"}
        self.broken = ""

    def make(self, path: str) -> Any:
        """Make a desk, unless there is no spool."""
        desk = _Desk(path)
        if desk.name in self.missing:
            raise NoSpool(path)
        if desk.name == self.broken:
            raise AdminError("broken")
        self.desks.append(desk)
        return desk

    def test_together(self) -> None:
        """Who has a spool is named, what is in all of them is summed, and what is to be said of one is said."""
        desk = SpoolAdmin(self.path, self.make)
        self.assertEqual([0, 2], list(desk.workers))
        self.assertEqual({os.path.join(self.path, "worker-2"): "is open to all"}, desk.cautions)
        self.assertEqual(SpoolTotals(13, 20, 992, 2, 10), desk.totals())
        self.assertEqual(SpoolTotals(8, 10, 992, 1, 5), desk.totals(2))
        self.assertEqual(0, desk.totals(1).messages)

    def test_close(self) -> None:
        """All of them are closed, also when one of those that follow can't be looked at."""
        SpoolAdmin(self.path, self.make).close()
        self.broken = "worker-2"
        self.assertRaises(AdminError, SpoolAdmin, self.path, self.make)
        self.assertEqual(["spool", "worker-2", "spool"], [desk.name for desk in self.desks])
        self.assertEqual([True] * 3, [desk.is_closed for desk in self.desks])

    def test_none(self) -> None:
        """Where nobody has a spool there is none."""
        self.missing = {"spool", "worker-1", "worker-2"}
        self.assertRaises(NoSpool, SpoolAdmin, self.path, self.make)
