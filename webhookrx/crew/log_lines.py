"""
The service's own log, written by the parent alone.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.logger import ILogObserver, LogEvent, Logger, LogLevel, formatEvent
from zope.interface import implementer

from webhookrx.crew.messages import Line

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
        self._say(Line(level.name, namespace, text.encode("utf-8", "backslashreplace").decode()))


def write(worker: int, line: Line) -> None:
    """Write the line of a worker into the log of this process."""
    level = LogLevel.levelWithName(line.level)
    Logger(line.namespace).emit(level, "Worker {worker}: {line}", worker=worker, line=line.text)
