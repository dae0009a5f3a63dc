"""A clock that stands still until somebody waits, for observers and for the stores that are played to them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event


class FakeTime(Event):
    """
    A monotonic clock, the event on which an observer waits for its stop, and what lets time go by: no wait takes any of
    the real time.

    @ivar now: seconds.
    @ivar waits: each wait on the event, in seconds as they were asked for.
    """

    def __init__(self, now: float = 1000.0) -> None:
        super().__init__()
        self.now = now
        self.waits: list[float] = []
        self._plans: list[tuple[float, Callable[[], object]]] = []

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def at(self, seconds: float, call: Callable[[], object]) -> None:
        """Call something once so many seconds have gone by."""
        self._plans.append((self.now + seconds, call))

    def wait(self, timeout: float | None = None) -> bool:
        """Let time go by, until the event is set."""
        assert timeout is not None, "a wait without an end"
        self.waits.append(timeout)
        return self._go(timeout, self.is_set)

    def sleep(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """
        Let time go by for a store that takes its time, whatever the event says.

        @param until: ends it; looked at whenever something planned has been called.
        @return: whether that has ended it.
        """
        return self._go(seconds, until)

    def _go(self, seconds: float, until: Callable[[], bool]) -> bool:
        end = self.now + seconds
        while not until():
            due = min((plan for plan in self._plans if plan[0] <= end), key=lambda plan: plan[0], default=None)
            if due is None:
                self.now = max(self.now, end)
                return until()
            self._plans.remove(due)
            self.now = max(self.now, due[0])
            due[1]()
        return True
