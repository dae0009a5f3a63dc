"""
Ports that the parent opens (L{BoundPorts}) and its workers accept from (L{SharedPorts}).

The kinds of port that workers use are in L{webhookrx.transport.worker_port}.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast
from weakref import WeakSet

from twisted.internet.abstract import FileDescriptor
from twisted.internet.defer import Deferred, execute
from twisted.internet.interfaces import (
    IAddress,
    IListeningPort,
    IProtocolFactory,
    IStreamServerEndpoint,
)
from twisted.internet.protocol import Factory
from zope.interface import implementer

from webhookrx.errors import ConfigError, WebhookrxError
from webhookrx.settings import Listener
from webhookrx.transport.fair_share import Share, WorkerRow
from webhookrx.transport.listener_service import ListenerService
from webhookrx.transport.worker_port import SharedPort, SharedTCPPort, SharedUNIXPort


@implementer(IStreamServerEndpoint)
class SharedPortEndpoint:
    """
    An endpoint on a socket that listens already.

    @param take: returns the socket, which the port owns from then on, and the share of this process in its connections.
    @param opened: called with the port.
    """

    def __init__(
        self,
        reactor: Any,
        take: Callable[[], tuple[socket.socket, Share | None]],
        opened: Callable[[SharedPort], object],
    ) -> None:
        self._reactor = reactor
        self._take = take
        self._opened = opened

    def listen(self, protocolFactory: IProtocolFactory) -> Deferred[IListeningPort]:
        return execute(self._listen, protocolFactory)

    def _listen(self, factory: IProtocolFactory) -> IListeningPort:
        shared, share = self._take()
        shared.setblocking(False)
        name = shared.getsockname()
        port: SharedPort
        if shared.family == socket.AF_UNIX:
            port = SharedUNIXPort(name, factory, reactor=self._reactor)
        else:
            port = SharedTCPPort(0, factory, interface=name[0], reactor=self._reactor)
        port.share = share
        port.adopt(shared)
        self._opened(port)
        return port


class SharedPorts:
    """
    Listening sockets that a worker has got from its parent, until it listens on them; and its ports on them.
    """

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._row: WorkerRow | None = None
        self._waiting: dict[str, tuple[socket.socket, Share | None]] = {}
        self._ports: WeakSet[SharedPort] = WeakSet()

    def share_by(self, row: WorkerRow) -> None:
        """Share the connections of all sockets that come from now on evenly, by this row of counters."""
        self._row = row

    def add(self, name: str, descriptor: int, number: int) -> None:
        """
        Take a socket.

        @param name: C{Listener.socket} of its listener.
        @param descriptor: it is ours from now on.
        @param number: see L{WorkerRow.share}.
        @raise OSError: it is no socket.
        """
        share = None if self._row is None else self._row.share(number)
        self._waiting[name] = socket.socket(fileno=descriptor), share

    def endpoint(self, listener: Listener) -> IStreamServerEndpoint:
        """
        Return the endpoint of a listener's socket.

        @raise ConfigError: there is no socket for it.
        """
        if listener.socket not in self._waiting:
            raise ConfigError(f"No socket was handed over for {listener.text!r}.")
        return SharedPortEndpoint(self._reactor, lambda: self._waiting.pop(listener.socket), self._ports.add)

    def tick(self) -> None:
        """Show that this worker turns, and look after connections that wait; called about twice a second."""
        if self._row is not None:
            self._row.tick()
        for port in list(self._ports):
            port.tick()

    def close(self) -> None:
        """Close the sockets that nothing listens on."""
        while self._waiting:
            _, (unused, _) = self._waiting.popitem()
            unused.close()


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

    def commit(self, change: BoundPortsChange) -> list[Deferred[None]]:
        """
        Apply a change. Workers must have closed the removed ports before.

        @return: for each removed port, what fires when it is closed, so that the system refuses connections to it.
        """
        self._ports = dict(change.ports)
        return [each.stopService() for each in change.removed]

    def close(self) -> list[Deferred[None]]:
        """Close all ports. Each result fires when one is closed."""
        return [port.stopService() for port in self]
