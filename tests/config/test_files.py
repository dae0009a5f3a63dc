"""
Tests for L{webhookrx.config.files}.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import write_text
from tests.open_files import open_files
from webhookrx.config import files
from webhookrx.config import files as file_signatures
from webhookrx.config.files import (
    LARGEST_FILE,
    Snapshot,
    check_state_dir,
    default_state_dir,
    list_directory,
    read_file,
    read_state,
    signature_of,
    write_state,
)
from webhookrx.errors import ConfigError
from webhookrx.filesystem import FileSystem


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
        before = open_files()
        read_file(path)
        self.assertRaises(ConfigError, read_file, directory)
        self.assertEqual(set(), open_files() - before)


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


class SignatureTests(SynchronousTestCase):
    """What is seen of a file."""

    def test_changes(self) -> None:
        """Appearing, other content, another mode, being replaced and going away are all seen."""
        path = Path(self.mktemp())
        found = [signature_of(str(path))]
        path.write_text("one")
        found.append(signature_of(str(path)))
        path.write_text("two words")
        found.append(signature_of(str(path)))
        path.chmod(0o600)
        found.append(signature_of(str(path)))
        other = Path(self.mktemp())
        other.write_text("two words")
        os.replace(other, path)
        found.append(signature_of(str(path)))
        path.unlink()
        self.assertEqual(found[0], signature_of(str(path)))
        self.assertEqual(5, len(set(found)))

    def test_each_part(self) -> None:
        """Each of file system, number, size and times makes a difference alone: not all file systems have them all."""
        path = self.mktemp()
        Path(path).touch()
        real = os.stat(path)
        parts = ("st_mode", "st_dev", "st_ino", "st_mtime_ns", "st_ctime_ns", "st_size")
        same = {name: getattr(real, name) for name in parts}
        before = signature_of(path)
        for name in parts[1:]:
            other = SimpleNamespace(**(same | {name: same[name] + 1}))
            self.patch(file_signatures.os, "stat", lambda _, other=other: other)
            self.assertNotEqual(before, signature_of(path), name)

    def test_errors(self) -> None:
        """Why a file can't be looked at is a part of it: a directory may have come where there was none."""
        Path(path := self.mktemp()).touch()
        self.assertNotEqual(signature_of(self.mktemp()), signature_of(f"{path}/below"))

    def test_readable(self) -> None:
        """Whether this process may read it is a part of it, whoever it runs as."""
        path = self.mktemp()
        Path(path).touch()
        before = signature_of(path)
        self.patch(os, "access", lambda *_, effective_ids: not effective_ids)
        self.assertNotEqual(before, signature_of(path))

    def test_link(self) -> None:
        """That of a link is that of the file that it leads to, be it by a link to a directory that is switched."""
        top = Path(self.mktemp())
        found = []
        for name in ("one", "two"):
            (top / name).mkdir(parents=True)
            (top / name / "file").write_text("same")
        (top / "data").symlink_to("one")
        (top / "file").symlink_to("data/file")
        found.append(signature_of(str(top / "file")))
        (top / "new").symlink_to("two")
        os.replace(top / "new", top / "data")
        self.assertNotEqual(found[0], signature_of(str(top / "file")))

    def test_directory(self) -> None:
        """That of a directory changes with each data file in it, be it written in place, renamed, or a dead link."""
        directory = Path(self.mktemp())
        directory.mkdir()
        found = [signature_of(str(directory))]
        (directory / "a.yaml").write_text("one")
        found.append(signature_of(str(directory)))
        (directory / "a.yaml").write_text("longer")
        found.append(signature_of(str(directory)))
        (directory / "b.yml").symlink_to("nowhere")
        found.append(signature_of(str(directory)))
        (directory / "b.yml").rename(directory / "c.yml")
        found.append(signature_of(str(directory)))
        self.assertEqual(5, len(set(found)))
        names = os.listdir(directory)
        for order in (sorted(names), sorted(names, reverse=True)):
            self.patch(os, "listdir", lambda _, order=order: order)
            self.assertEqual(found[-1], signature_of(str(directory)))

    def test_other_files(self) -> None:
        """Other files in a directory make no difference: what is received may be written there."""
        directory = Path(self.mktemp())
        directory.mkdir()
        before = signature_of(str(directory))
        (directory / "messages.jsonl").write_text("{}")
        self.assertEqual(before, signature_of(str(directory)))

    def test_no_name(self) -> None:
        """What can't be the name of a file has a signature, too."""
        self.assertEqual((), signature_of("a\0b"))


