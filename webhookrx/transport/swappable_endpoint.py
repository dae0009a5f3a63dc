"""
An endpoint whose socket stays open while the factory, the TLS context or the PROXY header behind it changes.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from twisted.internet import tcp
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import (
    IAddress,
    IListeningPort,
    ILoggingContext,
    IProtocol,
    IProtocolFactory,
    IStreamServerEndpoint,
    ITransport,
)
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.transport.accept import AcceptFailures, AcceptGate
from webhookrx.transport.immediate_write import ImmediateWriteServer, ImmediateWriteUNIXServer
from webhookrx.transport.native_tls import TLSServer, TLSUNIXServer
from webhookrx.transport.nested_epoll import NestedEpoll
from webhookrx.transport.worker_port import SharedPort
from webhookrx.wire_interfaces import ITLSCreator


@implementer(IProtocol)
class _Secured:
    """
    A protocol that must have TLS, as the port gets it. The transport provides TLS; where it does not, Twisted's TLS
    is put in between, so that no kind of port can make it speak plain text.
    """

    def __init__(self, protocol: IProtocol, factory: TLSMemoryBIOFactory) -> None:
        self.protocol = protocol
        self._factory = factory

    def makeConnection(self, transport: ITransport) -> None:
        if not isinstance(transport, TLSServer):
            self.protocol = self._factory.protocol(self._factory, self.protocol)
        self.protocol.makeConnection(transport)

    def connectionMade(self) -> None:
        """Told by the protocol itself."""

    def dataReceived(self, data: bytes) -> None:
        self.protocol.dataReceived(data)

    def connectionLost(self, reason: Failure) -> None:
        self.protocol.connectionLost(reason)


@implementer(IProtocolFactory, ILoggingContext)
class _FactorySwitch:
    """
    The factory of the port: passes on to the factory in use.

    @ivar factory: makes the protocols of new connections.
    @ivar is_open: whether the port is.
    @ivar poll: watches the connections; None for the reactor.
    """

    def __init__(self, poll: NestedEpoll | None, failures: AcceptFailures | None) -> None:
        self.factory: IProtocolFactory | None = None
        self.is_open = False
        self.poll = poll
        self._failures = failures
        self._creator: ITLSCreator | None = None
        self._tls_factory: TLSMemoryBIOFactory | None = None

    def use(self, factory: IProtocolFactory, creator: ITLSCreator | None) -> None:
        """
        Use this factory for new connections.

        @param creator: makes their TLS; None for plain text.
        """
        self.factory = factory
        self._creator = creator
        clock: Any = self.poll  # None for the reactor
        self._tls_factory = None if creator is None else TLSMemoryBIOFactory(creator, False, factory, clock)

    def buildProtocol(self, addr: IAddress) -> IProtocol | None:
        assert self.factory is not None
        protocol = self.factory.buildProtocol(addr)
        return protocol if self._tls_factory is None or protocol is None else _Secured(protocol, self._tls_factory)

    def logPrefix(self) -> str:
        return "webhookrx"

    def doStart(self) -> None:
        assert self.factory is not None
        self.is_open = True
        if self.poll is not None:
            self.poll.hold()
        self.factory.doStart()

    def doStop(self) -> None:
        assert self.factory is not None
        self.is_open = False
        self.factory.doStop()
        if self.poll is not None:
            self.poll.let_go()

    def transport(
        self, sock: socket.socket, protocol: IProtocol, client: Any, port: tcp.Port, number: int, reactor: Any
    ) -> tcp.Server:
        """Make the transport of a connection, as L{twisted.internet.tcp.Port} asks for it."""
        if self._failures is not None:
            self._failures.accepted(port)
        by_unix = port.addressFamily == socket.AF_UNIX
        watch: Any = reactor if self.poll is None else self.poll
        made: ImmediateWriteServer
        if isinstance(protocol, _Secured):
            assert self._creator is not None
            secure = TLSUNIXServer if by_unix else TLSServer
            tls = self._creator.connection_on(sock)
            made = secure(tls, sock, protocol.protocol, client, port, number, watch)
        else:
            plain = ImmediateWriteUNIXServer if by_unix else ImmediateWriteServer
            made = plain(sock, protocol, client, port, number, watch)
        if isinstance(port, SharedPort):
            made.ended = port.began()
        return made


@implementer(IStreamServerEndpoint)
class SwappableEndpoint:
    """
    An endpoint that can be listened on again while it is open: the new factory then gets all new connections, and
    open ones stay with the old factory. No connection is refused or lost in between.

    The endpoints that add the PROXY header and TLS go around it, so that these can change too.

    Connections of Twisted's own ports get L{our transports<webhookrx.transport.immediate_write>}; those of other ports
    keep theirs.

    @param inner: opens the socket.
    @param poll: watches the connections; None for the reactor.
    @param failures: handles connections that such a port can't accept; None leaves them to the log.
    """

    def __init__(
        self, inner: IStreamServerEndpoint, poll: NestedEpoll | None = None, failures: AcceptFailures | None = None
    ) -> None:
        self._inner = inner
        self._switch = _FactorySwitch(poll, failures)
        self._failures = failures
        self._port: IListeningPort | None = None

    def listen(self, protocolFactory: IProtocolFactory) -> Deferred[IListeningPort]:
        return self._listen(protocolFactory, None)

    def with_tls(self, creator: ITLSCreator) -> IStreamServerEndpoint:
        """Return an endpoint on the same port, with TLS on the socket itself where the port allows it."""
        return _SwappableTLSEndpoint(lambda factory: self._listen(factory, creator))

    def _listen(self, factory: IProtocolFactory, creator: ITLSCreator | None) -> Deferred[IListeningPort]:
        switch = self._switch
        before = switch.factory
        switch.use(factory, creator)
        if self._port is None or before is None or not switch.is_open:
            return self._inner.listen(switch).addCallback(self._opened)
        # In this order: a site behind both factories must not hear in between that its last port is closed.
        factory.doStart()
        before.doStop()
        return succeed(self._port)

    def _opened(self, port: IListeningPort) -> IListeningPort:
        self._port = port
        if isinstance(port, tcp.Port):
            poll = self._switch.poll
            if poll is not None and poll.overload is not None and port.addressFamily != socket.AF_UNIX:
                port.socket = AcceptGate(port.socket, poll.overload)
            port.transport = self._switch.transport  # type: ignore[assignment]  # documented as what makes one
            if self._failures is not None:
                self._failures.watch(port)
        return port


@implementer(IStreamServerEndpoint)
class _SwappableTLSEndpoint:
    """A swappable endpoint, with TLS."""

    def __init__(self, listen: Callable[[IProtocolFactory], Deferred[IListeningPort]]) -> None:
        self._listen = listen

    def listen(self, protocolFactory: IProtocolFactory) -> Deferred[IListeningPort]:
        return self._listen(protocolFactory)
