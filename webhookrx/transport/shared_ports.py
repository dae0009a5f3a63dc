"""
Sockets that another process has opened, and that several processes accept from.

Twisted can adopt such a socket, but takes it for its own: that of a UNIX socket would get another mode and backlog, and
when one process ends, the name by which the others are found would go. And it accepts all that waits at once, so that
the first to wake up has a burst of connections for itself. So this is the one module that knows how its ports begin
and end, and its tests fail when a release of Twisted changes that.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from twisted.internet import tcp, unix
from twisted.internet.defer import Deferred, execute
from twisted.internet.interfaces import IListeningPort, IProtocolFactory, IStreamServerEndpoint
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.errors import ConfigError
from webhookrx.settings import Listener

#: Connections that one process takes before it looks what else there is to do, and others have their turn. With fewer
#: than that each new connection costs more: others wake up for it in vain, too.
MOST_ACCEPTED = 16


class _SharedPort(tcp.Port):
    """
    A port on a socket that others listen on, too.
    """

    @property
    def numberAccepts(self) -> int:
        """How many connections are accepted in one turn."""
        return MOST_ACCEPTED

    @numberAccepts.setter
    def numberAccepts(self, wanted: int) -> None:
        """Stay with it, where Twisted would take the more the more there are."""

    def share(self, shared: socket.socket) -> None:
        """Begin to accept from a socket that listens already."""
        # Closed, not shut down, which would be for all who have it.
        self._shouldShutdown = False
        self.socket = shared
        self.fileno = shared.fileno  # type: ignore[method-assign]  # as its base does
        self.connected = True
        tcp._reservedFD.reserve()
        self.factory.doStart()  # type: ignore[union-attr]  # Twisted's own type says less than is true
        self.startReading()


class SharedTCPPort(_SharedPort):
    """
    One of TCP.
    """

    def share(self, shared: socket.socket) -> None:
        """See L{_SharedPort.share}."""
        self._realPortNumber = shared.getsockname()[1]
        super().share(shared)


class SharedUNIXPort(_SharedPort, unix.Port):
    """
    One with a UNIX socket. Its name stays: it is not this process that made it.
    """

    def connectionLost(self, reason: Failure) -> None:
        """See L{twisted.internet.interfaces.IReadDescriptor.connectionLost}."""
        tcp.Port.connectionLost(self, reason)


@implementer(IStreamServerEndpoint)
class InheritedEndpoint:
    """
    An endpoint on a socket that listens already.

    @param take: gives the socket, which is the port's own from then on.
    """

    def __init__(self, reactor: Any, take: Callable[[], socket.socket]) -> None:
        self._reactor = reactor
        self._take = take

    def listen(self, protocolFactory: IProtocolFactory) -> Deferred[IListeningPort]:
        """See L{IStreamServerEndpoint.listen}."""
        return execute(self._listen, protocolFactory)

    def _listen(self, factory: IProtocolFactory) -> IListeningPort:
        shared = self._take()
        shared.setblocking(False)
        name = shared.getsockname()
        port: _SharedPort
        if shared.family == socket.AF_UNIX:
            port = SharedUNIXPort(name, factory, reactor=self._reactor)
        else:
            port = SharedTCPPort(0, factory, interface=name[0], reactor=self._reactor)
        port.share(shared)
        return port


class InheritedSockets:
    """
    The sockets that came from elsewhere, and are still to be listened on.
    """

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._waiting: dict[str, socket.socket] = {}

    def add(self, inner: str, descriptor: int) -> None:
        """
        Take a socket.

        @param inner: C{Listener.inner} of what it is for.
        @param descriptor: it is ours from now on.
        @raise OSError: it is no socket.
        """
        self._waiting[inner] = socket.socket(fileno=descriptor)

    def endpoint(self, listener: Listener) -> IStreamServerEndpoint:
        """
        Return the endpoint of a listener's socket.

        @raise ConfigError: there is no socket for it.
        """
        if listener.inner not in self._waiting:
            raise ConfigError(f"No socket was handed over for {listener.text!r}.")
        return InheritedEndpoint(self._reactor, lambda: self._waiting.pop(listener.inner))

    def close(self) -> None:
        """Close those that nobody listens on."""
        while self._waiting:
            self._waiting.popitem()[1].close()
