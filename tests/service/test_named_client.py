"""
Tests for L{webhookrx.service.named_client}, against a server in memory.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ConnectionAborted
from twisted.internet.protocol import connectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.logger import capturedLogs
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.service.named_client import LARGEST, TIME, NamedAnswer, NamedClient, NotAnswered
from webhookrx.service.pinned_client import MOST_RECEIVED


class Names:
    """Resolves every name to the same addresses."""

    def __init__(self, addresses: list[str]) -> None:
        self.addresses = addresses

    def resolveHostName(self, receiver: Any, host: str, port: int) -> None:
        """Tell them at once."""
        receiver.resolutionBegan(mock.Mock())
        for each in self.addresses:
            receiver.addressResolved(IPv4Address("TCP", each, port))
        receiver.resolutionComplete()


class AbortableTransport(StringTransport):
    """A transport that remembers its end."""

    aborted = False

    def abortConnection(self) -> None:
        """Note it."""
        self.aborted = True


class NamedClientTests(SynchronousTestCase):
    """Requests and answers."""

    def setUp(self) -> None:
        """Make a client."""
        clock: Any = Clock()
        self.clock = clock
        clock.nameResolver = Names(["203.0.113.7"])
        self.connected: list[tuple[str, str, int, bool]] = []
        self.client = NamedClient(self.clock, self.endpoint)

    def endpoint(self, host: str, address: str, port: int, is_tls: bool) -> Any:
        """Return an endpoint that connects at once."""
        self.connected.append((host, address, port, is_tls))

        def connect(factory: Any) -> Any:
            self.factory, self.protocol = factory, factory.buildProtocol(None)
            self.transport = AbortableTransport()
            self.protocol.makeConnection(self.transport)
            return succeed(self.protocol)

        return mock.Mock(connect=connect)

    def ask(self, url: str = "https://id.example:8443/a?b=c", body: bytes | None = None) -> Deferred[NamedAnswer]:
        """Ask."""
        return self.client.ask("GET" if body is None else "POST", url, {"Accept": "application/json"}, body)

    def test_answer(self) -> None:
        """The answer comes as a whole, whatever its status; a redirect is not followed."""
        for status in (200, 302, 404):
            asked = self.ask()
            self.protocol.dataReceived(
                b"HTTP/1.1 %d x\r\nLocation: http://169.254.169.254/\r\nContent-Length: 4\r\n\r\nbody" % status
            )
            self.assertEqual((status, b"body"), self.successResultOf(asked))
            self.assertTrue(self.transport.aborted)
        self.assertEqual({("id.example", "203.0.113.7", 8443, True)}, set(self.connected))
        sent = self.transport.value()
        self.assertTrue(sent.startswith(b"GET /a?b=c HTTP/1.1\r\n"))
        self.assertIn(b"Host: id.example:8443\r\n", sent)

    def test_log(self) -> None:
        """The log says nothing of a connection that begins or ends."""
        for begin in (self.ask, lambda: self.client.tell("POST", "https://id.example/", {}, b"{}")):
            begin()
            with capturedLogs() as logged:
                self.factory.doStart()
                self.factory.doStop()
            self.assertEqual([], logged)

    def test_body(self) -> None:
        """A body is sent."""
        self.ask(body=b"a=b")
        self.assertTrue(self.transport.value().endswith(b"\r\n\r\na=b"))

    def test_refused(self) -> None:
        """Nothing is asked of what is no URL, or has an address of the link."""
        for url in ("", "ftp://a.example/", "https://", "https://a.example/\u00e9"):
            self.assertIn("not the URL", str(self.failureResultOf(self.ask(url), NotAnswered).value))
        for addresses in (["169.254.169.254"], ["203.0.113.7", "fe80::1"], []):
            clock: Any = self.clock
            clock.nameResolver = Names(addresses)
            self.failureResultOf(self.ask(), NotAnswered)
        self.assertEqual([], self.connected)

    def test_bounds(self) -> None:
        """An answer that is too large, late or not complete is none."""
        asked = self.ask()
        self.protocol.dataReceived(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (LARGEST + 1))
        self.assertIn("larger than", str(self.failureResultOf(asked, NotAnswered).value))
        asked = self.ask()
        self.clock.advance(TIME)
        self.assertIn("within 10 seconds", str(self.failureResultOf(asked, NotAnswered).value))
        asked = self.ask()
        self.protocol.dataReceived(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")
        self.protocol.connectionLost(Failure(connectionDone.value))
        self.assertIn("not complete", str(self.failureResultOf(asked, NotAnswered).value))
        asked = self.ask()
        self.protocol.dataReceived(b"nonsense secret\r\n\r\n")
        self.protocol.connectionLost(Failure(connectionDone.value))
        text = str(self.failureResultOf(asked, NotAnswered).value)
        self.assertIn("id.example can't be reached", text)
        self.assertNotIn("secret", text)

    def test_endless_head(self) -> None:
        """A head that does not end is cut off: nothing of it is kept any more."""
        asked = self.ask()
        self.protocol.dataReceived(b"HTTP/1.1 200 OK\r\n")
        lines = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 100) for number in range(500))
        for _ in range(MOST_RECEIVED // len(lines)):
            self.protocol.dataReceived(lines)
            self.assertFalse(self.transport.aborted)
        self.protocol.dataReceived(lines)
        self.assertTrue(self.transport.aborted)
        self.protocol.connectionLost(Failure(ConnectionAborted()))
        self.assertIn("can't be reached", str(self.failureResultOf(asked, NotAnswered).value))

    def test_tell(self) -> None:
        """Of who is only told something the status is read, and no error says who that is: a URL may be a secret."""
        url = "https://id.example/hook?token=secret"
        told = self.client.tell("POST", url, {}, b"{}")
        self.protocol.dataReceived(b"HTTP/1.1 302 x\r\nContent-Length: 9000\r\n\r\n")
        self.assertEqual(302, self.successResultOf(told))
        self.assertTrue(self.transport.aborted)
        told = self.client.tell("POST", url, {}, b"{}")
        self.protocol.connectionLost(Failure(connectionDone.value))
        texts = [str(self.failureResultOf(told, NotAnswered).value)]
        for addresses in ([], ["fe80::1"]):
            self.clock.nameResolver = Names(addresses)
            told = self.client.tell("POST", url, {}, b"{}")
            texts.append(str(self.failureResultOf(told, NotAnswered).value))
        for text, word in zip(texts, ("can't be reached", "no address", "of the link"), strict=True):
            self.assertIn(word, text)
            self.assertNotIn("id.example", text)
            self.assertNotIn("secret", text)
