"""
Deliveries that come again: one message, or two after a kill at the wrong moment, but never none.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from contextlib import closing

from tests.system.http_server import PostServer, Reply
from tests.system.receiver import Answer, Connection, Receiver, ReceiverCase, post, wait_until
from tests.system.workers import ask_admin, metrics, serves, workers

OPTIONS = ("--sender", "github", "--verify", "off", "--idempotency", "1h", "--state-dir", "state")
STORED = b'{"status":"received"}'
KNOWN = b'{"status":"received","duplicate":true}'
FILE = "state/deliveries.sqlite"


def delivery(name: str, body: bytes = b"{}") -> bytes:
    """Return a request with a delivery."""
    return post(body, headers=(f"X-GitHub-Delivery: {name}", "X-GitHub-Event: push"))


class IdempotencyCase(ReceiverCase):
    """Receivers that hear GitHub, whose deliveries have ids."""

    def begin(self, *options: str, observer: str = "file:messages.jsonl") -> Receiver:
        """Start a receiver."""
        return self.start(*OPTIONS, "--observer", observer, "--admin", "unix:admin", *options)

    def bodies(self, receiver: Receiver, *requests: bytes) -> list[bytes]:
        """Send requests one after another, each of which must be answered with 200; return the answers."""
        answers = [self.ask(receiver.port, request) for request in requests]
        self.assertEqual([200] * len(requests), [answer.status for answer in answers])
        return [answer.body for answer in answers]

    def wait_until_kept(self, receiver: Receiver, seconds: float = 60.0) -> None:
        """Wait until the file has grown by what was remembered, however it is called."""
        before = self.sizes.get(receiver.directory, 0)
        wait_until(lambda: self.size(receiver) > before, "it is kept", seconds)
        self.sizes[receiver.directory] = self.size(receiver)

    def setUp(self) -> None:
        self.sizes: dict[str, int] = {}

    def size(self, receiver: Receiver) -> int:
        """Return the size of the log of the file: nothing else may look into the file."""
        path = receiver.path(f"{FILE}-wal")
        return os.path.getsize(path) if os.path.exists(path) else 0


class RestartTests(IdempotencyCase):
    """What a restart leaves."""

    def test_again(self) -> None:
        """What comes again is known, in this process and after restarts; what is another delivery is not."""
        receiver = self.begin()
        self.assertEqual([STORED, KNOWN, STORED], self.bodies(receiver, *map(delivery, "aab")))
        # Nobody has signed it, so that another body is another delivery.
        self.assertEqual([STORED], self.bodies(receiver, delivery("a", b'{"b":1}')))
        self.assertEqual(1, metrics(receiver)['webhookrx_duplicates_total{source="default"}'])
        self.assertEqual(3, metrics(receiver)["webhookrx_idempotency_keys"])
        self.assertEqual(0, receiver.stop())
        receiver.start()
        self.assertEqual([KNOWN, KNOWN, STORED], self.bodies(receiver, *map(delivery, "abc")))
        self.assertEqual(4, len(receiver.messages()))

    def test_killed(self) -> None:
        """What was written before a kill is known after it."""
        for options in ((), ("--workers", "2")):
            receiver = self.begin(*options)
            self.sizes[receiver.directory] = self.size(receiver)
            self.bodies(receiver, delivery("a"))
            self.wait_until_kept(receiver)
            self.assertEqual(1, metrics(receiver)["webhookrx_idempotency_keys"])
            pids = workers(receiver) if options else []
            receiver.kill()
            for pid in pids:
                wait_until(lambda pid=pid: not os.path.exists(f"/proc/{pid}"), "its workers have ended")
            receiver.start()
            self.assertEqual([KNOWN, STORED], self.bodies(receiver, *map(delivery, "ab")))
            self.assertEqual(2, len(receiver.messages()))
            self.assertEqual(0, receiver.stop())

    def test_killed_before_it_was_remembered(self) -> None:
        """A kill between the message and its key leaves a duplicate, and no loss."""
        receiver = self.prepare(*OPTIONS, "--observer", "file:messages.jsonl", "--admin", "unix:admin")
        os.mkdir(receiver.path("state"))
        with closing(sqlite3.connect(receiver.path(FILE), isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            receiver.start()
            self.assertEqual([STORED, KNOWN], self.bodies(receiver, *map(delivery, "aa")))
            receiver.kill()
        receiver.start()
        self.assertEqual([STORED, KNOWN], self.bodies(receiver, *map(delivery, "aa")))
        self.assertEqual(2, len(receiver.messages()))

    def test_file_that_cannot_be_used(self) -> None:
        """A damaged, locked or read-only file is said, and reception goes on with the window in memory."""
        damaged = self.prepare(*OPTIONS, "--observer", "file:messages.jsonl", "--admin", "unix:admin")
        os.mkdir(damaged.path("state"))
        with open(damaged.path(FILE), "wb") as file:
            file.write(b"damaged " * 1000)
        damaged.start()
        self.assertEqual([STORED, KNOWN], self.bodies(damaged, *map(delivery, "aa")))
        wait_until(lambda: "is damaged, and was put aside as" in damaged.log(), "it is said")
        self.assertEqual(200, ask_admin(damaged, "/healthz").status)
        self.assertEqual(0, damaged.stop())
        damaged.start()
        self.assertEqual([KNOWN], self.bodies(damaged, delivery("a")))
        locked = self.prepare(*OPTIONS, "--observer", "file:messages.jsonl", "--admin", "unix:admin")
        os.mkdir(locked.path("state"))
        with closing(sqlite3.connect(locked.path(FILE), isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            locked.start()
            self.assertEqual([STORED, KNOWN], self.bodies(locked, *map(delivery, "aa")))
            wait_until(lambda: "can't be kept in" in locked.log(), "it is said")
            self.assertIn(b"idempotency window", ask_admin(locked, "/healthz").body)
            errors = "webhookrx_idempotency_file_errors_total"
            wait_until(lambda: metrics(locked)[errors] == 1, "it is counted")

    def test_reload(self) -> None:
        """A reload that begins, changes and ends windows keeps what is known, also with workers."""
        for workers_line in ("", "workers: 2"):
            top = f"port: 'tcp:0:interface=127.0.0.1'\nstate_dir: state\n{workers_line}\n"
            receiver = self.start(config=top, port=None)
            github = "sender: github\nverify: off\n"
            self.assertEqual([STORED], self.bodies(receiver, delivery("a")))
            self.reload(receiver, f"{top}{github}idempotency: 1h\n")
            self.assertEqual([STORED, KNOWN], self.bodies(receiver, *map(delivery, "aa")))
            self.reload(receiver, f"{top}{github}idempotency: 2h\n")
            self.assertEqual([KNOWN], self.bodies(receiver, delivery("a")))
            self.reload(receiver, f"{top}{github}")
            self.assertEqual([STORED], self.bodies(receiver, delivery("a")))
            self.reload(receiver, f"{top}{github}idempotency: 1h\n")
            self.assertEqual([KNOWN], self.bodies(receiver, delivery("a")))
            if workers_line:
                self.reload(receiver, f"{top}{github}idempotency: 1h\n".replace("workers: 2", "workers: 3"))
                workers(receiver, 3)
                self.assertEqual([KNOWN] * 6, self.bodies(receiver, *[delivery("a")] * 6))
            self.assertEqual(0, receiver.stop())
            receiver.start()
            self.assertEqual([KNOWN], self.bodies(receiver, delivery("a")))
            self.assertEqual(0, receiver.stop())

    def reload(self, receiver: Receiver, config: str) -> None:
        """Give a receiver another configuration, and wait until it is in use."""
        count = receiver.log().count("Reloaded")
        with open(receiver.path("config.yaml"), "w") as file:
            file.write(config)
        receiver.signal(signal.SIGHUP)
        wait_until(lambda: receiver.log().count("Reloaded") > count, f"it is in use: {receiver.log()}")


class AtOnceTests(IdempotencyCase):
    """Requests of one delivery that are under way together."""

    def setUp(self) -> None:
        super().setUp()
        self.gate = threading.Event()
        self.begun: list[bytes] = []  # what the store has been sent
        self.addCleanup(self.gate.set)
        self.server = PostServer()
        self.addCleanup(self.server.stop)

        def reply(body: bytes) -> Reply:
            self.begun.append(body)
            self.gate.wait(60)
            return Reply()

        self.server.reply = reply

    def hold(self, *options: str) -> Receiver:
        """Start a receiver whose observer stores nothing until the gate is open."""
        observer = f"http:http://127.0.0.1:{self.server.port}/in:format=each:timeout=60s:retry_for=60s"
        return self.begin("--limit", "answer_time=60s", *options, observer=observer)

    def answers(self, *connections: Connection) -> list[Answer]:
        """Return an answer of each."""
        answers = [connection.answer() for connection in connections]
        return [answer for answer in answers if answer is not None]

    def test_one_message(self) -> None:
        """Several at once are one message, and each gets its 200 once that is safe, not earlier."""
        for options in ((), ("--workers", "2")):
            self.gate.clear()
            self.begun.clear()
            self.server.stored.clear()
            receiver = self.hold(*options)
            connections = [self.connect(receiver.port) for _ in range(12)]
            for connection in connections:
                connection.send(delivery("a"))
            wait_until(lambda: self.begun, "the first is under way")
            for connection in connections:
                connection.socket.settimeout(0.05)
                self.assertRaises(TimeoutError, connection.answer)
                connection.socket.settimeout(60)
            self.gate.set()
            answers = self.answers(*connections)
            self.assertEqual([200] * 12, [answer.status for answer in answers])
            self.assertEqual(
                [KNOWN] * 11 + [STORED], sorted((answer.body for answer in answers), key=len, reverse=True)
            )
            self.assertEqual([KNOWN] * 4, self.bodies(receiver, *[delivery("a")] * 4))
            self.assertEqual((1, 1), (len(self.begun), len(self.server.stored)))
            self.assertEqual(0, receiver.stop())

    def test_killed_worker(self) -> None:
        """When the worker that is at it is killed, another one that waits tries at once, and it is not lost."""
        receiver = self.hold("--workers", "2")
        one, other = workers(receiver)
        by_pid: dict[int, Connection] = {}
        while len(by_pid) < 2:
            connection = self.connect(receiver.port)
            self.assertEqual(405, connection.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").answer().status)
            by_pid.update({pid: connection for pid in (one, other) if serves(pid, connection)})
        by_pid[one].send(delivery("a"))
        wait_until(lambda: self.begun, "one is at it")
        by_pid[other].send(delivery("a"))
        os.kill(one, signal.SIGKILL)
        wait_until(lambda: len(self.begun) == 2, "the other one is at it")
        self.gate.set()
        (answer,) = self.answers(by_pid[other])
        self.assertEqual((200, STORED), (answer.status, answer.body))
        self.assertEqual([KNOWN] * 4, self.bodies(receiver, *[delivery("a")] * 4))
        self.assertEqual(0, receiver.stop())
