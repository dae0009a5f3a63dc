"""
Ports that one process opens and keeps for others, who accept what comes to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from twisted.internet.abstract import FileDescriptor
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IAddress,
    IListeningPort,
    ILoggingContext,
    IProtocol,
    IProtocolFactory,
    IStreamServerEndpoint,
)
from zope.interface import implementer

from webhookrx.errors import WebhookrxError
from webhookrx.settings import Listener
from webhookrx.transport.listener_service import ListenerService


@implementer(IProtocolFactory, ILoggingContext)
class _Nobody:
    """Talks to nobody."""

    def buildProtocol(self, addr: IAddress) -> IProtocol | None:
        return None

    def doStart(self) -> None:
        """The port opens."""

    def doStop(self) -> None:
        """The port is closed."""

    def logPrefix(self) -> str:
        """Return who it is that Twisted says is listening."""
        return "webhookrx"


class HeldPort(ListenerService):
    """
    A port on which nothing is accepted here.
    """

    def __init__(self, endpoint: IStreamServerEndpoint, text: str) -> None:
        super().__init__(endpoint, _Nobody(), text)

    @property
    def descriptor(self) -> int:
        """Its socket, which must be open."""
        descriptor: int = cast(FileDescriptor, self._port).fileno()
        return descriptor

    def _has_opened(self, port: IListeningPort) -> None:
        cast(FileDescriptor, port).stopReading()

    def _is_to_close(self, port: IListeningPort) -> None:
        """Who has it still takes in whom there is to take in."""


@dataclass
class PortsChange:
    """
    What other listeners make of the ports. Nothing is open or different yet.

    @ivar ports: all there will be, by C{Listener.inner}.
    @ivar added: those of them that are to be opened.
    @ivar removed: those that are to be closed.
    """

    ports: Mapping[str, HeldPort]
    added: list[HeldPort]
    removed: list[HeldPort]

    @property
    def descriptors(self) -> dict[str, int]:
        """The sockets of all there will be, by C{Listener.inner}, once they are open."""
        return {inner: port.descriptor for inner, port in self.ports.items()}

    def open(self) -> None:
        """
        Open what is added.

        @raise webhookrx.transport.listener_service.CannotListen: one can't be opened; then none of them is.
        """
        try:
            for each in self.added:
                each.startService()
        except WebhookrxError:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Close again what was opened."""
        for each in self.added:
            each.stopService()


class HeldPorts:
    """
    All ports, in the order of the settings.

    @param open_socket: makes the endpoint of a listener's socket.
    """

    def __init__(self, open_socket: Callable[[Listener], IStreamServerEndpoint]) -> None:
        self._open_socket = open_socket
        self._ports: dict[str, HeldPort] = {}

    def __iter__(self) -> Iterator[HeldPort]:
        return iter(self._ports.values())

    @property
    def addresses(self) -> dict[str, IAddress | None]:
        """Where each listens, by C{Listener.inner}; None where it does not."""
        return {inner: port.address for inner, port in self._ports.items()}

    @property
    def descriptors(self) -> dict[str, int]:
        """The sockets of all, by C{Listener.inner}, once they are open."""
        return {inner: port.descriptor for inner, port in self._ports.items()}

    def plan(self, listeners: Iterable[Listener]) -> PortsChange:
        """
        Prepare for these listeners in place of those that are there.

        @raise webhookrx.errors.ConfigError: there is no such endpoint.
        """
        wanted = {listener.inner: listener for listener in listeners}
        added = {
            inner: HeldPort(self._open_socket(listener), listener.text)
            for inner, listener in wanted.items()
            if inner not in self._ports
        }
        ports = {inner: added.get(inner) or self._ports[inner] for inner in wanted}
        removed = [port for inner, port in self._ports.items() if inner not in wanted]
        return PortsChange(ports, list(added.values()), removed)

    def commit(self, change: PortsChange) -> None:
        """Go by a change from now on. Those who accept from what is removed must have closed it before."""
        self._ports = dict(change.ports)
        for each in change.removed:
            each.stopService()

    def close(self) -> list[Deferred[None]]:
        """Close all. Return what fires when each is closed."""
        return [port.stopService() for port in self]
