"""
The log lines of a drainer: few, however often the same thing happens.
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
"""Seconds between two lines that say that the observer is away; twice as many after each new reason."""
REMINDER: Final = 300.0
"""Seconds after which a line says again that the observer is away."""
COUNT_PAUSE: Final = 60.0
"""Seconds between two lines that count messages: those refused for good, or dropped."""

NOT_ENCODED: Final = "it can't be encoded"
"""The beginning of the reason of a message that an observer could not encode."""

_LONGEST: Final = 300
"""Characters of a third party's text."""

_log = Logger()


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
        self._spec = spec
        self._status = status
        self._clock = clock
        self._wall_clock = wall_clock
        self._problem = ""  # the last reason
        self._reported: str | None = None  # the last reason in the log; None while the observer is not away
        self._pause = LOG_PAUSE
        self._next_away = 0.0
        self._next_reminder = 0.0
        self._refused = 0
        self._reason = ""
        self._other_reasons = False
        self._next_refused = 0.0
        self._dropped = status().dropped
        self._next_dropped: float | None = None

    # -- events --------------------------------------------------------------------------------------------------

    def went_away(self, problem: str) -> None:
        """The observer has not stored a batch."""
        self._problem = problem
        now = self._clock()
        if problem == self._reported or now < self._next_away:
            return
        if self._reported is None:
            self._pause = LOG_PAUSE
            sentence = "Observer {spec} does not take messages: {problem}; {waiting}"
        else:
            # The reasons of some observers are never the same text twice.
            self._pause = min(2 * self._pause, REMINDER)
            sentence = "Observer {spec} does not take messages for another reason now: {problem}; {waiting}"
        self._report_away(sentence)

    def came_back(self) -> None:
        """The observer has stored a batch."""
        if self._reported is not None:
            self._reported = None
            _log.warn("Observer {spec} takes messages again; {waiting}", spec=self._spec, waiting=self._waiting())

    def refused(self, letters: Sequence[DeadLetter]) -> None:
        """Messages have become dead letters."""
        for letter in letters:
            # What an encoder trips over is a sender's text, which its error may quote.
            reason = NOT_ENCODED if letter.reason.startswith(NOT_ENCODED) else letter.reason
            if self._refused and reason != self._reason:
                self._other_reasons = True
            else:
                self._reason = reason
            self._refused += 1
        self._report_refused_if_due()

    def tick(self) -> None:
        """Write the lines that are due."""
        now = self._clock()
        if self._reported is not None and now >= self._next_reminder:
            self._pause = LOG_PAUSE
            self._report_away("Observer {spec} still does not take messages: {problem}; {waiting}")
        self._report_refused_if_due()
        self._report_dropped_if_due()

    def end(self) -> None:
        """Write all counts that were held back."""
        self._next_refused = 0.0
        self._report_refused_if_due()
        self._next_dropped = 0.0
        self._report_dropped_if_due()

    # -- lines ---------------------------------------------------------------------------------------------------

    def _report_away(self, sentence: str) -> None:
        self._reported = self._problem
        now = self._clock()
        self._next_away = now + self._pause
        self._next_reminder = now + REMINDER
        _log.warn(sentence, spec=self._spec, problem=printable(self._problem), waiting=self._waiting())

    def _waiting(self) -> str:
        status = self._status()
        text = f"{status.messages} wait in the spool"
        if status.oldest is None:
            return text
        return f"{text}, the oldest for {_roughly(max(0, self._wall_clock() - status.oldest) // 10**9)}"

    def _report_refused_if_due(self) -> None:
        now = self._clock()
        if not self._refused or now < self._next_refused:
            return
        self._next_refused = now + COUNT_PAUSE
        count, self._refused = self._refused, 0
        others, self._other_reasons = self._other_reasons, False
        _log.warn(
            "Spool {path}: {count} rejected permanently by {spec}: {reason}{others}; "
            'see "webhookrx spool list {quoted}"',
            path=self._path,
            count="1 message was" if count == 1 else f"{count} messages were",
            spec=self._spec,
            reason=printable(self._reason),
            others=", and for other reasons" if others else "",
            quoted=shlex.quote(self._path),
        )

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
