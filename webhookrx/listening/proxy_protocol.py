"""
The PROXY protocol as Twisted reads it, made safe against who has no proxy in front.

Its wrapper has no public name, closes without a word on some bad headers and raises on others; so this is the one
module that knows it, and its tests fail when a release of Twisted changes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHalfCloseableProtocol, IListeningPort, IProtocolFactory, IStreamServerEndpoint
from twisted.protocols.haproxy._wrapper import HAProxyProtocolWrapper, HAProxyWrappingFactory
from zope.interface import implementer

#: Told the address of who sent no PROXY header, or a bad one.
BadHeader = Callable[[str], None]


@implementer(IHalfCloseableProtocol)
class _Wrapper(HAProxyProtocolWrapper):
    """One connection; what comes before the header has passed is never more than the header."""

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
            return
        try:
            super().dataReceived(data)
        except ValueError:
            # Twisted's parsers take some fields for what they ought to be; UnicodeDecodeError is one of these too.
            if self._proxyInfo is not None:
                raise
            self.loseConnection()
        if self._proxyInfo is None and self.disconnecting:
            self.factory.bad_header(getattr(self.getPeer(), "host", None) or "unix")


class _WrappingFactory(HAProxyWrappingFactory):
    """Makes wrappers that report."""

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
