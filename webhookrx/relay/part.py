"""
The parts of a relay that may be away: broker, observer and the observer of dead letters; when each is tried again, and
what the log says of it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from twisted.logger import Logger

from webhookrx.backoff import Backoff, Random
from webhookrx.errors import Unavailable, WebhookrxError
from webhookrx.pipeline.guarded_calls import error_text
from webhookrx.spool.drain_log import printable

FIRST_PAUSE: Final = 0.1
"""The bound of the first pause after a failure, in seconds."""
LONGEST_PAUSE: Final = 30.0
"""The largest bound of such a pause, in seconds."""
LOG_PAUSE: Final = 10.0
"""Seconds between two lines that say that a part is away; twice as many after each new reason, up to L{REMINDER}."""
REMINDER: Final = 300.0
"""Seconds after which a line says again that it is away."""

_log = Logger()


class RelayPart:
    """
    One of the parts. Used in one thread, but for C{away}.

    @param name: what it is and its spec, such as C{Observer file:x}, for log lines.
    @param takes: what it does when all is well, such as C{take messages}, in the plural.
    @param clock: seconds on the monotonic clock.
    @ivar away: why it does not; None while it does, and before the first failure.
    """

    def __init__(
        self, name: str, takes: str, jitter: Random = random.random, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.away: str | None = None
        self._name = name
        self._takes = takes
        self._clock = clock
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, jitter)
        self._reported: str | None = None  # the last reason in the log; None while it is not away
        self._pause = LOG_PAUSE
        self._next_line = 0.0
        self._next_reminder = 0.0

    def succeeded(self) -> None:
        """It has done what it was asked for."""
        self.progressed()
        self.away = None
        if self._reported is not None:
            self._reported = None
            _log.warn("{name} does {takes} again", name=self._name, takes=self._takes)

    def progressed(self) -> None:
        """It has done a part of it: the next pause is short."""
        self._backoff.succeeded()

    def forget(self) -> None:
        """Nothing is asked of it any more, so whether it would do it now is unknown."""
        self.away = self._reported = None
        self._backoff.succeeded()

    def failed(self, error: BaseException) -> float:
        """It has not. Return the pause before the next try, in seconds."""
        # A broken contract or a mistake of ours: the type tells more than the text.
        kind = "" if isinstance(error, (WebhookrxError, OSError)) else f"{type(error).__name__}: "
        self.away = printable(kind + error_text(error))
        self._report()
        return self._backoff.failed(error.retry_after if isinstance(error, Unavailable) else None)

    def _report(self) -> None:
        now = self._clock()
        if self._reported is None:
            self._pause = LOG_PAUSE
            sentence = "{name} does not {takes}: {problem}"
        elif now >= self._next_reminder:
            self._pause = LOG_PAUSE
            sentence = "{name} still does not {takes}: {problem}"
        elif self.away != self._reported and now >= self._next_line:
            # The reasons of some are never the same text twice.
            self._pause = min(2 * self._pause, REMINDER)
            sentence = "{name} does not {takes} for another reason now: {problem}"
        else:
            return
        self._reported = self.away
        self._next_line = now + self._pause
        self._next_reminder = now + REMINDER
        _log.warn(sentence, name=self._name, takes=self._takes, problem=self.away)
