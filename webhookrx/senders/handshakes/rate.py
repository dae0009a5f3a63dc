"""
The rate of questions: so many a second for a source, so that nobody has it compute proofs or guess tokens all day.
"""

from __future__ import annotations

from math import ceil
from typing import Final

PER_SECOND: Final = 10
"""Questions that a source answers in a second, refused ones included; in each worker."""


class HandshakeRate:
    """
    A bucket that holds a second's worth of questions.

    @param now: seconds of a clock that never goes back, as in L{take}.
    """

    __slots__ = ("_at", "_left")

    def __init__(self, now: float = 0.0) -> None:
        self._left = float(PER_SECOND)
        self._at = now

    def take(self, now: float) -> int:
        """Take one: return 0, or the whole seconds until there is one to take."""
        self._left = min(float(PER_SECOND), self._left + max(0.0, now - self._at) * PER_SECOND)
        self._at = max(self._at, now)
        if self._left >= 1:
            self._left -= 1
            return 0
        return ceil((1 - self._left) / PER_SECOND)
