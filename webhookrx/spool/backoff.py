"""
When an observer that is away is tried again: full jitter between doubling bounds, and what it asked for itself.
"""

from __future__ import annotations

from typing import Final

from webhookrx.backoff import LONGEST_RETRY_AFTER, Random, full_jitter

FIRST_BOUND: Final = 0.1
"""Seconds that the first pause may take at most; each next one may take twice as long."""
LAST_BOUND: Final = 30.0
"""Seconds that a pause may take at most, unless the observer asks for more."""


class Backoff:
    """
    Counts failures in a row.

    @param random: a number from 0 to 1, as C{random.random}.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._failures = 0

    def succeeded(self) -> None:
        """Begin again with short pauses."""
        self._failures = 0

    def failed(self, retry_after: float | None = None) -> float:
        """
        Count a failure, and return how many seconds to pause.

        @param retry_after: seconds that the observer asked for; None when it said nothing.
        """
        self._failures += 1
        pause = full_jitter(self._failures, FIRST_BOUND, LAST_BOUND, self._random)
        return max(pause, min(retry_after or 0.0, LONGEST_RETRY_AFTER))
