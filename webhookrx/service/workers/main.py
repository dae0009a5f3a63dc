"""
C{python -m webhookrx.service.workers.main REACTOR}: one of several processes that receive.

L{webhookrx.service.supervisor} starts it, and tells it all else by the channel between them.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.error import ReactorNotRunning
from twisted.logger import Logger, globalLogBeginner, globalLogPublisher
from twisted.python.failure import Failure

from webhookrx.errors import WebhookrxError
from webhookrx.operations import oplog
from webhookrx.operations.facts import Phase, portable
from webhookrx.operations.signals import CUT_OFF, Signals
from webhookrx.operations.ticker import Ticker
from webhookrx.service.receiver import Receiver
from webhookrx.service.workers.channel import Channel
from webhookrx.service.workers.log_lines import LineSender
from webhookrx.service.workers.messages import (
    Begin,
    Change,
    Changed,
    Counts,
    Failed,
    Fitness,
    Hurry,
    Line,
    PortsClosed,
    Ready,
    Reopen,
    State,
    Stop,
    ToParent,
    ToWorker,
    for_worker,
)
from webhookrx.service.workers.process import CONTROL, adopt
from webhookrx.settings import Group
from webhookrx.transport.shared_ports import SharedPorts

#: Seconds that a worker has for what is under way when its parent has gone. Until it ends, it keeps others from its
#: ports, files and spools, so from receiving: that is worth more than what a slow sender has begun.
ORPHANED_FOR = 1.0

_log = Logger()


class Worker:
    """
    Receives as its parent says. It ends when it is told to, at SIGTERM, and when its parent has gone.

    @param leave: ends the process with a status, once the channel is closed.
    """

    def __init__(self, reactor: Any, leave: Callable[[int], object]) -> None:
        self.channel = Channel(for_worker, self._heard, self._orphaned)
        self._reactor = reactor
        self._leave = leave
        self._receiver: Receiver | None = None
        self._sockets = SharedPorts(reactor)
        self._speaks_for_all = False
        self._is_orphan = False
        self._status: int | None = None
        self._ticker = Ticker(reactor, self._tick)
        self._signals = Signals(
            reactor, hang_up=_nothing, stop=self._stop, hurry=self._hurry, time_to_stop=self._time_to_stop
        )

    def start(self) -> None:
        """Listen to the parent; the reactor runs."""
        self._signals.take_termination()
        self._ticker.startService()

    def mention(self, message: Line | State) -> None:
        """Say something to the parent that may be dropped; and is, as long as it does not listen."""
        if not self.channel.full:
            self.channel.say(message)

    # -- what the parent says ------------------------------------------------------------------------------------

    def _heard(self, message: ToWorker, descriptors: Sequence[int]) -> None:
        match message:
            case Begin():
                self._begin(message, descriptors)
            case Change():
                Deferred.fromCoroutine(self._change(message, descriptors)).addErrback(_log_failure)
            case Fitness(fit=fit):
                if self._receiver is not None:
                    self._receiver.fit = fit
            case Reopen():
                if self._receiver is not None:
                    self._receiver.reopen()
            case Stop():
                self._signals.terminate()
            case Hurry():
                self._hurry()

    def _begin(self, begin: Begin, descriptors: Sequence[int]) -> None:
        *sockets, turns = descriptors
        self._take(begin.inners, sockets)
        group = Group(begin.number, begin.size, turns)
        try:
            receiver = Receiver(begin.settings, self._reactor, group, self._sockets.endpoint)
            receiver.start()
        except (WebhookrxError, OSError) as error:
            self._end(CUT_OFF, Failed(str(error)))
            return
        self._receiver = receiver
        receiver.phase = Phase.RUNNING
        self._speaks_for_all = begin.number == 0
        self._warn()
        self.channel.say(Ready())
        self._say_state()

    async def _change(self, change: Change, descriptors: Sequence[int]) -> None:
        self._take(change.inners, descriptors)
        try:
            assert self._receiver is not None  # a worker that could not begin has ended
            before = self._receiver.settings
            text = await self._receiver.change(change.settings)
            if change.settings != before:
                self._warn()
            self.channel.say(Changed(change.order, True, text))
        except WebhookrxError as error:
            self.channel.say(Changed(change.order, False, str(error)))
        except Exception:
            _log.failure("Reload failed, the old settings stay")
            self.channel.say(Changed(change.order, False, "an unforeseen failure, which the log has in full"))
        finally:
            self._sockets.close()

    def _warn(self) -> None:
        """Say what is not as it was asked for; it is the same for all workers."""
        if self._speaks_for_all and self._receiver is not None:
            for problem in self._receiver.chain.weaker_than_ack():
                _log.warn("{problem}", problem=problem)

    def _take(self, inners: Sequence[str], descriptors: Sequence[int]) -> None:
        for inner, descriptor in zip(inners, descriptors, strict=True):
            self._sockets.add(inner, descriptor)

    # -- while it lives ------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if self._receiver is not None:
            self._receiver.tick()
            self._say_state()

    def _say_state(self) -> None:
        if self._receiver is not None:
            receiver = self._receiver
            counts = cast(Counts, receiver.counters.plain())
            self.mention(State(counts, portable(receiver.facts), receiver.chain.is_stuck))

    # -- its end -------------------------------------------------------------------------------------------------

    def _orphaned(self) -> None:
        """The channel has ended: the parent has gone, or we have said all."""
        if self._status is None:
            problem = self.channel.problem
            self._is_orphan = not problem
            self._signals.terminate()
            # Nobody else writes the log any more.
            globalLogPublisher.addObserver(oplog.stderr())
            what = f"No channel to the parent any more, {problem}" if problem else "The parent has gone"
            _log.error("{what}: finishing what is under way", what=what)
        else:
            self._leave(self._status)

    def _time_to_stop(self) -> float:
        seconds = 0.0 if self._receiver is None else self._receiver.settings.drain_timeout
        return min(seconds, ORPHANED_FOR) if self._is_orphan else seconds

    def _stop(self) -> None:
        if self._status is None:
            Deferred.fromCoroutine(self._drain()).addErrback(_log_failure)

    def _hurry(self) -> None:
        if self._receiver is not None:
            self._receiver.hurry()

    async def _drain(self) -> None:
        whole = True
        if self._receiver is not None:
            whole = await self._receiver.drain(self._time_to_stop(), lambda: self.channel.say(PortsClosed()))
        self._say_state()
        cut_off = self._receiver is not None and self._receiver.hurried and not whole
        self._end(CUT_OFF if cut_off else 0)

    def _end(self, status: int, *last_words: ToParent) -> None:
        """End with this status, once the parent has been told."""
        self._status = status
        for message in last_words:
            self.channel.say(message)
        if self.channel.connected:
            self.channel.close()
        else:
            self._leave(status)


def main(reactor_module: str) -> int:
    """
    Be a worker.

    @param reactor_module: the module whose C{install} makes the kind of reactor that the parent has.
    @return: the status to end with.
    """
    # What is meant for the parent comes to all processes of a terminal.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    install = getattr(import_module(reactor_module), "install", None)
    if install is not None:
        install()
    from twisted.internet import reactor

    ends: list[int] = []

    def leave(status: int) -> None:
        ends.append(status)
        with suppress(ReactorNotRunning):
            reactor.stop()

    worker = Worker(reactor, leave)
    globalLogBeginner.beginLoggingTo([LineSender(worker.mention)])
    adopt(reactor, CONTROL, worker.channel)
    os.close(CONTROL)
    reactor.callWhenRunning(worker.start)
    reactor.run()
    return ends[0] if ends else CUT_OFF


def _nothing() -> None:
    """Do nothing."""


def _log_failure(failure: Failure) -> None:
    _log.failure("What goes with a worker failed", failure)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
