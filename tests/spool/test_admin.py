"""Commands on a spool: how little they read, how long they block a receiver, and files of another user."""

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


class AdminCase(SynchronousTestCase):
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

    def admin(self) -> DirectoryAdmin:
        """Open the directory."""
        admin = DirectoryAdmin(self.path, UntrustedFileSystem(self.clocks.monotonic), self.pause, self.clocks.monotonic)
        self.addCleanup(admin.close)
        return admin

    def pause(self, seconds: float) -> None:
        """Pause as the command does, while the receiver stores a message."""
        self.pauses.append(seconds)
        self.queue.append(stored("meanwhile"))

    def refuse(self, count: int, size: int) -> None:
        """Make dead letters of so many bytes."""
        for _ in range(count):
            self.queue.append([encode_stored(make_message("x" * size))])
        while rows := self.queue.next_batch():
            self.queue.ack(
                [], [DeadLetter(row.id, RECEIVED, row.crc, row.data, "HTTP 422", "http:x", RECEIVED) for row in rows]
            )

    def waiting(self) -> list[object]:
        """Drain the queue, and return the texts."""
        found: list[object] = []
        while rows := self.queue.next_batch():
            found += texts(rows)
            self.queue.ack([row.id for row in rows])
        return found


class ReadTests(AdminCase):
    """Lists."""

    def test_no_data(self) -> None:
        """Listing reads no message, however large."""
        self.refuse(5, 4 * MIB)
        self.queue.append([encode_stored(make_message("y" * 4 * MIB))])
        admin = self.admin()
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        totals = admin.totals()
        dead = list(islice(admin.dead(), 3))
        waiting = list(admin.waiting())
        _, peak = tracemalloc.get_traced_memory()

        self.assertEqual((1, 5, RECEIVED), (totals.messages, totals.dead, totals.oldest))
        self.assertEqual([(1, "HTTP 422"), (2, "HTTP 422"), (3, "HTTP 422")], [(item.id, item.reason) for item in dead])
        self.assertGreater(dead[0].size, 4 * MIB)
        self.assertEqual([(6, None)], [(item.id, item.reason) for item in waiting])
        self.assertLess(peak, MIB)

    def test_pages(self) -> None:
        """However many there are, all are listed, in order."""
        self.queue.append(stored(*map(str, range(250))))

        self.assertEqual(list(range(1, 251)), [entry.id for entry in self.admin().waiting()])

    def test_not_in_order(self) -> None:
        """Numbers that are not in order, in another user's file, end a list."""
        self.queue.close()
        path = os.path.join(self.path, "00000001.sqlite")
        db = sqlite3.connect(path)
        db.execute("DROP TABLE dead")
        db.execute("CREATE TABLE dead(id, received, data, reason, spec, died)")
        db.execute("INSERT INTO dead VALUES (1.5, NULL, NULL, NULL, NULL, NULL)")
        db.commit()
        db.close()
        error = self.assertRaises(sqlite3.Error, lambda: list(self.admin().dead()))

        self.assertIn("not in order", str(error))


