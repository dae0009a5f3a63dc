"""
The parts of a relay that may be away: broker, observer and the observer of dead letters; when each is tried again, and
what the log says of it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from webhookrx.backoff import Backoff, Random
from webhookrx.errors import Unavailable, WebhookrxError
from webhookrx.pipeline.guarded_calls import error_text
from webhookrx.spool.drain_log import AwayLog, printable

FIRST_PAUSE: Final = 0.1
"""The bound of the first pause after a failure, in seconds."""
LONGEST_PAUSE: Final = 30.0
"""The largest bound of such a pause, in seconds."""


class RelayPart:
    """
    One of the parts. Used in one thread, but for C{away}.

    @param name: what it is and its spec, such as C{Observer file:x}, for log lines.
    @param verb: as for L{AwayLog}; so is C{does}.
    @param clock: seconds on the monotonic clock.
    @ivar away: why it does not; None while it does, and before the first failure.
    """

    def __init__(
        self,
        name: str,
        verb: str,
        does: str,
        jitter: Random = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.away: str | None = None
        self._log = AwayLog(name, verb, does, clock)
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, jitter)

    def succeeded(self) -> None:
        """It has done what it was asked for."""
        self.progressed()
        self.away = None
        self._log.came_back()

    def progressed(self) -> None:
        """It has done a part of it: the next pause is short."""
        self._backoff.succeeded()

    def forget(self) -> None:
        """Nothing is asked of it any more, so whether it would do it now is unknown."""
        self.away = None
        self._log.forget()
        self._backoff.succeeded()

    def failed(self, error: BaseException) -> float:
        """It has not. Return the pause before the next try, in seconds."""
        # A broken contract or a mistake of ours: the type tells more than the text.
        kind = "" if isinstance(error, (WebhookrxError, OSError)) else f"{type(error).__name__}: "
        self.away = printable(kind + error_text(error))
        self._log.went_away(self.away)
        self._log.tick()
        return self._backoff.failed(error.retry_after if isinstance(error, Unavailable) else None)
