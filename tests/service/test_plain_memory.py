"""
What a receiver without guards has in memory: nothing that only guards need.
"""

from __future__ import annotations

import os
import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import LOOPBACK
from tests.documents import ROOT

PROGRAM = """
import sys
from webhookrx.tap import Options, makeService
options = Options()
options.parseOptions(sys.argv[1:])
service = makeService(options)
service.receiver._message_ids = None
service.receiver._build_roots(options.settings)
print(*(name for name in sys.modules if name.startswith("webhookrx.")))
"""

#: Each takes others with it.
COSTLY = {
    "webhookrx.config.guards.resolve",
    "webhookrx.config.guards.secret_files",
    "webhookrx.guard.guard",
    "webhookrx.guard.word_reader",
    "webhookrx.http.guarded_resource",
    "webhookrx.senders.definitions",
    "webhookrx.senders.evidence",
    "webhookrx.senders.signatures.verifier",
    "webhookrx.service.guards",
}


class PlainMemoryTests(SynchronousTestCase):
    """In a process of its own: imports can't be undone in this one."""

    def imported(self, *arguments: str) -> set[str]:
        """Return which costly modules a receiver with these arguments has imported once it is made."""
        directory = os.path.abspath(self.mktemp())
        os.mkdir(directory)
        found = subprocess.run(
            [sys.executable, "-c", PROGRAM, "--port", LOOPBACK, *arguments],
            cwd=directory,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(0, found.returncode, found.stderr)
        return COSTLY & set(found.stdout.split())

    def test_plain(self) -> None:
        """A plain source has none of it, with a token or without."""
        self.assertEqual(set(), self.imported("--source", "webhook-json"))
        self.assertEqual(set(), self.imported("--auth-token", "x"))

    def test_guarded(self) -> None:
        """A guard brings it, so that the test above would find it."""
        guarded = self.imported("--sender", "github", "--verify", "off")
        self.assertEqual(COSTLY, guarded)
