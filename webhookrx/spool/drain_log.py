"""
The log lines on an observer that is away, or refuses messages for good: few, however often that happens.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from twisted.logger import Logger

from webhookrx.message.escapes import escape
from webhookrx.quantities import format_duration

if TYPE_CHECKING:
    from webhookrx.interfaces import Backlog
    from webhookrx.spool.rows import DeadLetter

LOG_PAUSE: Final = 10.0
"""Seconds between two lines that say that something is away; twice as many after each new reason, up to L{REMINDER}."""
REMINDER: Final = 300.0
"""Seconds after which a line says again that it is away."""
COUNT_PAUSE: Final = 60.0
"""Seconds between two lines that count messages: those refused for good, or dropped."""

NOT_ENCODED: Final = "it can't be encoded"
"""The beginning of the reason of a message that an observer could not encode."""

_LONGEST: Final = 300
"""Characters of a third party's text."""

_log = Logger()


class AwayLog:
    """
    Reports that something is away or back. L{tick} writes the reminder that is due.

    @param name: what it is, fit for a log line, such as C{Observer file:x}.
    @param verb: what it does not do then, such as C{take messages}.
    @param does: the same of one that is back, such as C{takes messages}.
    @param clock: seconds on the monotonic clock.
    @param more: returns what else each line says, behind a semicolon.
    """

    def __init__(
        self, name: str, verb: str, does: str, clock: Callable[[], float], more: Callable[[], str] = lambda: ""
    ) -> None:
        self._name = name
        self._verb = verb
        self._does = does
        self._clock = clock
        self._more = more
        self._problem = ""  # the last reason
        self._reported: str | None = None  # the last reason in the log; None while it is not away
        self._pause = LOG_PAUSE
        self._next_line = 0.0
        self._next_reminder = 0.0

    def went_away(self, problem: str) -> None:
        """It has failed."""
        self._problem = problem
        now = self._clock()
        if problem == self._reported or now < self._next_line:
            return
        if self._reported is None:
            self._pause = LOG_PAUSE
            self._report(f"does not {self._verb}")
        else:
            # The reasons of some are never the same text twice.
            self._pause = min(2 * self._pause, REMINDER)
            self._report(f"does not {self._verb} for another reason now")

    def came_back(self) -> None:
        """It has not failed."""
        if self._reported is not None:
            self._reported = None
            _log.warn("{name} {does} again{more}", name=self._name, does=self._does, more=self._more())

    def forget(self) -> None:
        """Whether it would fail now is unknown."""
        self._reported = None

    def tick(self) -> None:
        """Write the line that is due."""
        if self._reported is not None and self._clock() >= self._next_reminder:
            self._pause = LOG_PAUSE
            self._report(f"still does not {self._verb}")

    def _report(self, what: str) -> None:
        self._reported = self._problem
        now = self._clock()
        self._next_line = now + self._pause
        self._next_reminder = now + REMINDER
        problem = printable(self._problem)
        _log.warn("{name} {what}: {problem}{more}", name=self._name, what=what, problem=problem, more=self._more())


class RefusalLog:
    """
    Counts messages that an observer has refused for good. L{tick} and L{end} write the lines that were held back.

    @param spec: the observer's, fit for a log line.
    @param clock: seconds on the monotonic clock.
    @param before: what each line begins with.
    @param after: what each line ends with.
    """

    def __init__(self, spec: str, clock: Callable[[], float], before: str = "", after: str = "") -> None:
        self._spec = spec
        self._clock = clock
        self._before = before
        self._after = after
        self._count = 0
        self._reason = ""
        self._has_others = False
        self._next = 0.0

    def refused(self, reason: str) -> None:
        """A message was refused."""
        # What an encoder trips over is a sender's text, which its error may quote.
        reason = NOT_ENCODED if reason.startswith(NOT_ENCODED) else reason
        if self._count and reason != self._reason:
            self._has_others = True
        else:
            self._reason = reason
        self._count += 1

    def tick(self) -> None:
        """Write the line that is due."""
        now = self._clock()
        if not self._count or now < self._next:
            return
        self._next = now + COUNT_PAUSE
        count, self._count = self._count, 0
        others, self._has_others = self._has_others, False
        _log.warn(
            "{before}{count} rejected permanently by {spec}: {reason}{others}{after}",
            before=self._before,
            count="1 message was" if count == 1 else f"{count} messages were",
            spec=self._spec,
            reason=printable(self._reason),
            others=", and for other reasons" if others else "",
            after=self._after,
        )

    def end(self) -> None:
        """Write what was held back."""
        self._next = 0.0
        self.tick()


class DrainLog:
    """
    Reports that an observer is away or back, and messages that it will never get. L{tick} and L{end} write the lines
    that were held back.

    @param path: directory of the spool.
    @param spec: the observer behind, as its C{spec} is.
    @param status: returns the backlog.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: nanoseconds since the epoch.
    """

    def __init__(
        self,
        path: str,
        spec: str,
        status: Callable[[], Backlog],
        clock: Callable[[], float],
        wall_clock: Callable[[], int],
    ) -> None:
        self._path = path
        self._status = status
        self._clock = clock
        self._wall_clock = wall_clock
        self._away = AwayLog(f"Observer {spec}", "take messages", "takes messages", clock, self._waiting)
        hint = f'; see "webhookrx spool list {shlex.quote(path)}"'
        self._refusals = RefusalLog(spec, clock, f"Spool {path}: ", hint)
        self._dropped = status().dropped
        self._next_dropped: float | None = None

    # -- events --------------------------------------------------------------------------------------------------

    def went_away(self, problem: str) -> None:
        """The observer has not stored a batch."""
        self._away.went_away(problem)

    def came_back(self) -> None:
        """The observer has stored a batch."""
        self._away.came_back()

    def refused(self, letters: Sequence[DeadLetter]) -> None:
        """Messages have become dead letters."""
        for letter in letters:
            self._refusals.refused(letter.reason)
        self._refusals.tick()

    def tick(self) -> None:
        """Write the lines that are due."""
        self._away.tick()
        self._refusals.tick()
        self._report_dropped_if_due()

    def end(self) -> None:
        """Write all counts that were held back."""
        self._refusals.end()
        self._next_dropped = 0.0
        self._report_dropped_if_due()

    # -- lines ---------------------------------------------------------------------------------------------------

    def _waiting(self) -> str:
        status = self._status()
        text = f"; {status.messages} wait in the spool"
        if status.oldest is None:
            return text
        return f"{text}, the oldest for {_roughly(max(0, self._wall_clock() - status.oldest) // 10**9)}"

    def _report_dropped_if_due(self) -> None:
        """Sum up: the queue reports the first drop at once, but most of those that follow in short order are not."""
        dropped = self._status().dropped
        if dropped == self._dropped:
            self._next_dropped = None
            return
        now = self._clock()
        if self._next_dropped is None:
            self._next_dropped = now + COUNT_PAUSE
        if now < self._next_dropped:
            return
        self._next_dropped = None
        self._dropped = dropped
        _log.warn("Spool {path}: {count} oldest messages dropped since the start", path=self._path, count=dropped)


def printable(text: str) -> str:
    """Make a third party's text safe for a log line or a terminal: its beginning, with escapes."""
    text = escape(text[:_LONGEST]) + ("…" if len(text) > _LONGEST else "")
    return text.encode("utf-8", "backslashreplace").decode()


def _roughly(seconds: int) -> str:
    """Write a duration for people, in the largest unit of which there are two or more."""
    unit = next((unit for unit in (86400, 3600, 60) if seconds >= 2 * unit), 1)
    return format_duration(seconds // unit * unit)
