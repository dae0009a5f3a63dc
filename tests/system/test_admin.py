"""
Health and metrics of the real program, asked for as a scraper and a load balancer do.
"""

from __future__ import annotations

import gzip
import json
import re
import signal
import time
from http.client import HTTPConnection, HTTPResponse

from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from tests.system.receiver import (
    PATIENCE,
    Answer,
    Connection,
    Receiver,
    ReceiverCase,
    post,
    wait_until,
)
from webhookrx.operations.metrics import METRICS

ADMIN = "tcp:0:interface=127.0.0.1"
CANARIES = (
    "TOKENCANARY",
    "WRONGCANARY",
    "PATHCANARY",
    "QUERYCANARY",
    "BODYCANARY",
    "HEADERCANARY",
)

#: A sample, by the name of its line and its labels in the order of their names.
Sample = tuple[str, tuple[tuple[str, str], ...]]


def get(path: str, method: str = "GET", headers: str = "") -> bytes:
    """Return a request without a body."""
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\n{headers}\r\n".encode()


def admin_port(receiver: Receiver) -> int:
    """Return the port of its endpoint for operators."""
    (found,) = re.findall(r"Health and metrics on 127\.0\.0\.1:(\d+)", receiver.log())
    return int(found)


#: What a load balancer asks.
GET_HEALTH = b"OPTIONS /healthz HTTP/1.0\r\n\r\n"


class AdminCase(ReceiverCase):
    """Has a receiver with an endpoint for health and metrics."""

    def start_with_admin(self, *options: str) -> Receiver:
        """Start one, and remember where it is asked."""
        receiver = self.prepare("--admin", ADMIN, *options).start()
        self.admin = admin_port(receiver)
        return receiver

    def share_with_admin(self) -> Receiver:
        """Have one that only answers what it is asked; see L{shared}."""
        receiver = self.shared("--admin", ADMIN)
        self.admin = admin_port(receiver)
        return receiver

    def get(self, path: str, headers: str = "") -> Answer:
        """Ask for a page."""
        return self.ask(self.admin, get(path, headers=headers))

    def health(self) -> tuple[int, str, list[str]]:
        """Return the code, the status and the reasons of readiness."""
        answer = self.get("/readyz")
        body = json.loads(answer.body)
        return answer.status, body["status"], body["reasons"]

    def metrics_page(self, **headers: str) -> tuple[HTTPResponse, bytes]:
        """Ask for the metrics as a scraper does, who can read what comes in chunks."""
        connection = HTTPConnection("127.0.0.1", self.admin, timeout=PATIENCE)
        self.addCleanup(connection.close)
        connection.request("GET", "/metrics", headers=headers)
        response = connection.getresponse()
        return response, response.read()

    def metrics(self) -> dict[Sample, float]:
        """Return all samples of this moment."""
        text = self.metrics_page()[1].decode()
        return {
            (
                sample.name.removeprefix("webhookrx_"),
                tuple(sorted(sample.labels.items())),
            ): sample.value
            for family in parser.text_string_to_metric_families(text)
            for sample in family.samples
        }


class PageTests(AdminCase):
    """What is there, and what is not."""

    def test_pages(self) -> None:
        """Each page answers in its form, to GET and HEAD alone, and there are no others."""
        self.share_with_admin()
        for path, content_type in (
            ("/livez", "application/json"), ("/readyz", "application/json"), ("/healthz", "application/json"),
            ("/metrics", "text/plain; version=0.0.4; charset=utf-8"),
        ):  # fmt: skip
            answer = self.get(path)
            self.assertEqual((200, content_type), (answer.status, answer.headers["content-type"]))
            refused = self.ask(self.admin, get(path, "DELETE"))
            self.assertEqual((405, "GET, HEAD"), (refused.status, refused.headers["allow"]))
            with Connection(self.admin) as connection:
                connection.send(get(path, "HEAD", "Connection: close\r\n"))
                head = b"".join(iter(lambda: connection.socket.recv(65536), b""))
            self.assertTrue(head.startswith(b"HTTP/1.1 200 ") and head.endswith(b"\r\n\r\n"), head)
        self.assertEqual(404, self.get("/").status)
        self.assertEqual((200, "ready", []), self.health())

    def test_formats(self) -> None:
        """Both formats can be read, and hold what is declared."""
        self.share_with_admin()
        for accept, parse in (
            ("text/plain", parser.text_string_to_metric_families),
            (
                "application/openmetrics-text; version=1.0.0",
                openmetrics_parser.text_string_to_metric_families,
            ),
        ):
            for codings, coding in (("identity", None), ("gzip", "gzip")):
                response, body = self.metrics_page(Accept=accept, **{"Accept-Encoding": codings})
                self.assertEqual(coding, response.getheader("Content-Encoding"))
                self.assertTrue(response.getheader("Content-Type", "").startswith(accept))
                text = gzip.decompress(body) if coding else body
                self.assertEqual(len(METRICS), len(list(parse(text.decode()))))

    def test_unix_socket(self) -> None:
        """It can be a UNIX socket, where file permissions say who may ask."""
        receiver = self.start("--admin", "unix:admin.sock")
        answer = self.ask(receiver.path("admin.sock"), get("/readyz"))
        self.assertEqual(200, answer.status)
        self.assertEqual(0, receiver.stop())


