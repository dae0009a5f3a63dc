"""
The service of a relay: its thread, with signals, systemd and the endpoint for operators.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.error import ReactorNotRunning
from twisted.logger import Logger
from twisted.web.resource import IResource

from webhookrx.errors import CannotStart, ConfigError
from webhookrx.operations.admin_resource import AdminResource
from webhookrx.operations.counters import Counters
from webhookrx.operations.metric import View
from webhookrx.operations.signals import CUT_OFF, GRACE, Signals, end_with
from webhookrx.operations.snapshot import NOTHING, Phase
from webhookrx.operations.systemd import Notifier
from webhookrx.operations.ticker import Ticker
from webhookrx.promises import word_of
from webhookrx.quantities import format_duration
from webhookrx.relay.consumer import Consumer
from webhookrx.relay.part import RelayPart
from webhookrx.relay.registry import FindKind, build_consumer, find_kind
from webhookrx.relay.relay import Relay
from webhookrx.relay.relay_thread import RelayThread
from webhookrx.relay.settings import RelaySettings
from webhookrx.relay.side_thread import SideThread
from webhookrx.relay.status import RELAY_METRICS, RelayStatus, RelayView, relay_health, summary
from webhookrx.relay.target import RelayTarget, relay_weaknesses
from webhookrx.service import known_observers
from webhookrx.service.admin import Admin, this_build
from webhookrx.service.description import where
from webhookrx.version import version_line

STUCK: Final = 20.0
"""Seconds without a sign of life of the thread after which systemd gets no keep-alive."""
LAST_CALLS: Final = 6.0
"""Seconds that observers and broker have at the end, once they were told to hurry: each takes three at most."""

#: Ticks, of half a second each, between two reports of lines held back, and of status.
_TICKS_TO_REPORT = 10
_TICKS_TO_STATUS = 20

_log = Logger()


class RelayService(Service):
    """
    Runs a relay. It opens nothing before it starts.

    @param find: finds the kinds of consumers.
    @raise webhookrx.errors.ConfigError: consumer or observers can't be built.
    """

    def __init__(self, settings: RelaySettings, reactor: Any, find: FindKind = find_kind) -> None:
        self.settings = settings
        self.phase = Phase.STARTING
        self._reactor = reactor
        self._counters = Counters()
        self._consumer: Consumer = build_consumer(settings.source, settings.group, find)
        self._threads: list[SideThread] = []
        target, *dead = [self._target(number) for number in range(len(settings.observers))]
        self._relay = Relay(self._consumer, target, dead[0] if dead else None, self._counters)
        self._ended: Deferred[None] = Deferred()
        self._thread = RelayThread(self._relay, lambda: reactor.callFromThread(self._has_ended))
        self._started = time.time()
        self._admin = Admin(reactor, self._pages)
        self._admin.listeners.commit(self._admin.plan(settings.admin))
        self._ticker = Ticker(reactor, self._tick)
        self._ticks = 0
        self._signals = Signals(
            reactor,
            hang_up=self.hang_up,
            stop=self._end,
            stop_now=self._stop_now,
            time_to_stop=lambda: settings.drain_timeout + LAST_CALLS,
        )
        self._hurry_at: float | None = None
        self._leave_at: float | None = None

    def _target(self, number: int) -> RelayTarget:
        observer = known_observers.build_observer(self.settings.observers[number], self.settings.ack)
        thread = SideThread(f"webhookrx-relay-to-{number}")
        self._threads.append(thread)
        part = RelayPart(f"Observer {observer.spec}", "take messages", "takes messages")
        return RelayTarget(observer, thread, part, self._counters)

    # -- starting ------------------------------------------------------------------------------------------------

    def startService(self) -> None:
        """
        Open everything.

        @raise webhookrx.errors.CannotStart: an observer, the consumer or the endpoint can't be opened.
        """
        self._open()
        super().startService()
        self._notifier = Notifier(os.environ)
        self._admin.open()
        self._ticker.startService()
        self._signals.take_hang_up()
        self._signals.take_termination()
        self._reactor.callWhenRunning(self._run)

    def _open(self) -> None:
        try:
            for target in self._relay.targets:
                target.open()
            self._consumer.open()
        except ConfigError as error:
            raise CannotStart(str(error)) from None

    def _run(self) -> None:
        if not self.running:
            return
        self._signals.take_termination()  # again: the reactor has taken them since
        for thread in self._threads:
            thread.start()
        self._thread.start()
        self.phase = Phase.RUNNING
        self._log_state()
        self._notifier.ready(self.status_line())

    def _log_state(self) -> None:
        settings = self.settings
        _log.info("{version}", version=version_line())
        weak = [sentence for each in self._relay.targets for sentence in relay_weaknesses(each.observer, settings.ack)]
        for warning in (*settings.warnings, *weak):
            _log.warn("{problem}", problem=warning)
        for each in self._admin.listeners:
            _log.info("Health and metrics on {where}", where=where(each.service.address) or each.listener.text)
        for line in start_lines(settings, self._relay):
            _log.info("{line}", line=line)

    # -- running -------------------------------------------------------------------------------------------------

    def status(self) -> RelayStatus:
        """Return how the relay does."""
        relay = self._relay
        return RelayStatus(
            self.phase,
            relay.broker_spec,
            relay.broker.away is not None,
            relay.held,
            relay.lag,
            tuple(target.status() for target in relay.targets),
        )

    def status_line(self) -> str:
        """Return one line on how it does."""
        return summary(self._counters.copy(), self.status())

    def _pages(self) -> IResource:
        # prometheus-client takes megabytes of memory.
        from webhookrx.operations.exposition import exposition

        build = this_build()

        def view() -> RelayView:
            status = self.status()
            snapshot = replace(NOTHING, phase=status.phase, lanes=status.lanes)
            return RelayView(View(self._counters.copy(), snapshot, build, time.time(), self._started), status)

        return AdminResource(
            lambda accept: exposition(RELAY_METRICS, view(), accept), lambda: relay_health(self.status())
        )

    @property
    def _is_alive(self) -> bool:
        return self.phase is not Phase.RUNNING or time.monotonic() - self._relay.beat < STUCK

    def _tick(self) -> None:
        self._admin.listeners.sweep()
        self._ticks += 1
        if self._ticks % _TICKS_TO_REPORT == 0:
            self._admin.traffic.report_held_back()
        self._notifier.tick(alive=self._is_alive)
        if self._ticks % _TICKS_TO_STATUS == 0 and self.phase is Phase.RUNNING:
            self._notifier.status(self.status_line())
        self._look_at_deadlines()

    def hang_up(self) -> None:
        """SIGHUP: read files of secrets again, and reopen files of messages by name."""
        if self.phase is Phase.RUNNING:
            _log.info("Reopening. {counts}", counts=self.status_line())
            self._notifier.reloading()
            self._thread.reopen()
            self._notifier.ready(self.status_line())

    # -- stopping ------------------------------------------------------------------------------------------------

    def stopService(self) -> Deferred[None]:
        """Finish the batch under way, within the time for it, and close everything."""
        return Deferred.fromCoroutine(self._stop())

    def _end(self) -> None:
        with suppress(ReactorNotRunning):
            self._reactor.stop()

    async def _stop(self) -> None:
        super().stopService()
        before, self.phase = self.phase, Phase.DRAINING
        if before is Phase.RUNNING:
            seconds = self.settings.drain_timeout
            _log.info("Stopping: the batch under way has {most} to finish", most=format_duration(seconds))
            self._notifier.stopping("Finishing the batch under way")
            self._notifier.extend(seconds + LAST_CALLS + GRACE)
            if self._hurry_at is None:
                self._hurry_at = time.monotonic() + seconds
            self._thread.finish()
            await self._ended
        await self._admin.close()
        self._ticker.stopService()
        self._signals.release()
        _log.info("Stopped. Counts: {counts}", counts=self._counters.copy().summary() or "none")

    def _has_ended(self) -> None:
        if not self._ended.called:
            self._ended.callback(None)

    def _stop_now(self) -> None:
        _log.warn("Second signal to stop: not waiting any longer")
        self._hurry_at = time.monotonic()

    def _look_at_deadlines(self) -> None:
        now = time.monotonic()
        if self._leave_at is not None:
            if now >= self._leave_at and not self._ended.called:
                # What it holds is not settled: other relays of the group get it.
                _log.critical("An observer or the broker hangs: not waiting for it")
                end_with(CUT_OFF)
                self._has_ended()
        elif self._hurry_at is not None and now >= self._hurry_at:
            self._leave_at = now + LAST_CALLS
            for target in self._relay.targets:
                if problem := target.hurry():
                    _log.error("Observer {spec} could not be hurried: {problem}", spec=target.spec, problem=problem)


def start_lines(settings: RelaySettings, relay: Relay) -> list[str]:
    """Return the lines of the log that say what is relayed, and what each word means."""
    target, *dead = relay.targets
    broker = relay.broker_spec
    return [
        f"Relaying from {broker} (group {settings.group}) to {_to(target)}; ack: {settings.ack}",
        *(f"What it refuses for good goes to {_to(each)}" for each in dead),
    ]


def _to(target: RelayTarget) -> str:
    """Return an observer with its word."""
    return f"{target.spec} on the word {word_of(target.observer)}"
