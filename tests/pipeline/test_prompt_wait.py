"""How often, and for how long, somebody waits for a store; what comes of it is in test_prompt_stores.py."""

from __future__ import annotations

from collections.abc import Iterable

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.pipeline.prompt_wait import PromptWait
from webhookrx.testing import MemoryObserver


class Waits:
    """Stands in for a thread: its waits end as they are told to."""

    def __init__(self, outcomes: Iterable[bool]) -> None:
        self.seconds: list[float] = []
        self._outcomes = iter(outcomes)

    def wait(self, seconds: float) -> bool:
        """Note how long it may take, and take no time."""
        self.seconds.append(seconds)
        return next(self._outcomes)


def make_wait(*outcomes: bool, promise: str = "written") -> tuple[PromptWait, Waits]:
    """Return what waits for an observer, and the thread with its outcomes."""
    thread = Waits(outcomes)
    return PromptWait(MemoryObserver("memory", promise), thread), thread  # type: ignore[arg-type]


class PromptWaitTests(SynchronousTestCase):
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