class MetricTests(AdminCase):
    """What the numbers say."""

    def test_counts(self) -> None:
        """They are what was sent, in every way in which it can be counted."""
        receiver = self.start_with_admin("--auth-token", "t", "--paths", "/in")
        before = self.metrics()
        began = time.time()
        token = ["Authorization: Bearer t"]
        for body in (b"one", b"three", b""):
            self.assertEqual(200, self.ask(receiver.port, post(body, headers=token)).status)
        self.assertEqual(403, self.ask(receiver.port, post(b"x")).status)
        self.assertEqual(404, self.ask(receiver.port, post(b"x", "/out", token)).status)
        self.assertEqual(405, self.ask(receiver.port, get("/in")).status)
        with self.connect(receiver.port) as idle:
            wait_until(lambda: self.metrics()["connections", ()] == 1, "the others are gone")
            after = self.metrics()
            idle.socket.close()

        source = ("source", "default")
        observer = ("observer", f"file:{receiver.path('messages.jsonl')}")
        self.assertEqual(set(before), set(after))
        for (name, labels), rise in {
            ("requests_total", (source, ("status", "200"))): 3,
            ("requests_total", (source, ("status", "403"))): 1,
            ("requests_total", (source, ("status", "405"))): 1,
            ("requests_total", (("source", ""), ("status", "404"))): 1,
            ("refusals_total", (("reason", "bad_token"), source)): 1,
            ("refusals_total", (("reason", "method_not_allowed"), source)): 1,
            ("refusals_total", (("reason", "no_matching_path"), ("source", ""))): 1,
            ("messages_total", (source,)): 3,
            ("message_bytes_total", (source,)): 8,
            ("answer_seconds_count", (source,)): 3,
            ("answer_seconds_bucket", (("le", "+Inf"), source)): 3,
            ("observer_messages_total", (observer,)): 3,
            ("observer_failed_messages_total", (observer,)): 0,
        }.items():
            self.assertEqual(rise, after[name, labels] - before[name, labels], (name, labels))
        self.assertGreaterEqual(after["observer_store_seconds_count", (observer,)], 1)
        self.assertEqual(0, after["queue_messages", ()])
        self.assertEqual(1, after["ready", ()])
        self.assertLess(abs(after["last_message_timestamp_seconds", (source,)] - began), 60)
        self.assertEqual(
            sum(value for (name, _), value in before.items() if name == "requests_total") + 6,
            sum(value for (name, _), value in after.items() if name == "requests_total"),
        )

    def test_secrets(self) -> None:
        """Nothing that a sender wrote, and no token, is told here; nor is a token in the log."""
        receiver = self.start_with_admin("--auth-token", "TOKENCANARY", "--include-request-headers")
        headers = ["X-Token: HEADERCANARY", "Authorization: Bearer "]
        for token in ("TOKENCANARY", "WRONGCANARY"):
            request = post(
                b"BODYCANARY",
                "/PATHCANARY?a=QUERYCANARY",
                [headers[0], headers[1] + token],
            )
            self.ask(receiver.port, request)
        self.ask(self.admin, get("/PATHCANARY", "HEADERCANARY", "Accept: WRONGCANARY\r\n"))
        said = b"".join([self.metrics_page()[1], *(self.get(path).body for path in ("/readyz", "/livez"))]).decode()
        self.assertEqual([], [canary for canary in CANARIES if canary in said])
        self.assertEqual(
            [],
            [canary for canary in ("TOKENCANARY", "WRONGCANARY") if canary in receiver.log()],
        )

    def test_senders_apart(self) -> None:
        """What goes wrong here is not counted as a sender's, and takes none of their connections."""
        self.share_with_admin()
        self.assertEqual(400, self.ask(self.admin, get("/livez", headers="Host: b\r\n")).status)
        self.assertEqual(413, self.ask(self.admin, post(b"x", "/metrics")).status)
        metrics = self.metrics()
        self.assertEqual(
            0,
            sum(value for (name, _), value in metrics.items() if name == "refusals_total"),
        )
        self.assertEqual(0, metrics["connections", ()])

    def test_many_sources(self) -> None:
        """Metrics of many sources keep nobody waiting, nor the end: not who takes them slowly, leaves, or sleeps."""
        sources = "".join(f"  - {{name: source-{number}, paths: [/in/{number}]}}\n" for number in range(200))
        receiver = self.prepare("--admin", ADMIN, config=f"sources:\n{sources}").start()
        self.admin = admin_port(receiver)
        slow, gone, asleep = (self.connect(self.admin, receive_buffer=4096).send(get("/metrics")) for _ in range(3))
        for sender in (slow, gone, asleep):
            self.assertTrue(sender.socket.recv(1))
        gone.socket.close()
        self.assertEqual(200, self.get("/readyz").status)
        response, body = self.metrics_page()
        self.assertEqual("chunked", response.getheader("Transfer-Encoding"))
        self.assertEqual(200, body.count(b"\nwebhookrx_messages_total{"))
        taken = b""
        while not taken.endswith(b"\r\n0\r\n\r\n"):
            taken += slow.socket.recv(65536)
        self.assertEqual(200, taken.count(b"\nwebhookrx_messages_total{"))
        self.assertEqual(0, receiver.stop())
        self.assertNotIn("Traceback", receiver.log())


