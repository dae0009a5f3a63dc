"""
The pace of requests, or of their bytes: token buckets by key, of which there is a bounded number.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_MOST_KEYS: Final = 20_000


class Pace:
    """
    Lets so many requests a second through for each key, and a burst of them.

    @param most: keys that are remembered; the one that was longest not used is forgotten first.
    """

    def __init__(self, rate: float, burst: float, most: int = _MOST_KEYS) -> None:
        self._rate = rate
        self._burst = burst
        self._most = most
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, key: str, now: float, cost: float = 1) -> bool:
        """
        Return whether another request of a key may pass, and count it then.

        @param now: seconds of any clock that does not go back.
        @param cost: what it takes; more than the burst never passes.
        """
        left, then = self._left.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        allowed = left >= cost
        self._left[key] = (left - cost if allowed else left, now)
        if len(self._left) > self._most:
            self._left.popitem(last=False)
        return allowed
