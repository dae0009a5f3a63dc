"""
The PROXY protocol as Twisted reads it, made safe against who has no proxy in front.

Its wrapper closes without a word on some bad headers, raises on others, and believes any address; its parsers have no
public name. So this is the one module that knows them, and its tests fail when a release of Twisted changes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHalfCloseableProtocol, IListeningPort, IProtocolFactory, IStreamServerEndpoint
from twisted.protocols.haproxy._exceptions import InvalidProxyHeader
from twisted.protocols.haproxy._info import ProxyInfo
from twisted.protocols.haproxy._v1parser import V1Parser
from twisted.protocols.haproxy._v2parser import V2Parser
from twisted.protocols.haproxy._wrapper import HAProxyProtocolWrapper, HAProxyWrappingFactory
from zope.interface import implementer

from webhookrx.intake.client_address import normal_ip

_V1_BEGINNING = b"PROXY "
_V1_UNKNOWN = b"PROXY UNKNOWN\r\n"
# What Twisted's parser reads by C{int}, which also takes signs, blanks and underscores. There are no heading zeroes
# (section 2.1 of the PROXY protocol).
_V1_PORTS = re.compile(rb"PROXY TCP[46] [^ \r]+ [^ \r]+ (?:0|[1-9][0-9]{0,4}) (0|[1-9][0-9]{0,4})\r\n")
_V2_BEGINNING = V2Parser.PREFIX
_V2_LENGTH_AT = 14

#: Told the address of who sent no PROXY header, or a bad one.
BadHeader = Callable[[str], None]


@implementer(IHalfCloseableProtocol)
class _Wrapper(HAProxyProtocolWrapper):
    """One connection; nothing passes before its header has."""

    _begun = b""

    def readConnectionLost(self) -> None:
        """A sender that only waits for its answer now does so through a proxy too."""
        # By its class: TLS says that it provides whatever its transport does, and its transport is this one.
        if self._proxyInfo is not None and IHalfCloseableProtocol.implementedBy(type(self.wrappedProtocol)):
            cast(IHalfCloseableProtocol, self.wrappedProtocol).readConnectionLost()
        else:
            self.loseConnection()

    def writeConnectionLost(self) -> None:
        """The protocol inside wanted it."""

    def dataReceived(self, data: bytes) -> None:
        if self._proxyInfo is not None:
            self.wrappedProtocol.dataReceived(data)
        elif not self.disconnecting:
            self._begun += data
            try:
                read = _read_header(self._begun)
            except (ValueError, InvalidProxyHeader):
                self.loseConnection()
                self.factory.bad_header(getattr(self.getPeer(), "host", None) or "unix")
                return
            if read is not None:
                self._begun = b""
                self._proxyInfo, rest = read
                if rest:
                    self.wrappedProtocol.dataReceived(rest)


def _read_header(data: bytes) -> tuple[ProxyInfo, bytes] | None:
    """
    Read a PROXY header of either version.

    @return: what it says, and what follows it; None when it is not complete.
    @raise InvalidProxyHeader: it is none, or claims an address or a port that can't be. C{ValueError}: the same, where
        Twisted's parsers take a field for what it ought to be.
    """
    if data.startswith(_V2_BEGINNING[: len(data)]):
        if len(data) < _V2_LENGTH_AT + 2:
            return None
        info, rest = V2Parser().feed(data)
    elif data.startswith(_V1_UNKNOWN):
        # The short form, which a proxy uses for its own health checks.
        return ProxyInfo(_V1_UNKNOWN, None, None), data[len(_V1_UNKNOWN) :]
    elif data.startswith(_V1_BEGINNING[: len(data)]):
        info, rest = V1Parser().feed(data)
        if info is not None and info.source is not None and not _has_v1_ports(data):
            raise InvalidProxyHeader
    else:
        raise InvalidProxyHeader
    if info is None or rest is None:
        return None
    if info.source is not None and not _is_possible(info.source):
        raise InvalidProxyHeader
    return info, rest


def _has_v1_ports(data: bytes) -> bool:
    """Tell whether both ports of a header in text are written as the protocol has them."""
    found = _V1_PORTS.match(data)
    return found is not None and int(found[1]) <= 65535


def _is_possible(source: object) -> bool:
    """Tell whether a sender can have that address: one of TCP, without the zone that only its own host would know."""
    if not isinstance(source, (IPv4Address, IPv6Address)) or source.type != "TCP":
        return False
    host = source.host.decode("ascii") if isinstance(source.host, bytes) else source.host
    return "%" not in host and normal_ip(host) is not None and 0 <= source.port <= 65535


class _WrappingFactory(HAProxyWrappingFactory):
    """Makes wrappers that report."""

    noisy = False

    protocol = _Wrapper  # type: ignore[assignment]  # the generic base is bound to its own wrapper

    def __init__(self, wrapped: IProtocolFactory, bad_header: BadHeader) -> None:
        super().__init__(wrapped)
        self.bad_header = bad_header


@implementer(IStreamServerEndpoint)
class ProxyProtocolEndpoint:
    """
    An endpoint on which each connection begins with a PROXY header, v1 or v2.

    Whoever can connect can claim any address: let nobody but the proxy connect.

    @param bad_header: called for each connection that is closed since it has no good header.
    """

    def __init__(self, inner: IStreamServerEndpoint, bad_header: BadHeader) -> None:
        self._inner = inner
        self._bad_header = bad_header

    def listen(self, protocolFactory: IProtocolFactory) -> Deferred[IListeningPort]:
        """See L{IStreamServerEndpoint.listen}."""
        return self._inner.listen(_WrappingFactory(protocolFactory, self._bad_header))
