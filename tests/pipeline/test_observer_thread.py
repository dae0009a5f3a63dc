"""The thread of an observer, and brief waits for it; what comes of those is in test_brief_waits.py."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Any
from weakref import ref

from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer_only

from webhookrx.interfaces import IMessageObserver
from webhookrx.pipeline import observer_thread
from webhookrx.pipeline.observer_thread import BriefWait, RealThread
from webhookrx.testing import MemoryObserver


class Wakes:
    """Stands in for the reactor: keeps what threads have called into it."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def callFromThread(self, call: Callable[[], None]) -> None:
        """Keep it."""
        self.calls.append(call)


class Started:
    """Stands in for C{threading.Thread}: counts how often it was started."""

    def __init__(self, target: Callable[[], None], name: str, daemon: bool) -> None:
        self.target = target
        self.name = name
        self.daemon = daemon
        self.starts = 0

    def start(self) -> None:
        """Count it."""
        self.starts += 1


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

    def test_start(self) -> None:
        """It runs on a thread of that name, which does not keep the process alive."""
        threads: list[Started] = []
        self.patch(observer_thread, "Thread", lambda **options: threads.append(Started(**options)) or threads[-1])
        self.thread.start()
        (thread,) = threads
        self.assertEqual(("test", True, 1), (thread.name, thread.daemon, thread.starts))
        self.thread.run(lambda: 1, self.seen.append)
        self.thread.stop()
        thread.target()
        self.assertEqual(1, len(self.reactor.calls))

    def test_work_fails(self) -> None:
        """What the work raises is its outcome, were it SystemExit, and the next work is done."""
        self.thread.run(lambda: exit("enough"), self.seen.append)
        self.thread.run(lambda: "next", self.seen.append)
        self.do_all()
        self.reactor.calls[0]()
        self.assertEqual([SystemExit, str], [type(outcome) for outcome in self.seen])

    def test_holds_nothing(self) -> None:
        """While it waits for work it keeps nothing of the last alive."""
        alive: list[bool] = []
        thread = self.thread

        class Queue(SimpleQueue[Any]):
            def get(self, *arguments: Any, **options: Any) -> Any:
                alive.append(work() is not None)
                return super().get(*arguments, **options)

        thread._queue = Queue()
        batch = MemoryObserver("batch")
        work = ref(batch)
        thread.run(batch.close, self.seen.append)
        del batch
        self.do_all()
        self.assertEqual([True, False], alive)

    def test_closed(self) -> None:
        """Its descriptor is closed once nobody needs the thread any more."""
        closed: list[int] = []
        self.patch(observer_thread.os, "close", closed.append)
        thread = RealThread(self.reactor, "other")  # type: ignore[arg-type]
        descriptor = thread._given
        thread.run(lambda: 1, self.seen.append)
        thread.stop()
        thread._loop()
        self.assertEqual([], closed)

        self.reactor.calls.clear()
        del thread
        gc.collect()
        self.assertEqual([descriptor], closed)

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
        for way in (self.thread._deliver_all, lambda: self.thread.wait(0.0)):
            self.thread.run(lambda: 1, lambda outcome: exit("enough"))
            self.thread.run(lambda: 2, self.seen.append)
            self.do_all()
            way()

            self.assertEqual(1, len(self.flushLoggedErrors(SystemExit)))
        self.assertEqual([2, 2], self.seen)


class Waits:
    """Stands in for a thread: its waits end as they are told to."""

    def __init__(self, outcomes: Iterable[bool]) -> None:
        self.seconds: list[float] = []
        self._outcomes = iter(outcomes)

    def wait(self, seconds: float) -> bool:
        """Note how long it may take, and take no time."""
        self.seconds.append(seconds)
        return next(self._outcomes)


@implementer_only(IMessageObserver)
class RemoteObserver(MemoryObserver):
    """One that is on another machine."""


def make_wait(*outcomes: bool, promise: str = "written") -> tuple[BriefWait, Waits]:
    """Return what waits for an observer, and the thread with its outcomes."""
    thread = Waits(outcomes)
    return BriefWait(MemoryObserver("memory", promise), thread), thread  # type: ignore[arg-type]


class BriefWaitTests(SynchronousTestCase):
    """Waits are short, and end when they are in vain."""

    def test_short(self) -> None:
        """One takes a few milliseconds at most: meanwhile the reactor does nothing else."""
        wait, thread = make_wait(True)
        self.assertTrue(wait.is_back())
        (seconds,) = thread.seconds
        self.assertTrue(0.0005 <= seconds <= 0.005, seconds)

    def test_sync(self) -> None:
        """Nobody waits for a sync, so it is not back."""
        wait, thread = make_wait(promise="durable")
        self.assertEqual((False, []), (wait.is_back(), thread.seconds))

    def test_elsewhere(self) -> None:
        """Nobody waits for an observer that waits for another machine, whatever it promises."""
        thread = Waits(())
        for promise in ("written", "queued"):
            wait = BriefWait(RemoteObserver("remote", promise), thread)  # type: ignore[arg-type]
            self.assertEqual((False, []), (wait.is_back(), thread.seconds))

    def test_in_vain(self) -> None:
        """Three in vain, one after the other, are enough; one that was not in vain makes up for those before it."""
        outcomes = [False, False, True, False, False, False]
        wait, thread = make_wait(*outcomes)
        self.assertEqual([*outcomes, False, False], [wait.is_back() for _ in range(8)])
        self.assertEqual(6, len(thread.seconds))

    def test_again(self) -> None:
        """After that one is tried now and then; when it is not in vain, so are all that follow."""
        wait, thread = make_wait(False, False, False, False, True, False, False, False)
        for _ in range(4):
            wait.is_back()
        wait.try_again()
        self.assertEqual([False, False], [wait.is_back(), wait.is_back()])
        self.assertEqual(4, len(thread.seconds))
        wait.try_again()
        self.assertEqual([True, False, False, False, False], [wait.is_back() for _ in range(5)])
        self.assertEqual(8, len(thread.seconds))

    def test_again_early(self) -> None:
        """To try again before that changes nothing."""
        wait, thread = make_wait(False, False, False)
        wait.try_again()
        for _ in range(5):
            wait.is_back()
        self.assertEqual(3, len(thread.seconds))
