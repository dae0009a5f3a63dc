"""
Requests as they came, written to files for C{webhookrx classify} and C{webhookrx try}: few, and only when asked for.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple

from twisted.logger import Logger

from webhookrx.intake.head import Head
from webhookrx.operations.counters import Counters
from webhookrx.senders.http_file import RECORDED, recorded

REST: Final = 10.0
"""Seconds after which it is tried again when there was no room, or a file could not be written."""

MOST_WAITING: Final = 100
MOST_WAITING_BYTES: Final = 16 * 1024 * 1024
"""Requests that wait to be written, and bytes of their bodies; others are not recorded."""

_log = Logger()


class RecordDirectory(NamedTuple):
    """
    Where requests are recorded.

    @ivar directory: an absolute path; it is made when it is not there.
    @ivar requests: files that there may be.
    @ivar size: bytes that they may have together.
    """

    directory: str
    requests: int
    size: int


class Recorder:
    """
    Writes requests into a directory, in a thread of its own calls, until that is full; and again when there is room.

    @param reactor: has threads.
    @param counters: where it is counted what is recorded, and what is not.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: nanoseconds since the epoch.
    """

    def __init__(
        self,
        reactor: Any,
        counters: Counters,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._reactor = reactor
        self._counters = counters
        self._clock = clock
        self._wall_clock = wall_clock
        self._place: RecordDirectory | None = None
        self._waiting: deque[tuple[str, Head, bytes]] = deque()
        self._bytes = 0
        self._number = 0
        self._busy = False
        self._not_before = 0.0
        self._problem = ""

    def use(self, place: RecordDirectory | None) -> None:
        """Record there from now on; None: nowhere."""
        if place != self._place:
            self._place = place
            self._not_before = 0.0
            self._problem = ""

    def record(self, head: Head, body: bytes) -> None:
        """
        Have a request recorded, if there is room for it.

        @param body: unpacked.
        """
        if self._place is None:
            return
        waiting = len(self._waiting)
        too_much = waiting >= MOST_WAITING or (waiting and self._bytes + len(body) > MOST_WAITING_BYTES)
        if too_much or self._clock() < self._not_before:
            self._counters.add("not_recorded")
            return
        self._number += 1
        self._waiting.append((self._name(), head, body))
        self._bytes += len(body)
        self._begin()

    def _name(self) -> str:
        seconds, nanoseconds = divmod(self._wall_clock(), 10**9)
        moment = time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))
        # Several workers may record in one directory.
        return f"{moment}.{nanoseconds // 1000:06}Z-{os.getpid()}-{self._number:06}{RECORDED}"

    def _begin(self) -> None:
        if self._waiting and self._place is not None and not self._busy:
            batch = tuple(self._waiting)
            self._waiting.clear()
            self._bytes = 0
            self._busy = True
            self._reactor.callInThread(self._write, self._place, batch)

    def _write(self, place: RecordDirectory, batch: tuple[tuple[str, Head, bytes], ...]) -> None:
        """Write requests; in a thread."""
        written, problem = 0, ""
        try:
            with suppress(FileExistsError):
                os.mkdir(place.directory, 0o700)
            requests, size = _there(place.directory)
            for name, head, body in batch:
                # No copy of a large body: who makes one in a thread holds up the reactor.
                parts = recorded(head), body
                length = sum(map(len, parts))
                if requests >= place.requests or size + length > place.size:
                    problem = f"it holds {requests} requests of {size} bytes, and no more are allowed"
                    break
                _put(place.directory, name, parts)
                requests, size, written = requests + 1, size + length, written + 1
        except Exception as error:  # whatever it is, the receiver goes on
            problem = str(error)
        self._reactor.callFromThread(self._written, place, written, len(batch) - written, problem)

    def _written(self, place: RecordDirectory, written: int, left_out: int, problem: str) -> None:
        self._busy = False
        self._counters.add("recorded", amount=written)
        self._counters.add("not_recorded", amount=left_out)
        if place == self._place:
            if problem:
                self._not_before = self._clock() + REST
                if not self._problem:
                    # Once, until something is written again.
                    _log.warn(
                        "Requests are not recorded in {directory}: {problem}",
                        directory=place.directory,
                        problem=problem,
                    )
            self._problem = problem
        self._begin()


def _there(directory: str) -> tuple[int, int]:
    """Return how many requests a directory holds, and their bytes."""
    sizes = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(RECORDED):
                with suppress(FileNotFoundError):
                    sizes.append(entry.stat(follow_symlinks=False).st_size)
    return len(sizes), sum(sizes)


def _put(directory: str, name: str, parts: Iterable[bytes]) -> None:
    """Write a file that nobody else can read, and that is there as a whole or not at all."""
    path = os.path.join(directory, name)
    new = f"{path}.new"
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with open(handle, "wb") as file:
            file.writelines(parts)
        os.rename(new, path)
    except OSError:
        with suppress(OSError):
            os.unlink(new)
        raise
