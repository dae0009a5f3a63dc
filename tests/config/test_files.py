"""
Tests for L{webhookrx.config.files}.
"""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import write_text
from webhookrx.config import files
from webhookrx.config.files import Snapshot, list_directory, read_file
from webhookrx.errors import ConfigError


class ReadFileTests(SynchronousTestCase):
    """
    Tests for L{read_file}.
    """

    def test_content_and_mode(self) -> None:
        """It returns the bytes and the permission bits."""
        path = write_text(self.mktemp(), "x", "text\n", mode=0o640)
        self.assertEqual((b"text\n", 0o640), read_file(path))

    def test_errors(self) -> None:
        """Each way in which a file can't be read is one sentence that names it."""
        directory = self.mktemp()
        file = write_text(directory, "x", "")
        fifo = os.path.join(directory, "fifo")
        os.mkfifo(fifo)
        cases = {
            os.path.join(directory, "missing"): "does not exist",
            directory: "is a directory",
            fifo: "is not a regular file",
            "/dev/null": "is not a regular file",
            os.path.join(file, "below"): "lies below something that is none",
            "a\0b": "is not a file name",
            "x" * 300: "can't be read: File name too long",
        }
        for path, fragment in cases.items():
            problem = self.assertRaises(ConfigError, read_file, path).problem
            self.assertIn(fragment, problem)
            self.assertTrue(problem.isprintable(), problem)

    def test_no_permission(self) -> None:
        """A file that its reader may not read is an error that says so."""
        self.patch(os, "open", _refuse)
        self.assertIn("may not be read", self.assertRaises(ConfigError, read_file, "/key.pem").problem)

    def test_too_large(self) -> None:
        """A file past the limit is refused, not swallowed."""
        self.patch(files, "LARGEST_FILE", 3)
        path = write_text(self.mktemp(), "x", "1234")
        self.assertIn("larger than", self.assertRaises(ConfigError, read_file, path).problem)

    def test_leaves_nothing_open(self) -> None:
        """No descriptor is left behind, whatever comes of the file."""
        directory = self.mktemp()
        path = write_text(directory, "x", "")
        before = os.listdir("/proc/self/fd")
        read_file(path)
        self.assertRaises(ConfigError, read_file, directory)
        self.assertEqual(len(before), len(os.listdir("/proc/self/fd")))


class ListDirectoryTests(SynchronousTestCase):
    """
    Tests for L{list_directory}.
    """

    def test_names(self) -> None:
        """It returns the names, sorted."""
        directory = self.mktemp()
        write_text(directory, "b", "")
        write_text(directory, "a", "")
        self.assertEqual(["a", "b"], list_directory(directory))

    def test_errors(self) -> None:
        """A missing directory, and a file in its place, are errors that name it."""
        directory = self.mktemp()
        cases = {
            directory: "does not exist",
            write_text(self.mktemp(), "x", ""): "is not a directory",
            "a\0b": "is not a directory name",
        }
        for path, fragment in cases.items():
            self.assertIn(fragment, self.assertRaises(ConfigError, list_directory, path).problem)


def _refuse(*_: object) -> int:
    raise PermissionError(13, "Permission denied")


class SnapshotTests(SynchronousTestCase):
    """
    Tests for L{Snapshot}.
    """

    def test_first_look(self) -> None:
        """A file is what it was at the first look, whatever becomes of it; what failed is tried again."""
        snapshot = Snapshot()
        directory = self.mktemp()
        path = os.path.join(directory, "x")
        self.assertRaises(ConfigError, snapshot.read, path)
        write_text(directory, "x", "one", mode=0o640)
        self.assertEqual((b"one", 0o640), snapshot.read(path))
        write_text(directory, "x", "two")
        self.assertEqual((b"one", 0o640), snapshot.read(path))
        os.remove(path)
        self.assertEqual((b"one", 0o640), snapshot.read(path))
        self.assertEqual({path: (b"one", 0o640)}, snapshot.contents([path, "/no"]))

    def test_known(self) -> None:
        """What is known is not read, and what is learnt does not change what was known."""
        known = {"/no/x": (b"known", 0o600)}
        snapshot = Snapshot(known)
        self.assertEqual((b"known", 0o600), snapshot.read("/no/x"))
        path = write_text(self.mktemp(), "x", "")
        snapshot.read(path)
        self.assertEqual({"/no/x"}, set(known))

    def test_directory(self) -> None:
        """A directory has the files that were read of it; when none was, those that are there."""
        directory = self.mktemp()
        for name in "ba":
            write_text(directory, name, name)
        snapshot = Snapshot()
        self.assertEqual((["a", "b"], []), (snapshot.names(directory), snapshot.below(directory)))
        for name in "ba":
            snapshot.read(os.path.join(directory, name))
        write_text(directory, "c", "")
        self.assertEqual(["a", "b"], snapshot.names(directory))
        self.assertEqual([os.path.join(directory, name) for name in "ab"], snapshot.below(directory))
        self.assertRaises(ConfigError, snapshot.names, "/no")
