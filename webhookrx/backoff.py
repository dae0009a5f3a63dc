"""
Pauses between tries: full jitter, so that many who failed together do not come back together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

LONGEST_RETRY_AFTER: Final = 300.0
"""Seconds for which another end may ask to be left alone; an end that says a year has made a mistake."""

#: A random number between 0 and 1, as C{random.random}.
Random = Callable[[], float]


def full_jitter(failures: int, first: float, longest: float, random: Random) -> float:
    """
    Return how many seconds to pause: anything between nothing and a bound that doubles with each failure.

    @param failures: how many tries have failed in a row; at least 1.
    @param first: the bound after the first of them, in seconds.
    @param longest: the bound that stays.
    """
    # The exponent is bounded: 2.0 ** 1024 is an OverflowError, and some end may be away for days.
    return random() * min(longest, first * 2.0 ** min(failures - 1, 30))
