"""
The service's own log, written by the parent alone.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.logger import ILogObserver, LogEvent, Logger, LogLevel, formatEvent
from zope.interface import implementer

from webhookrx.operations.line_limit import LineLimit
from webhookrx.service.workers.messages import Line

LONGEST = 16 * 1024
"""Characters of one line; tracebacks are shorter."""
MOST_LINES = 50
"""Lines of one worker in one second. What senders can cause makes far fewer."""

_LONGEST_NAMESPACE = 200

_log = Logger()

#: Where Twisted's older way of logging leads. What comes by it as information tells of single ports and factories, once
#: for each worker; the parent says all of it once.
_LEGACY = "log_legacy"


@implementer(ILogObserver)
class LineSender:
    """
    Makes lines of events.

    @param say: takes each line.
    """

    def __init__(self, say: Callable[[Line], None]) -> None:
        self._say = say

    def __call__(self, event: LogEvent) -> None:
        """See L{ILogObserver}."""
        level, namespace = event.get("log_level") or LogLevel.info, str(event.get("log_namespace", ""))
        if namespace == _LEGACY and level <= LogLevel.info:
            return
        text = formatEvent(event)
        failure = event.get("log_failure")
        if failure is not None:
            text = f"{text}\n{failure.getTraceback()}"
        self._say(Line(level.name, namespace, text.encode("utf-8", "backslashreplace").decode()[:LONGEST]))


class WorkersLog:
    """
    Writes the lines of workers into the log of this process. A worker that has gone mad can neither fill it nor use it
    to move anybody's cursor.

    @param clock: seconds on the monotonic clock.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._limit = LineLimit(clock, MOST_LINES)

    def write(self, worker: int, line: Line) -> None:
        """Write a line of a worker, unless it has written too many."""
        if self._limit.passes(str(worker)):
            log = Logger(_printable(line.namespace[:_LONGEST_NAMESPACE]))
            level = LogLevel.levelWithName(line.level)
            log.emit(level, "Worker {worker}: {line}", worker=worker, line=_printable(line.text[:LONGEST]))

    def report_held_back(self) -> None:
        """Tell how many lines were too many since the last call; called every few seconds."""
        for worker, count in self._limit.take_held_back():
            _log.warn("Worker {worker}: {count} more lines", worker=worker, count=count)


def _printable(text: str) -> str:
    return "".join(ch if ch.isprintable() or ch in "\n\t" else f"\\x{ord(ch):02x}" for ch in text)
