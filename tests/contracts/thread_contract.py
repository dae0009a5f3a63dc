"""What every thread keeps to. Results come as Deferreds, so that real threads can pass too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from webhookrx.pipeline.observer_thread import ObserverThread, Work

if TYPE_CHECKING:
    from twisted.trial.unittest import SynchronousTestCase as _Base
else:
    _Base = object


class ThreadContract(_Base):
    """Mix into a test case that says how to make a thread and how to let time pass."""

    def make_thread(self) -> ObserverThread:
        """Make a thread that is not started yet."""
        raise NotImplementedError

    def settled(self, result: Deferred[object]) -> Deferred[None]:
        """Let time pass until the result is there, and return something that trial can wait for."""
        raise NotImplementedError

    def run_in(self, thread: ObserverThread, work: Work) -> Deferred[object]:
        """Run work; the outcome comes as the result, exceptions included, as values."""
        result: Deferred[list[object]] = Deferred()
        thread.run(work, lambda outcome: result.callback([outcome]))
        return result.addCallback(lambda outcome: outcome[0])

    def test_outcome(self) -> Deferred[None]:
        """It hands back what the work returned."""
        thread = self.make_thread()
        thread.start()
        result = self.run_in(thread, lambda: 42)
        result.addCallback(self.assertEqual, 42)
        thread.stop()
        return self.settled(result)

    def test_exception(self) -> Deferred[None]:
        """It hands back what the work raised, were it SystemExit, and goes on to the next."""
        thread = self.make_thread()
        thread.start()
        self.run_in(thread, lambda: exit("enough")).addCallback(self.assertIsInstance, SystemExit)
        result = self.run_in(thread, lambda: "next")
        result.addCallback(self.assertEqual, "next")
        thread.stop()
        return self.settled(result)

    def test_order(self) -> Deferred[None]:
        """Work is done in the order in which it was given, and all of it, though stop() comes before the end."""
        thread = self.make_thread()
        thread.start()
        seen: list[int] = []
        results = [self.run_in(thread, lambda n=n: seen.append(n)) for n in range(10)]
        thread.stop()
        results[-1].addCallback(lambda _: self.assertEqual(list(range(10)), seen))
        return self.settled(results[-1])

    def test_start_again(self) -> Deferred[None]:
        """After a stop it can be started again."""
        thread = self.make_thread()
        thread.start()
        thread.stop()
        thread.start()
        result = self.run_in(thread, lambda: "again")
        result.addCallback(self.assertEqual, "again")
        thread.stop()
        return self.settled(result)

    def test_wait(self) -> None:
        """Who waits has the outcome at once, without a turn of the reactor."""
        thread = self.make_thread()
        thread.start()
        seen: list[object] = []
        thread.run(lambda: 42, seen.append)

        self.assertTrue(thread.wait(10.0))
        self.assertEqual([42], seen)
        thread.stop()

    def test_wait_in_vain(self) -> Deferred[None]:
        """What is not back in time comes later, once."""
        thread = self.make_thread()
        result = self.run_in(thread, lambda: "late")
        self.assertFalse(thread.wait(0.001))
        self.assertNoResult(result)
        thread.start()
        thread.stop()
        return self.settled(result)

    def test_wait_for_nothing(self) -> None:
        """There is nothing to wait for."""
        thread = self.make_thread()
        thread.start()

        self.assertFalse(thread.wait(0.001))
        thread.stop()

    def test_wait_now_and_then(self) -> Deferred[None]:
        """Whether somebody waits or not, and for however short: every outcome is told once, in order."""
        thread = self.make_thread()
        thread.start()
        seen: list[int] = []
        results = []
        for number in range(300):
            results.append(self.run_in(thread, lambda n=number: n).addCallback(seen.append))
            if number % 3:
                thread.wait(number % 5 * 1e-5)
        thread.stop()
        results[-1].addCallback(lambda _: self.assertEqual(list(range(300)), seen))
        return self.settled(results[-1])

    def test_later(self) -> Deferred[None]:
        """C{done} is never called before run() has returned, nor before start()."""
        thread = self.make_thread()
        result = self.run_in(thread, lambda: "early")
        self.assertNoResult(result)
        thread.start()
        self.assertNoResult(result)
        thread.stop()
        return self.settled(result)
