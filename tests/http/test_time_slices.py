"""
Tests for L{webhookrx.http.time_slices}.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.http.time_slices import SLICE, TimeSlices
from webhookrx.yield_point import yield_point


class TimeSlicesTests(SynchronousTestCase):
    """Work of some slices, by a clock that only the work itself moves on."""

    def setUp(self) -> None:
        self.now = 0.0
        self.turns: list[Callable[[], None]] = []
        self.seen: list[Any] = []
        self.slices = TimeSlices(self.turns.append, lambda: self.now)

    def turn(self) -> None:
        """Let one turn of the reactor pass."""
        turns, self.turns[:] = list(self.turns), []
        for call in turns:
            call()

    def work(self, name: str, steps: int, seconds: float = SLICE) -> Callable[[], str]:
        """Return work of so many steps, each of which takes so long."""

        def work() -> str:
            for step in range(steps):
                self.seen.append(f"{name}{step}")
                self.now += seconds
                yield_point()
            return name

        return work

    def test_one_slice_a_turn(self) -> None:
        """Between two slices the reactor has its turn; what the work returned comes last."""
        self.slices.run(self.work("a", 3), self.seen.append)
        self.assertEqual([], self.seen)
        for expected in (["a0"], ["a0", "a1"], ["a0", "a1", "a2"], ["a0", "a1", "a2", "a"]):
            self.turn()
            self.assertEqual(expected, self.seen)
        self.assertEqual([], self.turns)

    def test_short_steps(self) -> None:
        """As many steps as fit are done in one slice, and the next work begins in it."""
        self.slices.run(self.work("a", 2, SLICE / 8), self.seen.append)
        self.slices.run(self.work("b", 8, SLICE / 8), self.seen.append)
        self.turn()
        self.assertEqual(["a0", "a1", "a", "b0", "b1", "b2", "b3", "b4", "b5"], self.seen)
        self.turn()
        self.assertEqual(["b6", "b7", "b"], self.seen[-3:])

    def test_whole_slice(self) -> None:
        """Work that ends with its slice leaves nothing of it to the next."""

        def work() -> str:
            self.now += SLICE
            return "done"

        self.slices.run(work, self.seen.append)
        self.slices.run(work, self.seen.append)
        self.turn()
        self.assertEqual(["done"], self.seen)
        self.turn()
        self.assertEqual(["done"] * 2, self.seen)

    def test_memory(self) -> None:
        """Once it is done nothing is kept of it: it may have been about a large body."""

        class Body:
            def use(self, *_: object) -> None:
                pass

        body, told = Body(), Body()
        left = [weakref.ref(body), weakref.ref(told)]
        self.slices.run(body.use, told.use)
        del body, told
        self.turn()
        self.assertEqual([None, None], [each() for each in left])

    def test_in_order(self) -> None:
        """Later work waits for earlier work."""
        self.slices.run(self.work("a", 2), self.seen.append)
        self.turn()
        self.slices.run(self.work("b", 1), self.seen.append)
        while self.turns:
            self.turn()
        self.assertEqual(["a0", "a1", "a", "b0", "b"], self.seen)

    def test_work_of_done(self) -> None:
        """What is told of an outcome may bring more work."""
        self.slices.run(self.work("a", 1), lambda _: self.slices.run(self.work("b", 1), self.seen.append))
        while self.turns:
            self.turn()
        self.assertEqual(["a0", "b0", "b"], self.seen)

    def test_failures(self) -> None:
        """Work that raises, whatever it is, comes back as a failure, and the next is done."""
        for error in (ValueError("x"), SystemExit(3)):

            def work(error: BaseException = error) -> None:
                raise error

            outcomes: list[Failure] = []
            self.slices.run(work, outcomes.append)
            self.turn()
            self.assertIs(error, outcomes[0].value)
        self.slices.run(self.work("a", 0), self.seen.append)
        self.turn()
        self.assertEqual(["a"], self.seen)

    def test_done_that_raises(self) -> None:
        """What is wrong with one outcome keeps no other from being told."""
        self.slices.run(self.work("a", 0), lambda _: 1 / 0)
        self.slices.run(self.work("b", 0), self.seen.append)
        self.turn()
        self.assertEqual((["b"], 1), (self.seen, len(self.flushLoggedErrors(ZeroDivisionError))))

    def test_one_at_a_time(self) -> None:
        """The thread and its caller never run at the same time: neither sees the other halfway."""
        running = threading.Lock()

        def work() -> None:
            for _ in range(200):
                assert not running.locked()
                self.now += SLICE
                yield_point()

        outcomes: list[object] = []
        self.slices.run(work, outcomes.append)
        while self.turns:
            with running:
                pass
            self.turn()
            with running:
                pass
        self.assertEqual([None], outcomes)
