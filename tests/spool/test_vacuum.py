"""Returning free pages to the file system, turn by turn."""

from __future__ import annotations

import os
import sqlite3

from tests.spool.faulty_spool import SmallDisk, drain, stored
from tests.spool.test_queue import QueueCase
from webhookrx.spool import database
from webhookrx.spool.files import FairLock
from webhookrx.spool.queue import SpoolQueue
from webhookrx.spool.rows import PAGE

MIB = 1024**2


class Holds(FairLock):
    """A lock that notes the length of a list each time it is taken."""

    def __init__(self, done: list[tuple[str, str]]) -> None:
        super().__init__()
        self.begins: list[int] = []
        self._done = done

    def __enter__(self) -> None:
        super().__enter__()
        self.begins.append(len(self._done))

    def split(self) -> list[list[str]]:
        """Return the items of each turn."""
        ends = [*self.begins[1:], len(self._done)]
        return [[text for _, text in self._done[begin:end]] for begin, end in zip(self.begins, ends, strict=True)]


class TurnTests(QueueCase):
    """The bounds of one turn, and what is left."""

    def large(self, mib: int = 24) -> SpoolQueue:
        """Return an empty queue whose file was so large."""
        queue = self.open()
        for _ in range(mib):
            queue.append(stored(*["x" * 100_000] * 10))
        drain(queue)
        self.faults.statements.clear()
        return queue

    def pages(self) -> int:
        """Return how many pages were returned since the last call."""
        return self.written("00000001.sqlite").count("PRAGMA incremental_vacuum(1)")

    def test_pages(self) -> None:
        """A turn returns a bounded number of pages; after the last the file has shrunk to the pages that are kept."""
        queue = self.large()
        turns = []
        while queue.vacuum():
            turns.append(self.pages())
        self.assertEqual({database.TURN_PAGES}, set(turns))
        self.assertLessEqual(self.pages(), database.TURN_PAGES)
        size = os.path.getsize(os.path.join(self.path, "00000001.sqlite"))

        self.assertLess(abs(size - database.IDLE_PAGES * PAGE), MIB)
        self.written("00000001.sqlite")
        self.assertFalse(queue.vacuum())
        self.assertNotIn("BEGIN IMMEDIATE", self.written("00000001.sqlite"))
        queue.append(stored("one"))
        self.assertEqual(["one"], drain(queue))

    def test_time(self) -> None:
        """A turn ends at its deadline, after one page at least."""
        queue = self.large()
        check = self.faults.check
        for slow, pages in ((0.001, 19), (0.0101, 1), (5.0, 1)):

            def slowly(statement: str, path: str, read_only: bool = False, slow: float = slow) -> None:
                check(statement, path, read_only)
                if statement.startswith(("PRAGMA incremental", "BEGIN")):
                    self.clocks.now += slow

            self.patch(self.faults, "check", slowly)
            self.assertTrue(queue.vacuum())
            self.assertLess(abs(pages - self.pages()), 2, slow)

    def test_turns(self) -> None:
        """Vacuum and copying the log are separate turns: an append may come between them."""
        queue = self.large()
        holds = Holds(self.faults.statements)
        self.patch(queue._files, "lock", holds)
        while queue.vacuum():
            pass
        queue.append(stored("x" * 5 * MIB))
        drain(queue)
        copied = 0
        for statements in holds.split():
            copies = sum(text.startswith("PRAGMA wal_checkpoint") for text in statements)
            if any(text.startswith(("PRAGMA incremental", "DELETE")) for text in statements):
                self.assertEqual(0, copies, statements)
            copied += copies
        self.assertGreater(copied, 3)

    def test_while_messages_wait(self) -> None:
        """While messages wait nothing is returned: later ones need the room."""
        queue = self.large()
        queue.append(stored("one"))
        self.assertFalse(queue.vacuum())
        self.assertEqual(0, self.pages())
        drain(queue)

        self.assertTrue(queue.vacuum())

    def test_kept(self) -> None:
        """A small queue returns nothing, and writes nothing for that."""
        queue = self.large(15)
        self.assertFalse(queue.vacuum())
        self.assertEqual([], self.written("00000001.sqlite"))

    def test_fails(self) -> None:
        """An I/O error retires the file; a full disk does not."""
        queue = self.large()
        self.faults.fail("PRAGMA incremental", "SQLITE_FULL")
        self.assertIn("SQLITE_FULL", self.problem(queue))
        self.assertEqual(["00000001.sqlite"], self.names())
        self.faults.fail("COMMIT", "SQLITE_IOERR_WRITE")
        self.assertIn("SQLITE_IOERR_WRITE", self.problem(queue))
        queue.append(stored("one"))
        self.assertEqual(["one"], drain(queue))

        self.assertEqual(["00000002.sqlite"], self.names())

    def problem(self, queue: SpoolQueue) -> str:
        """Let it fail, and return the name of the error."""
        return str(self.assertRaises(sqlite3.Error, queue.vacuum).sqlite_errorname)

    def test_log(self) -> None:
        """Where room is short, the log is truncated in the end, too."""
        disk = SmallDisk(self.path, 8 * MIB)
        queue = self.open(disk=disk)
        for _ in range(8):
            queue.append(stored(*["x" * 50_000] * 10))
        drain(queue)
        while queue.vacuum():
            pass

        self.assertLess(os.path.getsize(os.path.join(self.path, "00000001.sqlite-wal")), 64 * 1024)
        self.assertLess(os.path.getsize(os.path.join(self.path, "00000001.sqlite")), MIB)
