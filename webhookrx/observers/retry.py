"""
When to try again: our own pauses, and the C{Retry-After} of the other end.
"""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

from webhookrx.backoff import LONGEST_RETRY_AFTER

FIRST_PAUSE = 0.25
"""Seconds that the first pause may take at most; each next one may take twice as long."""
LONGEST_PAUSE = 10.0
"""Seconds that a pause of our own may take at most."""

_SECONDS = re.compile(r"[0-9]{1,12}")


def parse_retry_after(value: str | None, now: float) -> float | None:
    """
    Read a C{Retry-After} (RFC 9110, section 10.2.3): seconds, or a date.

    @param now: seconds since the epoch.
    @return: seconds from now, at least 0 and at most L{LONGEST_RETRY_AFTER}; None when it is missing or neither.
    """
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        seconds = float(text)
    else:
        try:
            date = parsedate_to_datetime(text)
            # HTTP dates are in GMT (section 5.6.7), also where their zone is left out.
            seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)
