"""
The whole receiver as one process: settings to a running service, and to another one when the settings change.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ReactorNotRunning
from twisted.logger import Logger

from webhookrx.errors import ConfigError
from webhookrx.operations.facts import Facts, Phase
from webhookrx.operations.file_watch import FileWatch
from webhookrx.operations.health import health_of
from webhookrx.operations.kept_state import KeptState, keep_last_set
from webhookrx.operations.notify import Notifier
from webhookrx.operations.signals import CUT_OFF, GRACE, Signals, end_with
from webhookrx.operations.ticker import Ticker
from webhookrx.quantities import format_duration
from webhookrx.service.admin import Admin
from webhookrx.service.description import cannot_listen, rules_not_taken, summary, where
from webhookrx.service.receiver import Receiver
from webhookrx.service.reload import Reloads
from webhookrx.settings import Settings
from webhookrx.transport.listener_service import CannotListen, ListenerService

#: Ticks, of half a second each, between two reports of lines held back, and of status.
_TICKS_TO_REPORT = 10
_TICKS_TO_STATUS = 20

_log = Logger()


class ReceiverService(Service):
    """
    A receiver in a process of its own, with all that goes with it: the endpoint for operators, signals, reloads, and
    what the service manager is told.

    Nothing is opened before it starts, so that it can be built before C{twistd} goes to the background.

    @param reread: reads all settings anew, given those in use; what it raises is why they can't be used.
    """

    def __init__(self, settings: Settings, reactor: Any, reread: Callable[[Settings], Settings]) -> None:
        self.receiver = Receiver(settings, reactor)
        self._reactor = reactor
        self._reread = reread
        self._admin = Admin(reactor, lambda: self.receiver.counters, self._facts)
        self._admin.listeners.commit(self._admin.plan(settings))
        self._ticker = Ticker(reactor, self._tick)
        self._ticks = 0
        self._watch = FileWatch()
        self._watch.use(settings.watched)
        self._kept = KeptState(reactor, self.receiver.counters)
        self._signals = Signals(
            reactor,
            hang_up=self.hang_up,
            stop=self._end,
            hurry=self.receiver.hurry,
            time_to_stop=lambda: self.settings.drain_timeout,
        )

    @property
    def settings(self) -> Settings:
        """Those in use."""
        return self.receiver.settings

    @property
    def listeners(self) -> list[ListenerService]:
        """What has the ports, in the order of the settings; that for operators comes last."""
        return [*self.receiver.listeners, *(each.service for each in self._admin.listeners)]

    # -- starting ------------------------------------------------------------------------------------------------

    def privilegedStartService(self) -> None:
        """
        Open the ports.

        @raise webhookrx.transport.listener_service.CannotListen: one can't be opened.
        """
        super().privilegedStartService()
        self.receiver.open_ports()
        self._admin.open()

    def startService(self) -> None:
        """
        Open everything.

        @raise webhookrx.errors.CannotStart: an observer or a port can't be opened.
        """
        self.receiver.start()
        super().startService()
        # Not before the process is in the background: its number is to be its own.
        self._notifier = Notifier(os.environ)
        self._reloads = Reloads(self._reload, self.receiver.counters, self._notifier, self.status)
        self._admin.open()
        self._ticker.startService()
        self._signals.take_hang_up()
        self._signals.take_termination()
        self._say_how_it_is()
        self._reactor.callWhenRunning(self._is_up)

    def _is_up(self) -> None:
        if self.running:
            self._signals.take_termination()  # once more: the reactor has taken them since
            self.receiver.phase = Phase.RUNNING
            keep_last_set(self._kept, self.settings)
            self.receiver.fit = health_of(self.receiver.facts).fit
            self._notifier.ready(self.status())

    def _say_how_it_is(self) -> None:
        weaker = self.receiver.chain.weaker_than_ack()
        for warning in (*self.settings.warnings, *weaker):
            _log.warn("{problem}", problem=warning)
        for each in self._admin.listeners:
            _log.info("Health and metrics on {where}", where=where(each.service.address) or each.listener.text)
        for line in self.receiver.describe():
            _log.info("{line}", line=line)

    # -- running -------------------------------------------------------------------------------------------------

    def status(self) -> str:
        """Return one line on how the service does."""
        return self._reloads.told_in(summary(self.receiver.counters, self.receiver.facts))

    def _facts(self) -> Facts:
        return self.receiver.facts._replace(
            reload_succeeded=self._reloads.succeeded, not_taken=rules_not_taken(self.settings, self._reloads.failure)
        )

    def _tick(self) -> None:
        self.receiver.tick()
        self.receiver.fit = health_of(self.receiver.facts).fit
        self._admin.listeners.sweep()
        self._ticks += 1
        if self._ticks % _TICKS_TO_REPORT == 0:
            self._admin.traffic.report_held_back()
        if self._watch.tick():
            _log.info("The rules have changed, or what they name")
            self._reloads.request()
        self._reloads.tick()
        self._kept.tick()
        self._notifier.tick(alive=not self.receiver.chain.is_stuck)
        if self._ticks % _TICKS_TO_STATUS == 0 and self.receiver.phase is not Phase.DRAINING:
            self._notifier.status(self.status())

    # -- changing ------------------------------------------------------------------------------------------------

    def hang_up(self) -> None:
        """SIGHUP: read the settings and all files again, and open the files of messages anew by name."""
        self._reloads.request()

    async def _reload(self) -> str:
        try:
            return await self._change()
        finally:
            # Whatever became of the settings, logrotate relies on it.
            self.receiver.reopen()

    async def _change(self) -> str:
        """
        Go by settings that are read anew. Up to the last step nothing of the old is given up.

        @return: what has changed.
        @raise webhookrx.errors.WebhookrxError: why everything stays as it was.
        """
        before = self.settings
        self._watch.read()
        settings = self._reread(before)
        if settings.workers > 1:
            raise ConfigError("One process can't become several by a reload, restart for it.", option="workers")
        admin_change = self._admin.plan(settings)
        try:
            admin_change.open()
            text = await self.receiver.change(settings)
        except BaseException as error:
            admin_change.abandon()
            if isinstance(error, CannotListen):
                raise cannot_listen(error, settings) from None
            raise
        self._admin.listeners.commit(admin_change)
        self._watch.use(settings.watched)
        keep_last_set(self._kept, settings)
        if settings != before:
            self._say_how_it_is()
        return text

    # -- stopping ------------------------------------------------------------------------------------------------

    def stopService(self) -> Deferred[None]:
        """Take nothing new, finish what is under way, make it safe, and close."""
        return Deferred.fromCoroutine(self._stop()) if self.running else succeed(None)

    def _end(self) -> None:
        """SIGTERM: have the process end. Its status is not that of a death by a signal, as it is with Twisted's own."""
        with suppress(ReactorNotRunning):
            self._reactor.stop()

    async def _stop(self) -> None:
        super().stopService()
        seconds = self.settings.drain_timeout
        _log.info("Stopping: what is under way has {most} to finish", most=format_duration(seconds))
        self._notifier.stopping("Finishing what is under way")
        self._notifier.extend(seconds + GRACE)
        self._reloads.stop()
        whole = await self.receiver.drain(seconds)
        # Up to here who asked could see how the end went.
        await self._admin.close()
        self._ticker.stopService()
        self._signals.release()
        _log.info("Stopped. Counts: {counts}", counts=self.receiver.counters.summary() or "none")
        if self.receiver.hurried and not whole:
            end_with(CUT_OFF)


def build(
    settings: Settings, reactor: Any = None, reread: Callable[[Settings], Settings] | None = None
) -> ReceiverService:
    """
    Make the service of these settings; nothing is opened yet.

    @param reactor: the global one when None.
    @param reread: reads all settings anew for a reload, given those in use; with None these are used again.
    @raise ConfigError: a file that was there at validation has gone, or a socket of systemd was not passed.
    """
    if reactor is None:
        from twisted.internet import reactor
    return ReceiverService(settings, reactor, (lambda _: settings) if reread is None else reread)
