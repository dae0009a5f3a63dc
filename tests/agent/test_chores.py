"""
Tests for L{webhookrx.agent.chores}.
"""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.agent.chores import in_background, timer_of, to_its_end


class ChoresTests(SynchronousTestCase):
    """What fails is logged, and ends nothing else."""

    def test_in_background(self) -> None:
        """A failure is logged once, and a work that was cancelled is none."""
        begun: Deferred[None] = Deferred()

        async def work() -> None:
            await begun

        self.successResultOf(in_background(self.failing()))
        self.assertEqual(1, len(self.flushLoggedErrors(RuntimeError)))
        working = in_background(work())
        working.cancel()
        self.successResultOf(working)

    async def failing(self) -> None:
        """Fail."""
        raise RuntimeError("a mistake of ours")

    def test_to_its_end(self) -> None:
        """The result of a work arrives; one that nobody waits for any more goes on, and its failure is logged."""
        self.assertEqual(7, self.successResultOf(to_its_end(self.fired(7))))
        for result in (7, RuntimeError("a mistake of ours")):
            work: Deferred[int] = Deferred()
            waiting = to_its_end(work)
            waiting.cancel()
            self.failureResultOf(waiting, CancelledError)
            self.assertFalse(work.called)
            if isinstance(result, int):
                work.callback(result)
            else:
                work.errback(result)
        self.assertEqual(1, len(self.flushLoggedErrors(RuntimeError)))

    def fired(self, value: int) -> Deferred[int]:
        """Return a result."""
        fired: Deferred[int] = Deferred()
        fired.callback(value)
        return fired

    def test_timer(self) -> None:
        """A timer goes on after a failure."""
        clock = Clock()
        timer = timer_of(clock, self.failing)
        timer.start(10)
        clock.pump([10.0, 10.0])
        self.assertEqual(3, len(self.flushLoggedErrors(RuntimeError)))
        timer.stop()
