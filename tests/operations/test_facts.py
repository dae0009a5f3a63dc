"""
Tests for L{webhookrx.operations.facts}.
"""

from __future__ import annotations

from typing import NamedTuple

from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from tests.operations.facts import EMPTY
from webhookrx.interfaces import Backlog, IBufferingObserver, IMessageObserver
from webhookrx.operations.facts import Lane, lane_of
from webhookrx.testing import MemoryObserver


@implementer(IBufferingObserver)
class Keeper(MemoryObserver):
    """Keeps messages for another."""

    broken = False

    def hurry(self) -> None:
        """It waits for nothing."""

    def backlog(self) -> Backlog:
        """Tell, or fail to."""
        if self.broken:
            raise OSError("no disk")
        return EMPTY._replace(messages=3)


class State(NamedTuple):
    """As the chain tells it."""

    observer: IMessageObserver
    spec: str = "memory"
    messages: int = 2
    bytes: int = 200
    storing_for: float = 0.0
    stalled: bool = False
    failing: str | None = None
    failing_age: float = 0.0


class LaneTests(SynchronousTestCase):
    """From what the chain tells."""

    def test_plain(self) -> None:
        """An observer that keeps nothing has no backlog; one that is well has not failed."""
        self.assertEqual(Lane("memory", 2, 200, False, None, None), lane_of(State(MemoryObserver())))

    def test_failing(self) -> None:
        """How long ago it failed is told; why is not."""
        state = State(MemoryObserver(), stalled=True, failing="CANARY", failing_age=3.5)
        self.assertEqual(Lane("memory", 2, 200, True, 3.5, None), lane_of(state))

    def test_backlog(self) -> None:
        """One that keeps messages for another tells how many."""
        self.assertEqual(EMPTY._replace(messages=3), lane_of(State(Keeper())).backlog)

    def test_broken(self) -> None:
        """One that can't tell is one without, and the log says so."""
        keeper = Keeper()
        keeper.broken = True
        self.assertIsNone(lane_of(State(keeper)).backlog)
        self.assertEqual(1, len(self.flushLoggedErrors(OSError)))
