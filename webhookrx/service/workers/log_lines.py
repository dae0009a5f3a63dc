"""
Log lines of workers, sent to the parent, which alone writes the service's own log.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.logger import ILogObserver, LogEvent, Logger, LogLevel
from zope.interface import implementer

from webhookrx.operations.oplog import LineLimit, event_text, printable
from webhookrx.service.workers.messages import LogLine

LONGEST = 16 * 1024
"""Characters of one line; tracebacks are shorter."""
MOST_LINES = 50
"""Lines of one worker in one second. What senders can cause makes far fewer."""

_LONGEST_NAMESPACE = 200

_log = Logger()

#: The namespace of Twisted's older logging. Its information is on single ports and factories, once for each worker; the
#: parent logs all of it once.
_LEGACY = "log_legacy"


@implementer(ILogObserver)
class LineSender:
    """
    Makes log lines of events.

    @param send: takes each line.
    """

    def __init__(self, send: Callable[[LogLine], None]) -> None:
        self._send = send

    def __call__(self, event: LogEvent) -> None:
        level, namespace = event.get("log_level") or LogLevel.info, str(event.get("log_namespace", ""))
        if namespace == _LEGACY and level <= LogLevel.info:
            return
        self._send(LogLine(level.name, namespace, event_text(event)[:LONGEST]))


class WorkersLog:
    """
    Writes the lines of workers into the log of this process. A faulty worker can neither fill it nor send control
    characters to a terminal.

    @param clock: seconds on the monotonic clock.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._limit = LineLimit(clock, MOST_LINES)

    def write(self, worker: int, line: LogLine) -> None:
        """Write a line of a worker, unless there are too many."""
        if self._limit.passes(str(worker)):
            log = Logger(printable(line.namespace[:_LONGEST_NAMESPACE]))
            level = LogLevel.levelWithName(line.level)
            log.emit(level, "Worker {worker}: {line}", worker=worker, line=printable(line.text[:LONGEST]))

    def report_held_back(self) -> None:
        """Log how many lines were too many since the last call; called every few seconds."""
        for worker, count in self._limit.take_held_back():
            _log.warn("Worker {worker}: {count} more lines", worker=worker, count=count)
