"""
Signals: SIGHUP, and an end by SIGTERM or SIGINT that comes even if something hangs.

With Twisted's own handlers the process dies by the signal once it has shut down; here it ends with a status that says
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

#: Seconds from the second SIGTERM to the end of the process, if the reactor is blocked.
LAST_SECOND = 0.9

#: Seconds after the drain timeout until the process is ended anyway.
GRACE = 5.0

#: Exit status when a second signal left senders without an answer, when something hung, or when a worker can't begin.
CUT_OFF = 1


class Signals:
    """
    Handles the signals of the process while the service runs.

    @param reactor: signals are handled in its thread.
    @param hang_up: called at each SIGHUP.
    @param stop: called at the first SIGTERM or SIGINT.
    @param stop_now: called at each further one.
    @param time_to_stop: returns the seconds that an orderly end may take, at the first signal.
    """

    def __init__(
        self,
        reactor: Any,
        *,
        hang_up: Callable[[], None],
        stop: Callable[[], None],
        stop_now: Callable[[], None],
        time_to_stop: Callable[[], float],
    ) -> None:
        self._reactor = reactor
        self._hang_up = hang_up
        self._stop = stop
        self._stop_now = stop_now
        self._time_to_stop = time_to_stop
        self._before: dict[signal.Signals, Any] = {}
        self._backstop = Backstop()
        self._backed = False
        self._stopping = False

    @property
    def stopping(self) -> bool:
        """Whether a signal to stop has come."""
        return self._stopping

    def take_hang_up(self) -> None:
        """Handle SIGHUP, which would kill the process."""
        self._take(signal.SIGHUP, self._hung_up)

    def take_termination(self) -> None:
        """Handle SIGTERM and SIGINT. The reactor takes them when it starts to run: call this before that and after."""
        self._take(signal.SIGTERM, self._terminated)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as for a job in a shell's background
            self._take(signal.SIGINT, self._terminated)
        if not self._backed:
            self._backed = True
            self._backstop.start()

    def release(self) -> None:
        """
        Restore the handlers, unless a signal has begun the end: a late signal must not change the exit status.
        """
        if not self._stopping:
            for number, before in self._before.items():
                signal.signal(number, before)
            self._before.clear()
            if self._backed:
                self._backed = False
                self._backstop.stop()

    def terminate(self) -> None:
        """Stop as at the first SIGTERM, unless that has begun."""
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
            self._reactor.callFromThread(self._stop_now)
        else:
            self._stopping = True
            self._backstop.end_in(self._time_to_stop() + GRACE)
            self._reactor.callFromThread(self._stop)


class Backstop:
    """
    Ends the process from a thread of its own, when it does not end by itself in time.

    @param leave: ends the process with a status, at once.
    """

    def __init__(self, leave: Callable[[int], object] = os._exit) -> None:
        self._leave = leave
        # The only queue with a reentrant put, which a signal handler needs.
        self._orders: SimpleQueue[float | None] = SimpleQueue()

    def start(self) -> None:
        Thread(target=self._wait, name="webhookrx-backstop", daemon=True).start()

    def end_in(self, seconds: float) -> None:
        """End the process after this time, instead of an earlier one."""
        self._orders.put(seconds)

    def stop(self) -> None:
        self._orders.put(None)

    def _wait(self) -> None:
        with suppress(Empty):
            seconds = self._orders.get()
            while seconds is not None:
                seconds = self._orders.get(timeout=seconds)
            return
        self._leave(CUT_OFF)


def end_with(status: int) -> None:
    """Have the process end with this status, after all other handlers of C{atexit}."""
    atexit.register(_leave, status)


def _leave(status: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(status)
