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
from webhookrx.operations.health import ALONE, Health, WorkerState, health_of
from webhookrx.operations.metric import Build, View
from webhookrx.operations.oplog import LineLimit
from webhookrx.operations.snapshot import ReceiverSnapshot
from webhookrx.operations.traffic_log import TrafficLog
from webhookrx.service.listeners import Listeners, ListenersChange
from webhookrx.settings import Settings
from webhookrx.speedups import compiled
from webhookrx.transport.handshake import describe_failure
from webhookrx.version import installed_version


class Admin:
    """
    Serves health and metrics.

    @param counters: returns a copy of everything counted of senders.
    @param snapshot: returns the receiver as it is now.
    @param workers: returns the state of each process that receives.
    @ivar traffic: logs problems of the endpoint.
    @ivar listeners: the endpoint, if there is one.
    """

    def __init__(
        self,
        reactor: Any,
        counters: Callable[[], Counters],
        snapshot: Callable[[], ReceiverSnapshot],
        workers: Callable[[], Sequence[WorkerState]] = lambda: (ALONE,),
    ) -> None:
        # Problems here are logged, but not counted among those of senders.
        self.traffic = TrafficLog(Counters(), LineLimit(time.monotonic), describe_failure)
        self.listeners = Listeners(reactor, NoMessages(), self.traffic, ADMIN_LIMITS)
        self._counters = counters
        self._snapshot = snapshot
        self._workers = workers
        self._build = Build(
            platform.python_version(), twisted_version, installed_version(), "pure" if compiled is None else "compiled"
        )
        self._started = time.time()
        self._resource: IResource | None = None

    def plan(self, settings: Settings) -> ListenersChange:
        """
        Plan the change to the endpoint of these settings; see L{Listeners.plan}.

        @raise webhookrx.errors.ConfigError: there is no such endpoint.
        """
        if settings.admin is None:
            return self.listeners.plan([], {}, ADMIN_LIMITS)
        return self.listeners.plan([settings.admin], {settings.admin.socket: self._root()}, ADMIN_LIMITS)

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

    def _root(self) -> IResource:
        if self._resource is None:
            # prometheus-client takes megabytes of memory.
            from webhookrx.operations.exposition import exposition

            self._resource = AdminResource(lambda accept: exposition(self._view(), accept), self._health)
        return self._resource

    def _view(self) -> View:
        return View(self._counters(), self._snapshot(), self._build, time.time(), self._started, tuple(self._workers()))

    def _health(self) -> Health:
        return health_of(self._snapshot(), self._workers())