class StateDirTests(SynchronousTestCase):
    """Files that a restart needs."""

    def setUp(self) -> None:
        self.directory = os.path.abspath(self.mktemp())

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def test_default(self) -> None:
        """It is the first that systemd sets; without any there is none."""
        for environ, expected in (({}, None), ({"STATE_DIRECTORY": ""}, None), ({"STATE_DIRECTORY": "/a:/b"}, "/a")):
            self.assertEqual(expected, default_state_dir(environ))

    def test_write_and_read(self) -> None:
        """What was written is read, by nobody else; the directory is made, and nothing else is left in it."""
        self.assertIsNone(read_state(self.directory, "a.json"))
        for content in (b"one", b"longer than one", b""):
            write_state(self.directory, "a.json", content)
            self.assertEqual(content, read_state(self.directory, "a.json"))
        self.assertEqual(["a.json"], os.listdir(self.directory))
        modes = [stat.S_IMODE(os.stat(each).st_mode) for each in (self.directory, self.path("a.json"))]
        self.assertEqual([0o700, 0o600], modes)
        self.assertIsNone(read_state(self.directory, "b.json"))

    def test_leftover(self) -> None:
        """What a process has left that was killed, or a link somebody has put there, is in nobody's way."""
        os.mkdir(self.directory)
        other = self.mktemp()
        for leave in (lambda: self.touch(self.path("a.new")), lambda: os.symlink(other, self.path("a.new"))):
            leave()
            write_state(self.directory, "a", b"new")
            self.assertEqual((b"new", ["a"]), (read_state(self.directory, "a"), os.listdir(self.directory)))
        self.assertFalse(os.path.exists(other))

    def test_order(self) -> None:
        """A file is safe before it has its name, and its name before that is said."""
        calls: list[str] = []

        def noted(name: str, call: Callable[..., Any]) -> None:
            def noting(*args: Any) -> Any:
                what = "directory" if name == "fsync" and stat.S_ISDIR(os.fstat(args[0]).st_mode) else ""
                calls.append(f"{name} {what}".strip())
                return call(*args)

            self.patch(FileSystem, name, staticmethod(noting))

        noted("fsync", os.fsync)
        noted("rename", os.rename)
        write_state(self.directory, "a", b"new")
        self.assertEqual(["fsync", "rename", "fsync directory"], calls)

    def test_failures(self) -> None:
        """What can't be written leaves what was there, and no part of it."""
        write_state(self.directory, "a", b"old")
        for name in ("fsync", "rename"):
            self.patch(FileSystem, name, staticmethod(self.fail_to))
            self.assertRaises(OSError, write_state, self.directory, "a", b"new")
        self.assertRaises(OSError, write_state, self.directory, "a", bytes(LARGEST_FILE + 1))
        self.assertEqual((b"old", ["a"]), (read_state(self.directory, "a"), os.listdir(self.directory)))

    def fail_to(self, *args: object) -> None:
        raise OSError(5, "Input/output error")

    def touch(self, path: str) -> None:
        with open(path, "wb"):
            pass

    def test_of_others(self) -> None:
        """What others may write to, or a link, is not read: it says which keys are opened."""
        write_state(self.directory, "a", b"x")
        os.chmod(self.path("a"), 0o620)
        self.assertIn("written by others", str(self.assertRaises(ConfigError, read_state, self.directory, "a")))
        os.symlink("a", self.path("b"))
        self.assertIn("not a regular file", str(self.assertRaises(ConfigError, read_state, self.directory, "b")))
        if os.geteuid() == 0:
            os.chmod(self.path("a"), 0o600)
            os.chown(self.path("a"), 12345, -1)
            self.assertRaises(ConfigError, read_state, self.directory, "a")
            # A service that gives up root later owns directory and file.
            os.chown(self.directory, 12345, -1)
            self.assertEqual(b"x", read_state(self.directory, "a"))

    def test_check(self) -> None:
        """There is a directory, or there can be one."""
        os.mkdir(self.directory)
        check_state_dir(self.directory)
        check_state_dir(self.path("new"))
        self.touch(self.path("file"))
        for name, problem in (("file", "is not a directory"), ("no/new", "does not exist")):
            self.assertIn(problem, str(self.assertRaises(ConfigError, check_state_dir, self.path(name))))
