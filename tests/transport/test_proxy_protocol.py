"""
Tests for L{webhookrx.transport.proxy_protocol}.
"""

from __future__ import annotations

from typing import Any

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.interfaces import IHalfCloseableProtocol, IStreamServerEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactorClock, StringTransportWithDisconnection
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyClass, verifyObject

from tests.pieces import pieces_of
from webhookrx.transport.proxy_protocol import ProxyProtocolEndpoint, read_header

V1 = b"PROXY TCP4 192.0.2.7 192.0.2.1 4321 443\r\n"
V2 = (
    b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"
    + bytes([192, 0, 2, 7, 192, 0, 2, 1])
    + (4321).to_bytes(2, "big")
    + (443).to_bytes(2, "big")
)


V2_LOCAL = b"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"
UNKNOWN = b"PROXY UNKNOWN\r\n"


V1_IPV6 = b"PROXY TCP6 2001:db8::7 2001:db8::1 4321 443\r\n"
V2_IPV6 = (
    b"\r\n\r\n\x00\r\nQUIT\n\x21\x21\x00\x27"
    + bytes.fromhex("20010db8000000000000000000000007 20010db8000000000000000000000001")
    + (4321).to_bytes(2, "big")
    + (443).to_bytes(2, "big")
    + b"tlv"
)


class HeaderTests(SynchronousTestCase):
    """Headers, from their bytes."""

    def test_addresses(self) -> None:
        """Both versions have source and destination, of IPv4 and IPv6; TLVs count to the header and are ignored."""
        for header, source, destination in (
            (V1, IPv4Address("TCP", "192.0.2.7", 4321), IPv4Address("TCP", "192.0.2.1", 443)),
            (V2, IPv4Address("TCP", "192.0.2.7", 4321), IPv4Address("TCP", "192.0.2.1", 443)),
            (V1_IPV6, IPv6Address("TCP", "2001:db8::7", 4321), IPv6Address("TCP", "2001:db8::1", 443)),
            (V2_IPV6, IPv6Address("TCP", "2001:db8::7", 4321), IPv6Address("TCP", "2001:db8::1", 443)),
        ):
            self.assertEqual((len(header), source, destination), read_header(header + b"POST"))
            for end in range(1, len(header)):
                self.assertIsNone(read_header(header[:end]))

    def test_no_address(self) -> None:
        """A header without addresses of TCP has none: of the proxy itself, of an unknown family or protocol."""
        for header in (
            UNKNOWN,
            b"PROXY UNKNOWN a\rb c\r\n",
            V2_LOCAL,
            V2[:13] + b"\0" + V2[14:],
            V2[:13] + b"\x10" + V2[14:],
        ):
            self.assertEqual((len(header), None, None), read_header(header + b"POST"))

    def test_length(self) -> None:
        """A header in text has 107 bytes at most, its end included; one in bytes has room for what it names."""
        longest = b"PROXY UNKNOWN ".ljust(105, b"x")
        self.assertEqual((107, None, None), read_header(longest + b"\r\n"))
        self.assertIsNone(read_header(longest + b"\r"))
        for bad in (longest + b"xx", longest + b"x\r\n", V2[:15] + b"\x0b" + V2[16:-1]):
            self.assertRaises(ValueError, read_header, bad)


class Recorder(Protocol):
    """Keeps what it gets; raises when told to."""

    def __init__(self) -> None:
        self.received = b""

    def dataReceived(self, data: bytes) -> None:
        """Keep it."""
        if data == b"raise":
            raise ValueError("of its own")
        self.received += data


@implementer(IHalfCloseableProtocol)
class Waiting(Recorder):
    """Goes on when its sender has ended."""

    told = False

    def readConnectionLost(self) -> None:
        """See L{IHalfCloseableProtocol.readConnectionLost}."""
        self.told = True

    def writeConnectionLost(self) -> None:
        """See L{IHalfCloseableProtocol.writeConnectionLost}."""
        raise AssertionError


