"""
Taps of a real router by a real console: what is shown, what is not, how they end, and that nothing of it is kept.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from queue import Empty, Queue
from threading import Thread
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.system.console_process import PASSWORD, ConsoleProcess
from tests.system.receiver import PATIENCE, wait_until
from tests.system.servers.process import free_port
from tests.system.test_console_router import ConsoleRouter, sent

MARKER = "lemon-sorbet-7141"
"""Stands in messages, and nowhere else."""


class TapProcess:
    """
    C{webhookrx tap --console}, as it runs.

    @ivar rows: those that have come, each with the time of the monotonic clock.
    """

    def __init__(self, console: ConsoleProcess, token_file: str, *options: str) -> None:
        command = [sys.executable, "-m", "webhookrx", "tap", "--console", f"http://127.0.0.1:{console.port}"]
        command += ["--token-file", token_file, "--json", "--rate", "20", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.queue: Queue[dict[str, Any]] = Queue()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.queue.put(json.loads(line))

    def row(self, *kinds: str) -> dict[str, Any]:
        """Return the next row of one of these kinds."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                row = self.queue.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                raise AssertionError(f"no {kinds}; its end: {self.end()}") from None
            if row["row"] in kinds:
                return row

    def end(self) -> tuple[int, str]:
        """End it, if it has not; return its exit status, and what it has said."""
        if self.process.poll() is None:
            self.process.terminate()
        _, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said

    def status(self) -> int:
        """Wait for its end, and return its exit status."""
        return self.process.wait(PATIENCE)

    def clean_up(self) -> None:
        """Leave nothing behind."""
        self.process.kill()
        self.process.wait()
        for each in (self.process.stdout, self.process.stderr):
            if each is not None:
                each.close()


class ConsoleTapTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.console = ConsoleProcess()
        self.addCleanup(self.console.stop)
        self.authorization = f"Bearer {self.console.token()}"
        self.here = tempfile.mkdtemp(prefix="webhookrx-")
        self.write("token", self.call("POST", "/enrolments", {"approve": "auto"})["token"])
        self.keys = os.path.join(self.here, "keys")
        os.mkdir(self.keys)
        self.router = ConsoleRouter(self.here, self.console.routers, self.keys)
        self.addCleanup(self.router.clean_up)
        self.router.start()
        self.port = free_port()
        self.call(
            "POST", "/rules", {"name": "hooks", "protocol": "HTTP", "port": self.port, "labels": {"product": "p"}}
        )
        wait_until(lambda: self.shown().get("connectors") == 1, f"it has its connector: {self.router.log()}")
        self.tap_token = self.console.token("viewer", tap=True, name="tap")

    def write(self, name: str, text: str) -> str:
        """Write a file that only its owner reads, and return its path."""
        path = os.path.join(self.here, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(text)
        return path

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return what a call answers."""
        status, _, content = self.console.call(method, path, body, **(headers or {"authorization": self.authorization}))
        self.assertLess(status, 300, content)
        return json.loads(content) if content else None

    def shown(self) -> dict[str, Any]:
        """Return the router as the API shows it; nothing before it has reported."""
        routers = self.call("GET", "/routers")["routers"]
        return dict(routers[0]) if routers and routers[0]["health"] else {}

    def tap(self, *options: str) -> TapProcess:
        """Start a tap, and return once the router shows its counts."""
        tap = TapProcess(self.console, self.write("tap-token", self.tap_token), *options)
        self.addCleanup(tap.clean_up)
        self.assertEqual(tap.row("start")["sources"], [self.shown()["name"]])
        tap.row("counts")
        return tap

    def audit(self) -> list[dict[str, Any]]:
        """Return the entries about taps, the oldest first."""
        entries = self.call("GET", "/audit")["entries"]
        return [each for each in reversed(entries) if each["event"].startswith("tap")]

    def kept(self) -> list[str]:
        """Return the files of the console that hold something of a message."""
        found = []
        for directory, _, names in os.walk(self.console.directory):
            for name in names:
                with open(os.path.join(directory, name), "rb") as file:
                    if MARKER.encode() in file.read():
                        found.append(name)
        return found

    def test_messages(self) -> None:
        """What a router takes is shown masked, with its name and counts; nothing of it is kept, and who looked is."""
        tap = self.tap("--connector", "connector.labels.product = p", "--point", "output", "--routers", "os = linux")
        self.assertEqual(sent(b'{"dish":"%s","password":"hush"}' % MARKER.encode(), self.port), 200)
        row = tap.row("message")
        self.assertEqual(row["router"], self.shown()["name"])
        self.assertIn(MARKER, json.dumps(row["output"]))
        self.assertNotIn("hush", json.dumps(row["output"]))
        counts = tap.row("counts")
        self.assertEqual((counts["matched"], counts["shown"]), (1, 1))
        self.assertEqual(counts["routers"][0]["ended"], "", self.router.log())
        tap.end()
        wait_until(lambda: len(self.audit()) == 2, "the audit has its end")
        begin, end = self.audit()
        self.assertEqual((begin["event"], begin["by"], begin["details"]["routers"]), ("tap", "mara", "os = linux"))
        self.assertEqual((end["event"], end["details"]["why"], end["details"]["shown"]), ("tap_ended", "gone", 1))
        self.assertEqual(self.kept(), [])
        wait_until(lambda: "A tap of the console ends" in self.router.log(), "the router has ended its tap")

    def test_rights(self) -> None:
        """A tap ends within two seconds after its token has, and nobody taps without the permission."""
        tap = self.tap()
        status, headers, content = self.console.call("POST", "/session", {"name": "mara", "password": PASSWORD})
        self.assertEqual(status, 201)
        ours = {
            "cookie": headers["set-cookie"].partition(";")[0],
            "origin": f"http://127.0.0.1:{self.console.port}",
            "x_csrf_token": json.loads(content)["csrf"],
        }
        (token,) = [each["id"] for each in self.call("GET", "/tokens") if each["name"] == "tap"]
        self.call("DELETE", f"/tokens/{token}", **ours)
        ended_at = time.monotonic()
        self.assertEqual(tap.row("end")["why"], "The token has ended, or may not tap any more.")
        self.assertLess(time.monotonic() - ended_at, 3)
        self.assertEqual(tap.status(), 0)
        without = TapProcess(self.console, self.write("plain", self.console.token(name="plain")))
        self.addCleanup(without.clean_up)
        self.assertEqual(without.status(), 2)

    def test_gate(self) -> None:
        """A tap ends when the gate of its router closes, and none starts until the file is there."""
        tap = self.tap()
        key, cert = f"{self.keys}/key.pem", f"{self.keys}/cert.pem"
        rule = {"name": "tls", "protocol": "HTTPS", "port": free_port(), "key_file": key, "cert_file": cert}
        self.call("POST", "/rules", rule)
        self.assertEqual(tap.row("end")["why"], "It has ended at all routers.")
        wait_until(lambda: self.shown().get("status") == "BLOCKED", "its gate is closed")
        status, _, content = self.console.call("POST", "/taps", {}, authorization=f"Bearer {self.tap_token}")
        problem = json.loads(content)
        self.assertEqual((status, problem["code"]), (409, "reload_gate_closed"))
        self.assertEqual(sorted(problem["paths"]), [cert, key])

    def test_router_killed(self) -> None:
        """A tap of a router that is killed ends, and says which."""
        tap = self.tap()
        self.router.kill()
        killed_at = time.monotonic()
        self.assertIn("not heard any more", tap.row("router")["why"])
        self.assertEqual(tap.row("end")["why"], "It has ended at all routers.")
        self.assertLess(time.monotonic() - killed_at, 6)

    def test_console_stops(self) -> None:
        """A console that stops says so to who reads, has the audit written, and the router ends its tap by itself."""
        tap = self.tap()
        self.console.process.send_signal(signal.SIGTERM)
        self.assertEqual(tap.row("end")["why"], "The console stops.")
        self.assertEqual(tap.status(), 0)
        self.assertEqual(self.console.process.wait(PATIENCE), 0)
        wait_until(lambda: "A tap of the console ends" in self.router.log(), "the router has ended its tap")