class HealthTests(AdminCase):
    """Whether messages should be sent."""

    def test_drain(self) -> None:
        """From the signal on it is not ready, and says so for as long as a request is under way."""
        receiver = self.start_with_admin()
        request = post(b"hello")
        sender = self.connect(receiver.port).send(request[:-1])
        wait_until(
            lambda: self.metrics()["requests_in_flight", ()] == 1,
            "the request has begun",
        )
        receiver.signal(signal.SIGTERM)
        wait_until(lambda: self.health()[:2] == (503, "not_ready"), "it says that it stops")
        self.assertIn("The receiver is draining.", self.health()[2])
        self.assertEqual(200, self.get("/livez").status)
        self.assertEqual(0, self.metrics()["ready", ()])
        answer = sender.send(request[-1:]).answer()
        assert answer is not None
        self.assertEqual((200, "close"), (answer.status, answer.headers["connection"]))
        self.assertEqual(0, receiver.wait())
        self.assertEqual(["hello"], [message["MESSAGE"] for message in receiver.messages()])

    def test_disk_full(self) -> None:
        """While messages can't be made safe it is not ready, and the metrics say how many there were."""
        receiver = self.start_with_admin("--observer", "file:/dev/full", "--health", "/healthz")
        self.assertEqual(200, self.ask(receiver.port, GET_HEALTH).status)
        answer = self.ask(receiver.port, post(b"hello"))
        self.assertEqual(
            (503, "not_stored", "5"),
            (answer.status, answer.reason, answer.headers["retry-after"]),
        )
        self.assertEqual(
            (
                503,
                "not_ready",
                ["Observer file:/dev/full could not make its last messages safe."],
            ),
            self.health(),
        )
        wait_until(lambda: self.ask(receiver.port, GET_HEALTH).status == 503, "load balancers hear of it, too")
        metrics = self.metrics()
        observer = (("observer", "file:/dev/full"),)
        self.assertEqual(1, metrics["observer_failed_messages_total", observer])
        self.assertEqual(1, metrics["observer_failing", observer])
        self.assertEqual(1, metrics["requests_total", (("source", "default"), ("status", "503"))])
        self.assertEqual(0, metrics["requests_total", (("source", "default"), ("status", "200"))])

    def test_away(self) -> None:
        """An observer that is away behind its spool is for somebody to look at, and no reason to send nothing."""
        inner = "http:http://127.0.0.1:1/in:retry_for=0s".replace(":", r"\:")
        receiver = self.start_with_admin("--observer", f"spool:spool:observer={inner}")
        self.assertEqual("ready", self.health()[1])
        for _ in range(3):
            self.assertEqual(200, self.ask(receiver.port, post(b"hello")).status)
        wait_until(lambda: self.health()[:2] == (200, "degraded"), "it is degraded")
        metrics = {name: value for (name, _), value in self.metrics().items()}
        self.assertEqual((3, 1, 0), (metrics["spool_messages"], metrics["spool_away"], metrics["spool_full"]))
        self.assertEqual((1, 1), (metrics["ready"], metrics["degraded"]))
        self.assertGreater(metrics["spool_oldest_age_seconds"], 0)
        self.assertEqual(0, receiver.stop())
