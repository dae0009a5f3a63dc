"""Tests for L{webhookrx.service.pinned_client}."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.interfaces import IHostnameResolver
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from tests.senders.signatures.test_pinned_urls import HOSTILE
from webhookrx.service.pinned_client import LARGEST, MAX_ADDRESSES, TIME, NotFetched, PinnedClient, is_outside

_URL = "https://sns.us-east-1.amazonaws.com/a.pem"
_HOST = "sns.us-east-1.amazonaws.com"
_OUTSIDE = "93.184.216.34"

INSIDE = (
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",  # an address that is refused
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.0.8",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "",
    "localhost",
    "fe80::1%eth0",
)


@implementer(IHostnameResolver)
class _Resolver:
    """
    Knows some addresses of every host.

    @ivar asked: the hosts that it was asked for.
    """

    def __init__(self, addresses: Sequence[str] | None) -> None:
        self.addresses = addresses
        self.asked: list[str] = []
        self.cancelled = 0

    def resolveHostName(self, receiver: Any, hostName: str, portNumber: int = 0, *_: Any) -> Any:
        """See L{IHostnameResolver}."""
        self.asked.append(hostName)
        receiver.resolutionBegan(self)
        if self.addresses is not None:
            for address in self.addresses:
                kind = IPv6Address if ":" in address else IPv4Address
                receiver.addressResolved(kind("TCP", address, portNumber))
            receiver.resolutionComplete()
        return self

    def cancel(self) -> None:
        """Take it that nobody wants to know any more."""
        self.cancelled += 1


class _Reactor(MemoryReactorClock):
    """A reactor whose hosts have these addresses."""

    def __init__(self, addresses: Sequence[str] | None) -> None:
        super().__init__()
        self.resolver = self.nameResolver = _Resolver(addresses)


class _Transport(StringTransport):
    """
    The transport of a connection.

    @ivar is_aborted: whether it was closed at once.
    """

    is_aborted = False

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Take it."""

    def abortConnection(self) -> None:
        """Take it."""
        self.is_aborted = True


