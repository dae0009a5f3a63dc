"""Tests for L{benchmarks.releases}."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from benchmarks import releases
from benchmarks.tools import Unavailable


class ReleaseTests(SynchronousTestCase):
    """An earlier version."""

    def setUp(self) -> None:
        """Have a cache of its own, and nothing installed."""
        self.cache = os.path.abspath(self.mktemp())
        self.patch(releases, "cache_directory", lambda: self.cache)
        releases.twistd.cache_clear()
        self.addCleanup(releases.twistd.cache_clear)

    def test_no_history(self) -> None:
        """Where its commit is not in the history, the reason says so, and nothing is installed."""
        ran = []

        def fail(problem: str, *command: str) -> None:
            ran.append(command[0])
            raise Unavailable(problem)

        self.patch(releases, "_run", fail)
        error = self.assertRaises(Unavailable, releases.twistd, "26.11.3")
        self.assertIn("has no commit d23eea6", str(error))
        self.assertEqual(["git"], ran)

    def test_installed(self) -> None:
        """What is installed is not installed again; what was left half-way is."""
        ran: list[str] = []
        self.patch(releases, "_unpack", lambda commit, directory: ran.append(commit))

        def run(problem: str, *command: str) -> None:
            if "venv" in command:
                os.makedirs(command[-1])

        self.patch(releases, "_run", run)
        first = releases.twistd("26.11.3")
        releases.twistd.cache_clear()
        self.assertEqual(first, releases.twistd("26.11.3"))
        self.assertEqual([releases.COMMITS["26.11.3"]], ran)
        os.unlink(os.path.join(os.path.dirname(os.path.dirname(first)), "installed"))
        releases.twistd.cache_clear()
        releases.twistd("26.11.3")
        self.assertEqual(2, len(ran))
