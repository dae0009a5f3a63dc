"""
The endpoint for operators: opened, changed and closed like those for senders, but never paused or drained with them.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from typing import Any

from twisted.web.resource import IResource

from twisted import __version__ as twisted_version
from webhookrx.operations.admin_resource import ADMIN_LIMITS, AdminResource, NoMessages
from webhookrx.operations.counters import Counters
from webhookrx.operations.health import WorkerState, health_of
from webhookrx.operations.metric import Build, View
from webhookrx.operations.metrics import METRICS
from webhookrx.operations.oplog import LineLimit
from webhookrx.operations.snapshot import ReceiverSnapshot
from webhookrx.operations.traffic_log import TrafficLog
from webhookrx.service.listeners import Listeners, ListenersChange
from webhookrx.settings import Listener
from webhookrx.speedups import compiled
from webhookrx.transport.handshake import describe_failure
from webhookrx.version import installed_version


class Admin:
    """
    Serves health and metrics.

    @param pages: makes the root of the pages, when there is an endpoint.
    @ivar traffic: logs problems of the endpoint.
    @ivar listeners: the endpoint, if there is one.
    """

    def __init__(self, reactor: Any, pages: Callable[[], IResource]) -> None:
        # Problems here are logged, but not counted among those of senders.
        self.traffic = TrafficLog(Counters(), LineLimit(time.monotonic), describe_failure)
        self.listeners = Listeners(reactor, NoMessages(), self.traffic, ADMIN_LIMITS)
        self._pages = pages
        self._resource: IResource | None = None

    def plan(self, listener: Listener | None) -> ListenersChange:
        """
        Plan the change to an endpoint, or to none; see L{Listeners.plan}.

        @raise webhookrx.errors.ConfigError: there is no such endpoint.
        """
        if listener is None:
            return self.listeners.plan([], {}, ADMIN_LIMITS)
        if self._resource is None:
            self._resource = self._pages()
        return self.listeners.plan([listener], {listener.socket: self._resource}, ADMIN_LIMITS)

    def open(self) -> None:
        """
        Open the endpoint, unless that is done.

        @raise webhookrx.transport.listener_service.CannotListen: it can't be opened.
        """
        for each in self.listeners:
            each.service.startService()

    async def close(self) -> None:
        """Close the endpoint and its connections."""
        for closed in self.listeners.close():
            await closed
        self.listeners.abort()


def this_build() -> Build:
    """Return what runs."""
    path = "pure" if compiled is None else "compiled"
    return Build(platform.python_version(), twisted_version, installed_version(), path)


def receiver_pages(
    counters: Callable[[], Counters],
    snapshot: Callable[[], ReceiverSnapshot],
    workers: Callable[[], Sequence[WorkerState]],
) -> Callable[[], IResource]:
    """
    Return what makes the pages of a receiver.

    @param counters: returns a copy of everything counted of senders.
    @param snapshot: returns the receiver as it is now.
    @param workers: returns the state of each process that receives.
    """
    build, started = this_build(), time.time()

    def view() -> View:
        return View(counters(), snapshot(), build, time.time(), started, tuple(workers()))

    def pages() -> IResource:
        # prometheus-client takes megabytes of memory.
        from webhookrx.operations.exposition import exposition

        return AdminResource(
            lambda accept: exposition(METRICS, view(), accept), lambda: health_of(snapshot(), workers())
        )

    return pages