class ProxyProtocolTests(SynchronousTestCase):
    """Connections behind a proxy, and those that are not."""

    def setUp(self) -> None:
        """Listen in memory."""
        self.bad: list[str] = []
        reactor = MemoryReactorClock()
        endpoint = ProxyProtocolEndpoint(TCP4ServerEndpoint(reactor, 1), self.bad.append)
        verifyObject(IStreamServerEndpoint, endpoint)
        self.successResultOf(endpoint.listen(Factory.forProtocol(Recorder)))
        self.factory = reactor.tcpServers[0][1]

    def connect(self) -> tuple[Any, Recorder, Any]:
        """Return the outer protocol, the inner one, and the transport."""
        peer = IPv4Address("TCP", "198.51.100.1", 5)
        transport: Any = StringTransportWithDisconnection(peerAddress=peer)
        protocol = self.factory.buildProtocol(peer)
        transport.protocol = protocol
        protocol.makeConnection(transport)
        return protocol, protocol.wrappedProtocol, transport

    def test_good(self) -> None:
        """After a good header of either version the data and the proxied address reach the protocol."""
        for header in (V1, V2):
            protocol, inner, transport = self.connect()
            protocol.dataReceived(header + b"one ")
            protocol.dataReceived(b"two")
            self.assertEqual((b"one two", "192.0.2.7", 4321), (inner.received, *_peer(inner)))
            self.assertTrue(transport.connected)
        self.assertEqual([], self.bad)

    def test_bad(self) -> None:
        """A bad header closes the connection and is reported with the address of the peer; nothing raises."""
        for data in (
            b"POST / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"PROXY TCP4 zz 1.1.1.1 x y\r\n",
            b"PROXY TCP4 \xff\xff\xff\xff 1.1.1.1 1 2\r\n",
            b"PROXY TCP4 999.8.7.6 1.1.1.1 1 2\r\n",
            b"PROXY TCP4 192.0.2.7 1.1.1.1 99999 80\r\n",
            b"PROXY TCP4 192.0.2.7 1.1.1.1 x 80\r\n",
            b"PROXY TCP4 192.0.2.7\r\n",
            b"PROXY TCP6 fe80::1%x ::1 1 2\r\n",
            V2[:13] + b"\x12" + V2[14:],
            V2[:13] + b"\x31\x00\xd8" + b"/run/x".ljust(108, b"\0") * 2,
            b"PROXY NONSENSE " + b"x" * 200,
            b"PR0XY",
            V2[:12] + b"\x2f\x11\x00\x0c" + V2[16:],
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        ):
            self.bad.clear()
            protocol, inner, transport = self.connect()
            protocol.dataReceived(data)
            self.assertEqual((["198.51.100.1"], b"", False), (self.bad, inner.received, transport.connected), data)

    def test_ports(self) -> None:
        """A port of a header in text is a number in decimal digits, from 0 to 65535 and without heading zeroes."""
        header = b"PROXY TCP4 192.0.2.7 192.0.2.1 %b %b\r\n"
        for port in (b"0", b"1", b"10000", b"65535"):
            for ports in ((port, b"443"), (b"443", port)):
                protocol, inner, _ = self.connect()
                protocol.dataReceived(header % ports + b"x")
                self.assertEqual((b"x", []), (inner.received, self.bad), ports)
        for port in (
            b"+80",
            b"-0",
            b"8_0",
            b"080",
            b"00",
            b"\t80",
            b"80\x0b",
            b"80\n",
            b"0x50",
            b"",
            b"\xd9\xa1",
            b"65536",
            b"111111",
            b"80 80",
            b"80 ",
        ):
            for ports in ((port, b"443"), (b"443", port)):
                self.bad.clear()
                protocol, inner, transport = self.connect()
                protocol.dataReceived(header % ports + b"x")
                self.assertEqual((["198.51.100.1"], b"", False), (self.bad, inner.received, transport.connected), ports)

    def test_half_close(self) -> None:
        """A protocol that can be half-closed is; for another the connection ends."""
        verifyClass(IHalfCloseableProtocol, type(self.connect()[0]))
        protocol, _, transport = self.connect()
        protocol.wrappedProtocol = waiting = Waiting()
        protocol.dataReceived(V1)
        protocol.readConnectionLost()
        protocol.writeConnectionLost()
        self.assertEqual((True, True), (waiting.told, transport.connected))
        for sent in (b"", V1):
            protocol, _, transport = self.connect()
            protocol.dataReceived(sent)
            protocol.readConnectionLost()
            self.assertFalse(transport.connected)

    def test_slow_header(self) -> None:
        """A header may come in parts."""
        for header in (V1, V2, UNKNOWN):
            protocol, inner, _ = self.connect()
            for piece in pieces_of(1, header):
                protocol.dataReceived(piece)
            protocol.dataReceived(b"x")
            self.assertEqual((b"x", []), (inner.received, self.bad))

    def test_no_address(self) -> None:
        """A proxy that has no address to tell speaks for itself."""
        for header in (UNKNOWN, b"PROXY UNKNOWN 1 2 3 4\r\n", V2_LOCAL):
            protocol, inner, _ = self.connect()
            protocol.dataReceived(header + b"x")
            self.assertEqual((b"x", "198.51.100.1", 5), (inner.received, *_peer(inner)))

    def test_after_a_bad_one(self) -> None:
        """What comes after a bad header is nothing."""
        protocol, inner, _ = self.connect()
        protocol.dataReceived(b"GET / HTTP/1.1\r\n")
        protocol.dataReceived(V1 + b"x")
        self.assertEqual((b"", 1), (inner.received, len(self.bad)))

    def test_errors_of_the_protocol(self) -> None:
        """What the protocol inside raises is not taken for a bad header."""
        protocol, _, _ = self.connect()
        with self.assertRaises(ValueError):
            protocol.dataReceived(V1 + b"raise")
        self.assertEqual([], self.bad)


def _peer(protocol: Any) -> tuple[str, int]:
    peer = protocol.transport.getPeer()
    return peer.host if isinstance(peer.host, str) else peer.host.decode("ascii"), peer.port
