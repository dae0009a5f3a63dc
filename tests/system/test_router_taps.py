"""
Receivers that a whole console taps: with workers, of both forms, while it hangs, and where the host forbids it; and
what its bundles mask for whoever taps.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.system.console_process import ConsoleProcess
from tests.system.receiver import PATIENCE, Receiver, memory_of, post, wait_until
from tests.system.servers.process import free_port
from tests.system.test_console_router import Console, ConsoleRouter, rule, sent
from tests.system.workers import children
from webhookrx.agent.sent_tap import AWAY_TIME


class TapStream:
    """
    Reads the events of a tap as they come.

    @ivar rows: those that were shown; C{counts}: the last ones; C{end}: why it has ended.
    """

    def __init__(self, console: ConsoleProcess, id: str, authorization: str) -> None:
        self.rows: list[Any] = []
        self.counts: Any = None
        self.end = ""
        self._connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=PATIENCE)
        self._connection.request("GET", f"/api/v1/taps/{id}/events", headers={"Authorization": authorization})
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.read()

    def until(self, is_there: Callable[[], object]) -> None:
        """Read until something has come; the tap ends by itself before it takes too long."""
        event = ""
        while not is_there():
            line = self._answer.readline().decode().rstrip("\n")
            name, _, text = line.partition(": ")
            if name == "event":
                event = text
            elif name == "data":
                self._take(event, json.loads(text))
            assert not self.end or is_there(), f"it has ended: {self.end}, {self.counts}, {len(self.rows)} rows"

    def until_shown(self, send: Callable[[], object]) -> None:
        """Send messages until one is shown: there may be no time to look at the first ones."""
        while not self.rows:
            self.counts = None
            send()
            self.until(lambda: self.counts and self.counts["seen"])

    def _take(self, event: str, data: Any) -> None:
        if event == "row":
            self.rows.append(data)
        elif event == "counts":
            self.counts = data
        elif event == "end":
            self.end = data["reason"]

    def close(self) -> None:
        """Read no more."""
        self._answer.close()
        self._connection.close()


class RouterTapTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.console = ConsoleProcess()
        self.addCleanup(self.console.stop)
        self.authorization = f"Bearer {self.console.token(tap=True)}"
        self.directory = tempfile.mkdtemp(prefix="webhookrx-")
        with open(os.path.join(self.directory, "token"), "w", encoding="ascii") as file:
            file.write(self.call("POST", "/enrolments", {"approve": "auto"})["token"])
        self.keys = os.path.join(self.directory, "keys")
        os.mkdir(self.keys)

    def router(self, *options: str) -> ConsoleRouter:
        """Start a router, and return it when it has a connector."""
        self.port = free_port()
        self.call("POST", "/rules", {"name": "hooks", "protocol": "HTTP", "port": self.port})
        router = ConsoleRouter(self.directory, self.console.routers, self.keys, *options)
        self.addCleanup(router.clean_up)
        router.start()
        wait_until(lambda: self.status() == "APPLIED", f"it has its rules: {router.log()}")
        return router

    def call(self, method: str, path: str, body: Any = None, status: int = 0) -> Any:
        """Return what a call answers, with that status, or any that says that it is done."""
        found, _, content = self.console.call(method, path, body, authorization=self.authorization)
        self.assertTrue(found == status if status else found < 300, content)
        return json.loads(content)

    def status(self) -> str:
        """Return what the router says of its newest bundle."""
        routers = self.call("GET", "/routers")["routers"]
        return routers[0]["status"] if routers and routers[0]["health"] else ""

    def tap(self, **order: Any) -> TapStream:
        """Start a tap, and read it."""
        started = self.call("POST", "/taps", {"for": "50s", "rate": 20, **order})
        self.assertEqual((len(started["routers"]), started["left_out"]), (1, []))
        stream = TapStream(self.console, started["id"], self.authorization)
        self.addCleanup(stream.close)
        return stream

    def test_workers(self) -> None:
        """Messages of all workers are shown, masked; the log of the router has the tap, and nothing what it shows."""
        router = self.router("--workers", "2")
        tap = self.tap(point="output", filter="log.body.user = ann", connectors="connector.port EXISTS")
        processes: set[str] = set()
        count = 0

        def seen_of_both() -> bool:
            nonlocal count
            self.assertEqual(sent(b'{"user":"ann","password":"hush-7"}', self.port), 200)
            self.assertEqual(sent(b'{"user":"bob"}', self.port), 200)
            count += 2
            tap.until(lambda: tap.counts and tap.counts["seen"] == count)
            processes.update(row["id"].rpartition("-")[0] for row in tap.rows)
            return len(processes) == 2

        wait_until(seen_of_both, "messages of both workers are shown")
        # A process may have no time to look at all of them.
        self.assertLessEqual(tap.counts["matched"], count // 2)
        self.assertGreaterEqual(tap.counts["matched"] + tap.counts["not_looked_at"], count // 2)
        for row in tap.rows:
            self.assertEqual(row["output"]["log"]["body"], {"user": "ann", "password": "***"})
            self.assertEqual(row["router"], tap.counts["routers"][0]["router"])
        tap.close()
        wait_until(lambda: "A tap of the console ends" in router.log(), f"it ends: {router.log()}")
        self.assertIn("A tap of the console starts: point output, 1 sources, filter", router.log())
        for text in (router.log(), self.console.log_text()):
            self.assertNotIn("hush-7", text)
        for name in os.listdir(self.console.directory):
            path = os.path.join(self.console.directory, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    self.assertNotIn(b"hush-7", file.read(), name)

    def test_not_allowed(self) -> None:
        """A host that lets nobody tap through the console is left out, with the reason."""
        self.router("--no-console-tap")
        problem = self.call("POST", "/taps", {}, 409)
        self.assertEqual((problem["code"], problem["left_out"][0]["code"]), ("nothing_to_tap", "tap_not_allowed"))
        self.assertEqual(sent(b"one", self.port), 200)

    def test_slow_console(self) -> None:
        """While the console hangs, senders have their answers, and the router keeps no more than fits."""
        router = self.router("--workers", "2")
        tap = self.tap()
        processes = [router.pid, *children(router.pid)]
        before = sum(memory_of(each, "VmRSS") for each in processes)
        count = 0
        self.console.process.send_signal(signal.SIGSTOP)
        # Not so long that the router gives up.
        until = time.monotonic() + AWAY_TIME / 2
        try:
            while count < 8 or (count < 150 and time.monotonic() < until):
                self.assertEqual(sent(b"x" * 60_000, self.port), 200)
                count += 1
        finally:
            self.console.process.send_signal(signal.SIGCONT)
        self.assertLess(sum(memory_of(each, "VmRSS") for each in processes) - before, 48 * 1024)
        self.assertEqual(sent(b"last", self.port), 200)
        tap.until(lambda: tap.counts and tap.counts["seen"] == count + 1)
        self.assertGreater(tap.counts["routers"][0]["dropped"], 0)

    def test_ends_with_receiver(self) -> None:
        """When the router stops, whoever looks is told at once, and the router waits for nobody."""
        router = self.router()
        tap = self.tap(point="service")
        tap.until(lambda: tap.rows)
        router.stop()
        tap.until(lambda: tap.end)
        self.assertEqual((tap.end, tap.counts["routers"][0]["ended"]), ("routers", "The receiver stops."))

    def test_source_form(self) -> None:
        """A receiver with sources of its own is tapped as well: its requests, and its refusals."""
        console = ("--console", f"https://localhost:{self.console.routers}", "--console-dir", "console")
        receiver = Receiver(
            *console, "--console-token-file", "token", "--source", "webhook-json", "--paths", '["/in"]',
            directory=self.directory,
        )  # fmt: skip
        self.addCleanup(receiver.clean_up)
        receiver.start()
        wait_until(self.status, f"it has reported: {receiver.log()}")
        tap, refused = self.tap(filter="user = ann"), self.tap(point="refused")
        tap.until_shown(lambda: self.ask(receiver.port, "/in?token=t-7", b'{"user":"ann"}'))
        refused.until_shown(lambda: self.ask(receiver.port, "/out", b"x"))
        row = tap.rows[0]
        self.assertEqual((row["input"]["query"], row["output"]["user"]), ("token=***", "ann"))
        self.assertEqual(refused.rows[0]["reason"], "no_matching_path")

    def ask(self, port: int, path: str, body: bytes) -> None:
        """Send a message, whatever the answer is."""
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
            connection.sendall(post(body, path))
            self.assertTrue(connection.recv(1))


class BundleMaskTests(SynchronousTestCase):
    def test_of_console(self) -> None:
        """What the bundle of a console masks is masked for the host's own operators, in workers, too."""
        console = Console(tempfile.mkdtemp(prefix="webhookrx-console-"))
        self.addCleanup(console.kill)
        here = tempfile.mkdtemp(prefix="webhookrx-")
        with open(os.path.join(here, "token"), "w", encoding="ascii") as file:
            file.write(console.ask("token"))
        port = free_port()
        router = ConsoleRouter(here, console.port, here, "--workers", "2", "--control", "control.sock")
        self.addCleanup(router.clean_up)
        router.start()
        wait_until(lambda: console.ask("routers"), f"it is enrolled: {router.log()}")
        console.rules(rule("hooks", port))
        revision = self._applied(console, 0)
        command = [sys.executable, "-m", "webhookrx", "tap", "--control", router.path("control.sock"), "--json"]
        command += ["--point", "output", "--rate", "20", "--for", "50s"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tap:
            self.addCleanup(tap.kill)
            assert tap.stdout is not None
            self.assertEqual(json.loads(tap.stdout.readline())["row"], "start")
            rows: list[Any] = []
            reader = Thread(target=lambda: rows.extend(map(json.loads, tap.stdout or ())), daemon=True)
            reader.start()
            for turn, masks, shown in ((1, None, "ann"), (2, ["Customer"], "***"), (3, [], "ann")):
                if masks is not None:
                    console.ask(f"masks {json.dumps(masks)}")
                    revision = self._applied(console, revision)
                wait_until(partial(self._seen_by_both, port, turn, rows), "messages of both workers are shown")
                bodies = [each["output"]["log"]["body"] for each in _messages(rows, turn)]
                self.assertEqual(
                    bodies, [{"turn": turn, "customer": shown, "password": "***"}] * len(bodies), router.log()
                )
            tap.kill()
            reader.join(PATIENCE)

    def _seen_by_both(self, port: int, turn: int, rows: list[Any]) -> bool:
        """Send a message; return whether both workers have had time to look at one in this turn."""
        body = json.dumps({"turn": turn, "customer": "ann", "password": "hush"})
        self.assertEqual(sent(body.encode(), port), 200)
        time.sleep(0.05)
        return len({row["id"].rpartition("-")[0] for row in _messages(rows, turn)}) == 2

    def _applied(self, console: Console, before: int) -> int:
        """Return the revision in use, once that is another one with a connector."""
        applied: dict[str, Any] = {}

        def has_it() -> bool:
            router = console.router
            applied.update(router["applied"])
            return bool(applied["status"] == "APPLIED" and applied["revision"] > before and router["connectors"])

        wait_until(has_it, f"it has applied more than {before}")
        return int(applied["revision"])


def _messages(rows: list[Any], turn: int) -> list[Any]:
    """Return the rows of messages of a turn."""
    return [row for row in list(rows) if row["row"] == "message" and row["output"]["log"]["body"]["turn"] == turn]
