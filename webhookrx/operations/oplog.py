"""
The service's own log on standard error, apart from messages on standard output.

C{twistd --logger webhookrx.operations.oplog.stderr webhookrx …}
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableSequence
from typing import IO, Any

from twisted.logger import FileLogObserver, ILogObserver, LogEvent, LogLevel, formatEvent, formatTime, globalLogBeginner

#: RFC 5424 severities, as journald takes them at the beginning of a line.
_PRIORITY = {
    LogLevel.debug: 7,
    LogLevel.info: 6,
    LogLevel.warn: 4,
    LogLevel.error: 3,
    LogLevel.critical: 2,
}


def stderr() -> ILogObserver:
    """Return an observer for C{twistd --logger}; lines carry priorities when the journal reads them."""
    # twistd puts a log in the place of sys.stderr; the descriptor stays what it was.
    stream = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    return to_stream(stream, os.environ)


def forget_plugin_cache_complaints(buffer: MutableSequence[LogEvent] | None = None) -> None:
    """
    Drop what Twisted said about its plugin cache before logging has begun.

    Where the installation can't be written to, it says at every start that it can't write the cache, and nobody who
    reads that can act on it: it costs a tenth of a second. Call this when all plugins have been looked up.

    @param buffer: the events that wait for logging to begin; Twisted's own when None.
    """
    if buffer is None:
        buffer = getattr(getattr(globalLogBeginner, "_initialBuffer", None), "_buffer", None)
    for event in list(buffer or ()):
        if str(event.get("format", "")).startswith("Unable to write to plugin cache"):
            buffer.remove(event)  # type: ignore[union-attr]  # an empty one has no events


def to_stream(stream: IO[str], environment: Mapping[str, str] = os.environ) -> ILogObserver:
    """Return an observer that writes one line an event."""
    for_journal = "JOURNAL_STREAM" in environment
    return FileLogObserver(stream, _journal_line if for_journal else _line)


def _line(event: LogEvent) -> str:
    return f"{formatTime(event.get('log_time'))} [{_level(event)}] {_text(event)}\n"


def _journal_line(event: LogEvent) -> str:
    priority = _PRIORITY.get(event.get("log_level", LogLevel.info), 6)
    return "".join(f"<{priority}>{line}\n" for line in _text(event).splitlines() or [""])


def _level(event: LogEvent) -> str:
    level: Any = event.get("log_level")
    return "-" if level is None else str(level.name)


def _text(event: LogEvent) -> str:
    text = formatEvent(event)
    failure = event.get("log_failure")
    if failure is not None:
        text = f"{text}\n{failure.getTraceback()}"
    # Text of others must not move anybody's cursor.
    return "".join(ch if ch.isprintable() or ch in "\n\t" else f"\\x{ord(ch):02x}" for ch in text)
