"""
The command C{webhookrx enrol} at a real console's port for routers.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile

from twisted.trial.unittest import SynchronousTestCase

from tests.system.receiver import ROOT
from tests.system.test_console_router import Console


class EnrolTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.console = Console(tempfile.mkdtemp(prefix="webhookrx-console-"))
        self.addCleanup(self.console.kill)
        self.here = tempfile.mkdtemp(prefix="webhookrx-")
        self.directory = os.path.join(self.here, "console")
        self.token = os.path.join(self.here, "token")
        with open(self.token, "w", encoding="ascii") as file:
            file.write(self.console.ask("token"))
        os.chmod(self.token, 0o600)

    def run_enrol(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        command = [sys.executable, "-m", "webhookrx", "enrol", "--console-dir", self.directory, *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    def enrol(self) -> subprocess.CompletedProcess[str]:
        """Enrol."""
        url = f"https://localhost:{self.console.port}"
        return self.run_enrol("--console", url, "--token-file", self.token, "--name", "fra-1", "--label", "site=fra")

    def test_enrol(self) -> None:
        """It enrols once, with files for their owner alone; what it has can be forgotten."""
        done = self.enrol()
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn("Enrolled as fra-1, ", done.stdout)
        (known,) = self.console.ask("routers")
        self.assertEqual(("fra-1", {"site": "fra"}), (known["name"], known["facts"]["labels"]))
        (name,) = os.listdir(self.directory)
        self.assertEqual(0o600, stat.S_IMODE(os.stat(os.path.join(self.directory, name)).st_mode))

        again = self.enrol()
        self.assertEqual(1, again.returncode)
        self.assertIn("already", again.stderr)

        self.assertEqual(0, self.run_enrol("--forget").returncode)
        self.assertEqual([], os.listdir(self.directory))
        refused = self.enrol()
        self.assertEqual(1, refused.returncode)
        self.assertIn("wrong, used or expired", refused.stderr)

    def test_console_away(self) -> None:
        """With a console that is away it says so by its status, and the same token is good when the console is back."""
        self.console.kill()
        away = self.enrol()
        self.assertEqual(4, away.returncode)
        self.assertIn("Run this again with the same token.", away.stderr)
        self.console.start()
        self.assertEqual(0, self.enrol().returncode)

    def test_another_console(self) -> None:
        """The token's console alone is trusted: it is not sent to another."""
        other = Console(tempfile.mkdtemp(prefix="webhookrx-console-"))
        self.addCleanup(other.kill)
        url = f"https://localhost:{other.port}"
        refused = self.run_enrol("--console", url, "--token-file", self.token)
        self.assertIn(refused.returncode, (1, 4))
        self.assertEqual([], other.ask("routers"))
        self.assertEqual(0, self.enrol().returncode)
