"""
Files for the next start, such as the last good connectors, written while the receiver runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from twisted.logger import Logger

from webhookrx.config.files import LAST_SET, read_state, write_state
from webhookrx.errors import ConfigError
from webhookrx.operations.counters import Counters
from webhookrx.settings import Settings

AGAIN: Final = 60.0
"""Seconds until the next try to write a file."""

_log = Logger()


class _StateFile(NamedTuple):
    directory: str
    name: str
    content: bytes


class KeptState:
    """
    Writes files in a thread, one at a time. Of several that come meanwhile, only the last is written. A file with the
    same content is left alone; a failed write is repeated.

    @param reactor: has threads.
    @param counters: where failed writes are counted.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(self, reactor: Any, counters: Counters, clock: Callable[[], float] = time.monotonic) -> None:
        self._reactor = reactor
        self._clock = clock
        self._not_before = 0.0
        self._problem = ""
        self._counters = counters
        self._next: _StateFile | None = None
        self._busy = False

    def keep(self, directory: str, name: str, content: bytes) -> None:
        """Write a file soon; see L{webhookrx.config.files.write_state}."""
        self._next = _StateFile(directory, name, content)
        self._not_before = 0.0
        self.tick()

    def tick(self) -> None:
        """Start a write that is due; called now and then."""
        file = self._next
        if file is not None and not self._busy and self._clock() >= self._not_before:
            self._next, self._busy = None, True
            self._reactor.callInThread(self._write, file)

    def _write(self, file: _StateFile) -> None:
        problem = ""
        try:
            if not _is_there(file):
                write_state(*file)
        except Exception as error:  # whatever it is, the receiver goes on
            problem = str(error)
        self._reactor.callFromThread(self._written, file, problem)

    def _written(self, file: _StateFile, problem: str) -> None:
        self._busy = False
        if problem:
            self._counters.add("state_writes_failed")
            if problem != self._problem:
                _log.error(
                    "{name} could not be kept in {directory}, so a restart may not have it: {problem}",
                    name=file.name,
                    directory=file.directory,
                    problem=problem,
                )
            if self._next is None:
                self._next = file
                self._not_before = self._clock() + AGAIN
        self._problem = problem
        self.tick()


def keep_last_set(kept: KeptState, settings: Settings) -> None:
    """Keep the connectors of settings in use for the next start, if all of them are good."""
    if settings.state_dir is not None and settings.router is not None and settings.router.good:
        kept.keep(settings.state_dir, LAST_SET, settings.router.good)


def _is_there(file: _StateFile) -> bool:
    try:
        return read_state(file.directory, file.name) == file.content
    except ConfigError:
        return False
