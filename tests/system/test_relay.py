"""
The relay in a process of its own, from a real Redis: its life, its files, its pages, and parts that are away.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import tempfile

from tests.system.receiver import Receiver, wait_until
from tests.system.relays import RelayCase, RelayProcess, page, relay_metric
from tests.system.servers.process import ServerCase, free_port
from tests.system.servers.redis_server import RedisServer
from tests.system.test_notify import Manager
from webhookrx.message.encoders import encode_object
from webhookrx.testing import make_message


def line(number: int) -> bytes:
    """Return a line of webhookrx with a number."""
    isodate = "2026-01-02T03:04:05.678901+00:00"
    message = make_message(f"n {number}", {"RCPTID": f"id-{number}"})
    message.values = {"ISODATE": isodate, **message.values}
    return encode_object(message)


class RelayTests(RelayCase, ServerCase):
    """One relay."""

    def setUp(self) -> None:
        """Have a Redis."""
        self.redis = self.serve(RedisServer)
        self.source = f"redis:redis://{self.redis.address}/0/logs"

    def publish(self, *values: bytes) -> None:
        """Add entries to the stream."""
        import redis

        with redis.Redis(port=self.redis.port) as client:
            for value in values:
                client.xadd("logs", {"message": value})

    def unsettled(self) -> int:
        """Return how many entries were delivered and are not settled, or were not delivered."""
        import redis

        with redis.Redis(port=self.redis.port) as client:
            groups = client.xinfo_groups("logs")
            return sum(group["pending"] + (group["lag"] or 0) for group in groups) if groups else client.xlen("logs")  # type: ignore[no-any-return]

    def start_relay(self, to: str, *options: str) -> RelayProcess:
        """Start a relay from the stream."""
        dead = () if "--dead" in options else ("--dead", "file:dead.jsonl")
        return self.relay("--from", self.source, "--group", "g", "--to", to, *dead, *options)

    def wait_settled(self) -> None:
        """Wait until all is settled."""
        wait_until(lambda: self.unsettled() == 0, "all is settled")

    def wait_ready(self, process: Receiver, status: int, text: str = "") -> None:
        """Wait until its readiness is this, for a reason with this text."""

        def found() -> bool:
            said = page(process, "/readyz")
            return f" {status} " in said.splitlines()[0] and text in said

        wait_until(found, f"/readyz is {status}")

    def test_life(self) -> None:
        """Lines arrive as they were, and are settled; the end is quiet, and leaves no pid file."""
        lines = [line(number) for number in range(500)]
        self.publish(*lines, b"no line")
        relay = self.start_relay("file:messages.jsonl", "--pidfile", "pid", "--umask", "027")
        self.wait_settled()

        with open(relay.path("pid")) as file:
            self.assertEqual(relay.pid, int(file.read()))
        *same, other, end = relay.lines()
        self.assertEqual((lines, b""), (same, end))
        self.assertEqual("no line", json.loads(other)["MESSAGE"])
        self.assertEqual(0o640, stat.S_IMODE(os.stat(relay.path("messages.jsonl")).st_mode))
        self.wait_ready(relay, 200, "ready")
        counts = [relay_metric(relay, f"relay_{name}_total") for name in ("records", "stored_messages", "text_records")]
        self.assertEqual([501.0, 501.0, 1.0], counts)
        self.assertEqual(0, relay.stop())
        self.assertFalse(os.path.exists(relay.path("pid")))
        log = relay.log()
        self.assertIn(
            f"Relaying from {self.source} (group g) to file:messages.jsonl on the word 'durable'; ack: durable", log
        )
        self.assertIn("What it refuses for good goes to file:dead.jsonl on the word 'durable'", log)
        self.assertIn("Stopped. Counts: ", log)
        self.assertNotIn("Traceback", log)

    def test_goes_on(self) -> None:
        """The next relay of the group goes on where the last one has ended."""
        self.publish(*map(line, range(10)))
        relay = self.start_relay("file:messages.jsonl")
        self.wait_settled()
        relay.stop()
        self.publish(*map(line, range(10, 20)))
        relay.start()
        self.wait_settled()

        self.assertEqual([f"n {number}" for number in range(20)], [each["MESSAGE"] for each in relay.messages()])

    def test_hang_up(self) -> None:
        """On SIGHUP files are opened again by name."""
        self.publish(line(1))
        relay = self.start_relay("file:messages.jsonl")
        self.wait_settled()
        os.rename(relay.path("messages.jsonl"), relay.path("old.jsonl"))
        relay.signal(signal.SIGHUP)
        wait_until(lambda: os.path.exists(relay.path("messages.jsonl")), "the file is there again")
        self.publish(line(2))
        self.wait_settled()

        self.assertEqual(["n 1"], [each["MESSAGE"] for each in relay.messages("old.jsonl")])
        self.assertEqual(["n 2"], [each["MESSAGE"] for each in relay.messages()])

    def test_observer_away(self) -> None:
        """While the observer is away nothing is settled, /readyz names it, and all arrives once it is back."""
        port = free_port()
        self.publish(*map(line, range(10)))
        relay = self.start_relay(f"http:http://127.0.0.1:{port}/in:format=each:retry_for=1s")
        self.wait_ready(relay, 503, f"Observer http:http://127.0.0.1:{port}/in")
        self.assertEqual(10, self.unsettled())
        receiver = self.start(port=f"tcp:{port}:interface=127.0.0.1")
        self.wait_settled()
        self.wait_ready(relay, 200)

        self.assertEqual(10, len(receiver.messages()))
        self.assertIn("takes messages again", relay.log())

    def test_dead_letters(self) -> None:
        """What the observer refuses for good is in the file of dead letters, with the reason, before it is settled."""
        refusing = self.start("--source", "webhook-json", "--on-parse-error", "reject")
        self.publish(line(1), b"no json")
        relay = self.start_relay(f"http:http://127.0.0.1:{refusing.port}/in:format=each:template=${{MESSAGE}}")
        self.wait_settled()
        relay.stop()

        self.assertEqual(["n 1", "no json"], [each["MESSAGE"] for each in relay.messages("dead.jsonl")])
        for letter in relay.messages("dead.jsonl"):
            self.assertIn("400", letter["webhook.dead_letter"]["reason"])
            self.assertTrue(letter["webhook.dead_letter"]["origin"].startswith("logs/"))

    def test_spool(self) -> None:
        """A spool takes messages while the observer behind it is away: settled, and degraded."""
        port = free_port()
        self.publish(*map(line, range(10)))
        relay = self.relay(
            *("--from", self.source, "--group", "g"),
            *("--to", f"spool:spool:observer=http:http://127.0.0.1:{port}/in:format=each:retry_for=1s"),
        )
        self.wait_settled()
        self.wait_ready(relay, 200, "degraded")
        self.assertEqual(10.0, relay_metric(relay, "spool_messages"))
        receiver = self.start(port=f"tcp:{port}:interface=127.0.0.1")
        wait_until(lambda: relay_metric(relay, "spool_messages") == 0, "the spool is empty")
        self.assertEqual(0, relay.stop())
        self.assertEqual(10, len(receiver.messages()))

    def test_broker_away(self) -> None:
        """While the broker is away /readyz names it; after that it goes on."""
        self.publish(line(1))
        relay = self.start_relay("file:messages.jsonl")
        self.wait_settled()
        self.redis.kill()
        self.wait_ready(relay, 503, "does not deliver")
        self.redis.start()
        self.publish(line(2))
        wait_until(lambda: relay.arrived() >= 2, "the next one arrives")
        self.wait_ready(relay, 200)
        self.assertEqual(0, relay.stop())

    def test_broker_not_there_yet(self) -> None:
        """It starts without a broker, and ends without one."""
        self.redis.kill()
        relay = self.start_relay("file:messages.jsonl")
        self.wait_ready(relay, 503, "does not deliver")
        self.assertEqual(0, relay.stop())

    def test_stop_while_away(self) -> None:
        """The end does not wait for an observer that is away; what it holds goes to the next relay."""
        port = free_port()
        self.publish(line(1))
        relay = self.start_relay(f"http:http://127.0.0.1:{port}/in:format=each:retry_for=1s")
        self.wait_ready(relay, 503, "does not take messages")
        self.assertEqual(0, relay.stop())
        other = self.start_relay("file:messages.jsonl")
        self.wait_settled()
        self.assertEqual(["n 1"], [each["MESSAGE"] for each in other.messages()])

    def test_stop_while_it_hangs(self) -> None:
        """An observer whose other end never answers holds the end up for --drain-timeout and some seconds."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            self.publish(line(1))
            relay = self.start_relay(
                f"http:http://127.0.0.1:{port}/in:format=each:timeout=600s:retry_for=600s", "--drain-timeout", "1s"
            )
            connection, _ = silent.accept()
            with connection:
                relay.signal(signal.SIGTERM)
                self.assertEqual(0, relay.wait(30))
        self.assertEqual(1, self.unsettled())

    def test_second_signal(self) -> None:
        """A second signal waits for nothing; what is not settled stays in the broker."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            self.publish(line(1))
            relay = self.start_relay(f"http:http://127.0.0.1:{port}/in:format=each:timeout=600s:retry_for=600s")
            connection, _ = silent.accept()
            with connection:
                relay.signal(signal.SIGTERM)
                wait_until(lambda: "Stopping: " in relay.log(), "it stops")
                relay.signal(signal.SIGTERM)
                self.assertEqual(1, relay.wait(30))
        self.assertEqual(1, self.unsettled())

    def test_cannot_start(self) -> None:
        """An observer that can't be opened ends it with a sentence; options that can't be used with another status."""
        directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, directory)
        with open(os.path.join(directory, "fifo"), "w"):
            pass
        os.chmod(directory, 0o755)
        for to, status, sentence in (
            (f"file:{directory}/fifo/x", 78, "does not exist"),
            ("elephant:x", 78, "There is no observer"),
        ):
            relay = RelayProcess("--from", self.source, "--group", "g", "--to", to, "--dead", "file:dead.jsonl")
            self.addCleanup(relay.clean_up)
            relay.spawn()
            self.assertEqual(status, relay.wait())
            self.assertIn(sentence, relay.log())
            self.assertNotIn("Traceback", relay.log())

    def test_systemd(self) -> None:
        """It tells systemd when it is ready, that it lives, that it reloads, and that it stops."""
        directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, directory)
        manager = Manager(directory)
        self.addCleanup(manager.socket.close)
        self.patch(os, "environ", {**os.environ, "NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "2000000"})
        relay = self.start_relay("file:messages.jsonl")
        self.assertIn("0 records, 0 stored", manager.hear("READY")["STATUS"])
        self.assertGreaterEqual(manager.signs_of_life(3.5), 2)
        relay.signal(signal.SIGHUP)
        manager.hear("RELOADING")
        manager.hear("READY")
        relay.signal(signal.SIGTERM)
        manager.hear("STOPPING")
        self.assertEqual(0, relay.wait())
