"""
Tests for L{webhookrx.config.state_dir}.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.files import LARGEST_FILE
from webhookrx.config.state_dir import check_state_dir, default_state_dir, read_state, write_state
from webhookrx.errors import ConfigError


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

            self.patch(os, name, noting)

        noted("fsync", os.fsync)
        noted("rename", os.rename)
        write_state(self.directory, "a", b"new")
        self.assertEqual(["fsync", "rename", "fsync directory"], calls)

    def test_failures(self) -> None:
        """What can't be written leaves what was there, and no part of it."""
        write_state(self.directory, "a", b"old")
        for name in ("fsync", "rename"):
            self.patch(os, name, self.fail_to)
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
        for name, problem in (("file", "is no directory"), ("no/new", "does not exist")):
            self.assertIn(problem, str(self.assertRaises(ConfigError, check_state_dir, self.path(name))))
