"""Untrusted files: which are refused, and how long they may compute."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

from twisted.trial.unittest import SynchronousTestCase

from tests.spool.faulty_spool import Clocks
from webhookrx.spool.directory import SpoolFileSystem
from webhookrx.spool.untrusted_files import TIME_LIMIT, NoSpoolFile, UntrustedFileSystem

LONG = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT count(*) FROM n"


class CodeTests(SynchronousTestCase):
    """A file with code of its own."""

    def test_closed(self) -> None:
        """It is refused, and closed again."""
        path = os.path.abspath(self.mktemp())
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE VIEW one AS SELECT 1")
        opened: list[sqlite3.Connection] = []
        connect = SpoolFileSystem.connect

        def keep(files: SpoolFileSystem, path: str, *, read_only: bool) -> sqlite3.Connection:
            opened.append(connect(files, path, read_only=read_only))
            return opened[-1]

        self.patch(SpoolFileSystem, "connect", keep)
        files = UntrustedFileSystem(Clocks().monotonic)
        self.assertRaises(NoSpoolFile, files.connect, path, read_only=True)
        error = self.assertRaises(sqlite3.ProgrammingError, opened[0].execute, "SELECT 1")
        self.assertIn("closed", str(error))


class TimeLimitTests(SynchronousTestCase):
    """A read that computes for long."""

    def setUp(self) -> None:
        """Open an empty file."""
        path = os.path.abspath(self.mktemp())
        with open(path, "w"):
            pass
        self.clocks = Clocks()
        self.files = UntrustedFileSystem(self.clocks.monotonic)
        self.db = self.files.connect(path, read_only=True)
        self.addCleanup(self.db.close)

    def look(self) -> None:
        """Compute."""
        self.assertEqual((100_000,), self.db.execute(LONG).fetchone())

    def test_at_first(self) -> None:
        """The first read has a limit, too, from the making of the file system on; then it is interrupted."""
        self.clocks.now += TIME_LIMIT
        self.look()
        self.clocks.now += 1
        self.assertIn("interrupted", str(self.assertRaises(sqlite3.OperationalError, self.look)))

    def test_each(self) -> None:
        """Each read has the full limit; a longer one is an error in words."""
        for _ in range(2):
            self.clocks.now += 1000
            with self.files.in_time():
                self.clocks.now += TIME_LIMIT
                self.look()

        def late() -> None:
            with self.files.in_time():
                self.clocks.now += TIME_LIMIT + 1
                self.look()

        self.assertIn("longer than 30 s", str(self.assertRaises(NoSpoolFile, late)))

    def test_other_errors(self) -> None:
        """Another error stays what it is."""

        def wrong() -> None:
            with self.files.in_time():
                self.db.execute("nonsense")

        self.assertIn("syntax", str(self.assertRaises(sqlite3.OperationalError, wrong)))
