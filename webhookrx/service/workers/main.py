"""
The process of a worker: C{python -m webhookrx.service.workers.main REACTOR}.

L{webhookrx.service.workers.process} starts it; everything else comes by the channel between them.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec.json import decode
from msgspec.structs import astuple
from twisted.internet.defer import Deferred
from twisted.internet.error import ReactorNotRunning
from twisted.logger import Logger, globalLogBeginner, globalLogPublisher
from twisted.python.failure import Failure

from webhookrx.errors import CantTap, WebhookrxError
from webhookrx.operations import oplog
from webhookrx.operations.signals import CUT_OFF, Signals
from webhookrx.operations.steady_timers import use_monotonic_clock
from webhookrx.operations.ticker import Ticker
from webhookrx.service.receiver import LocalReceiver
from webhookrx.service.workers.channel import Channel
from webhookrx.service.workers.log_lines import LineSender
from webhookrx.service.workers.messages import (
    Began,
    Begin,
    CannotBegin,
    ChangeSettings,
    Finish,
    LogLine,
    PortsClosed,
    Readiness,
    Reopen,
    Report,
    SettingsChanged,
    StartTap,
    StopNow,
    StopTap,
    Tapped,
    ToParent,
    ToWorker,
    read_for_worker,
)
from webhookrx.service.workers.process import CONTROL, adopt
from webhookrx.settings import Group
from webhookrx.transport.fair_share import WorkerRow
from webhookrx.transport.shared_ports import SharedPorts

if TYPE_CHECKING:
    from webhookrx.tapping.tap import Tap

#: Seconds that a worker without a parent has for what is under way. Until it ends, a new receiver can't have its ports,
#: files and spools: to receive again is worth more than the request of a slow sender.
ORPHANED_FOR = 1.0

_log = Logger()


class Worker:
    """
    Receives as its parent says. It ends when its parent says so, at SIGTERM, and when its parent is gone.

    @param leave: ends the process with a status, once the channel is closed.
    """

    def __init__(self, reactor: Any, leave: Callable[[int], object]) -> None:
        self.channel = Channel(read_for_worker, self._received, self._orphaned)
        self._reactor = reactor
        self._leave = leave
        self._receiver: LocalReceiver | None = None
        self._sockets = SharedPorts(reactor)
        self._taps: dict[int, Tap] = {}
        self._logs_warnings = False
        self._is_orphan = False
        self._status: int | None = None
        self._ticker = Ticker(reactor, self._tick)
        self._signals = Signals(
            reactor, hang_up=_nothing, stop=self._stop, stop_now=self._stop_now, time_to_stop=self._time_to_stop
        )

    def start(self) -> None:
        """Listen to the parent; the reactor runs."""
        self._signals.take_termination()
        self._ticker.startService()

    def offer(self, message: LogLine | Report) -> None:
        """Send the parent a message that is dropped while the parent is slow to read."""
        if not self.channel.full:
            self.channel.send(message)

    # -- messages of the parent -----------------------------------------------------------------------------------

    def _received(self, message: ToWorker, descriptors: Sequence[int]) -> None:
        match message:
            case Begin():
                self._begin(message, descriptors)
            case ChangeSettings():
                Deferred.fromCoroutine(self._change(message, descriptors)).addErrback(_log_failure)
            case Readiness(ready=ready):
                if self._receiver is not None:
                    self._receiver.set_ready(ready)
            case Reopen():
                if self._receiver is not None:
                    self._receiver.reopen()
            case StartTap():
                self._start_tap(message)
            case StopTap(tap=number):
                tap = self._taps.pop(number, None)
                if tap is not None and self._receiver is not None:
                    self._receiver.stop_tap(tap)
            case Finish():
                self._signals.terminate()
            case StopNow():
                self._stop_now()

    def _begin(self, begin: Begin, descriptors: Sequence[int]) -> None:
        count = len(begin.sockets)
        sockets, (lock_fd, page_fd, *state_files) = descriptors[:count], descriptors[count:]
        group = Group(begin.number, begin.size, lock_fd, tuple(state_files))
        try:
            self._sockets.share_by(WorkerRow(page_fd, begin.number, begin.size))
            os.close(page_fd)
            self._take(begin.sockets, sockets)
            receiver = LocalReceiver(begin.settings, self._reactor, group, self._sockets.endpoint)
            for fd in state_files:
                os.close(fd)
            receiver.start()
        except (WebhookrxError, OSError) as error:
            self._end(CUT_OFF, CannotBegin(str(error)))
            return
        self._receiver = receiver
        self._logs_warnings = begin.number == 0  # they are the same for all workers
        receiver.run(self._is_up, _nothing)

    def _is_up(self) -> None:
        self._log_warnings()
        self.channel.send(Began())
        self._report()

    async def _change(self, change: ChangeSettings, descriptors: Sequence[int]) -> None:
        self._take(change.sockets, descriptors)
        try:
            assert self._receiver is not None  # a worker that could not begin has ended
            before = self._receiver.settings
            text = await self._receiver.change(change.settings)
            if change.settings != before:
                self._log_warnings()
            self.channel.send(SettingsChanged(change.order, True, text))
        except WebhookrxError as error:
            self.channel.send(SettingsChanged(change.order, False, str(error)))
        except Exception:
            _log.failure("Reload failed, the old settings stay")
            self.channel.send(SettingsChanged(change.order, False, "an unforeseen failure, which the log has in full"))
        finally:
            self._sockets.close()

    def _log_warnings(self) -> None:
        if self._logs_warnings and self._receiver is not None:
            for problem in self._receiver.warnings:
                _log.warn("{problem}", problem=problem)

    def _take(self, sockets: Mapping[str, int], descriptors: Sequence[int]) -> None:
        for (name, number), descriptor in zip(sockets.items(), descriptors, strict=True):
            self._sockets.add(name, descriptor, number)

    # -- running -------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        self._sockets.tick()
        if self._receiver is not None:
            self._receiver.tick()
            self._report()
            for number, tap in self._taps.items():
                self._tapped(number, tap)

    def _start_tap(self, start: StartTap) -> None:
        # It takes memory that a worker without taps does not need.
        from webhookrx.tapping.tap_request import TapRequest

        if self._receiver is not None and start.tap not in self._taps:
            request = decode(start.request, type=TapRequest)
            try:
                self._taps[start.tap] = self._receiver.start_tap(request, partial(self._tapped, start.tap))
            except CantTap as error:
                _log.warn("A tap can't be started: {why}", why=str(error))

    def _tapped(self, number: int, tap: Tap) -> None:
        """Send the parent what was seen for a tap, and all counts; while it is slow to read, that waits."""
        if not self.channel.full and self.channel.connected:
            self.channel.send(Tapped(number, tuple(tap.take()), astuple(tap.counts)))

    def _report(self) -> None:
        receiver = self._receiver
        if receiver is not None:
            self.offer(Report(receiver.counters, receiver.snapshot, receiver.is_stuck))

    # -- stopping ------------------------------------------------------------------------------------------------

    def _orphaned(self) -> None:
        """The channel has ended: the parent is gone, or the last message is sent."""
        if self._status is None:
            problem = self.channel.problem
            self._is_orphan = not problem
            self._signals.terminate()
            # The parent does not write its log any more.
            globalLogPublisher.addObserver(oplog.stderr())
            what = f"The channel to the parent has failed, {problem}" if problem else "The parent is gone"
            _log.error("{what}: finishing requests in progress", what=what)
        else:
            self._leave(self._status)

    def _time_to_stop(self) -> float:
        seconds = 0.0 if self._receiver is None else self._receiver.settings.drain_timeout
        return min(seconds, ORPHANED_FOR) if self._is_orphan else seconds

    def _stop(self) -> None:
        if self._status is None:
            Deferred.fromCoroutine(self._drain()).addErrback(_log_failure)

    def _stop_now(self) -> None:
        if self._receiver is not None:
            self._receiver.stop_now()

    async def _drain(self) -> None:
        ended_well = True
        if self._receiver is not None:
            ended_well = await self._receiver.drain(self._time_to_stop(), lambda: self.channel.send(PortsClosed()))
        self._report()
        self._end(0 if ended_well else CUT_OFF)

    def _end(self, status: int, *last_messages: ToParent) -> None:
        """End with this status, once the last messages are sent."""
        self._status = status
        for message in last_messages:
            self.channel.send(message)
        if self.channel.connected:
            self.channel.close()
        else:
            self._leave(status)


def main(reactor_module: str) -> int:
    """
    Run a worker.

    @param reactor_module: the module whose C{install} makes the kind of reactor that the parent has.
    @return: the exit status.
    """
    # A terminal sends the parent's signals to all its processes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    install = getattr(import_module(reactor_module), "install", None)
    if install is not None:
        install()
    from twisted.internet import reactor

    use_monotonic_clock(reactor)
    ends: list[int] = []

    def leave(status: int) -> None:
        ends.append(status)
        with suppress(ReactorNotRunning):
            reactor.stop()

    worker = Worker(reactor, leave)
    globalLogBeginner.beginLoggingTo([LineSender(worker.offer)])
    adopt(reactor, CONTROL, worker.channel)
    os.close(CONTROL)
    reactor.callWhenRunning(worker.start)
    reactor.run()
    return ends[0] if ends else CUT_OFF


def _nothing(*_: object) -> None:
    """Do nothing."""


def _log_failure(failure: Failure) -> None:
    _log.failure("A worker failed to change or to end", failure)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
