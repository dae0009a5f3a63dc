"""
A socket that stays open while what stands behind it changes.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import (
    IAddress,
    IListeningPort,
    ILoggingContext,
    IProtocol,
    IProtocolFactory,
    IStreamServerEndpoint,
)
from zope.interface import implementer


@implementer(IProtocolFactory, ILoggingContext)
class _Behind:
    """
    Stands at the port, and passes on to whoever is behind it now.

    @ivar factory: who makes the protocols of the connections to come.
    @ivar is_open: whether the port is.
    """

    def __init__(self) -> None:
        self.factory: IProtocolFactory | None = None
        self.is_open = False

    def buildProtocol(self, addr: IAddress) -> IProtocol | None:
        assert self.factory is not None
        return self.factory.buildProtocol(addr)

    def logPrefix(self) -> str:
        """Return who it is that Twisted says is listening."""
        return "webhookrx"

    def doStart(self) -> None:
        """The port opens."""
        assert self.factory is not None
        self.is_open = True
        self.factory.doStart()

    def doStop(self) -> None:
        """The port is closed."""
        assert self.factory is not None
        self.is_open = False
        self.factory.doStop()


@implementer(IStreamServerEndpoint)
class Door:
    """
    An endpoint that can be listened on again while it is open: the new factory then gets all connections to come, and
    those that are there stay with the old one. No connection is refused or lost in between.

    The endpoints that add the PROXY header and TLS go around it, so that these can change too.

    @param inner: what opens the socket.
    """

    def __init__(self, inner: IStreamServerEndpoint) -> None:
        self._inner = inner
        self._behind = _Behind()
        self._port: IListeningPort | None = None

    def listen(self, protocolFactory: IProtocolFactory) -> Deferred[IListeningPort]:
        """See L{IStreamServerEndpoint.listen}."""
        behind = self._behind
        before, behind.factory = behind.factory, protocolFactory
        if self._port is None or before is None or not behind.is_open:
            return self._inner.listen(behind).addCallback(self._opened)
        # In this order: whoever both lead to is not told in between that its last port is closed.
        protocolFactory.doStart()
        before.doStop()
        return succeed(self._port)

    def _opened(self, port: IListeningPort) -> IListeningPort:
        self._port = port
        return port
