"""
An observer of a store in the real program: what is said at start, a password that changes while it runs, what
C{/readyz} and the metrics say meanwhile.
"""

from __future__ import annotations

import json
import os

import redis

from tests.system.hanging_up import hang_up
from tests.system.receiver import Connection, Receiver, ReceiverCase, post, wait_until
from tests.system.servers.process import ServerCase
from tests.system.servers.redis_server import RedisServer
from tests.system.workers import ask_admin, metrics

FIRST, SECOND = "c4nary-one", "c4nary-two"


class StoreInProgramTests(ReceiverCase, ServerCase):
    """A receiver whose messages go to Redis."""

    def setUp(self) -> None:
        """Start Redis with a password."""
        super().setUp()
        self.server = self.serve(RedisServer, f"requirepass {FIRST}")

    def make(self, before: str, *arguments: str, options: str = "") -> Receiver:
        """Make a receiver that has the password in a file."""
        spec = (
            f"redis:redis://127.0.0.1:{self.server.port}/0/logs:password_file=secret:retry_for=1s:timeout=2s{options}"
        )
        receiver = self.prepare("--admin", "unix:admin", "--observer", before + spec, *arguments)
        self.write_secret(receiver, FIRST)
        return receiver

    def write_secret(self, receiver: Receiver, secret: str) -> None:
        """Write the file that only its owner can read."""
        with open(os.open(receiver.path("secret"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(f"{secret}\n")

    def rotate(self) -> None:
        """Let Redis take another password from now on, and end all connections that showed the first one."""
        client = redis.Redis(port=self.server.port, password=FIRST)
        client.config_set("requirepass", SECOND)
        client.client_kill_filter(_type="normal", skipme=True)
        client.close()

    def send(self, receiver: Receiver, begin: int, count: int) -> list[int]:
        """Send messages, and return the statuses of the answers."""
        statuses = []
        with Connection(receiver.port) as connection:
            for number in range(begin, begin + count):
                answer = connection.send(post(f"{number}".encode())).answer()
                assert answer is not None
                statuses.append(answer.status)
        return statuses

    def stored(self, password: str) -> list[int]:
        """Return the messages in the stream."""
        client = redis.Redis(port=self.server.port, password=password)
        entries = client.xrange("logs")
        client.close()
        assert isinstance(entries, list)
        return [int(json.loads(fields[b"message"])["MESSAGE"]) for _, fields in entries]

    def ready(self, receiver: Receiver) -> tuple[int, str, str]:
        """Return status and state of C{/readyz}, and its reasons as one text."""
        answer = ask_admin(receiver, "/readyz")
        page = json.loads(answer.body)
        return answer.status, page["status"], " ".join(page["reasons"])

    def test_rotated_behind_spool(self) -> None:
        """
        Behind spools, in two processes: messages wait while the password is wrong, C{/readyz} is degraded and names the
        observer; after SIGHUP all come, once. The secret is in no text.
        """
        receiver = self.make("spool:spool:observer=", "--workers", "2").start()
        log = receiver.log()
        self.assertIn("leaves the spool on the word 'written' (Redis acknowledges from memory; ", log)
        self.assertEqual([200] * 40, self.send(receiver, 0, 40))
        wait_until(lambda: len(self.stored(FIRST)) == 40, "they are stored")
        self.rotate()
        for begin in range(40, 120, 10):
            self.assertEqual([200] * 10, self.send(receiver, begin, 10))
        wait_until(lambda: self.ready(receiver)[1] == "degraded", "somebody should look at it")
        status, _, reasons = self.ready(receiver)
        self.assertEqual(200, status)
        self.assertIn(":observer=redis:redis://127.0.0.1", reasons)
        self.write_secret(receiver, SECOND)
        self.assertIn("Reloaded: ", hang_up(receiver))
        wait_until(lambda: len(set(self.stored(SECOND))) == 120, "all are stored")
        wait_until(lambda: self.ready(receiver)[1] == "ready", "it is well again")

        self.assertEqual([*range(120)], sorted(self.stored(SECOND)))
        for text in (receiver.log(), ask_admin(receiver, "/metrics").body.decode(), reasons):
            self.assertNotIn(FIRST, text)
            self.assertNotIn(SECOND, text)
        self.assertEqual(0, receiver.stop())

    def test_rotated_without_spool(self) -> None:
        """Without a spool senders get 503 meanwhile, and C{/readyz} is not ready and names the observer."""
        receiver = self.make("").start()
        self.assertIn("--ack durable is more than observer redis:", receiver.log())
        self.assertEqual([200], self.send(receiver, 0, 1))
        self.rotate()
        self.assertEqual([503], self.send(receiver, 1, 1))
        status, state, reasons = self.ready(receiver)
        self.assertEqual((503, "not_ready"), (status, state))
        self.assertIn("Observer redis:redis://127.0.0.1", reasons)
        self.write_secret(receiver, SECOND)
        self.assertIn("Reloaded: ", hang_up(receiver))
        wait_until(lambda: self.send(receiver, 2, 1) == [200], "messages are stored again")
        self.assertEqual("ready", self.ready(receiver)[1])

        self.assertEqual([0, 2], sorted(set(self.stored(SECOND))))
        self.assertNotIn(FIRST, receiver.log())
        self.assertEqual(0, receiver.stop())

    def test_wrong_file(self) -> None:
        """A file that can't be used fails the reload, and the secret that was read before stays in use."""
        receiver = self.make("spool:spool:observer=").start()
        self.write_secret(receiver, f"{SECOND}\n{SECOND}")
        log = hang_up(receiver)
        self.assertIn("Reload failed, the old settings stay", log)
        self.assertIn("password_file", log)
        self.assertEqual([200], self.send(receiver, 0, 1))
        wait_until(lambda: self.stored(FIRST) == [0], "it is stored")

        self.assertNotIn(SECOND, receiver.log())
        self.assertEqual(0, receiver.stop())

    def test_known(self) -> None:
        """What the store knew already is counted, over all workers."""
        receiver = self.make("spool:spool:observer=", "--workers", "2", options=":id=from-$HOST").start()
        self.assertIn("may be equal for different messages", receiver.log())
        for begin in range(0, 40, 10):
            self.assertEqual([200] * 10, self.send(receiver, begin, 10))
        name = "webhookrx_observer_known_messages_total{"
        wait_until(
            lambda: sum(value for key, value in metrics(receiver).items() if key.startswith(name)) == 39,
            "all but the first are known",
        )

        self.assertEqual(1, len(self.stored(FIRST)))
        self.assertEqual(0, receiver.stop())