class ChangeTests(AdminCase):
    """Putting back and dropping, beside a receiver."""

    def numbers(self, outcomes: Iterable[ChangeResult]) -> list[int]:
        """Return the numbers of the changed messages."""
        return [outcome.id for outcome in outcomes if not outcome.problem]

    def test_by_bytes(self) -> None:
        """Large messages are put back one at a time, with a turn of the receiver between any two."""
        self.refuse(4, MIB)

        self.assertEqual([1, 2, 3, 4], self.numbers(self.admin().replay(None)))
        self.assertEqual(3, len(self.pauses))
        self.assertEqual(7, len(self.waiting()))

    def test_by_count(self) -> None:
        """Small messages are changed a hundred at a time; messages that arrive meanwhile are left alone."""
        self.queue.append(stored(*map(str, range(250))))

        self.assertEqual(list(range(1, 251)), self.numbers(self.admin().drop(None, waiting=True)))
        self.assertEqual([0.025, 0.025], self.pauses)
        self.assertEqual(["meanwhile"] * 2, self.waiting())

    def test_refused_again(self) -> None:
        """A message that is refused again during C{replay --all} is not put back twice."""
        self.refuse(150, 10)

        for _ in self.admin().replay(None):
            self.refuse(0, 0)
        self.assertEqual(151, self.admin().totals().dead)

    def test_slow(self) -> None:
        """A pause is as long as the transaction before it."""
        self.refuse(150, 10)
        sync = os.listdir

        def slow(path: str) -> list[str]:
            self.clocks.now += 2.0
            return sync(path)

        self.patch(UntrustedFileSystem, "listdir", staticmethod(slow))
        self.numbers(self.admin().drop(None, waiting=False))

        self.assertEqual([2.0], self.pauses)

    def test_by_time(self) -> None:
        """Slow changes make smaller transactions."""
        self.refuse(10, 10)
        admin = self.admin()
        now = count(0.0, 0.02)
        self.patch(admin, "_clock", lambda: next(now))

        self.assertEqual(list(range(1, 11)), self.numbers(admin.drop(None, waiting=False)))
        self.assertEqual(3, len(self.pauses))

    def test_log_stays_small(self) -> None:
        """Without a receiver the write-ahead log is copied regularly."""
        self.refuse(20, MIB)
        self.queue.close()
        admin = DirectoryAdmin(self.path, None, lambda _: None)
        self.addCleanup(admin.close)
        sizes = [
            os.path.getsize(os.path.join(self.path, "00000001.sqlite-wal")) for outcome in admin.replay(None) if outcome
        ]

        self.assertEqual(20, len(sizes))
        self.assertLess(max(sizes), 12 * MIB)


class HostileTests(AdminCase):
    """Directories of another user."""

    def setUp(self) -> None:
        """Close the receiver's queue."""
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
        """A FIFO does not block, and a link is not followed, in the place of any part of the file."""
        real = self.file + ".real"
        os.rename(self.file, real)
        for part in ("", "-wal", "-shm", "-journal"):
            for make in (os.mkfifo, lambda path: os.symlink(real, path)):
                if part:
                    os.link(real, self.file)
                make(self.file + part)
                self.assertIn("is no regular file", str(self.assertRaises(NoSpoolFile, self.admin)))
                for name in (self.file, self.file + part):
                    if os.path.lexists(name):
                        os.unlink(name)

    def test_exchanged(self) -> None:
        """A file that is exchanged during opening is not read."""
        identities = iter([(1, 1), (1, 2)])
        self.patch(untrusted_files, "_identity", lambda path: next(identities))

        self.assertRaises(NoSpoolFile, self.admin)

    def test_code(self) -> None:
        """A file with triggers or views is refused."""
        self.execute("CREATE TRIGGER t AFTER DELETE ON dead BEGIN DELETE FROM waiting; END")
        self.assertIn("is no file of a spool", str(self.assertRaises(NoSpoolFile, self.admin)))
        self.execute("DROP TRIGGER t", "DROP TABLE dead", "CREATE VIEW dead AS SELECT * FROM waiting")
        self.assertRaises(NoSpoolFile, self.admin)

    def test_long(self) -> None:
        """A long computation is stopped: this file sorts everything for each page."""
        self.execute(
            "DROP TABLE waiting",
            "CREATE TABLE waiting(id, received, data)",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000)"
            " INSERT INTO waiting SELECT i, i, '' FROM n",
        )
        admin = self.admin()
        self.assertEqual(10_000, len(list(admin.waiting())))
        self.clocks.step = TIME_LIMIT / 2 + 1
        error = self.assertRaises(NoSpoolFile, lambda: list(admin.waiting()))

        self.assertIn("it took longer than 30 s", str(error))

    def test_only_read(self) -> None:
        """Looking opens no file for writing."""
        asked: list[bool] = []
        connect = UntrustedFileSystem.connect

        def noting(files: UntrustedFileSystem, path: str, *, read_only: bool) -> sqlite3.Connection:
            asked.append(read_only)
            return connect(files, path, read_only=read_only)

        self.patch(UntrustedFileSystem, "connect", noting)
        admin = self.admin()
        admin.totals()
        list(admin.waiting())
        self.assertEqual({True}, set(asked))

    def test_nothing_stays_open(self) -> None:
        """When one file can't be read, the earlier ones are closed."""
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
        """Impossible totals count as zero."""
        self.execute("UPDATE state SET messages = -5, bytes = -5, dead = -1, dead_bytes = -1")

        self.assertEqual((0, 0, 0, 0), (lambda found: (*found[:2], *found[3:]))(self.admin().totals()))

    def test_busy(self) -> None:
        """Any other error is reported as it is."""
        self.execute("UPDATE state SET messages = 'x'")

        self.assertIn("not numbers", str(self.assertRaises(sqlite3.Error, self.admin().totals)))

    def test_nothing(self) -> None:
        """A directory without a spool is an error."""
        os.rename(self.file, self.file + ".x")
        self.assertIn("holds no spool", str(self.assertRaises(AdminError, self.admin)))

    def test_open_to_others(self) -> None:
        """A directory that only its owner can write to gives no warning, nor does a missing one."""
        for mode, fine in ((0o700, True), (0o755, True), (0o770, False), (0o702, False), (0o1777, False)):
            os.chmod(self.path, mode)
            self.assertEqual(fine, open_to_others(self.path) is None, oct(mode))
        self.assertIsNone(open_to_others(self.path + "x"))


