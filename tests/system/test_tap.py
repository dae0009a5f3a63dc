"""
The control socket of the real program, and the commands that use it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from threading import Thread
from typing import Any

from tests.system.receiver import ANY_PORT, PATIENCE, Receiver, ReceiverCase, post, wait_until

COMMAND = (sys.executable, "-m", "webhookrx")


class ControlCase(ReceiverCase):
    """A receiver with a control socket."""

    def receiver(self, *options: str, config: str = "") -> Receiver:
        """Start a receiver with a control socket."""
        receiver = self.prepare("--control", "control.sock", *options, config=config or None)
        self.control = receiver.path("control.sock")
        return receiver.start()

    def tap(self, *options: str) -> subprocess.Popen[str]:
        """Start a tap, and return once it runs."""
        command = [*COMMAND, "tap", "--control", self.control, "--json", "--rate", "20", "--for", "60s", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(lambda: [each.close() for each in (process.stdout, process.stderr) if each])
        self.assertEqual(self.row(process, "start")["row"], "start")
        return process

    def row(self, process: subprocess.Popen[str], *kinds: str) -> dict[str, Any]:
        """Return the next row of one of some kinds."""
        assert process.stdout is not None
        for line in process.stdout:
            row: dict[str, Any] = json.loads(line)
            if row["row"] in kinds:
                return row
        assert process.stderr is not None
        raise AssertionError(f"the tap has ended: {process.stderr.read()}")

    def status(self) -> dict[str, Any]:
        """Return what webhookrx status --json prints."""
        command = [*COMMAND, "status", "--control", self.control, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        status: dict[str, Any] = json.loads(done.stdout)
        return status


class TapTests(ControlCase):
    """C{webhookrx tap}."""

    def send(self, receiver: Receiver, body: bytes) -> None:
        """Have the receiver take a message."""
        self.assertEqual(self.ask(receiver.port, post(body, "/in?team=web")).status, 200)

    def test_messages(self) -> None:
        """It shows what comes in and what goes out, masked, and the filter holds; what is stored is as ever."""
        receiver = self.receiver("--source", "webhook-json")
        tap = self.tap("--filter", "webhook.query.team = web AND user = ann")
        self.send(receiver, b'{"user":"bob"}')
        sent = 1
        row = self.row(tap, "counts")
        while row["row"] == "counts":
            # Again, as there may be no time to look at one.
            self.send(receiver, b'{"user":"ann","password":"hush"}')
            sent += 1
            row = self.row(tap, "message", "counts")
            while row["row"] == "counts" and row["seen"] < sent:
                row = self.row(tap, "message", "counts")
        self.assertEqual((row["output"]["user"], row["output"]["password"]), ("ann", "***"))
        self.assertEqual(json.loads(row["input"]["body"]), {"user": "ann", "password": "***"})
        counts = self.row(tap, "counts")
        while counts["seen"] < sent:
            counts = self.row(tap, "counts")
        self.assertEqual((counts["matched"], counts["shown"]), (1, 1))
        self.assertEqual([each["password"] for each in receiver.messages()[1:]], ["hush"] * (sent - 1))

    def test_refused(self) -> None:
        """It shows refused requests with their reasons."""
        receiver = self.receiver("--paths", '["/in"]')
        tap = self.tap("--point", "refused")
        self.ask(receiver.port, post(b"x", "/out"))
        row = self.row(tap, "refused")
        self.assertEqual((row["reason"], row["status"], row["path"]), ("no_matching_path", 404, "/out"))

    def test_workers(self) -> None:
        """With workers it shows what all of them take, also those that have begun since."""
        receiver = self.receiver("--workers", "2")
        tap = self.tap("--point", "output")
        rows: list[dict[str, Any]] = []
        assert tap.stdout is not None
        reader = Thread(target=lambda: rows.extend(map(json.loads, tap.stdout or ())), daemon=True)
        reader.start()
        wait_until(lambda: self._takes(receiver) and len(_ids(rows)) == 2, "messages of both workers are shown")
        for worker in _children(receiver.pid):
            os.kill(worker, signal.SIGKILL)
        wait_until(lambda: self._takes(receiver) and len(_ids(rows)) == 4, "messages of both new workers are shown")
        tap.terminate()
        reader.join(PATIENCE)

    def _takes(self, receiver: Receiver) -> bool:
        try:
            return self.ask(receiver.port, post(b"again", "/in")).status == 200
        except (OSError, AssertionError):
            return False

    def test_reload(self) -> None:
        """A reload does not end it."""
        receiver = self.receiver()
        tap = self.tap("--point", "output")
        receiver.signal(signal.SIGHUP)
        wait_until(lambda: "Reloaded: " in receiver.log(), "the receiver has reloaded")
        self.send(receiver, b"after")
        self.assertEqual(self.row(tap, "message")["output"]["MESSAGE"], "after")

    def test_reader_hangs(self) -> None:
        """A command that does not read takes no memory, and holds up no sender."""
        receiver = self.receiver()
        with socket.socket(socket.AF_UNIX) as reader:
            reader.connect(self.control)
            reader.sendall(b'{"do":"tap","tap":{"rate":20}}\n')
            self.assertIn(b'"start"', reader.recv(1000))
            before = receiver.resident()
            for _ in range(60):
                self.send(receiver, b"x" * 60_000)
            self.assertLess(receiver.resident() - before, 32 * 1024)
        self.assertEqual(len(receiver.messages()), 60)

    def test_ends(self) -> None:
        """It ends with the receiver, and says so."""
        receiver = self.receiver()
        tap = self.tap()
        receiver.signal(signal.SIGTERM)
        self.assertIn("stops", self.row(tap, "end")["why"])
        self.assertEqual(tap.wait(PATIENCE), 0)

    def test_wrong(self) -> None:
        """What can't be tapped is said, with status 1; no receiver is status 4; arguments out of range are status 2."""
        self.receiver()
        for options, status, why in (
            (("--filter", "= ="), 1, "query of filter"),
            (("--source", "nobody"), 1, "No source is meant. The sources are: "),
            (("--control", "/nowhere/control.sock"), 4, "No receiver at"),
            (("--rate", "21"), 2, "up to 20"),
            (("--for", "2h"), 2, "1h"),
        ):
            with self.subTest(options):
                command = [*COMMAND, "tap", "--control", self.control, *options]
                done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
                self.assertEqual((done.returncode, done.stdout), (status, ""))
                self.assertIn(why, done.stderr)


