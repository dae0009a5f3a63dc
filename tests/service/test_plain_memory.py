"""
What a receiver without guards or without a console has in memory: nothing that only these need.
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

PORT = ("--port", LOOPBACK)

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

#: What a receiver has for its console, and what only a console has: packages and modules.
OF_CONSOLES = (
    "webhookrx.agent",
    "webhookrx.console",
    "webhookrx.management",
    "webhookrx.config.console_files",
    "webhookrx.config.console_form",
    "webhookrx.config.started_enrolment",
    "webhookrx.service.console_agent",
)

#: Alarms of a receiver are in the floor of both.
OF_BOTH = {"webhookrx.management", "webhookrx.management.alarm_rules"}


class PlainMemoryTests(SynchronousTestCase):
    """In a process of its own: imports can't be undone in this one."""

    def imported(self, *arguments: str) -> set[str]:
        """Return which modules a receiver with these arguments has imported once it is made."""
        directory = os.path.abspath(self.mktemp())
        os.mkdir(directory)
        found = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            cwd=directory,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(0, found.returncode, found.stderr)
        return set(found.stdout.split())

    def test_plain(self) -> None:
        """A plain source has none of it, with a token or without."""
        self.assertEqual(set(), COSTLY & self.imported(*PORT, "--source", "webhook-json"))
        self.assertEqual(set(), COSTLY & self.imported(*PORT, "--auth-token", "x"))

    def test_guarded(self) -> None:
        """A guard brings it, so that the test above would find it."""
        guarded = self.imported(*PORT, "--sender", "github", "--verify", "off")
        self.assertEqual(COSTLY, COSTLY & guarded)

    def test_no_console(self) -> None:
        """Without C{--console} there is nothing of agents, bundles and consoles, with rules of a file or without."""
        rules = os.path.abspath(self.mktemp())
        with open(rules, "w") as file:
            file.write("connector_rules:\n- {name: hooks, protocol: HTTP, port: 8181}\n")
        for options in ((*PORT, "--source", "webhook-json"), ("--rules", rules)):
            self.assertEqual(set(), of_consoles(self.imported(*options)), options)

    def test_console(self) -> None:
        """With it the agent is there, so that the test above would find it; of the console itself there is nothing."""
        options = ("--console", "https://localhost:9443", "--console-dir", os.path.abspath(self.mktemp()))
        found = of_consoles(self.imported(*options))
        self.assertTrue({"webhookrx.agent.agent", "webhookrx.management.bundle"} <= found, found)
        self.assertEqual(set(), {name for name in found if name.startswith("webhookrx.console")})


def of_consoles(names: set[str]) -> set[str]:
    """Return those that only consoles and agents need."""
    return {name for name in names - OF_BOTH if any(f"{name}.".startswith(f"{each}.") for each in OF_CONSOLES)}
