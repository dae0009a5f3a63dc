"""
Exponential backoff with full jitter, and the C{Retry-After} of a server.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_RETRY_AFTER: Final = 300.0
"""The longest C{Retry-After} that is obeyed, in seconds; a server that asks for a year has made a mistake."""

#: A random number between 0 and 1, as C{random.random}.
Random = Callable[[], float]

_SECONDS = re.compile(r"[0-9]{1,12}")


class Backoff:
    """
    Counts failures in a row. After each one the pause is random, up to a bound that doubles, so that many clients that
    failed together do not retry together.

    @param first: the bound of the first pause, in seconds.
    @param longest: the largest bound, in seconds.
    """

    def __init__(self, first: float, longest: float, random: Random) -> None:
        self._first = first
        self._longest = longest
        self._random = random
        self._failures = 0

    def succeeded(self) -> None:
        """Begin again with short pauses."""
        self._failures = 0

    def failed(self, retry_after: float | None = None) -> float:
        """
        Count a failure, and return the pause before the next try, in seconds.

        @param retry_after: the shortest pause that the other end requested, obeyed up to L{LONGEST_RETRY_AFTER}.
        """
        # The exponent is bounded: 2.0 ** 1024 is an OverflowError, and a server may be away for days.
        bound = min(self._longest, self._first * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return max(self._random() * bound, min(retry_after or 0.0, LONGEST_RETRY_AFTER))


def parse_retry_after(value: str | None, now: float) -> float | None:
    """
    Read a C{Retry-After} (RFC 9110, section 10.2.3): seconds, or a date.

    @param now: seconds since the epoch.
    @return: seconds from now, at least 0 and at most L{LONGEST_RETRY_AFTER}; None when it is missing or malformed.
    """
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        seconds = float(text)
    else:
        try:
            date = parsedate_to_datetime(text)
            # HTTP dates are in GMT (section 5.6.7), also without a zone.
            seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)
