"""
Ticks of the monotonic clock, at which all deadlines are checked.

Twisted's timers go by the wall clock: set it back an hour, and they are an hour late. Where the reactor is ours,
L{webhookrx.operations.steady_timers} ends that; whoever embeds a receiver brings their own.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from twisted.application.service import Service
from twisted.internet.interfaces import IReactorFromThreads


class Ticker(Service):
    """
    Calls C{tick} in the reactor thread every C{interval} seconds of the monotonic clock.

    While a tick waits for a busy reactor there is no further one.
    """

    def __init__(self, reactor: IReactorFromThreads, tick: Callable[[], None], interval: float = 0.5) -> None:
        self._reactor = reactor
        self._tick = tick
        self._interval = interval
        self._stopped = Event()
        self._due = False

    def startService(self) -> None:
        super().startService()
        self._stopped.clear()
        Thread(target=self._run, name="webhookrx-ticker", daemon=True).start()

    def stopService(self) -> None:
        super().stopService()
        self._stopped.set()

    def _run(self) -> None:
        # Event.wait goes by the monotonic clock.
        while not self._stopped.wait(self._interval):
            if not self._due:
                self._due = True
                self._reactor.callFromThread(self._ticked)

    def _ticked(self) -> None:
        self._due = False
        if self.running:
            self._tick()
