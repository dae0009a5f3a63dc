"""
The endpoint for routers: its TLS by the console's own CA, its limits, and its life.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from twisted.internet.interfaces import IAddress

from webhookrx.console.body_room import BodyRoom
from webhookrx.console.routers.authority import Authority
from webhookrx.console.routers.port import RoutersResource
from webhookrx.management.agent_protocol import MOST_REPORT_BYTES
from webhookrx.operations.counters import Counters
from webhookrx.operations.oplog import LineLimit
from webhookrx.operations.traffic_log import TrafficLog
from webhookrx.service.listeners import Listeners
from webhookrx.settings import TLS, FileContents, Limits, Listener
from webhookrx.transport.handshake import describe_failure

#: A poll waits 55 seconds; its answer has some more to get out.
ROUTERS_LIMITS: Final = Limits(
    body=MOST_REPORT_BYTES,
    connections=12_000,
    connections_per_peer=12_000,
    header_block=8 * 1024,
    target=1024,
    header_time=10.0,
    body_time=30.0,
    answer_time=70.0,
)

MOST_BODIES: Final = 64 * 1024 * 1024
"""Bytes of bodies that are being read, of all routers together."""

FOR_SMALL_BODIES: Final = 16 * 1024 * 1024
"""Of those, what small ones alone may take, such as the reports of most routers."""

# Names of what lies in memory alone, for the room that reads files.
_KEY, _CERTIFICATE, _CA = "the key of the routers' port", "its certificate", "the CA of the console"


class RoutersPort:
    """
    Listens for routers from start to stop.

    @param socket: an endpoint string without TLS, such as C{tcp:9443}.
    @param text: as the user wrote it.
    @param names: host names and addresses by which routers call the console.
    """

    def __init__(
        self,
        reactor: Any,
        authority: Authority,
        resource: RoutersResource,
        socket: str,
        text: str,
        names: Sequence[str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        traffic = TrafficLog(Counters(), LineLimit(time.monotonic), describe_failure)
        self.listeners = Listeners(reactor, BodyRoom(MOST_BODIES, FOR_SMALL_BODIES), traffic, ROUTERS_LIMITS)
        self._authority = authority
        self._resource = resource
        self._listener = Listener(text, socket, tls=TLS(_KEY, _CERTIFICATE, ca_file=_CA, asks_clients=True))
        self._names = tuple(names)
        self._clock = clock
        self._renew_at = 0.0

    @property
    def address(self) -> IAddress | None:
        """Where it listens; None while it does not."""
        return next((each.service.address for each in self.listeners), None)

    def start(self) -> None:
        """
        Open the port.

        @raise webhookrx.transport.listener_service.CannotListen: it can't be opened.
        """
        self._use_certificate()

    def tick(self) -> None:
        """Check all deadlines; called each half second."""
        self.listeners.sweep()
        if self._renew_at and self._clock() >= self._renew_at:
            self._use_certificate()

    async def stop(self) -> None:
        """Close the port and all its connections: routers come again."""
        for closed in self.listeners.close():
            await closed
        self.listeners.abort()

    def _use_certificate(self) -> None:
        """Take a new certificate for all connections to come."""
        identity = self._authority.identity_of_port(self._names, datetime.fromtimestamp(self._clock(), UTC))
        files: FileContents = {
            _KEY: (identity.key, 0o600),
            _CERTIFICATE: (identity.certificate, 0o600),
            _CA: ("".join(self._authority.authorities).encode(), 0o600),
        }
        key = self._listener.socket
        change = self.listeners.plan([self._listener], {key: self._resource}, ROUTERS_LIMITS, {key: files})
        change.open()
        self.listeners.commit(change)
        self._renew_at = identity.renew_at
