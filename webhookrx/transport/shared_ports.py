"""
Ports that the parent opens (L{BoundPorts}) and its workers accept from (L{SharedPorts}).

Twisted can adopt a listening socket, but takes it for its own: it would change the mode and backlog of a UNIX socket,
remove its name when one worker ends, and shut TCP sockets down for all workers. And it accepts all waiting connections
at once, so that the first worker to wake up gets a whole burst. So this is the one module that knows how Twisted's
ports begin and end, and its tests fail when a release of Twisted changes that.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from twisted.internet import tcp, unix
from twisted.internet.abstract import FileDescriptor
from twisted.internet.defer import Deferred, execute
from twisted.internet.interfaces import (
    IAddress,
    IListeningPort,
    IProtocolFactory,
    IStreamServerEndpoint,
)
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.errors import ConfigError, WebhookrxError
from webhookrx.settings import Listener
from webhookrx.transport.listener_service import ListenerService

#: Connections that a worker accepts in one turn. With fewer, each new connection costs more: other workers wake up for
#: it in vain, too.
MOST_ACCEPTED = 16


class _SharedPort(tcp.Port):
    """
    A port on a socket that other processes listen on, too.
    """

    @property
    def numberAccepts(self) -> int:
        """How many connections are accepted in one turn."""
        return MOST_ACCEPTED

    @numberAccepts.setter
    def numberAccepts(self, wanted: int) -> None:
        """Keep it constant; Twisted adapts it to the number of waiting connections."""

    def share(self, shared: socket.socket) -> None:
        """Begin to accept from a socket that listens already."""
        self.socket = shared
        self.fileno = shared.fileno  # type: ignore[method-assign]  # as its base does
        self.connected = True
        # By closing this file Twisted accepts, and closes, what comes when there are no more descriptors.
        reserved = getattr(tcp, "_reservedFD", None)
        if reserved is not None:
            reserved.reserve()
        self.factory.doStart()  # type: ignore[union-attr]  # Twisted's own type says less than is true
        self.startReading()

    def connectionLost(self, reason: Failure) -> None:
        # Twisted shuts its socket down, which would do so for all processes: it gets another one for that.
        self.socket.close()
        self.socket = socket.socket(self.addressFamily)
        tcp.Port.connectionLost(self, reason)


class SharedTCPPort(_SharedPort):
    """
    One of TCP.
    """

    def share(self, shared: socket.socket) -> None:
        self._realPortNumber = shared.getsockname()[1]
        super().share(shared)


class SharedUNIXPort(_SharedPort, unix.Port):
    """
    One with a UNIX socket. Its name stays, since another process has made it: L{_SharedPort.connectionLost} skips that
    of L{unix.Port}.
    """


@implementer(IStreamServerEndpoint)
class SharedPortEndpoint:
    """
    An endpoint on a socket that listens already.

    @param take: returns the socket, which the port owns from then on.
    """

    def __init__(self, reactor: Any, take: Callable[[], socket.socket]) -> None:
        self._reactor = reactor
        self._take = take

    def listen(self, protocolFactory: IProtocolFactory) -> Deferred[IListeningPort]:
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


class SharedPorts:
    """
    Listening sockets that a worker has got from its parent, until it listens on them.
    """

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._waiting: dict[str, socket.socket] = {}

    def add(self, name: str, descriptor: int) -> None:
        """
        Take a socket.

        @param name: C{Listener.socket} of its listener.
        @param descriptor: it is ours from now on.
        @raise OSError: it is no socket.
        """
        self._waiting[name] = socket.socket(fileno=descriptor)

    def endpoint(self, listener: Listener) -> IStreamServerEndpoint:
        """
        Return the endpoint of a listener's socket.

        @raise ConfigError: there is no socket for it.
        """
        if listener.socket not in self._waiting:
            raise ConfigError(f"No socket was handed over for {listener.text!r}.")
        return SharedPortEndpoint(self._reactor, lambda: self._waiting.pop(listener.socket))

    def close(self) -> None:
        """Close the sockets that nothing listens on."""
        while self._waiting:
            self._waiting.popitem()[1].close()


class _NoConnections(Factory):
    """The factory of a port that accepts nothing."""

    noisy = False

    def buildProtocol(self, addr: IAddress | None) -> None:
        return None

    def logPrefix(self) -> str:
        return "webhookrx"


class BoundPort(ListenerService):
    """
    A port that this process opens and never accepts from.
    """

    def __init__(self, endpoint: IStreamServerEndpoint, text: str) -> None:
        super().__init__(endpoint, _NoConnections(), text)

    @property
    def descriptor(self) -> int:
        """Its socket, which must be open."""
        descriptor: int = cast(FileDescriptor, self._port).fileno()
        return descriptor

    def _has_opened(self, port: IListeningPort) -> None:
        cast(FileDescriptor, port).stopReading()

    def _is_to_close(self, port: IListeningPort) -> None:
        """Do nothing: the workers that share this socket accept the pending connections."""


@dataclass
class BoundPortsChange:
    """
    A planned change of the ports. Nothing is opened or closed yet.

    @ivar ports: all ports after the change, by C{Listener.socket}.
    @ivar added: the ports to open.
    @ivar removed: the ports to close.
    """

    ports: Mapping[str, BoundPort]
    added: list[BoundPort]
    removed: list[BoundPort]

    @property
    def descriptors(self) -> dict[str, int]:
        """The sockets of all ports after the change, by C{Listener.socket}, once they are open."""
        return {key: port.descriptor for key, port in self.ports.items()}

    def open(self) -> None:
        """
        Open the added ports.

        @raise webhookrx.transport.listener_service.CannotListen: one can't be opened; then none of them is.
        """
        try:
            for each in self.added:
                each.startService()
        except WebhookrxError:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Close the added ports again."""
        for each in self.added:
            each.stopService()


class BoundPorts:
    """
    All ports of the parent, in the order of the settings.

    @param open_socket: makes the endpoint of a listener's socket.
    """

    def __init__(self, open_socket: Callable[[Listener], IStreamServerEndpoint]) -> None:
        self._open_socket = open_socket
        self._ports: dict[str, BoundPort] = {}

    def __iter__(self) -> Iterator[BoundPort]:
        return iter(self._ports.values())

    @property
    def addresses(self) -> dict[str, IAddress | None]:
        """The address of each port, by C{Listener.socket}; None while it is closed."""
        return {key: port.address for key, port in self._ports.items()}

    @property
    def descriptors(self) -> dict[str, int]:
        """The sockets of all ports, by C{Listener.socket}, once they are open."""
        return {key: port.descriptor for key, port in self._ports.items()}

    def plan(self, listeners: Iterable[Listener]) -> BoundPortsChange:
        """
        Plan the change to these listeners.

        @raise webhookrx.errors.ConfigError: there is no such endpoint.
        """
        wanted = {listener.socket: listener for listener in listeners}
        added = {
            key: BoundPort(self._open_socket(listener), listener.text)
            for key, listener in wanted.items()
            if key not in self._ports
        }
        ports = {key: added.get(key) or self._ports[key] for key in wanted}
        removed = [port for key, port in self._ports.items() if key not in wanted]
        return BoundPortsChange(ports, list(added.values()), removed)

    def commit(self, change: BoundPortsChange) -> None:
        """Apply a change. Workers must have closed the removed ports before."""
        self._ports = dict(change.ports)
        for each in change.removed:
            each.stopService()

    def close(self) -> list[Deferred[None]]:
        """Close all ports. Each result fires when one is closed."""
        return [port.stopService() for port in self]