class PinnedClientTests(SynchronousTestCase):
    """What leaves this machine, and what comes back."""

    def _get(self, addresses: Sequence[str] | None = (_OUTSIDE,), url: str = _URL) -> Deferred[bytes]:
        self.reactor = _Reactor(addresses)
        return PinnedClient(self.reactor, self._plain).get(url)

    def _plain(self, host: str, address: str) -> TCP4ClientEndpoint:
        self.host = host
        return TCP4ClientEndpoint(self.reactor, address, 443)

    def _connected(self) -> StringTransport:
        """Have the connection stand, and return its transport."""
        ((address, port, factory, *_),) = self.reactor.tcpClients
        self.assertEqual((_OUTSIDE, 443), (address, port))
        self.protocol = factory.buildProtocol(None)
        transport = _Transport()
        self.transport = transport
        self.protocol.makeConnection(transport)
        return transport

    def _closed(self) -> None:
        """Check that the connection does not stay."""
        self.assertTrue(self.transport.is_aborted)

    def _answered(self, answer: bytes) -> Deferred[bytes]:
        fetching = self._get()
        transport = self._connected()
        self.assertIn(f"Host: {_HOST}\r\n".encode(), transport.value())
        self.assertEqual(b"GET /a.pem HTTP/1.1", transport.value().partition(b"\r\n")[0])
        self.protocol.dataReceived(answer)
        return fetching

    def _problem(self, fetching: Deferred[bytes]) -> str:
        return str(self.failureResultOf(fetching, NotFetched).value)

    def test_got(self) -> None:
        """The body of a 200 is what the URL has; the connection goes to the address, and TLS is for the host."""
        fetching = self._answered(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        self.assertEqual((b"hello", _HOST), (self.successResultOf(fetching), self.host))
        self._closed()

    def test_tls(self) -> None:
        """By default the connection is to port 443, and speaks TLS for the host."""
        self.reactor = _Reactor([_OUTSIDE])
        PinnedClient(self.reactor).get(_URL)
        transport = self._connected()
        hello = transport.value()
        self.assertEqual(b"\x16\x03", hello[:2])
        self.assertIn(_HOST.encode(), hello)
        self.assertNotIn(b"GET", hello)

    def test_hostile(self) -> None:
        """For a URL that is not pinned no name is looked up and nothing is connected to."""
        for url in HOSTILE:
            self.assertIn("Nothing is ever fetched", self._problem(self._get(url=url)))
            self.assertEqual(([], []), (self.reactor.resolver.asked, self.reactor.tcpClients))

    def test_inside(self) -> None:
        """Where a host has an address inside, even beside one outside, nothing is connected to."""
        for address in INSIDE:
            self.assertFalse(is_outside(address), address)
            for addresses in ([address], [_OUTSIDE, address], [address, _OUTSIDE]):
                self.assertIn("not one of the internet", self._problem(self._get(addresses)), address)
                self.assertEqual([], self.reactor.tcpClients)
        for address in (_OUTSIDE, "2600:1f18::1", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"):
            self.assertTrue(is_outside(address), address)

    def test_addresses(self) -> None:
        """A host without an address, or with very many, is not connected to."""
        self.assertIn("no address", self._problem(self._get([])))
        self._problem(self._get([_OUTSIDE] * (MAX_ADDRESSES + 1)))
        self.assertEqual([], self.reactor.tcpClients)

    def test_redirect(self) -> None:
        """A redirect is followed to nowhere; another status is an error, too."""
        for status in ("301 Moved", "302 Found", "307 Temporary", "404 None", "500 Oops", "204 No", "206 Part"):
            answer = f"HTTP/1.1 {status}\r\nLocation: https://127.0.0.1/\r\nContent-Length: 0\r\n\r\n"
            problem = self._problem(self._answered(answer.encode()))
            self.assertIn(f"status {status[:3]}", problem)
            self.assertNotIn("127.0.0.1", problem)
            self._closed()
            self.assertEqual((1, [_HOST]), (len(self.reactor.tcpClients), self.reactor.resolver.asked))

    def test_proxy(self) -> None:
        """A proxy that the environment names is not used."""
        self.patch(os, "environ", {**os.environ, "https_proxy": "http://127.0.0.1:3128", "ALL_PROXY": "socks5://h:1"})
        self._get()
        self._connected()

    def test_too_large(self) -> None:
        """An answer is bounded, whatever length it says."""
        for head in (b"", b"Content-Length: %d\r\n" % (LARGEST + 1)):
            fetching = self._answered(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + b"x" * LARGEST)
            self.assertNoResult(fetching)
            self.protocol.dataReceived(b"x")
            self.assertIn("larger than", self._problem(fetching))
            self._closed()

    def test_incomplete(self) -> None:
        """An answer that ends early is an error."""
        from twisted.internet.error import ConnectionLost
        from twisted.python.failure import Failure

        fetching = self._answered(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell")
        self.protocol.connectionLost(Failure(ConnectionLost()))
        self.assertIn("not complete", self._problem(fetching))

    def test_late(self) -> None:
        """Names, connection and answer together have ten seconds."""
        fetching = self._get(None)
        self.reactor.advance(TIME + 0.1)
        self.assertIn("10 seconds", self._problem(fetching))
        self.assertEqual(1, self.reactor.resolver.cancelled)
        for answer in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"):
            fetching = self._answered(answer)
            self.reactor.advance(TIME + 0.1)
            self.assertIn("10 seconds", self._problem(fetching))
            self._closed()

    def test_log(self) -> None:
        """The log says nothing of a connection that begins or ends."""
        self._get()
        ((*_, factory, _, _),) = self.reactor.tcpClients
        with capturedLogs() as logged:
            factory.doStart()
            factory.doStop()
        self.assertEqual([], logged)

    def test_no_connection(self) -> None:
        """A connection that fails is told with the kind of error, and nothing that another machine has said."""
        from twisted.internet.error import ConnectionRefusedError
        from twisted.python.failure import Failure

        fetching = self._get()
        ((*_, factory, _, _),) = self.reactor.tcpClients
        factory.clientConnectionFailed(None, Failure(ConnectionRefusedError()))
        self.assertEqual(f"{_HOST} can't be reached (ConnectionRefusedError).", self._problem(fetching))
