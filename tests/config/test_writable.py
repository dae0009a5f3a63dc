"""
Tests for L{webhookrx.config.writable}.
"""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from webhookrx.config.observer_strings import parse_observer
from webhookrx.config.writable import User, run_as, unwritable

NOBODY = 65534


class RunAsTests(SynchronousTestCase):
    """Who twistd will be."""

    def test_itself(self) -> None:
        """Without options it stays who it is."""
        self.assertEqual((os.geteuid(), os.getegid()), run_as())

    def test_options(self) -> None:
        """A user comes with its group, unless another is named; one that nobody knows has none."""
        root = pwd.getpwuid(0)
        self.assertEqual((0, root.pw_gid), run_as(0))
        self.assertEqual((0, 7), run_as(0, 7))
        self.assertEqual((os.geteuid(), 7), run_as(None, 7))
        self.assertEqual((4_000_000, os.getegid()), run_as(4_000_000))

    def test_names(self) -> None:
        """People are told the name, if there is one."""
        self.assertEqual(f"{pwd.getpwuid(0).pw_name} (uid 0)", User(0, 0).name)
        self.assertEqual("uid 4000000", User(4_000_000, 0).name)


class UnwritableTests(SynchronousTestCase):
    """Files and directories of observers, looked at as root and as another user."""

    def setUp(self) -> None:
        # Not below the directory of the tests: others may not get as far.
        self.directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, self.directory)
        os.chmod(self.directory, 0o755)

    def path(self, name: str, mode: int, *, directory: bool = False) -> str:
        """Make a file, or a directory."""
        path = os.path.join(self.directory, name)
        os.mkdir(path) if directory else open(path, "w").close()
        os.chmod(path, mode)
        return path

    def of(self, user: User, *specs: str) -> list[str]:
        """Return the paths that are told."""
        return [text.split('"')[1] for text in unwritable(map(parse_observer, specs), user)]

    def test_as_it_is(self) -> None:
        """What this process may write is no finding, whatever becomes of it later."""
        specs = (f"file:{self.directory}/new", "stdout", "http:http://a/", f"spool:{self.directory}/s:observer=stdout")
        self.assertEqual([], unwritable(map(parse_observer, specs), run_as()))
        self.assertEqual([], os.listdir(self.directory))

    def test_as_another(self) -> None:
        """Modes decide, on files and on the directories of those that are yet to be made; behind a spool as well."""
        if os.geteuid() != 0:
            raise SkipTest("only root can ask for another user")
        theirs, open_to_all = self.path("theirs", 0o600), self.path("all", 0o666)
        closed, free = self.path("closed", 0o755, directory=True), self.path("free", 0o777, directory=True)
        user = User(NOBODY, NOBODY)
        self.assertEqual([theirs], self.of(user, f"file:{theirs}", f"file:{open_to_all}"))
        self.assertEqual([f"{closed}/new"], self.of(user, f"file:{closed}/new", f"file:{free}/new"))
        self.assertEqual([closed, theirs], self.of(user, f"spool:{closed}:observer=file:{theirs}"))
        self.assertEqual([], self.of(user, f"spool:{free}:observer=file:{open_to_all}"))
        (text,) = unwritable([parse_observer(f"file:{theirs}")], user)
        self.assertIn("may not be written by nobody (uid 65534)", text)

    def test_not_root(self) -> None:
        """Who can't become another user looks with its own eyes."""
        self.patch(os, "geteuid", lambda: 1000)
        self.assertEqual([], self.of(User(NOBODY, NOBODY), f"file:{self.directory}/new"))

    def test_no_such_user(self) -> None:
        """A user without a name has no groups besides its own."""
        if os.geteuid() != 0:
            raise SkipTest("only root can ask for another user")
        theirs = self.path("theirs", 0o620)
        os.chown(theirs, 0, 4_000_001)
        self.assertEqual([theirs], self.of(User(4_000_000, 4_000_000), f"file:{theirs}"))
        self.assertEqual([], self.of(User(4_000_000, 4_000_001), f"file:{theirs}"))
