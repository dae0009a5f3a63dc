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
from webhookrx.operations.facts import Facts
from webhookrx.operations.health import ALONE, Health, WorkerState, health_of
from webhookrx.operations.line_limit import LineLimit
from webhookrx.operations.metric import Build, View
from webhookrx.operations.traffic_log import TrafficLog
from webhookrx.service.listeners import Change, Listeners
from webhookrx.settings import Settings
from webhookrx.transport.handshake import describe_failure
from webhookrx.version import installed_version


class Admin:
    """
    Answers who asks how the receiver is.

    @param counters: gives what is counted of senders.
    @param facts: gives what is known of the receiver now.
    @param workers: gives how each worker is.
    @ivar traffic: logs what goes wrong at the endpoint.
    @ivar listeners: the endpoint, if there is one.
    """

    def __init__(
        self,
        reactor: Any,
        counters: Callable[[], Counters],
        facts: Callable[[], Facts],
        workers: Callable[[], Sequence[WorkerState]] = lambda: (ALONE,),
    ) -> None:
        # What goes wrong here is logged, but not counted as a sender's.
        self.traffic = TrafficLog(Counters(), LineLimit(time.monotonic), describe_failure)
        self.listeners = Listeners(reactor, NoMessages(), self.traffic, ADMIN_LIMITS)
        self._counters = counters
        self._facts = facts
        self._workers = workers
        self._build = Build(python=platform.python_version(), twisted=twisted_version, version=installed_version())
        self._started = time.time()
        self._resource: IResource | None = None

    def plan(self, settings: Settings) -> Change:
        """
        Prepare for the endpoint of these settings; see L{Listeners.plan}.

        @raise webhookrx.errors.ConfigError: there is no such endpoint.
        """
        if settings.admin is None:
            return self.listeners.plan([], {}, ADMIN_LIMITS)
        return self.listeners.plan([settings.admin], {settings.admin.inner: self._root()}, ADMIN_LIMITS)

    def open(self) -> None:
        """
        Open the endpoint, unless that is done.

        @raise webhookrx.transport.listener_service.CannotListen: it can't be opened.
        """
        for each in self.listeners:
            each.service.startService()

    async def close(self) -> None:
        """Close the endpoint, and what is connected to it."""
        for closed in self.listeners.close():
            await closed
        self.listeners.abort()

    def _root(self) -> IResource:
        if self._resource is None:
            # Megabytes of memory that nobody needs who does not ask.
            from webhookrx.operations.exposition import Exposition

            self._resource = AdminResource(Exposition(self._view).text, self._health)
        return self._resource

    def _view(self) -> View:
        return View(self._counters(), self._facts(), self._build, time.time(), self._started, tuple(self._workers()))

    def _health(self) -> Health:
        return health_of(self._facts(), self._workers())
