"""
The service of a console: its store, its parts and its endpoints, with signals and systemd.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any, Final

from twisted.application.service import Service
from twisted.internet.defer import Deferred, TimeoutError, gatherResults
from twisted.internet.error import ReactorNotRunning
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.web.resource import IResource

from webhookrx.console.api.dispatch import CONSOLE_LIMITS, FOR_SMALL_BODIES, MOST_BODIES
from webhookrx.console.body_room import BodyRoom
from webhookrx.console.console import Console
from webhookrx.console.lasting_objects import LastingObjects
from webhookrx.console.parts import add_parts
from webhookrx.console.settings import ConsoleSettings
from webhookrx.console.status import CONSOLE_METRICS, ConsoleStatus, console_health, fleet_status
from webhookrx.console.store.files import StoreFiles
from webhookrx.console.store.history import newest_revision
from webhookrx.console.store.threads import StoreThreads
from webhookrx.errors import StoreUnavailable
from webhookrx.operations.admin_resource import AdminResource
from webhookrx.operations.counters import Counters
from webhookrx.operations.oplog import LineLimit
from webhookrx.operations.signals import CUT_OFF, Signals, end_with
from webhookrx.operations.snapshot import Phase
from webhookrx.operations.systemd import Notifier
from webhookrx.operations.ticker import Ticker
from webhookrx.operations.traffic_log import TrafficLog
from webhookrx.service.admin import Admin, this_build
from webhookrx.service.description import where
from webhookrx.service.listeners import Listeners
from webhookrx.transport.handshake import describe_failure
from webhookrx.version import version_line

TIME_TO_STOP: Final = 10.0
"""Seconds that the end takes at most."""

TIME_TO_LEAVE: Final = 2.0
"""Seconds that calls under way have at the end."""

#: Turns of the reactor within which the end of an answer gets out, also through TLS.
_TURNS: Final = 4

_log = Logger()


class ConsoleService(Service):
    """
    Runs a console.

    @param files: the open store.
    @ivar console: what runs.
    """

    def __init__(self, settings: ConsoleSettings, files: StoreFiles, reactor: Any) -> None:
        self.phase = Phase.STARTING
        self._reactor = reactor
        self._files = files
        self.store = StoreThreads(reactor, files.writer, files.reader, files.looker)
        self.console = Console(settings, self.store, reactor)
        add_parts(self.console)
        self._started = time.time()
        self._traffic = TrafficLog(Counters(), LineLimit(time.monotonic), describe_failure)
        self._listeners = Listeners(reactor, BodyRoom(MOST_BODIES, FOR_SMALL_BODIES), self._traffic, CONSOLE_LIMITS)
        self._admin = Admin(reactor, self._pages)
        self._admin.listeners.commit(self._admin.plan(settings.admin))
        self._lasting = LastingObjects(reactor.seconds)
        self._ticker = Ticker(reactor, self._tick)
        self._signals = Signals(
            reactor,
            hang_up=self.hang_up,
            stop=self._end,
            stop_now=self._stop_now,
            time_to_stop=lambda: TIME_TO_STOP,
        )
        self._begun: list[Any] = []
        self._ready: Deferred[None] | None = None

    # -- starting ------------------------------------------------------------------------------------------------

    def startService(self) -> None:
        """
        Start the store, then all else once the reactor runs.

        @raise webhookrx.errors.CannotStart: the admin endpoint can't be opened.
        """
        super().startService()
        self._notifier = Notifier(os.environ)
        self._admin.open()
        self.store.start()
        self._ticker.startService()
        self._signals.take_hang_up()
        self._signals.take_termination()
        self._reactor.callWhenRunning(self._run)

    def _run(self) -> None:
        if self.running:
            self._signals.take_termination()  # again: the reactor has taken them since
            self._ready = Deferred.fromCoroutine(self._begin())
            self._ready.addErrback(self._cannot_begin)

    async def _begin(self) -> None:
        for part in self.console.parts:
            self._begun.append(part)
            await part.start()
        await self.store.read(newest_revision)
        # While nobody is served.
        self._lasting.start()
        self._listen()
        self.phase = Phase.RUNNING
        _log.info("{version}", version=version_line())
        for each in self._admin.listeners:
            _log.info("Health and metrics on {where}", where=where(each.service.address) or each.listener.text)
        for each in self._listeners:
            _log.info("The console is on {where}", where=where(each.service.address) or each.listener.text)
        self._notifier.ready(self.status_line())

    def _listen(self) -> None:
        ports = self.console.settings.ports
        change = self._listeners.plan(ports, {each.socket: self.console.root for each in ports}, CONSOLE_LIMITS)
        change.open()
        self._listeners.commit(change)

    def _cannot_begin(self, failure: Any) -> None:
        _log.critical("The console can't start: {problem}", problem=failure.getErrorMessage())
        if not failure.check(StoreUnavailable, OSError):
            _log.failure("This is where", failure)
        end_with(CUT_OFF)
        self._end()

    # -- running -------------------------------------------------------------------------------------------------

    def status(self) -> ConsoleStatus:
        """Return how the console does."""
        store = self.store
        return ConsoleStatus(
            self.phase,
            this_build(),
            self._started,
            store.revision,
            store.waiting,
            store.writes,
            store.failed_writes,
            store.problem,
            tuple(self.console.problems.values()),
            fleet_status(self.console.fleet),
            self.console.taps.status,
            self.console.alarms.status,
        )

    def status_line(self) -> str:
        """Return one line on how it does."""
        return f"revision {self.store.revision}, {self.store.writes} writes"

    def _pages(self) -> IResource:
        # prometheus-client takes megabytes of memory.
        from webhookrx.operations.exposition import exposition

        return AdminResource(
            lambda accept: exposition(CONSOLE_METRICS, self.status(), accept), lambda: console_health(self.status())
        )

    def _tick(self) -> None:
        self._listeners.sweep()
        self._admin.listeners.sweep()
        self._traffic.report_held_back()
        for part in self._begun:
            part.tick()
        if self.phase is Phase.RUNNING:
            self._lasting.tick()
        self._notifier.tick(alive=True)

    def hang_up(self) -> None:
        """SIGHUP: read key and certificate of C{--port} again; nothing else of a console comes from files."""
        if self.phase is not Phase.RUNNING:
            return
        self._notifier.reloading()
        try:
            ports = self.console.settings.ports
            roots = {each.socket: self.console.root for each in ports}
            self._listeners.commit(self._listeners.plan(ports, roots, CONSOLE_LIMITS))
            _log.info("Read key and certificate again")
        except Exception as error:  # the old ones stay
            _log.error("Key and certificate stay as they are: {problem}", problem=str(error))
        self._notifier.ready(self.status_line())

    # -- stopping ------------------------------------------------------------------------------------------------

    def stopService(self) -> Deferred[None]:
        """Close the endpoints, then the parts, then the store, in which all that was answered is."""
        return Deferred.fromCoroutine(self._stop())

    def _end(self) -> None:
        with suppress(ReactorNotRunning):
            self._reactor.stop()

    async def _stop(self) -> None:
        super().stopService()
        self.phase = Phase.DRAINING
        _log.info("Stopping")
        self._notifier.stopping("Closing")
        for closed in self._listeners.close():
            await closed
        await self._let_go()
        self._listeners.abort()
        while self._begun:
            try:
                await self._begun.pop().stop()
            except Exception:
                _log.failure("A part of the console could not be stopped")
        await deferToThreadPool(self._reactor, self._reactor.getThreadPool(), self.store.stop)
        self._files.release()
        await self._admin.close()
        self._ticker.stopService()
        self._signals.release()
        _log.info("Stopped")

    async def _let_go(self) -> None:
        """End streams, each with a word on why, and let calls under way be answered for a moment."""
        self.console.end_streams()
        answered = gatherResults(self._listeners.drain(), consumeErrors=True)
        with suppress(TimeoutError):
            await answered.addTimeout(TIME_TO_LEAVE, self._reactor)
        for _ in range(_TURNS):
            await deferLater(self._reactor, 0)

    def _stop_now(self) -> None:
        _log.warn("Second signal to stop: not waiting any longer")
        end_with(CUT_OFF)
        self._listeners.abort()
