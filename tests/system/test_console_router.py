"""
A real router at a real console's port for routers: enrolment, bundles, what is reported, and life without the console.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.system.receiver import ROOT, Connection, post, wait_until
from tests.system.routers import Router, free_ports
from tests.system.servers.process import free_port
from webhookrx.config.console_files import accept_bundle, read_console_files
from webhookrx.console.routers.authority import load_authority
from webhookrx.management.bundle import seal


def rule(name: str, port: int, *more: str) -> str:
    """Return the text of a rule."""
    return "\n".join((f"name: {name}", "protocol: HTTP", f"port: {port}", "selector: os = linux", *more, ""))


def sent(body: bytes, port: int) -> int:
    """Send a message, and return the status of the answer."""
    with Connection(port) as connection:
        answer = connection.send(post(body, "/events")).answer()
        assert answer is not None
        return answer.status


class Console:
    """A console's port for routers, in a process of its own; see L{tests.system.routers_console_program}."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.port = free_port()
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = [sys.executable, "-m", "tests.system.routers_console_program", self.directory, str(self.port)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.read() == "up"

    def read(self) -> Any:
        """Return the next answer."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, line: str) -> Any:
        """Return the answer to a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self.read()

    def rules(self, *texts: str) -> None:
        """Hand out these rules, and no others."""
        self.ask(f"rules {json.dumps(texts)}")

    @property
    def router(self) -> dict[str, Any]:
        """What the only router has reported."""
        (found,) = self.ask("routers")
        return dict(found)

    def kill(self) -> None:
        """End it, as a crash would."""
        self._process.kill()
        self._process.communicate()


class ConsoleRouterTests(SynchronousTestCase):
    def setUp(self) -> None:
        directory = tempfile.mkdtemp(prefix="webhookrx-console-")
        self.console = Console(directory)
        self.addCleanup(self.console.kill)
        here = tempfile.mkdtemp(prefix="webhookrx-")
        with open(os.path.join(here, "token"), "w", encoding="ascii") as file:
            file.write(self.console.ask("token"))
        self.keys = os.path.join(here, "keys")
        os.mkdir(self.keys)
        self.router = ConsoleRouter(here, self.console.port, self.keys)
        self.addCleanup(self.router.clean_up)
        self.router.start()

    def reported(self, status: str, *connectors: tuple[str, int]) -> dict[str, Any]:
        """Return the report when it has that status, and these rules with their ports."""
        seen: list[dict[str, Any]] = []

        def look() -> bool:
            found = self.console.ask("routers")
            seen[:] = found
            if not found or found[0]["applied"]["status"] != status:
                return False
            return {(each["rule"], each["port"]) for each in found[0]["connectors"]} == set(connectors)

        wait_until(look, f"{status}; last {seen}; the router: {self.router.log()}")
        return seen[0]

    def test_rules_of_a_console(self) -> None:
        """A router enrols, runs the rules that it gets, refuses those that it may not have, and starts without it."""
        wait_until(lambda: self.console.ask("routers"), f"it is enrolled: {self.router.log()}")
        self.assertEqual(self.console.router["name"], "fra-7")
        port, other = free_ports(2)
        self.console.rules(rule("hooks", port))
        told = self.reported("APPLIED", ("hooks", port))
        self.assertEqual([each["state"] for each in told["connectors"]], ["open"])
        self.assertEqual(sent(b"one", port), 200)

        # A file elsewhere than the host allows is not even looked at.
        lines = ("key_file: /etc/shadow", "cert_file: /etc/passwd")
        self.console.rules(rule("hooks", port, *lines).replace("HTTP\n", "HTTPS\n"))
        told = self.reported("FAILED", ("hooks", port))
        self.assertIn("--key-directory", told["applied"]["error"])
        self.assertEqual(sent(b"two", port), 200)

        # A file that is missing below it blocks the router.
        lines = (f"key_file: {self.keys}/key.pem", f"cert_file: {self.keys}/cert.pem")
        self.console.rules(rule("hooks", port), rule("tls", other, *lines).replace("HTTP\n", "HTTPS\n"))
        told = self.reported("BLOCKED", ("hooks", port))
        self.assertTrue(told["gate"]["reasons"])
        self.assertEqual(sent(b"three", port), 200)

        # A port that something else has is a reload that fails, and a restart goes on with what runs.
        taken = self.console.port
        self.console.rules(rule("hooks", port), rule("taken", taken))
        told = self.reported("FAILED", ("hooks", port))
        self.assertIn("taken", told["applied"]["error"])
        self.console.kill()
        self.router.stop()
        self.router.start()
        self.assertEqual(sent(b"four", port), 200)
        wait_until(lambda: "rules of the console are not in use" in self.router.health()[1], "it says so")
        self.console.start()
        self.console.rules(rule("hooks", other))
        self.reported("APPLIED", ("hooks", other))
        self.assertEqual(sent(b"five", other), 200)
        # Connections to the console are no lines in the log.
        self.assertNotIn("HTTP11ClientFactory", self.router.log())

    def test_start_with_a_taken_port(self) -> None:
        """Killed before it could tell that a port of the newest rules is taken, a router starts at the second try."""
        wait_until(lambda: self.console.ask("routers"), f"it is enrolled: {self.router.log()}")
        port, other = free_ports(2)
        self.console.rules(rule("hooks", port))
        self.reported("APPLIED", ("hooks", port))
        self.console.kill()
        self.router.stop()
        directory = os.path.join(self.router.directory, "console")
        before = read_console_files(directory).bundles[0].bundle
        rules = f"connector_rules:\n- {{name: taken, protocol: HTTP, port: {other}}}\n"
        newer = msgspec.structs.replace(before, revision=999, rules=rules)
        accept_bundle(directory, seal(newer, load_authority(self.console.directory).signing_key))
        with socket.create_server(("127.0.0.1", other)):
            self.router.spawn()
            self.assertEqual(self.router.wait(), 1)
            self.router.start()
        self.assertEqual(sent(b"one", port), 200)
        refused = read_console_files(directory).refused
        assert refused is not None
        self.assertIn('the rule "taken" wants', refused.error)


class ConsoleRouter(Router):
    """
    A router whose rules come from a console.

    @param command: see L{Router}.
    """

    def __init__(self, directory: str, port: int, keys: str, *options: str, command: Sequence[str] = ()) -> None:
        super().__init__(*options, directory=directory, command=command)
        arguments = list(self._arguments)
        at = arguments.index("--rules")
        arguments[at : at + 4] = [
            "--console",
            f"https://localhost:{port}",
            "--console-dir",
            "console",
            "--console-token-file",
            "token",
            "--key-directory",
            keys,
            "--router-name",
            "fra-7",
        ]
        self._arguments = tuple(arguments)
