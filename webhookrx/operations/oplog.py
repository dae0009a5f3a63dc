"""
The service's own log: its lines on standard error, apart from messages on standard output, and how many there may be.

C{twistd --logger webhookrx.operations.oplog.stderr webhookrx …}
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, MutableSequence
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
    """Return an observer for C{twistd --logger}; its lines carry priorities when the journal reads them."""
    # twistd replaces sys.stderr by a log; the descriptor stays.
    stream = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    return to_stream(stream, os.environ)


def forget_plugin_cache_complaints(buffer: MutableSequence[LogEvent] | None = None) -> None:
    """
    Drop Twisted's complaints about its plugin cache before logging begins.

    In a read-only installation Twisted complains at every start that it can't write the cache, which costs a tenth of a
    second and which an operator can't act on. Call this when all plugins have been looked up.

    @param buffer: the events that wait for logging to begin; by default Twisted's own, by private names. Without them
        the complaint is logged.
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
    return f"{formatTime(event.get('log_time'))} [{_level(event)}] {printable(event_text(event))}\n"


def _journal_line(event: LogEvent) -> str:
    priority = _PRIORITY.get(event.get("log_level", LogLevel.info), 6)
    return "".join(f"<{priority}>{line}\n" for line in printable(event_text(event)).splitlines() or [""])


def _level(event: LogEvent) -> str:
    level: Any = event.get("log_level")
    return "-" if level is None else str(level.name)


def event_text(event: LogEvent) -> str:
    """Return the text of an event, with the traceback of its failure."""
    text = formatEvent(event)
    failure = event.get("log_failure")
    return text if failure is None else f"{text}\n{failure.getTraceback()}"


def printable(text: str) -> str:
    """Return a text with escapes for control characters, which would move the cursor of a terminal."""
    return "".join(ch if ch.isprintable() or ch in "\n\t" else f"\\x{ord(ch):02x}" for ch in text)


class LineLimit:
    """
    Lets a few lines a second of each kind pass, and counts those held back: a sender can cause a million.

    @param lines: lines of one kind in one second.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(self, clock: Callable[[], float], lines: int = 5) -> None:
        self._clock = clock
        self._lines = lines
        self._kinds: dict[str, list[float]] = {}  # kind: second it began, passed in it, held back since the last

    def passes(self, kind: str) -> bool:
        """Return whether a line of that kind, which must not come from a sender, may be written now."""
        now = self._clock()
        state = self._kinds.setdefault(kind, [now, 0, 0])
        if now - state[0] >= 1.0:
            state[0] = now
            state[1] = 0
        if state[1] < self._lines:
            state[1] += 1
            return True
        state[2] += 1
        return False

    def take_held_back(self) -> list[tuple[str, int]]:
        """Return the kinds of which lines were held back since the last call, and how many."""
        held = [(kind, int(state[2])) for kind, state in self._kinds.items() if state[2]]
        for kind, _ in held:
            self._kinds[kind][2] = 0
        return held
