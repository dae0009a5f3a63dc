"""
The PROXY protocol, versions 1 and 2: a header before each connection, in which a proxy passes on its client's address.

Twisted's own wrapper closes without a word on some bad headers, raises on others, believes any address, and its parsers
have no public name. The sections are those of C{proxy-protocol.txt} of HAProxy.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_address
from struct import Struct
from typing import NamedTuple, TypeAlias, cast

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IAddress,
    IHalfCloseableProtocol,
    IListeningPort,
    IProtocolFactory,
    IStreamServerEndpoint,
)
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from zope.interface import implementer

from webhookrx.intake.client_address import normal_ip

_V1_BEGINNING = b"PROXY "
#: Bytes of a header in text, its end included (section 2.1).
_V1_LONGEST = 107
#: Ports have no heading zeroes (section 2.1).
_V1 = re.compile(rb"PROXY TCP([46]) ([^ \r]+) ([^ \r]+) (0|[1-9][0-9]{0,4}) (0|[1-9][0-9]{0,4})\r\n")
#: A proxy that speaks for itself, such as for its health checks; whatever follows is ignored (section 2.1).
_V1_UNKNOWN = re.compile(rb"PROXY UNKNOWN(?: .*)?\r\n", re.DOTALL)

_V2_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
_V2_FIXED = 16
_V2_LOCAL, _V2_PROXY = 0x20, 0x21
_V2_TCP4, _V2_TCP6 = 0x11, 0x21
_V2_ADDRESSES = {_V2_TCP4: Struct("!4s4s2H"), _V2_TCP6: Struct("!16s16s2H")}

#: Called with the address of a peer that sent no PROXY header, or a bad one.
BadHeader: TypeAlias = Callable[[str], None]

TCPAddress: TypeAlias = IPv4Address | IPv6Address


class ProxyHeader(NamedTuple):
    """
    A PROXY header.

    @ivar length: its bytes.
    @ivar source: the client of the proxy; None when the proxy speaks for itself, or does not know.
    @ivar destination: the address of the proxy that the client has connected to; None likewise.
    """

    length: int
    source: TCPAddress | None = None
    destination: TCPAddress | None = None


def read_header(data: bytes) -> ProxyHeader | None:
    """
    Read a PROXY header of either version.

    @param data: all bytes of the connection so far, at least one.
    @return: None when the header is not complete.
    @raise ValueError: there is none, or it claims an address or a port that can't be.
    """
    if data.startswith(_V2_SIGNATURE[: len(data)]):
        return _read_v2(data)
    if data.startswith(_V1_BEGINNING[: len(data)]):
        return _read_v1(data)
    raise ValueError("no PROXY header")


def _read_v1(data: bytes) -> ProxyHeader | None:
    end = data.find(b"\r\n", 0, _V1_LONGEST)
    if end < 0:
        if len(data) >= _V1_LONGEST:
            raise ValueError("too long")
        return None
    line = data[: end + 2]
    if _V1_UNKNOWN.fullmatch(line):
        return ProxyHeader(len(line))
    found = _V1.fullmatch(line)
    if found is None:
        raise ValueError("not as in section 2.1")
    kind = IPv4Address if found[1] == b"4" else IPv6Address
    source, destination, source_port, destination_port = (each.decode("ascii") for each in found.groups()[1:])
    # A zone means something to its own host alone.
    if "%" in source or normal_ip(source) is None or max(int(source_port), int(destination_port)) > 65535:
        raise ValueError("no possible address")
    return ProxyHeader(
        len(line), kind("TCP", source, int(source_port)), kind("TCP", destination, int(destination_port))
    )


def _read_v2(data: bytes) -> ProxyHeader | None:
    """See section 2.2."""
    if len(data) < _V2_FIXED:
        return None
    command, family = data[12:14]
    length = _V2_FIXED + int.from_bytes(data[14:16], "big")
    addresses = _V2_ADDRESSES.get(family)
    # Unspecified is the family 0 or the protocol 0; there are families up to 3, protocols up to 2.
    unspecified = family in (0x00, 0x01, 0x02, 0x10, 0x20, 0x30)
    if command not in (_V2_LOCAL, _V2_PROXY):
        raise ValueError("no such version or command")
    if len(data) < length:
        return None
    if command == _V2_LOCAL or unspecified:
        return ProxyHeader(length)
    if addresses is None or length < _V2_FIXED + addresses.size:
        raise ValueError("no addresses of TCP")
    source, destination, source_port, destination_port = addresses.unpack_from(data, _V2_FIXED)
    kind = IPv4Address if family == _V2_TCP4 else IPv6Address
    return ProxyHeader(
        length,
        kind("TCP", str(ip_address(source)), source_port),
        kind("TCP", str(ip_address(destination)), destination_port),
    )


@implementer(IHalfCloseableProtocol)
class _ProxyWrapper(ProtocolWrapper):
    """One connection; nothing passes before its header has."""

    _begun = b""
    _header: ProxyHeader | None = None

    def getPeer(self) -> IAddress:
        """See L{twisted.internet.interfaces.ITransport.getPeer}: the source in the header."""
        return (self._header and self._header.source) or super().getPeer()

    def getHost(self) -> IAddress:
        """See L{twisted.internet.interfaces.ITransport.getHost}: the destination in the header."""
        return (self._header and self._header.destination) or super().getHost()

    def readConnectionLost(self) -> None:
        """See L{IHalfCloseableProtocol.readConnectionLost}: a sender may half-close through a proxy, too."""
        # By its class: TLS provides whatever its transport does, and its transport is this one.
        if self._header is not None and IHalfCloseableProtocol.implementedBy(type(self.wrappedProtocol)):
            cast(IHalfCloseableProtocol, self.wrappedProtocol).readConnectionLost()
        else:
            self.loseConnection()

    def writeConnectionLost(self) -> None:
        """See L{IHalfCloseableProtocol.writeConnectionLost}: the protocol inside wanted it."""

    def dataReceived(self, data: bytes) -> None:
        if self._header is not None:
            self.wrappedProtocol.dataReceived(data)
        elif not self.disconnecting:
            self._begun += data
            try:
                self._header = read_header(self._begun)
            except ValueError:
                self.loseConnection()
                self.factory.bad_header(getattr(self.getPeer(), "host", None) or "unix")
                return
            if self._header is not None:
                rest, self._begun = self._begun[self._header.length :], b""
                if rest:
                    self.wrappedProtocol.dataReceived(rest)


class _ProxyWrappingFactory(WrappingFactory):
    """Makes wrappers that report."""

    noisy = False

    protocol = _ProxyWrapper

    def __init__(self, wrapped: IProtocolFactory, bad_header: BadHeader) -> None:
        super().__init__(wrapped)
        self.bad_header = bad_header


@implementer(IStreamServerEndpoint)
class ProxyProtocolEndpoint:
    """
    An endpoint on which each connection begins with a PROXY header.

    Whoever can connect can claim any address: let only the proxy connect.

    @param bad_header: called for each connection that is closed because it has no good header.
    """

    def __init__(self, inner: IStreamServerEndpoint, bad_header: BadHeader) -> None:
        self._inner = inner
        self._bad_header = bad_header

    def listen(self, protocolFactory: IProtocolFactory) -> Deferred[IListeningPort]:
        return self._inner.listen(_ProxyWrappingFactory(protocolFactory, self._bad_header))
