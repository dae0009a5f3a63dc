"""
The one place that knows all: settings to a running service, and to another one when the settings change.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ReactorNotRunning
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from webhookrx import known_observers
from webhookrx.admin import Admin
from webhookrx.config.settings import Observer, Settings
from webhookrx.description import describe, too_few_files, where
from webhookrx.drain import LAST_WORDS, Drain
from webhookrx.errors import REASONS, CannotStart, ConfigError
from webhookrx.interfaces import IMessageObserver
from webhookrx.listeners import Listeners
from webhookrx.listening.listener_service import ListenerService
from webhookrx.operations.counters import Counters
from webhookrx.operations.facts import Facts, Level, Phase
from webhookrx.operations.line_limit import LineLimit
from webhookrx.operations.notify import Notifier
from webhookrx.operations.receipts import Receipts
from webhookrx.operations.signals import CUT_OFF, GRACE, Signals, end_with
from webhookrx.operations.ticker import Ticker
from webhookrx.operations.traffic_log import TrafficLog
from webhookrx.pipeline.chain import Chain
from webhookrx.pipeline.worker import ThreadWorker
from webhookrx.quantities import format_duration
from webhookrx.reload import Reloads
from webhookrx.routes import build_roots, by_listener
from webhookrx.tls.handshake import describe_failure

#: Ticks, of half a second each, between two reports of lines held back, and of status.
_TICKS_TO_REPORT = 10
_TICKS_TO_STATUS = 20

_log = Logger()


class ReceiverService(Service):
    """
    The whole receiver.

    Nothing is opened before it starts, so that it can be built before C{twistd} goes to the background. It opens
    ports first, while the process may still be privileged, and files after, as the user who will write to them.

    @param reread: reads all settings anew; what it raises is why they can't be used.
    @ivar settings: those in use.
    @ivar phase: what it is about.
    """

    def __init__(self, settings: Settings, reactor: Any, reread: Callable[[], Settings]) -> None:
        self.settings = settings
        self.phase = Phase.STARTING
        self.counters = Counters()
        self._reactor = reactor
        self._reread = reread
        self._traffic = TrafficLog(self.counters, LineLimit(time.monotonic), describe_failure)
        self._observers = _build_observers(settings, {})
        self.chain = Chain(
            reactor,
            list(self._observers.values()),
            ack=settings.ack,
            max_bytes=settings.limits.queue,
            max_messages=settings.limits.queue_messages,
            patience=settings.limits.answer_time,
            pause_time=settings.limits.pause_time,
            make_worker=partial(ThreadWorker, reactor),
            report=self._traffic.observer_failed,
            stored=self._traffic.store_done,
        )
        self._endpoints = Listeners(reactor, self.chain, self._traffic, settings.limits)
        listeners = [listener for listener, _ in by_listener(settings.sources)]
        self._endpoints.commit(self._endpoints.plan(listeners, {}, settings.limits))
        self._admin = Admin(reactor, self.counters, self._facts)
        self._admin.listeners.commit(self._admin.plan(settings))
        self._ticker = Ticker(reactor, self._tick)
        self._ticks = 0
        self._drain: Drain | None = None
        self._hurried = False
        self._last_look: IDelayedCall | None = None
        self._signals = Signals(
            reactor,
            hang_up=self.hang_up,
            stop=self._end,
            hurry=self.hurry,
            time_to_stop=lambda: self.settings.drain_timeout,
        )

    @property
    def listeners(self) -> list[ListenerService]:
        """What has the ports, in the order of the settings; that for operators comes last."""
        return [each.service for each in (*self._endpoints, *self._admin.listeners)]

    # -- starting ------------------------------------------------------------------------------------------------

    def privilegedStartService(self) -> None:
        """
        Open the ports.

        @raise webhookrx.listening.listener_service.CannotListen: one can't be opened.
        """
        super().privilegedStartService()
        for service in self.listeners:
            service.privilegedStartService()

    def startService(self) -> None:
        """
        Open everything.

        @raise CannotStart: an observer can't be opened.
        @raise webhookrx.listening.listener_service.CannotListen: a port can't be opened.
        """
        try:
            self.chain.start()
        except ConfigError as error:
            raise CannotStart(str(error)) from None
        super().startService()
        # Not before the process is in the background: its number, and what it draws at random, are to be its own.
        self._notifier = Notifier(os.environ)
        self._receipts = Receipts()
        self._loaded = time.time()
        self._reloads = Reloads(self._reload, self.counters, self._notifier, self.status)
        for service in self.listeners:
            service.startService()
        self._endpoints.use(self._build_roots(self.settings), self.settings.limits)
        self.chain.registerProducer(self._endpoints, True)
        self._ticker.startService()
        self._signals.take_hang_up()
        self._signals.take_termination()
        self._say_how_it_is()
        self._reactor.callWhenRunning(self._is_up)

    def _is_up(self) -> None:
        if self.running:
            self._signals.take_termination()  # once more: the reactor has taken them since
            self.phase = Phase.RUNNING
            self._notifier.ready(self.status())

    def _say_how_it_is(self) -> None:
        for warning in (*self.settings.warnings, *self.chain.weaker_than_ack(), *too_few_files(self.settings)):
            _log.warn("{problem}", problem=warning)
        for each in self._admin.listeners:
            _log.info("Health and metrics on {where}", where=where(each.service.address) or each.listener.text)
        for line in self.describe():
            _log.info("{line}", line=line)

    def describe(self) -> list[str]:
        """Return a line for each endpoint: where it listens, with which patterns, policy and observers."""
        return describe(self.settings, {each.listener.inner: each.service.address for each in self._endpoints})

    # -- running -------------------------------------------------------------------------------------------------

    def status(self) -> str:
        """Return one line on how the service does."""
        counters = self.counters
        messages = sum(counts.messages for counts in counters.sources.values())
        sources = {"", *counters.sources, *(source.name for source in self.settings.sources)}
        refused = sum(counters.get("refused", reason.word, source) for reason in REASONS for source in sources)
        line = f"{messages} messages, {refused} refused, {self.chain.budget.messages} waiting"
        last = self._reloads.last
        return line if last is None or last.ok else f"{line}; the last reload failed: {last.text}"

    def _facts(self) -> Facts:
        budget, limits, endpoints, last = self.chain.budget, self.settings.limits, self._endpoints, self._reloads.last
        return Facts(
            phase=self.phase,
            endpoints={each.listener.text: each.service.address is not None for each in endpoints},
            lanes=self.chain.lanes(),
            sources=[source.name for source in self.settings.sources],
            queue_bytes=Level(budget.bytes, limits.queue),
            queue_messages=Level(budget.messages, limits.queue_messages),
            connections=Level(endpoints.connections.total, endpoints.connections.most),
            requests=endpoints.requests,
            paused=endpoints.paused,
            certificates=endpoints.certificates,
            reload_succeeded=last is None or last.ok,
            loaded=self._loaded,
        )

    def _tick(self) -> None:
        self._endpoints.sweep()
        self._admin.listeners.sweep()
        self.chain.tick()
        self._ticks += 1
        if self._ticks % _TICKS_TO_REPORT == 0:
            self._traffic.report_held_back()
            self._admin.traffic.report_held_back()
        self._reloads.tick()
        self._notifier.tick(alive=not self.chain.is_stuck)
        if self._drain is not None:
            self._drain.tick()
        elif self._ticks % _TICKS_TO_STATUS == 0:
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
            self.chain.reopen()

    async def _change(self) -> str:
        """
        Go by settings that are read anew. Up to the last step nothing of the old is given up.

        @return: what has changed.
        @raise webhookrx.errors.WebhookrxError: why everything stays as it was.
        """
        settings = self._reread()
        observers = _build_observers(settings, self._observers if settings.ack == self.settings.ack else {})
        listeners = [listener for listener, _ in by_listener(settings.sources)]
        change = self._endpoints.plan(listeners, self._build_roots(settings), settings.limits)
        admin_change = self._admin.plan(settings)
        try:
            change.open()
            admin_change.open()
            if observers != self._observers:
                await self.chain.replace(list(observers.values()), ack=settings.ack)
            if not self.running:
                raise ConfigError("The receiver stops.")
        except BaseException:
            change.abandon()
            admin_change.abandon()
            raise
        same, self.settings, self._observers = settings == self.settings, settings, observers
        limits = settings.limits
        self.chain.set_limits(
            max_bytes=limits.queue,
            max_messages=limits.queue_messages,
            patience=limits.answer_time,
            pause_time=limits.pause_time,
        )
        self._endpoints.commit(change)
        self._admin.listeners.commit(admin_change)
        self._loaded = time.time()
        if same:
            return "the settings are the same; files were read and opened anew"
        self._say_how_it_is()
        return f"{len(settings.sources)} sources, {len(listeners)} endpoints, {len(observers)} observers"

    def _build_roots(self, settings: Settings) -> dict[str, Any]:
        return dict(build_roots(settings, self.chain, self._traffic, self._receipts))

    # -- stopping ------------------------------------------------------------------------------------------------

    def stopService(self) -> Deferred[None]:
        """Take nothing new, finish what is under way, make it safe, and close."""
        return Deferred.fromCoroutine(self._stop()) if self.running else succeed(None)

    def hurry(self) -> None:
        """End at once what L{stopService} does."""
        self._hurried = True
        if self._drain is not None and self._last_look is None:
            _log.warn("Told to stop once more: not waiting any longer")
            self._drain.hurry()
            # By the wall clock, but the ticker looks as well.
            self._last_look = self._reactor.callLater(LAST_WORDS, self._drain.tick)

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
        self._drain = Drain(self._endpoints, self.chain, seconds, self._turn, time.monotonic)
        if self._hurried:
            self.hurry()
        whole = await self._drain.run()
        self._drain = None
        if self._last_look is not None and self._last_look.active():
            self._last_look.cancel()
        # Up to here who asked could see how the end went.
        for closed in self._admin.listeners.close():
            await closed
        self._admin.listeners.abort()
        self._ticker.stopService()
        self._signals.release()
        self._traffic.report_held_back()
        _log.info("Stopped. Counts: {counts}", counts=self.counters.summary() or "none")
        if self._hurried and not whole:
            end_with(CUT_OFF)

    def _turn(self) -> Deferred[None]:
        # Not callLater(0), which goes by the wall clock.
        turned: Deferred[None] = Deferred()
        self._reactor.callFromThread(turned.callback, None)
        return turned


def build(settings: Settings, reactor: Any = None, reread: Callable[[], Settings] | None = None) -> ReceiverService:
    """
    Make the service of these settings; nothing is opened yet.

    @param reactor: the global one when None.
    @param reread: reads all settings anew for a reload; with None these are used again.
    @raise ConfigError: a file that was there at validation has gone, or a socket of systemd was not passed.
    """
    if reactor is None:
        from twisted.internet import reactor
    return ReceiverService(settings, reactor, (lambda: settings) if reread is None else reread)


def _build_observers(
    settings: Settings, known: Mapping[Observer, IMessageObserver]
) -> dict[Observer, IMessageObserver]:
    """Return the observers of these settings: those that are known already, and new ones that are not open yet."""
    return {
        each: known[each] if each in known else known_observers.build(each, settings.ack) for each in settings.observers
    }
