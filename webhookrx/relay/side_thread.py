"""
The thread of an observer behind a relay: its calls may take minutes, and the relay keeps its records meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol, TypeVar, cast

from webhookrx.relay.consumer import KEEP_ALIVE

T = TypeVar("T")


class Beside(Protocol):
    """Makes calls of one observer, one at a time, and something else until each is back."""

    def call(self, work: Callable[[], T], meanwhile: Callable[[], None]) -> T:
        """
        Return what the work returns, or raise what it raises.

        @param meanwhile: called in the caller's thread every L{KEEP_ALIVE} seconds until the work is back; never
            raises.
        """

    @property
    def busy(self) -> float:
        """Seconds since the present call began; 0 without one. Asked from any thread."""

    def stop(self) -> None:
        """End the thread once its call is back. Nothing is called after this."""


class SideThread:
    """
    A thread that provides L{Beside}.

    @param name: for debuggers and C{top -H}.
    @param interval: seconds between two calls of C{meanwhile}.
    """

    def __init__(self, name: str, interval: float = KEEP_ALIVE) -> None:
        self._interval = interval
        self._work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._outcomes: SimpleQueue[tuple[object, BaseException | None]] = SimpleQueue()
        self._began: float | None = None
        # A daemon: an observer that hangs must not keep a process alive past its time to stop.
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start it."""
        self._thread.start()

    @property
    def busy(self) -> float:
        began = self._began
        return 0.0 if began is None else time.monotonic() - began

    def call(self, work: Callable[[], T], meanwhile: Callable[[], None]) -> T:
        self._began = time.monotonic()
        self._work.put(work)
        while True:
            try:
                result, error = self._outcomes.get(timeout=self._interval)
            except Empty:
                meanwhile()
                continue
            self._began = None
            if error is not None:
                raise error
            return cast("T", result)

    def stop(self) -> None:
        self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                outcome: tuple[object, BaseException | None] = (work(), None)
            except BaseException as error:
                outcome = (None, error)
            self._outcomes.put(outcome)
