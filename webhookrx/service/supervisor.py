"""
The whole receiver as several processes: workers that receive, and this one, which opens what they share, watches over
them and speaks for them.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred, gatherResults, succeed
from twisted.internet.error import ReactorNotRunning
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from webhookrx.operations.counters import Counters
from webhookrx.operations.facts import Facts, Level, Phase, total
from webhookrx.operations.file_watch import FileWatch
from webhookrx.operations.health import health_of
from webhookrx.operations.kept_state import KeptState, keep_last_set
from webhookrx.operations.notify import Notifier
from webhookrx.operations.signals import CUT_OFF, GRACE, Signals, end_with
from webhookrx.operations.ticker import Ticker
from webhookrx.quantities import format_duration
from webhookrx.service.admin import Admin
from webhookrx.service.description import cannot_listen, describe, rules_not_taken, summary, where
from webhookrx.service.reload import Reloads
from webhookrx.service.routes import by_listener, connector_labels
from webhookrx.service.workers.messages import check
from webhookrx.service.workers.pool import LAST_MOMENT, Crew, Sockets
from webhookrx.service.workers.process import Launch, Launcher
from webhookrx.settings import Settings
from webhookrx.transport.endpoints import socket_endpoint
from webhookrx.transport.listener_service import CannotListen
from webhookrx.transport.shared_ports import BoundPorts

#: Ticks, of half a second each, between two reports of lines held back, and of status.
_TICKS_TO_REPORT = 10
_TICKS_TO_STATUS = 20

_log = Logger()


class SupervisorService(Service):
    """
    The parent of the workers. It opens the ports and never accepts, so that a worker which ends takes nothing along
    that waits in them; it is who signals, service manager and operators speak to.

    @param reread: reads all settings anew, given those in use; what it raises is why they can't be used.
    @param launch: starts a worker.
    """

    def __init__(
        self, settings: Settings, reactor: Any, reread: Callable[[Settings], Settings], launch: Launch | None = None
    ) -> None:
        check(settings)
        self.phase = Phase.STARTING
        self._reactor = reactor
        self._reread = reread
        self._counters = Counters()
        self._ports = BoundPorts(partial(socket_endpoint, reactor))
        self._ports.commit(self._ports.plan(listener for listener, _ in by_listener(settings.sources)))
        self._turns = -1
        self._crew = Crew(
            Launcher(reactor, os.environ) if launch is None else launch,
            lambda: Sockets(self._ports.descriptors, self._turns),
            settings,
            time.monotonic,
            random.random,
            up=self._is_up,
            failed=self._fail,
        )
        self._admin = Admin(reactor, self._all_counters, self._facts, lambda: self._crew.workers)
        self._admin.listeners.commit(self._admin.plan(settings))
        self._ticker = Ticker(reactor, self._tick)
        self._ticks = 0
        self._watch = FileWatch()
        self._watch.use(settings.watched)
        self._kept = KeptState(reactor, self._counters)
        self._hung_up = False
        self._hurried = False
        self._stops = False
        self._failed = False
        self._last_look: IDelayedCall | None = None
        self._signals = Signals(
            reactor,
            hang_up=self.hang_up,
            stop=self._end,
            hurry=self.hurry,
            time_to_stop=lambda: self.settings.drain_timeout,
        )

    @property
    def settings(self) -> Settings:
        """Those in use."""
        return self._crew.settings

    # -- starting ------------------------------------------------------------------------------------------------

    def privilegedStartService(self) -> None:
        """
        Open the ports.

        @raise webhookrx.transport.listener_service.CannotListen: one can't be opened.
        """
        super().privilegedStartService()
        for port in self._ports:
            port.startService()
        self._admin.open()

    def startService(self) -> None:
        """
        Open what is shared, and have the workers started once the reactor runs.

        @raise webhookrx.transport.listener_service.CannotListen: a port can't be opened.
        """
        self.privilegedStartService()
        super().startService()
        # By locks on it workers take turns where several write to one place (fcntl(2)).
        self._turns = os.memfd_create("webhookrx-turns")
        # Not before the process is in the background: its number is to be its own.
        self._notifier = Notifier(os.environ)
        self._loaded = time.time()
        self._reloads = Reloads(self._reload, self._counters, self._notifier, self.status, counted=self._all_counters)
        self._ticker.startService()
        self._signals.take_hang_up()
        self._signals.take_termination()
        self._reactor.callWhenRunning(self._begin)

    def _begin(self) -> None:
        if self.running:
            self._signals.take_termination()  # once more: the reactor has taken them since
            self._crew.start()

    def _is_up(self) -> None:
        self.phase = Phase.RUNNING
        self._crew.say_fitness(self._is_fit)
        self._say_how_it_is()
        keep_last_set(self._kept, self.settings)
        self._notifier.ready(self.status())
        if self._hung_up:
            self._reloads.request()

    def _fail(self, why: str) -> None:
        """A worker can't begin, so it would be of no use to try again."""
        if not self._failed:
            self._failed = True
            _log.critical("{why}", why=why)
            end_with(CUT_OFF)
            self._end()

    def _say_how_it_is(self) -> None:
        for warning in self.settings.warnings:
            _log.warn("{problem}", problem=warning)
        for each in self._admin.listeners:
            _log.info("Health and metrics on {where}", where=where(each.service.address) or each.listener.text)
        _log.info("{workers} workers share all endpoints", workers=self.settings.workers)
        for line in describe(self.settings, self._ports.addresses):
            _log.info("{line}", line=line)

    # -- running -------------------------------------------------------------------------------------------------

    def status(self) -> str:
        """Return one line on how the service does."""
        up = sum(worker.up for worker in self._crew.workers)
        # How a reload has failed is told once.
        counts = summary(self._all_counters(), self._facts()._replace(not_taken=self.settings.not_taken))
        return self._reloads.told_in(f"{up} of {self.settings.workers} workers, {counts}")

    def _all_counters(self) -> Counters:
        counters = self._crew.counters
        counters.add_all(self._counters)
        counters.add("worker_restarts", amount=self._crew.restarts)
        return counters

    def _facts(self) -> Facts:
        """What all of it is like: what the workers say of themselves, and what only this process knows."""
        listeners = [listener for listener, _ in by_listener(self.settings.sources)]
        addresses = self._ports.addresses
        workers = self._crew.facts
        return (total(workers) if workers else _nothing())._replace(
            phase=self.phase,
            endpoints={each.text: addresses.get(each.inner) is not None for each in listeners},
            sources=[source.name for source in self.settings.sources],
            connectors=connector_labels(self.settings),
            blocked=self.settings.blocked,
            closed=self.settings.closed,
            not_taken=rules_not_taken(self.settings, self._reloads.failure),
            reload_succeeded=self._reloads.succeeded,
            loaded=self._loaded,
        )

    @property
    def _is_fit(self) -> bool:
        return health_of(self._facts(), self._crew.workers).fit

    def _tick(self) -> None:
        self._crew.tick()
        self._crew.say_fitness(self._is_fit)
        self._admin.listeners.sweep()
        self._ticks += 1
        if self._ticks % _TICKS_TO_REPORT == 0:
            self._admin.traffic.report_held_back()
            self._crew.report_held_back()
        if self._watch.tick():
            _log.info("The rules have changed, or what they name")
            self.hang_up()
        self._reloads.tick()
        self._kept.tick()
        self._notifier.tick(alive=not self._crew.stuck)
        if self._ticks % _TICKS_TO_STATUS == 0 and self.phase is Phase.RUNNING:
            self._notifier.status(self.status())

    # -- changing ------------------------------------------------------------------------------------------------

    def hang_up(self) -> None:
        """SIGHUP: read the settings and all files again, and open the files of messages anew by name."""
        if self.phase is Phase.STARTING:
            self._hung_up = True  # what is not up yet can't be told to be ready again
        else:
            self._reloads.request()

    async def _reload(self) -> str:
        try:
            return await self._change()
        finally:
            # Whatever became of the settings, logrotate relies on it.
            self._crew.reopen()

    async def _change(self) -> str:
        """
        Go by settings that are read anew.

        @return: what has changed.
        @raise webhookrx.errors.WebhookrxError: why everything stays as it was.
        """
        before = self.settings
        self._watch.read()
        settings = self._reread(before)
        check(settings)
        change = self._ports.plan(listener for listener, _ in by_listener(settings.sources))
        admin_change = self._admin.plan(settings)
        try:
            change.open()
            admin_change.open()
            text = await self._crew.change(settings, change.descriptors)
        except BaseException as error:
            change.abandon()
            admin_change.abandon()
            if isinstance(error, CannotListen):
                raise cannot_listen(error, settings) from None
            raise
        self._ports.commit(change)
        self._admin.listeners.commit(admin_change)
        self._watch.use(settings.watched)
        self._loaded = time.time()
        keep_last_set(self._kept, settings)
        if settings != before:
            self._say_how_it_is()
        return text

    # -- stopping ------------------------------------------------------------------------------------------------

    def stopService(self) -> Deferred[None]:
        """Have the workers take nothing new, finish what is under way, make it safe, and end."""
        return Deferred.fromCoroutine(self._stop()) if self.running else succeed(None)

    def hurry(self) -> None:
        """End at once what L{stopService} does."""
        self._hurried = True
        if self._stops and self._last_look is None:
            _log.warn("Told to stop once more: not waiting any longer")
            self._crew.hurry()
            # By the wall clock, but the ticker looks as well.
            self._last_look = self._reactor.callLater(LAST_MOMENT, self._crew.tick)

    def _end(self) -> None:
        """SIGTERM: have the process end. Its status is not that of a death by a signal, as it is with Twisted's own."""
        with suppress(ReactorNotRunning):
            self._reactor.stop()

    async def _stop(self) -> None:
        super().stopService()
        self.phase = Phase.DRAINING
        seconds = self.settings.drain_timeout
        _log.info("Stopping: what is under way has {most} to finish", most=format_duration(seconds))
        self._notifier.stopping("Finishing what is under way")
        self._notifier.extend(seconds + GRACE)
        self._reloads.stop()
        ports_closed, ended = self._crew.stop(seconds)
        self._stops = True
        if self._hurried:
            self.hurry()
        await ports_closed
        # Not earlier: to close them here is to close them for all.
        await gatherResults(self._ports.close())
        whole = await ended
        if self._last_look is not None and self._last_look.active():
            self._last_look.cancel()
        # Up to here who asked could see how the end went.
        await self._admin.close()
        self._ticker.stopService()
        self._signals.release()
        os.close(self._turns)
        self._turns = -1
        _log.info("Stopped. Counts: {counts}", counts=self._all_counters().summary() or "none")
        if not whole:
            end_with(CUT_OFF)


def _nothing() -> Facts:
    """Return the facts of no worker."""
    return Facts(Phase.STARTING, {}, (), (), Level(0, 0), Level(0, 0), Level(0, 0), 0, False, {}, True, 0.0)


def build(
    settings: Settings, reactor: Any = None, reread: Callable[[Settings], Settings] | None = None
) -> SupervisorService:
    """
    Make the service of these settings; nothing is opened yet.

    @param reactor: the global one when None.
    @param reread: reads all settings anew for a reload, given those in use; with None these are used again.
    @raise webhookrx.errors.ConfigError: a socket of systemd was not passed, or a file has a name that is no text.
    """
    if reactor is None:
        from twisted.internet import reactor
    return SupervisorService(settings, reactor, (lambda _: settings) if reread is None else reread)
