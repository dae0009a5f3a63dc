"""What every worker keeps to. Results come as Deferreds, so that real threads can pass too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from webhookrx.pipeline.worker import Work, Worker

if TYPE_CHECKING:
    from twisted.trial.unittest import SynchronousTestCase as _Base
else:
    _Base = object


class WorkerContract(_Base):
    """Mix into a test case that says how to make a worker and how to let time pass."""

    def make_worker(self) -> Worker:
        """Make a worker that is not started yet."""
        raise NotImplementedError

    def settled(self, result: Deferred[object]) -> Deferred[None]:
        """Let time pass until the result is there, and return something that trial can wait for."""
        raise NotImplementedError

    def run_in(self, worker: Worker, work: Work) -> Deferred[object]:
        """Run work; the outcome comes as the result, exceptions included, as values."""
        result: Deferred[list[object]] = Deferred()
        worker.run(work, lambda outcome: result.callback([outcome]))
        return result.addCallback(lambda outcome: outcome[0])

    def test_outcome(self) -> Deferred[None]:
        """It hands back what the work returned."""
        worker = self.make_worker()
        worker.start()
        result = self.run_in(worker, lambda: 42)
        result.addCallback(self.assertEqual, 42)
        worker.stop()
        return self.settled(result)

    def test_exception(self) -> Deferred[None]:
        """It hands back what the work raised, were it SystemExit, and goes on to the next."""
        worker = self.make_worker()
        worker.start()
        self.run_in(worker, lambda: exit("enough")).addCallback(self.assertIsInstance, SystemExit)
        result = self.run_in(worker, lambda: "next")
        result.addCallback(self.assertEqual, "next")
        worker.stop()
        return self.settled(result)

    def test_order(self) -> Deferred[None]:
        """Work is done in the order in which it was given, and all of it, though stop() comes before the end."""
        worker = self.make_worker()
        worker.start()
        seen: list[int] = []
        results = [self.run_in(worker, lambda n=n: seen.append(n)) for n in range(10)]
        worker.stop()
        results[-1].addCallback(lambda _: self.assertEqual(list(range(10)), seen))
        return self.settled(results[-1])

    def test_start_again(self) -> Deferred[None]:
        """After a stop it can be started again."""
        worker = self.make_worker()
        worker.start()
        worker.stop()
        worker.start()
        result = self.run_in(worker, lambda: "again")
        result.addCallback(self.assertEqual, "again")
        worker.stop()
        return self.settled(result)

    def test_wait(self) -> None:
        """Who waits has the outcome at once, without a turn of the reactor."""
        worker = self.make_worker()
        worker.start()
        seen: list[object] = []
        worker.run(lambda: 42, seen.append)

        self.assertTrue(worker.wait(10.0))
        self.assertEqual([42], seen)
        worker.stop()

    def test_wait_in_vain(self) -> Deferred[None]:
        """What is not back in time comes later, once."""
        worker = self.make_worker()
        result = self.run_in(worker, lambda: "late")
        self.assertFalse(worker.wait(0.001))
        self.assertNoResult(result)
        worker.start()
        worker.stop()
        return self.settled(result)

    def test_wait_for_nothing(self) -> None:
        """There is nothing to wait for."""
        worker = self.make_worker()
        worker.start()

        self.assertFalse(worker.wait(0.001))
        worker.stop()

    def test_wait_now_and_then(self) -> Deferred[None]:
        """Whether somebody waits or not, and for however short: every outcome is told once, in order."""
        worker = self.make_worker()
        worker.start()
        seen: list[int] = []
        results = []
        for number in range(300):
            results.append(self.run_in(worker, lambda n=number: n).addCallback(seen.append))
            if number % 3:
                worker.wait(number % 5 * 1e-5)
        worker.stop()
        results[-1].addCallback(lambda _: self.assertEqual(list(range(300)), seen))
        return self.settled(results[-1])

    def test_later(self) -> Deferred[None]:
        """C{done} is never called before run() has returned, nor before start()."""
        worker = self.make_worker()
        result = self.run_in(worker, lambda: "early")
        self.assertNoResult(result)
        worker.start()
        self.assertNoResult(result)
        worker.stop()
        return self.settled(result)
