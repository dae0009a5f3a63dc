"""
Requests as they came, written to files for C{webhookrx classify} and C{webhookrx try}: few, and only with C{--record}.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias

from twisted.logger import Logger

from webhookrx.intake.head import Head
from webhookrx.operations.counters import Counters
from webhookrx.senders.http_file import RECORDED, recorded

REST: Final = 10.0
"""Seconds until the next try when the directory was full, or a file could not be written."""

MOST_WAITING: Final = 100
MOST_WAITING_BYTES: Final = 16 * 1024 * 1024
"""Requests that may wait to be written, and bytes of their bodies; more are not recorded."""

_log = Logger()

#: The name of a file, the request, and its headers with signatures.
_Waiting: TypeAlias = tuple[str, Head, bytes, Collection[bytes]]


class RecordDirectory(NamedTuple):
    """
    Where requests are recorded.

    @ivar directory: an absolute path; it is created if need be.
    @ivar requests: the most files.
    @ivar size: the most bytes of all files.
    """

    directory: str
    requests: int
    size: int


class Recorder:
    """
    Writes requests into a directory, in a thread, while there is room.

    @param reactor: has threads.
    @param counters: where recorded and not recorded requests are counted.
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
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0
        self._number = 0
        self._busy = False
        self._not_before = 0.0
        self._problem = ""

    def use(self, place: RecordDirectory | None) -> None:
        """Record in this directory from now on; None: nowhere."""
        if place != self._place:
            self._place = place
            self._not_before = 0.0
            self._problem = ""

    def record(self, head: Head, body: bytes, signatures: Collection[bytes] = ()) -> None:
        """
        Record a request, if there is room.

        @param body: unpacked.
        @param signatures: see L{recorded}.
        """
        if self._place is None:
            return
        waiting = len(self._waiting)
        too_much = waiting >= MOST_WAITING or (waiting and self._bytes + len(body) > MOST_WAITING_BYTES)
        if too_much or self._clock() < self._not_before:
            self._counters.add("not_recorded")
            return
        self._number += 1
        self._waiting.append((self._name(), head, body, signatures))
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

    def _write(self, place: RecordDirectory, batch: tuple[_Waiting, ...]) -> None:
        """Write requests; in a thread."""
        written, problem = 0, ""
        try:
            with suppress(FileExistsError):
                os.mkdir(place.directory, 0o700)
            requests, size = _there(place.directory)
            for name, head, body, signatures in batch:
                # Without a copy of a large body, which would hold the interpreter lock, and so the reactor.
                parts = recorded(head, signatures), body
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
                    # Once, until a write succeeds again.
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
    """Write a file atomically, for this user alone."""
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
