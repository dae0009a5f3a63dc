"""
Tests for L{webhookrx.operations.ticker}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.operations.ticker import Ticker


class Stopped:
    """Stands in for the event that the thread waits on: it lets so many waits time out."""

    def __init__(self, ticks: int) -> None:
        self._ticks = ticks

    def clear(self) -> None:
        """Nothing to clear."""

    def set(self) -> None:
        """Nothing to set."""

    def wait(self, interval: float) -> bool:
        """Whether it is over."""
        self._ticks -= 1
        return self._ticks < 0


class TickerTests(SynchronousTestCase):
    """Ticks, with the thread's part run by hand."""

    def setUp(self) -> None:
        """Make one whose reactor keeps what it is to call."""
        self.calls: list[Callable[[], Any]] = []
        self.ticks = 0
        self.ticker = Ticker(self, self._tick)  # type: ignore[arg-type]

    def callFromThread(self, call: Callable[[], Any]) -> None:
        """As the reactor's."""
        self.calls.append(call)

    def _tick(self) -> None:
        self.ticks += 1

    def run_thread(self, ticks: int) -> None:
        """Run what the thread does."""
        self.ticker._stopped = Stopped(ticks)  # type: ignore[assignment]
        self.ticker._run()

    def test_ticks(self) -> None:
        """It ticks in the reactor thread."""
        self.ticker.running = True
        for _ in range(2):
            self.run_thread(1)
            self.assertEqual(1, len(self.calls))
            self.calls.pop()()
        self.assertEqual(2, self.ticks)

    def test_busy_reactor(self) -> None:
        """Ticks don't pile up for a reactor that is busy."""
        self.run_thread(5)
        self.assertEqual(1, len(self.calls))

    def test_stopped(self) -> None:
        """A tick after the stop does nothing."""
        self.run_thread(1)
        self.calls.pop()()
        self.assertEqual(0, self.ticks)
