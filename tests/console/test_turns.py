"""
Tests for L{webhookrx.console.turns}.
"""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.console.turns import SLICE, in_turns


class TurnsTests(SynchronousTestCase):
    def test_turns_end(self) -> None:
        """Work goes on until its time is over, then everything else has its turn, and all of it is done in the end."""
        clock = Clock()
        done: list[object] = []

        async def work() -> None:
            async for each in in_turns(clock, range(10)):
                done.append(each)
                clock.rightNow += SLICE / 4

        working = Deferred.fromCoroutine(work())
        self.assertEqual(done, [0, 1, 2, 3])
        self.assertNoResult(working)
        clock.callLater(0, done.append, "other")
        clock.advance(0)
        self.successResultOf(working)
        self.assertEqual(done, [0, 1, 2, 3, 4, 5, 6, 7, "other", 8, 9])

    def test_one_after_the_other(self) -> None:
        """However much work there is at a time, one turn is taken in each round of the reactor."""
        clock = Clock()
        done: list[int] = []

        async def work(number: int) -> None:
            async for _ in in_turns(clock, range(3)):
                done.append(number)
                clock.rightNow += SLICE

        class Rounds:
            def __init__(self) -> None:
                self.counts: list[int] = []
                self.seen = 0

            def look(self) -> None:
                self.counts.append(len(done) - self.seen)
                self.seen = len(done)
                if clock.getDelayedCalls():
                    clock.callLater(0, self.look)

        works = [Deferred.fromCoroutine(work(number)) for number in range(4)]
        self.assertEqual(done, [0])
        rounds = Rounds()
        rounds.seen = len(done)
        clock.callLater(0, rounds.look)
        for _ in range(20):
            clock.advance(0)
        for each in works:
            self.successResultOf(each)
        self.assertEqual(sorted(done), sorted([*range(4)] * 3))
        self.assertLessEqual(max(rounds.counts), 1)

    def test_cancelled(self) -> None:
        """Work that is given up while it waits leaves the turns to others."""
        clock = Clock()
        done: list[str] = []

        async def work(name: str) -> None:
            async for _ in in_turns(clock, range(2)):
                done.append(name)
                clock.rightNow += SLICE

        first, second, third = (Deferred.fromCoroutine(work(name)) for name in "abc")
        second.cancel()
        self.failureResultOf(second, CancelledError)
        for _ in range(10):
            clock.advance(0)
        self.successResultOf(first)
        self.successResultOf(third)
        self.assertEqual(done, ["a", "a", "c", "c"])
