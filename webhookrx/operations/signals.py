"""
Signals: SIGHUP, and an end by SIGTERM or SIGINT that comes whatever hangs.

Twisted's own way makes the process die by the signal again once it has shut down; here it ends with a status that says
whether it ended well.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

#: Seconds from the second SIGTERM to the end of the process, if the reactor does not come round to it.
LAST_SECOND = 0.9

#: Seconds after the time for an orderly end is over.
GRACE = 5.0

#: Exit status when somebody was left without an answer by a second signal, or when something hung.
CUT_OFF = 1


class Signals:
    """
    Takes the signals of the process while the service runs.

    @param reactor: what is called for a signal is called in its thread.
    @param hang_up: called at each SIGHUP.
    @param stop: called at the first SIGTERM or SIGINT.
    @param hurry: called at each further one.
    @param time_to_stop: seconds that an orderly end may take, asked for at the first signal.
    """

    def __init__(
        self,
        reactor: Any,
        *,
        hang_up: Callable[[], None],
        stop: Callable[[], None],
        hurry: Callable[[], None],
        time_to_stop: Callable[[], float],
    ) -> None:
        self._reactor = reactor
        self._hang_up = hang_up
        self._stop = stop
        self._hurry = hurry
        self._time_to_stop = time_to_stop
        self._before: dict[signal.Signals, Any] = {}
        self._backstop = Backstop()
        self._backed = False
        self._stopping = False

    @property
    def stopping(self) -> bool:
        """Whether a signal has told us to stop."""
        return self._stopping

    def take_hang_up(self) -> None:
        """Take SIGHUP, by which a process that does not dies."""
        self._take(signal.SIGHUP, self._hung_up)

    def take_termination(self) -> None:
        """Take SIGTERM and SIGINT. The reactor takes them when it begins to run, so do it before that and after."""
        self._take(signal.SIGTERM, self._terminated)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as for a job in a shell's background
            self._take(signal.SIGINT, self._terminated)
        if not self._backed:
            self._backed = True
            self._backstop.start()

    def release(self) -> None:
        """
        Give the signals back. Not when a signal has begun the end: the process is about to go, and a signal that comes
        late must not change how.
        """
        if not self._stopping:
            for number, before in self._before.items():
                signal.signal(number, before)
            self._before.clear()
            if self._backed:
                self._backed = False
                self._backstop.stop()

    def terminate(self) -> None:
        """Stop as at the first SIGTERM; nothing, where something has told us to stop already."""
        if not self._stopping:
            self._terminated()

    def _take(self, number: signal.Signals, handler: Callable[..., None]) -> None:
        self._before.setdefault(number, signal.getsignal(number))
        signal.signal(number, handler)

    def _hung_up(self, *_: object) -> None:
        self._reactor.callFromThread(self._hang_up)

    def _terminated(self, *_: object) -> None:
        if self._stopping:
            self._backstop.end_in(LAST_SECOND)
            self._reactor.callFromThread(self._hurry)
        else:
            self._stopping = True
            self._backstop.end_in(self._time_to_stop() + GRACE)
            self._reactor.callFromThread(self._stop)


class Backstop:
    """
    Ends the process from a thread of its own, when it does not end by itself.

    @param leave: ends the process with a status, at once.
    """

    def __init__(self, leave: Callable[[int], object] = os._exit) -> None:
        self._leave = leave
        # The one queue that may be put to from where a signal has interrupted another put.
        self._orders: SimpleQueue[float | None] = SimpleQueue()

    def start(self) -> None:
        """Wait for an order."""
        Thread(target=self._wait, name="webhookrx-backstop", daemon=True).start()

    def end_in(self, seconds: float) -> None:
        """End the process after so long; it takes the place of what was said before."""
        self._orders.put(seconds)

    def stop(self) -> None:
        """Forget it."""
        self._orders.put(None)

    def _wait(self) -> None:
        with suppress(Empty):
            seconds = self._orders.get()
            while seconds is not None:
                seconds = self._orders.get(timeout=seconds)
            return
        self._leave(CUT_OFF)


def end_with(status: int) -> None:
    """Have the process end with this status, once all that is registered to be done at its end has been done."""
    atexit.register(_leave, status)


def _leave(status: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(status)