class ControlSocketTests(ControlCase):
    """The socket."""

    def test_mode(self) -> None:
        """Only its owner may use it, and it goes with the receiver."""
        receiver = self.receiver()
        self.assertEqual(stat.S_IMODE(os.stat(self.control).st_mode), 0o600)
        receiver.stop()
        self.assertFalse(os.path.exists(self.control))

    def test_left_behind(self) -> None:
        """One that a killed receiver has left is replaced."""
        receiver = self.receiver()
        receiver.kill()
        self.assertTrue(os.path.exists(self.control))
        receiver.start()
        self.assertEqual(self.status()["health"], "ready")

    def test_of_another(self) -> None:
        """A second receiver does not start with the socket of one that runs, which keeps it."""
        receiver = self.receiver()
        second = self.prepare("--control", self.control, port=ANY_PORT)
        second.spawn()
        wait_until(lambda: not second.is_running, "the second has ended")
        self.assertIn("a receiver that runs has it", second.log())
        self.assertEqual(self.status()["health"], "ready")
        self.assertTrue(receiver.is_running)

    def test_nonsense(self) -> None:
        """Anything but a question is answered with an error, and the connection ends."""
        receiver = self.receiver()
        for data in (
            b"\n",
            b"{}\n",
            b'{"do":"stop"}\n',
            b"GET / HTTP/1.1\n",
            b"\xff\n",
            b"x" * 20_000,
            b"[" * 9000 + b"\n",
        ):
            with self.subTest(data[:20]), socket.socket(socket.AF_UNIX) as client:
                client.settimeout(PATIENCE)
                client.connect(self.control)
                client.sendall(data)
                answer = b"".join(iter(lambda: client.recv(65536), b""))
                self.assertIn(b'"error"', answer)
        self.assertNotIn("Traceback", receiver.log())


class StatusTests(ControlCase):
    """C{webhookrx status}."""

    def test_status(self) -> None:
        """It tells what each source has taken and refused, and what observers have done."""
        receiver = self.receiver("--paths", '["/in"]')
        self.ask(receiver.port, post(b"x", "/in"))
        self.ask(receiver.port, post(b"x", "/out"))
        status = self.status()
        (source,) = status["sources"]
        self.assertEqual((source["messages"], source["bytes"]), (1, 1))
        self.assertEqual(status["refused_before_a_source"], {"no_matching_path": 1})
        (observer,) = status["observers"]
        self.assertEqual((observer["state"], observer["messages"]), ("ok", 1))
        command = [*COMMAND, "status", "--control", self.control]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0)
        for text in ("is ready", source["name"], "no_matching_path 1", "messages.jsonl"):
            self.assertIn(text, done.stdout)


def _ids(rows: list[dict[str, Any]]) -> set[str]:
    """Return what the ids of all messages begin with, which each process has its own of."""
    return {row["id"].rpartition("-")[0] for row in rows if row["row"] == "message"}


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(text) for text in file.read().split()]
