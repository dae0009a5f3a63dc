"""
The service: a receiver, in this process or in workers, with signals, reloads, systemd and the endpoint for operators.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from twisted.application.service import Service
from twisted.internet.defer import Deferred, gatherResults, succeed
from twisted.internet.error import ReactorNotRunning
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError, WebhookrxError
from webhookrx.operations.counters import Counters
from webhookrx.operations.health import health_of
from webhookrx.operations.kept_state import KeptState, keep_last_set
from webhookrx.operations.signals import CUT_OFF, GRACE, Signals, end_with
from webhookrx.operations.snapshot import Phase, ReceiverSnapshot
from webhookrx.operations.status import Rates, status_of
from webhookrx.operations.steady_timers import use_monotonic_clock
from webhookrx.operations.systemd import Notifier
from webhookrx.operations.ticker import Ticker
from webhookrx.quantities import format_duration
from webhookrx.service.admin import Admin, receiver_pages
from webhookrx.service.alarms import ReceiverAlarms
from webhookrx.service.control import ControlSocket
from webhookrx.service.description import cannot_listen, rules_not_taken, summary, where
from webhookrx.service.receiver import LocalReceiver
from webhookrx.service.receiver_interface import Receiver
from webhookrx.service.reload import UNFORESEEN, FileWatch, Reloads
from webhookrx.service.service_taps import ServiceTaps
from webhookrx.settings import Settings
from webhookrx.transport.listener_service import CannotListen
from webhookrx.version import installed_version, version_line

if TYPE_CHECKING:
    from webhookrx.service.console_agent import AgentOfService

#: Ticks, of half a second each, between two reports of lines held back, of status, and of rates; and looks at alarms.
_TICKS_TO_REPORT = 10
_TICKS_TO_STATUS = 20
_TICKS_TO_RATE = 20
_TICKS_TO_ALARMS = 20

_log = Logger()


class ReceiverService(Service):
    """
    Runs a receiver. It opens nothing before it starts, so that it can be built before C{twistd} goes to the background.

    @param reread: reads all settings anew, given those in use, in a thread; what it raises is why they can't be used.
    """

    def __init__(self, receiver: Receiver, reactor: Any, reread: Callable[[Settings], Settings]) -> None:
        self.receiver = receiver
        self._reactor = reactor
        self._reread = reread
        self._own_counters = Counters()
        self._admin = Admin(reactor, receiver_pages(self._counters, self._snapshot, lambda: receiver.workers))
        self._admin.listeners.commit(self._admin.plan(self.settings.admin))
        self._rates = Rates(time.monotonic)
        self._taps = ServiceTaps(reactor, receiver)
        self._control = ControlSocket(reactor, self._full_status, self._taps)
        self._alarms = ReceiverAlarms(reactor, self._counters, self._snapshot, self._own_counters)
        self._agent = self._agent_of_console()
        self._ticker = Ticker(reactor, self._tick)
        self._ticks = 0
        self._watch = FileWatch()
        self._watch.use(self.settings.watched)
        self._kept = KeptState(reactor, self._own_counters)
        self._started = time.time()
        self._failed = False
        self._hung_up = False
        self._signals = Signals(
            reactor,
            hang_up=self.hang_up,
            stop=self._end,
            stop_now=receiver.stop_now,
            time_to_stop=lambda: self.settings.drain_timeout,
        )

    @property
    def settings(self) -> Settings:
        """The settings in use."""
        return self.receiver.settings

    def _agent_of_console(self) -> AgentOfService | None:
        """Return the agent of the console; None without one."""
        if self.settings.console is None:
            return None
        # It takes megabytes of memory, which a receiver without a console does not need.
        from webhookrx.service.console_agent import AgentOfService

        return AgentOfService(
            self._reactor,
            lambda: self.settings,
            self.hang_up,
            self._counters,
            self._snapshot,
            lambda: tuple(self.receiver.workers),
            self._taps,
        )

    # -- starting ------------------------------------------------------------------------------------------------

    def privilegedStartService(self) -> None:
        """
        Open the ports.

        @raise webhookrx.transport.listener_service.CannotListen: one can't be opened.
        """
        super().privilegedStartService()
        try:
            self.receiver.open_ports()
        except CannotListen as error:
            self._note_unusable(error)
            raise
        self._admin.open()

    def startService(self) -> None:
        """
        Open everything.

        @raise webhookrx.errors.CannotStart: an observer or a port can't be opened.
        """
        self.receiver.start()
        super().startService()
        # Not before the process is in the background, since systemd knows it by its number.
        self._notifier = Notifier(os.environ)
        self._reloads = Reloads(self._reload, self._counters, self._own_counters, self._notifier, self.status)
        self._admin.open()
        if self.settings.control is not None:
            self._control.open(self.settings.control)
        self._ticker.startService()
        self._signals.take_hang_up()
        self._signals.take_termination()
        self._reactor.callWhenRunning(self._run)

    def _note_unusable(self, error: CannotListen) -> None:
        """Have the next start not fail as this one, if it is the newest rules of a console that it fails for."""
        if self.settings.console is not None:
            from webhookrx.service.console_agent import refuse_bundle

            refuse_bundle(self.settings, error)

    def _run(self) -> None:
        if self.running:
            self._signals.take_termination()  # again: the reactor has taken them since
            self.receiver.run(self._is_up, self._fail)

    def _is_up(self) -> None:
        self._log_state()
        keep_last_set(self._kept, self.settings)
        self._alarms.use(self.settings.alarms)
        self._update_readiness()
        self._notifier.ready(self.status())
        if self._agent is not None:
            self._agent.start()
        if self._hung_up:
            self._reloads.request()

    def _fail(self, why: str) -> None:
        """End the process: another try would fail as well."""
        if not self._failed:
            self._failed = True
            _log.critical("{why}", why=why)
            end_with(CUT_OFF)
            self._end()

    def _log_state(self) -> None:
        _log.info("{version}", version=version_line())
        for warning in (*self.settings.warnings, *self.receiver.warnings):
            _log.warn("{problem}", problem=warning)
        for each in self._admin.listeners:
            _log.info("Health and metrics on {where}", where=where(each.service.address) or each.listener.text)
        if self.settings.control is not None:
            _log.info("Control socket {path}", path=self.settings.control)
        for line in self.receiver.describe():
            _log.info("{line}", line=line)

    # -- running -------------------------------------------------------------------------------------------------

    def status(self) -> str:
        """Return one line on how the service does."""
        # Without _snapshot(): how a reload has failed is said once.
        counts = summary(self._counters(), self.receiver.snapshot, self.receiver.workers)
        return self._reloads.with_failure(counts)

    def _counters(self) -> Counters:
        """Return everything counted until now, as a copy."""
        counters = self.receiver.counters.copy()
        counters.add_all(self._own_counters)
        return counters

    def _snapshot(self) -> ReceiverSnapshot:
        console = None if self._agent is None else self._agent.standing
        failure = self._reloads.failure if console is None else console.error if console.status == "FAILED" else ""
        return replace(
            self.receiver.snapshot,
            reload_succeeded=self._reloads.succeeded,
            not_taken=rules_not_taken(self.settings, failure),
            alarms=self._alarms.tallies,
            console=console,
        )

    def _full_status(self) -> dict[str, Any]:
        """Return the service as it is now, for people."""
        snapshot, workers = self._snapshot(), self.receiver.workers
        rates, now = self._rates.rates(), time.time()
        version, alarms = installed_version(), self._alarms.rows
        return status_of(self._counters(), snapshot, workers, rates, now, self._started, version, alarms)

    def _update_readiness(self) -> None:
        snapshot = self.receiver.snapshot if self._agent is None else self._snapshot()
        self.receiver.set_ready(health_of(snapshot, self.receiver.workers).is_ready)

    def _tick(self) -> None:
        self.receiver.tick()
        self._update_readiness()
        self._admin.listeners.sweep()
        self._control.tick()
        self._ticks += 1
        if self._ticks % _TICKS_TO_RATE == 0:
            self._rates.take({name: each.messages for name, each in self.receiver.counters.sources.items()})
        if self._ticks % _TICKS_TO_ALARMS == 0 and self.receiver.phase is Phase.RUNNING:
            self._alarms.look()
        if self._ticks % _TICKS_TO_REPORT == 0:
            self._admin.traffic.report_held_back()
        if self._watch.tick():
            _log.info(
                "A file that is watched has changed: {paths}", paths=", ".join(map(quoted, self._watch.changed[:3]))
            )
            self.hang_up()
        self._reloads.tick()
        self._kept.tick()
        self._notifier.tick(alive=not self.receiver.is_stuck)
        if self._ticks % _TICKS_TO_STATUS == 0 and self.receiver.phase is Phase.RUNNING:
            self._notifier.status(self.status())

    # -- changing ------------------------------------------------------------------------------------------------

    def hang_up(self) -> None:
        """SIGHUP: read the settings and all files again, and reopen the files of messages by name."""
        if self.receiver.phase is Phase.STARTING:
            self._hung_up = True  # a service that is not up can't report that it is ready again
        else:
            self._reloads.request()

    async def _reload(self) -> str:
        try:
            text = await self._change()
            if self._agent is not None:
                self._agent.settled("")
            return text
        except BaseException as error:
            if self._agent is not None:
                self._agent.settled(str(error) if isinstance(error, WebhookrxError) else UNFORESEEN)
            raise
        finally:
            # Whatever became of the settings, logrotate relies on it.
            self.receiver.reopen()

    async def _change(self) -> str:
        """
        Use settings that are read anew. Up to the last step nothing of the old is given up.

        @return: what has changed.
        @raise webhookrx.errors.WebhookrxError: why everything stays as it was.
        """
        before = self.settings
        self._watch.read()
        settings = await self._read_apart(before)
        self.receiver.check(settings)
        if settings.control != before.control:
            raise ConfigError("The control socket can't change by a reload, restart for it.", option="control")
        if settings.console != before.console:
            raise ConfigError("The console can't change by a reload, restart for it.", option="console")
        admin_change = self._admin.plan(settings.admin)
        try:
            admin_change.open()
            text = await self.receiver.change(settings)
        except BaseException as error:
            admin_change.abandon()
            if isinstance(error, CannotListen):
                raise cannot_listen(error, settings) from None
            raise
        closed = self._admin.listeners.commit(admin_change)
        self._watch.use(settings.watched)
        keep_last_set(self._kept, settings)
        self._alarms.use(self.settings.alarms)
        if settings != before:
            self._log_state()
        await gatherResults(closed)
        return text

    async def _read_apart(self, before: Settings) -> Settings:
        """
        Return settings that are read anew, in a thread: two hundred rules take a tenth of a second, and keys longer.

        @raise webhookrx.errors.ConfigError: a mistake in them, or the receiver stops meanwhile.
        """
        settings = await deferToThreadPool(self._reactor, self._reactor.getThreadPool(), self._reread, before)
        if self.receiver.phase is Phase.DRAINING:
            raise ConfigError("The receiver stops.")
        return settings

    # -- stopping ------------------------------------------------------------------------------------------------

    def stopService(self) -> Deferred[None]:
        """Take nothing new, finish what is under way, make it safe, and close."""
        return Deferred.fromCoroutine(self._stop()) if self.running else succeed(None)

    def _end(self) -> None:
        """SIGTERM: end the process with a status; with Twisted's own handler it would die by the signal."""
        with suppress(ReactorNotRunning):
            self._reactor.stop()

    async def _stop(self) -> None:
        super().stopService()
        seconds = self.settings.drain_timeout
        _log.info("Stopping: requests in progress have {most} to finish", most=format_duration(seconds))
        self._notifier.stopping("Finishing requests in progress")
        self._notifier.extend(seconds + GRACE)
        self._reloads.stop()
        if self._agent is not None:
            await self._agent.stop()
        ended_well = await self.receiver.drain(seconds)
        # Last, so that operators can see how the end went.
        await self._admin.close()
        await self._control.close()
        self._alarms.stop()
        self._ticker.stopService()
        self._signals.release()
        _log.info("Stopped. Counts: {counts}", counts=self._counters().summary() or "none")
        if not ended_well:
            end_with(CUT_OFF)


def build_service(
    settings: Settings, reactor: Any = None, reread: Callable[[Settings], Settings] | None = None
) -> ReceiverService:
    """
    Make the service of these settings; nothing is opened yet.

    @param reactor: by default the global one, whose timers go by the monotonic clock from now on.
    @param reread: reads all settings anew for a reload, given those in use; by default these are used again.
    @raise webhookrx.errors.ConfigError: a file that was there at validation has gone, systemd did not pass a socket, or
        the name of a file can't be sent to workers.
    """
    if reactor is None:
        from twisted.internet import reactor

        use_monotonic_clock(reactor)
    receiver: Receiver
    if settings.workers > 1:
        from webhookrx.service.workers.pool import WorkerPool

        receiver = WorkerPool(settings, reactor)
    else:
        receiver = LocalReceiver(settings, reactor)
    return ReceiverService(receiver, reactor, (lambda _: settings) if reread is None else reread)
