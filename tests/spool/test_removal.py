"""Removing the directory of a spool."""

from __future__ import annotations

import os
import sqlite3

from twisted.trial.unittest import SynchronousTestCase

from tests.spool.faulty_spool import FaultySpool, make_queue, stored
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.queue import SpoolQueue
from webhookrx.spool.removal import remove_if_empty
from webhookrx.spool.rows import DeadLetter
from webhookrx.testing import RECEIVED


class RemovalTests(SynchronousTestCase):
    """Only what nobody needs is removed."""

    def setUp(self) -> None:
        """Make a spool in which nothing waits any more."""
        self.path = os.path.abspath(self.mktemp())
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.queue = self.open()
        self.queue.append(stored("one"))
        self.queue.ack([row.id for row in self.queue.next_batch()])

    def open(self) -> SpoolQueue:
        """Open it."""
        queue = make_queue(self.path, FaultySpool())
        queue.open()
        self.addCleanup(queue.close)
        return queue

    def test_empty(self) -> None:
        """An empty one goes, and can be begun anew."""
        self.queue.close()

        self.assertTrue(remove_if_empty(self.path))
        self.assertFalse(os.path.exists(self.path))
        self.open()

    def test_never_used(self) -> None:
        """So does one in which no file was ever begun."""
        path = self.path + ".new"
        SpoolDirectory(path).make()

        self.assertTrue(remove_if_empty(path))
        self.assertFalse(os.path.exists(path))

    def test_in_use(self) -> None:
        """One that somebody has stays."""
        self.assertFalse(remove_if_empty(self.path))
        self.queue.append(stored("two"))
        self.assertEqual(1, self.queue.status().messages)

    def test_waiting(self) -> None:
        """One with messages stays, and they do."""
        self.queue.append(stored("two"))
        self.queue.close()
        self.assertFalse(remove_if_empty(self.path))

        self.assertEqual(1, self.open().status().messages)

    def test_dead(self) -> None:
        """One with dead letters stays."""
        self.queue.append(stored("two"))
        (row,) = self.queue.next_batch()
        self.queue.ack([], [DeadLetter(row.id, RECEIVED, row.crc, row.data, "HTTP 422", "http:x", RECEIVED)])
        self.queue.close()
        self.assertFalse(remove_if_empty(self.path))

        self.assertEqual(1, self.open().status().dead)

    def test_something_else(self) -> None:
        """One in which there is anything else stays: a file that failed or was put aside, or that is a person's."""
        self.queue.close()
        for name in ("00000001.failed", "00000001.sqlite.damaged", "00000002.sqlite", "notes.txt"):
            other = os.path.join(self.path, name)
            with open(other, "w"):
                pass
            self.assertFalse(remove_if_empty(self.path), name)
            os.remove(other)

        self.assertTrue(remove_if_empty(self.path))

    def test_damaged(self) -> None:
        """One that can't be read stays, and that is told; so is one that is not there."""
        self.queue.close()
        with open(os.path.join(self.path, "00000001.sqlite"), "r+b") as file:
            file.write(b"nonsense" * 20)
        self.assertRaises(sqlite3.Error, remove_if_empty, self.path)
        self.assertTrue(os.path.exists(self.path))
        self.assertRaises(OSError, remove_if_empty, self.path + ".gone")
