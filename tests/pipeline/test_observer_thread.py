"""The thread of an observer, told step by step what to do; tests/system has it with a real one."""

from __future__ import annotations

from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.pipeline.observer_thread import RealThread


class Wakes:
    """Stands in for the reactor: keeps what threads have called into it."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def callFromThread(self, call: Callable[[], None]) -> None:
        """Keep it."""
        self.calls.append(call)


class RealThreadTests(SynchronousTestCase):
    """What the thread does is done here by C{_loop}, which ends with the work that was given before C{stop}."""

    def setUp(self) -> None:
        """Make a thread without its thread."""
        self.reactor = Wakes()
        self.thread = RealThread(self.reactor, "test")  # type: ignore[arg-type]
        self.seen: list[object] = []

    def do_all(self) -> None:
        """Let the thread do what it was given."""
        self.thread.stop()
        self.thread._loop()

    def test_wakes(self) -> None:
        """The reactor is woken for each outcome, and tells them in order."""
        for number in (1, 2):
            self.thread.run(lambda n=number: n, self.seen.append)
        self.do_all()
        self.assertEqual(([], 2), (self.seen, len(self.reactor.calls)))
        for call in self.reactor.calls:
            call()

        self.assertEqual([1, 2], self.seen)

    def test_wait(self) -> None:
        """Who waits gets all outcomes that are there, and for them the reactor has nothing left to do."""
        for number in (1, 2):
            self.thread.run(lambda n=number: n, self.seen.append)
        self.do_all()

        self.assertTrue(self.thread.wait(0.0))
        self.assertEqual([1, 2], self.seen)
        for call in self.reactor.calls:
            call()
        self.assertEqual([1, 2], self.seen)

    def test_not_woken(self) -> None:
        """While somebody waits the reactor is not woken, and what comes then is told all the same."""

        def do_more(outcome: object) -> None:
            self.seen.append(outcome)
            self.thread.run(lambda: "more", self.seen.append)
            self.do_all()

        self.thread.run(lambda: "first", do_more)
        self.do_all()
        del self.reactor.calls[:]

        self.assertTrue(self.thread.wait(0.0))
        self.assertEqual((["first", "more"], []), (self.seen, self.reactor.calls))

    def test_woken_again(self) -> None:
        """After a wait in vain the reactor is woken as before."""
        self.assertFalse(self.thread.wait(0.0))
        self.thread.run(lambda: 1, self.seen.append)
        self.do_all()

        self.assertEqual(1, len(self.reactor.calls))

    def test_done_fails(self) -> None:
        """What goes wrong with one outcome, were it SystemExit, is logged and keeps no other back."""
        for way in (self.thread._tell_all, lambda: self.thread.wait(0.0)):
            self.thread.run(lambda: 1, lambda outcome: exit("enough"))
            self.thread.run(lambda: 2, self.seen.append)
            self.do_all()
            way()

            self.assertEqual(1, len(self.flushLoggedErrors(SystemExit)))
        self.assertEqual([2, 2], self.seen)
