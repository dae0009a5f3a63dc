"""The fair lock."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.spool.files import FairLock

TRIES = 10_000_000
"""Polls for something that another thread does at once."""


class FairLockTests(SynchronousTestCase):
    """The order in which the lock is granted."""

    def setUp(self) -> None:
        """Make a lock."""
        self.lock = FairLock()
        self.order: list[str] = []

    def ask(self, name: str) -> Thread:
        """Let a thread ask for it, and return once it waits."""
        waiting = len(self.lock._turns)

        def run() -> None:
            with self.lock:
                self.order.append(name)

        thread = Thread(target=run, daemon=True)
        thread.start()
        self.until(lambda: len(self.lock._turns) > waiting)
        return thread

    def until(self, condition: Callable[[], bool]) -> None:
        """Poll until a condition holds."""
        self.assertTrue(any(condition() for _ in range(TRIES)))

    def test_by_turns(self) -> None:
        """A thread that releases it and asks again comes after the waiting threads, which come in order."""
        with self.lock:
            threads = [self.ask("first"), self.ask("second")]
        with self.lock:
            self.order.append("again")
        for thread in threads:
            thread.join(10)

        self.assertEqual(["first", "second", "again"], self.order)

    def test_alone(self) -> None:
        """It is free again after its last holder, and after an error."""

        def fail() -> None:
            with self.lock:
                raise ZeroDivisionError

        self.assertRaises(ZeroDivisionError, fail)
        with self.lock:
            thread = self.ask("other")
        thread.join(10)
        with self.lock:
            self.order.append("again")

        self.assertEqual(["other", "again"], self.order)
