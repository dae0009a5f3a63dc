"""
A console whose turns are watched: C{python -m benchmarks.fleet.watched FILE ARGUMENTS}, with arguments of C{twistd}.

Whatever its reactor does between two looks at its connections is a turn; all else waits for its end. Those of L{LEAST}
and longer are written to the file.
"""

from __future__ import annotations

import gc
import sys
import time
from typing import Any, Final, NamedTuple, TextIO

from twisted.internet import epollreactor

LEAST: Final = 0.005
"""Seconds."""


class Turn(NamedTuple):
    """
    @ivar at: when it ended, by the monotonic clock, which all processes share.
    @ivar seconds: how long it took, with the time in which other threads or processes had the processor.
    @ivar busy: processor time of the thread.
    @ivar collected: of this the time of collections of garbage, in any thread.
    """

    at: float
    seconds: float
    busy: float
    collected: float


def read_turns(path: str) -> list[Turn]:
    """Return what is written so far."""
    with open(path) as file:
        return [Turn(*map(float, line.split())) for line in file if line.endswith("\n")]


class _Poller:
    """An epoll object that notes how long it was not asked."""

    def __init__(self, poller: Any, out: TextIO) -> None:
        self._poller = poller
        self._out = out
        self._since = time.monotonic(), time.thread_time()
        self._collecting = self._collected = 0.0
        gc.callbacks.append(self._collect)

    def _collect(self, phase: str, info: object) -> None:
        if phase == "start":
            self._collecting = time.monotonic()
        else:
            self._collected += time.monotonic() - self._collecting

    def __getattr__(self, name: str) -> Any:
        return getattr(self._poller, name)

    def poll(self, timeout: float, most: int) -> Any:
        began, busy = self._since
        now = time.monotonic()
        if now - began >= LEAST:
            self._out.write(f"{now} {now - began} {time.thread_time() - busy} {self._collected}\n")
        found = self._poller.poll(timeout, most)
        self._collected = 0.0
        self._since = time.monotonic(), time.thread_time()
        return found


def main() -> None:
    """Run it."""
    epollreactor.install()
    from twisted.internet import reactor
    from twisted.scripts.twistd import run

    with open(sys.argv[1], "a", buffering=1) as out:
        reactor._poller = _Poller(reactor._poller, out)  # type: ignore[attr-defined]
        sys.argv = ["twistd", *sys.argv[2:]]
        run()


if __name__ == "__main__":
    main()
