"""
Tests for L{webhookrx.operations.kept_state}.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from twisted.internet.task import Clock
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.files import LAST_SET, read_state
from webhookrx.operations.counters import Counters
from webhookrx.operations.kept_state import AGAIN, KeptState, keep_last_set
from webhookrx.router.gate import GateReason
from webhookrx.settings import RouterSettings, Settings


class Threads:
    """A reactor whose threads do what they are told when they are told."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def callInThread(self, call: Callable[..., None], *args: Any) -> None:
        """See C{IReactorInThreads.callInThread}."""
        self.waiting.append(lambda: call(*args))

    def callFromThread(self, call: Callable[..., None], *args: Any) -> None:
        """See C{IReactorFromThreads.callFromThread}."""
        call(*args)

    def work(self) -> int:
        """Do what waits, and return how much that was."""
        done = 0
        while self.waiting:
            self.waiting.pop(0)()
            done += 1
        return done


class KeptStateTests(SynchronousTestCase):
    """Files that are kept while the receiver runs."""

    def setUp(self) -> None:
        self.directory = os.path.abspath(self.mktemp())
        self.threads, self.counters, self.clock = Threads(), Counters(), Clock()
        self.kept = KeptState(self.threads, self.counters, self.clock.seconds)
        self.events: list[Any] = []
        globalLogPublisher.addObserver(self.events.append)
        self.addCleanup(globalLogPublisher.removeObserver, self.events.append)

    def test_written_in_a_thread(self) -> None:
        """Nothing is written before a thread does it."""
        self.kept.keep(self.directory, "a", b"1")
        self.assertFalse(os.path.exists(self.directory))
        self.threads.work()
        self.assertEqual(b"1", read_state(self.directory, "a"))

    def test_latest(self) -> None:
        """One is written at a time; of those that came meanwhile the last is."""
        for content in (b"1", b"2", b"3"):
            self.kept.keep(self.directory, "a", content)
        self.assertEqual(1, len(self.threads.waiting))
        self.assertEqual((2, b"3"), (self.threads.work(), read_state(self.directory, "a")))

    def test_same(self) -> None:
        """What is there already is left alone."""
        self.kept.keep(self.directory, "a", b"1")
        self.threads.work()
        before = os.stat(os.path.join(self.directory, "a")).st_ino
        self.kept.keep(self.directory, "a", b"1")
        self.threads.work()
        self.assertEqual(before, os.stat(os.path.join(self.directory, "a")).st_ino)

    def test_failure(self) -> None:
        """A failed write is counted and logged, and the next file is written all the same."""
        self.kept.keep("/proc/no", "a", b"1")
        self.threads.work()
        self.assertEqual(1, self.counters.get("state_writes_failed"))
        self.kept.keep(self.directory, "a", b"1")
        self.threads.work()
        self.assertEqual(b"1", read_state(self.directory, "a"))

    def test_again(self) -> None:
        """A failed write is repeated after a while, and logged once for each reason."""
        with open(self.directory, "wb"):
            self.kept.keep(self.directory, "a", b"1")
        self.assertEqual(1, self.threads.work())
        for seconds, tries in ((AGAIN / 2, 0), (AGAIN / 2, 1), (AGAIN, 1)):
            self.clock.advance(seconds)
            self.kept.tick()
            self.assertEqual(tries, self.threads.work())
        self.assertEqual((3, 1), (self.counters.get("state_writes_failed"), len(self.events)))
        os.remove(self.directory)
        for tries in (1, 0):
            self.clock.advance(AGAIN)
            self.kept.tick()
            self.assertEqual(tries, self.threads.work())
        self.assertEqual(b"1", read_state(self.directory, "a"))

    def test_last_set(self) -> None:
        """The set of a router is kept that is good, where there is a place for it."""
        good = RouterSettings("r", good=b"set")
        for state_dir, router in (
            (None, good),
            (self.directory, RouterSettings("r", blocked=(GateReason("why"),))),
            (self.directory, None),
        ):
            keep_last_set(self.kept, Settings((), (), router=router, state_dir=state_dir))
        self.assertEqual(0, self.threads.work())
        keep_last_set(self.kept, Settings((), (), router=good, state_dir=self.directory))
        self.threads.work()
        self.assertEqual(b"set", read_state(self.directory, LAST_SET))