class _Admin:
    """The admin of one worker, with as many messages as the name of its directory has letters."""

    def __init__(self, path: str) -> None:
        self.name = os.path.basename(path)
        self.caution = "is open to all" if self.name == "worker-2" else None
        self.is_closed = False

    def totals(self) -> SpoolTotals:
        return SpoolTotals(len(self.name), 10, 1000 - len(self.name), 1, 5)

    def close(self) -> None:
        self.is_closed = True


class SpoolAdminTests(SynchronousTestCase):
    """Three workers; the second has no spool."""

    def setUp(self) -> None:
        """Make their directories."""
        self.path = os.path.join(os.path.abspath(self.mktemp()), "spool")
        for number in (1, 2):
            os.makedirs(os.path.join(self.path, f"worker-{number}"))
        self.admins: list[_Admin] = []
        self.missing = {"worker-1"}
        self.broken = ""

    def make(self, path: str) -> Any:
        """Make the admin of a directory, unless that holds no spool."""
        admin = _Admin(path)
        if admin.name in self.missing:
            raise NoSpool(path)
        if admin.name == self.broken:
            raise AdminError("broken")
        self.admins.append(admin)
        return admin

    def test_together(self) -> None:
        """Workers with a spool are listed, totals are summed, and warnings name their directory."""
        admin = SpoolAdmin(self.path, self.make)
        self.assertEqual([0, 2], list(admin.workers))
        self.assertEqual({os.path.join(self.path, "worker-2"): "is open to all"}, admin.cautions)
        self.assertEqual(SpoolTotals(13, 20, 992, 2, 10), admin.totals())
        self.assertEqual(SpoolTotals(8, 10, 992, 1, 5), admin.totals(2))
        self.assertEqual(0, admin.totals(1).messages)

    def test_close(self) -> None:
        """All directories are closed, also when a later one can't be opened."""
        SpoolAdmin(self.path, self.make).close()
        self.broken = "worker-2"
        self.assertRaises(AdminError, SpoolAdmin, self.path, self.make)
        self.assertEqual(["spool", "worker-2", "spool"], [admin.name for admin in self.admins])
        self.assertEqual([True] * 3, [admin.is_closed for admin in self.admins])

    def test_none(self) -> None:
        """Without a spool in any directory there is an error."""
        self.missing = {"spool", "worker-1", "worker-2"}
        self.assertRaises(NoSpool, SpoolAdmin, self.path, self.make)
