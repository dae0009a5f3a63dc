"""
Tests for L{webhookrx.console.routers.turns}.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.console.routers.turns import SLICE, in_turns


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
