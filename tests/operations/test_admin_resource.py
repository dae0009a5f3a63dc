"""
Tests for L{webhookrx.operations.admin_resource}, on the wire.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from typing import Any

from twisted.internet.interfaces import IPullProducer
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import IResource
from zope.interface.verify import verifyObject

from tests.http.wire import Response, Sender, Wire, post
from webhookrx.errors import NoRoom
from webhookrx.interfaces import IMessageConsumer
from webhookrx.operations.admin_resource import ADMIN_LIMITS, AdminResource, NoMessages
from webhookrx.operations.health import Health
from webhookrx.testing import make_message


def get(path: bytes, method: bytes = b"GET", headers: bytes = b"") -> bytes:
    """Return a request without a body."""
    return b"%s %s HTTP/1.1\r\nHost: a\r\n%s\r\n" % (method, path, headers)


def chunks(body: bytes) -> list[bytes]:
    """Return the parts of a chunked body, less the last chunk, which is empty."""
    found = []
    while body:
        size, _, body = body.partition(b"\r\n")
        found.append(body[: int(size, 16)])
        body = body[int(size, 16) + 2 :]
    return found


def whole(response: Response) -> bytes:
    """Return a body that came in chunks."""
    return b"".join(chunks(response.body))


class Slow:
    """
    A sender who takes a piece of an answer when told; as with a socket, the first one has room in its buffer.

    @ivar producer: who makes the pieces.
    """

    def __init__(self, sender: Sender) -> None:
        self._register = sender.transport.registerProducer
        self.sender = sender
        self.producer: IPullProducer
        sender.transport.registerProducer = self._registered  # type: ignore[method-assign]

    def _registered(self, producer: Any, streaming: bool) -> None:
        if streaming:
            self._register(producer, streaming)
        else:
            self.producer = producer
            producer.resumeProducing()


class AdminResourceTests(SynchronousTestCase):
    """What is asked and what is said."""

    def setUp(self) -> None:
        """Put the resource behind our own channel."""
        self.health = Health("ready")
        self.asked: list[bytes] = []
        self.text = [b"some 1\n", b"more 2\n"]
        self.made = 0
        self.root = AdminResource(self.metrics_text, lambda: self.health)
        self.wire = Wire(root=self.root, limits=ADMIN_LIMITS, consumer=NoMessages())

    def metrics_text(self, accept: bytes) -> tuple[bytes, Iterator[bytes]]:
        """Return a text, and remember the C{Accept} header and the pieces."""
        self.asked.append(accept)
        return b"text/metrics", self.pieces()

    def pieces(self) -> Iterator[bytes]:
        """Make the text."""
        for piece in self.text:
            self.made += 1
            yield piece

    def ask(self, request: bytes) -> tuple[int, Any]:
        """Return the status, and the body from its JSON."""
        response = self.wire.ask(request)
        self.assertEqual("application/json", response.headers["content-type"])
        return response.status, json.loads(response.body)

    def test_interface(self) -> None:
        """It is a resource of C{twisted.web}'s own kind."""
        verifyObject(IResource, self.root)

    def test_alive(self) -> None:
        """It is alive as long as it answers, whatever else."""
        for self.health in (Health("ready"), Health("not_ready", ("Why.",))):
            self.assertEqual((200, {"status": "alive", "reasons": []}), self.ask(get(b"/livez")))

    def test_ready(self) -> None:
        """Readiness has its state, its reasons, and 503 only when no message should be sent."""
        for state, status in (("ready", 200), ("degraded", 200), ("not_ready", 503)):
            self.health = Health(state, ("One.", "Two.")[: state != "ready"])  # type: ignore[arg-type]
            reasons = list(self.health.reasons)
            for path in (b"/readyz", b"/healthz", b"/readyz?verbose"):
                self.assertEqual((status, {"status": state, "reasons": reasons}), self.ask(get(path)))

    def test_metrics(self) -> None:
        """Metrics are what was given, in the type that was asked for."""
        response = self.wire.ask(get(b"/metrics", headers=b"Accept: a/b\r\nAccept: c/d;q=0.5\r\n"))
        self.assertEqual((200, "text/metrics", b"some 1\nmore 2\n"), (
            response.status, response.headers["content-type"], whole(response)
        ))  # fmt: skip
        self.assertNotIn("content-encoding", response.headers)
        self.wire.ask(get(b"/metrics"))
        self.assertEqual([b"a/b,c/d;q=0.5", b""], self.asked)

    def test_metrics_packed(self) -> None:
        """They are compressed for a client that accepts it, and each piece can be decoded when it has come."""
        for accepted, packed in (
            (b"gzip", True), (b"deflate, GZip;q=0.5", True), (b"gzip; q=0", False), (b"gzip;q=0.000", False),
            (b"br", False), (b"*", False), (b"gzipped", False), (b"", False),
        ):  # fmt: skip
            response = self.wire.ask(get(b"/metrics", headers=b"Accept-Encoding: %s\r\n" % accepted))
            self.assertEqual("Accept, Accept-Encoding", response.headers["vary"])
            self.assertEqual(packed, response.headers.get("content-encoding") == "gzip", accepted)
            body = gzip.decompress(whole(response)) if packed else whole(response)
            self.assertEqual(b"some 1\nmore 2\n", body)
        first = chunks(self.wire.ask(get(b"/metrics", headers=b"Accept-Encoding: gzip\r\n")).body)[0]
        self.assertEqual(b"some 1\n", zlib.decompressobj(31).decompress(first))

    def test_metrics_at_their_pace(self) -> None:
        """No more is made than the client reads; none for one that is gone, and one that reads nothing is cut off."""
        self.text = [b"x" * 100_000] * 10
        slow, gone = Slow(self.wire.connect()), Slow(self.wire.connect())
        for each in (slow, gone):
            self.made = 0
            each.sender.send(get(b"/metrics"))
            self.assertEqual(1, self.made)
            each.producer.resumeProducing()
            self.assertEqual(2, self.made)
        gone.sender.leave()
        gone.producer.stopProducing()
        self.wire.advance(ADMIN_LIMITS.answer_time - 1)
        self.assertIsNone(slow.sender.transport.end)
        slow.producer.resumeProducing()
        self.wire.advance(ADMIN_LIMITS.answer_time - 1)
        self.assertIsNone(slow.sender.transport.end)
        self.wire.advance(2)
        self.assertEqual("aborted", slow.sender.transport.end)
        self.assertEqual((3, []), (self.made, self.wire.traffic.failures))

    def test_metrics_next(self) -> None:
        """A connection goes on after them, with what was sent meanwhile; that of HTTP/1.0 ends."""
        sender = self.wire.connect()
        sender.send(get(b"/metrics") + get(b"/metrics", b"HEAD") + get(b"/livez"))
        self.wire.settle()
        self.assertEqual(3, sender.transport.written.count(b"HTTP/1.1 200 "))
        self.assertTrue(sender.transport.written.endswith(b"}\n"))
        old = self.wire.connect()
        old.send(b"GET /metrics HTTP/1.0\r\n\r\n")
        self.assertEqual("closed", old.transport.end)
        self.assertTrue(old.transport.written.endswith(b"\r\n\r\nsome 1\nmore 2\n"))

    def test_metrics_broken(self) -> None:
        """When their text can't be begun, it is a 500, as anywhere."""
        self.text = None  # type: ignore[assignment]
        response = self.wire.ask(get(b"/metrics", headers=b"Accept-Encoding: gzip\r\n"))
        self.assertEqual((500, "internal_error"), (response.status, json.loads(response.body)["reason"]))
        self.assertNotIn("content-encoding", response.headers)
        self.assertEqual(["A resource raised."], self.wire.traffic.failures)

    def test_headers(self) -> None:
        """Answers are not kept anywhere, and say nothing of versions."""
        for path in (b"/livez", b"/readyz", b"/metrics", b"/none"):
            headers = self.wire.ask(get(path)).headers
            self.assertEqual(("no-store", "nosniff", "webhookrx"), (
                headers["cache-control"], headers["x-content-type-options"], headers["server"]
            ))  # fmt: skip

    def test_head(self) -> None:
        """HEAD has the head of the same answer."""
        self.health = Health("not_ready", ("Why.",))
        for path in (b"/livez", b"/readyz", b"/none"):
            body = self.wire.ask(get(path)).body
            sender = self.wire.connect()
            sender.send(get(path, b"HEAD"))
            head, _, rest = sender.transport.written.partition(b"\r\n\r\n")
            self.assertIn(b"content-length: %d" % len(body), head.lower())
            self.assertEqual(b"", rest)

    def test_head_of_metrics(self) -> None:
        """HEAD of the metrics has no length, and makes none of their text."""
        sender = self.wire.connect()
        sender.send(get(b"/metrics", b"HEAD"))
        (response,) = sender.responses()
        self.assertEqual((200, "text/metrics", b""), (
            response.status, response.headers["content-type"], response.body
        ))  # fmt: skip
        self.assertEqual(set(), {"content-length", "transfer-encoding"} & set(response.headers))
        self.assertEqual(0, self.made)

    def test_not_found(self) -> None:
        """There is nothing else, above, beside or below."""
        for path in (b"/", b"/none", b"/livez/", b"/metrics/x", b"/a/b", b"//", b"/LIVEZ"):
            for method in (b"GET", b"POST", b"DELETE"):
                self.assertEqual((404, {"status": "not_found", "reasons": []}), self.ask(get(path, method)), path)

    def test_methods(self) -> None:
        """Another method than GET and HEAD gets 405 with C{Allow}."""
        for method in (b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PROPFIND"):
            for path in (b"/livez", b"/readyz", b"/healthz", b"/metrics"):
                response = self.wire.ask(get(path, method))
                self.assertEqual((405, "GET, HEAD"), (response.status, response.headers["allow"]))
                self.assertEqual("method_not_allowed", json.loads(response.body)["status"])

    def test_no_bodies(self) -> None:
        """Nobody has anything to send; a body is refused before it is read, or at its first byte."""
        chunked = b"POST /livez HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
        for request in (post(b"x", b"/livez"), post(b"x" * 999, b"/livez")[:-900], chunked):
            self.assertEqual(413, self.wire.ask(request).status)

    def test_strict(self) -> None:
        """The wire is as strict as for messages, with its deadlines and its own few connections."""
        self.assertEqual(400, self.wire.ask(get(b"/livez", headers=b"Host: b\r\n")).status)
        slow = self.wire.connect()
        slow.send(b"GET /liv")
        self.wire.advance(ADMIN_LIMITS.header_time + 1)
        self.assertEqual([408], slow.statuses())
        self.wire.advance(30)
        for _ in range(ADMIN_LIMITS.connections_per_peer):
            self.assertEqual([], self.wire.connect().statuses())
        self.assertEqual([503], self.wire.connect().statuses())

    def test_room_for_probes(self) -> None:
        """One peer can't take all connections, nor keep those that it has without saying something."""
        for _ in range(ADMIN_LIMITS.connections):
            self.wire.connect()
        probe = self.wire.connect("192.0.2.8")
        probe.send(get(b"/livez"))
        self.assertEqual([200], probe.statuses())
        self.wire.advance(ADMIN_LIMITS.header_time + 1)
        self.assertEqual([200], [self.wire.ask(get(b"/livez")).status])

    def test_broken(self) -> None:
        """When something of ours raises, nothing is said of it but that."""
        self.health = None  # type: ignore[assignment]
        response = self.wire.ask(get(b"/readyz"))
        self.assertEqual(500, response.status)
        self.assertEqual("internal_error", json.loads(response.body)["reason"])
        self.assertEqual(["A resource raised."], self.wire.traffic.failures)


class NoMessagesTests(SynchronousTestCase):
    """The end of a chain that messages never reach."""

    def test_consumer(self) -> None:
        """It always has room, and takes no message."""
        consumer = NoMessages()
        verifyObject(IMessageConsumer, consumer)
        self.assertTrue(consumer.has_room(10**12, small=False) and consumer.reserve(10**12, small=False))
        consumer.release(10**12)
        self.assertRaises(NoRoom, consumer.write, make_message(), lambda error: None)
        self.assertEqual(1, consumer.retry_after())
