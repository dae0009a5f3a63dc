"""
Few log lines where there could be many: what a sender can cause, a sender can cause a million times.
"""

from __future__ import annotations

from collections.abc import Callable


class LineLimit:
    """
    Lets through a few lines a second of each kind, and knows how many it held back.

    @param lines: how many of one kind may pass in one second.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(self, clock: Callable[[], float], lines: int = 5) -> None:
        self._clock = clock
        self._lines = lines
        self._kinds: dict[str, list[float]] = {}  # kind: second it began, passed in it, held back since the last

    def passes(self, kind: str) -> bool:
        """Whether a line of that kind, which must not come from a sender, may be written now."""
        now = self._clock()
        state = self._kinds.setdefault(kind, [now, 0, 0])
        if now - state[0] >= 1.0:
            state[0] = now
            state[1] = 0
        if state[1] < self._lines:
            state[1] += 1
            return True
        state[2] += 1
        return False

    def take_held_back(self) -> list[tuple[str, int]]:
        """Return how many lines of each kind were held back since the last call; none of zero."""
        held = [(kind, int(state[2])) for kind, state in self._kinds.items() if state[2]]
        for kind, _ in held:
            self._kinds[kind][2] = 0
        return held
