"""
Tests for L{webhookrx.http.time_slices}.
"""

from __future__ import annotations

import gc
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any
from unittest import mock

from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.http.time_slices import LONGEST_WAIT, SHORT, SLICE, TimeSlices
from webhookrx.yield_point import LONG_CALL, run_unlocked, yield_point


class TimeSlicesTests(SynchronousTestCase):
    """Work of some slices, by a clock that only the work itself moves on."""

    def setUp(self) -> None:
        self.now = 0.0
        self.turns: list[Callable[[], None]] = []
        self.seen: list[Any] = []
        self.slices = TimeSlices(self.turns.append, lambda: self.now)

    def begin(self, work: Callable[[], Any], done: Callable[[Any], None], size: int = 1) -> None:
        """Give it work that is wanted."""
        self.slices.run(work, done, size, lambda: True)

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
        self.begin(self.work("a", 3), self.seen.append)
        self.assertEqual([], self.seen)
        for expected in (["a0"], ["a0", "a1"], ["a0", "a1", "a2"], ["a0", "a1", "a2", "a"]):
            self.turn()
            self.assertEqual(expected, self.seen)
        self.assertEqual([], self.turns)

    def test_length_of_a_slice(self) -> None:
        """A slice ends after 5 ms, so that nobody else waits for long."""
        self.begin(self.work("a", 3, 0.0025), self.seen.append)
        self.turn()
        self.assertEqual(["a0", "a1"], self.seen)

    def test_short_steps(self) -> None:
        """As many steps as fit are done in one slice, and the next work begins in it."""
        self.begin(self.work("a", 2, SLICE / 8), self.seen.append)
        self.begin(self.work("b", 8, SLICE / 8), self.seen.append)
        self.turn()
        self.assertEqual(["a0", "a1", "a", "b0", "b1", "b2", "b3", "b4", "b5"], self.seen)
        self.turn()
        self.assertEqual(["b6", "b7", "b"], self.seen[-3:])

    def test_whole_slice(self) -> None:
        """Work that ends with its slice leaves nothing of it to the next."""

        def work() -> str:
            self.now += SLICE
            return "done"

        self.begin(work, self.seen.append)
        self.begin(work, self.seen.append)
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
        self.begin(body.use, told.use)
        del body, told
        self.turn()
        self.assertEqual([None, None], [each() for each in left])

    def test_in_order(self) -> None:
        """Later work waits for earlier work."""
        self.begin(self.work("a", 2), self.seen.append)
        self.turn()
        self.begin(self.work("b", 1), self.seen.append)
        while self.turns:
            self.turn()
        self.assertEqual(["a0", "a1", "a", "b0", "b"], self.seen)

    def test_work_of_done(self) -> None:
        """What is told of an outcome may bring more work."""
        self.begin(self.work("a", 1), lambda _: self.begin(self.work("b", 1), self.seen.append))
        while self.turns:
            self.turn()
        self.assertEqual(["a0", "b0", "b"], self.seen)

    def test_failures(self) -> None:
        """Work that raises, whatever it is, comes back as a failure, and the next is done."""
        for error in (ValueError("x"), SystemExit(3)):

            def work(error: BaseException = error) -> None:
                raise error

            outcomes: list[Failure] = []
            self.begin(work, outcomes.append)
            self.turn()
            self.assertIs(error, outcomes[0].value)
        self.begin(self.work("a", 0), self.seen.append)
        self.turn()
        self.assertEqual(["a"], self.seen)

    def test_done_that_raises(self) -> None:
        """What is wrong with one outcome keeps no other from being told."""
        self.begin(self.work("a", 0), lambda _: 1 / 0)
        self.begin(self.work("b", 0), self.seen.append)
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
        self.begin(work, outcomes.append)
        while self.turns:
            with running:
                pass
            self.turn()
            with running:
                pass
        self.assertEqual([None], outcomes)

    def test_short_work_is_not_held_up(self) -> None:
        """Short work has every other slice, however long other work takes."""
        self.begin(self.work("a", 6), self.seen.append, SHORT + 1)
        self.turn()
        self.begin(self.work("b", 2), self.seen.append, SHORT)
        for _ in range(5):
            self.turn()
        self.assertEqual(["a0", "b0", "a1", "b1", "a2", "b"], self.seen)
        while self.turns:
            self.turn()
        self.assertEqual(["a3", "a4", "a5", "a"], self.seen[6:])

    def test_short_work_first(self) -> None:
        """When both wait, short work begins."""
        self.begin(self.work("a", 1), self.seen.append, SHORT + 1)
        self.begin(self.work("b", 1), self.seen.append, SHORT)
        self.turn()
        self.assertEqual(["b0"], self.seen)

    def test_not_wanted(self) -> None:
        """Work that nobody wants any more when its turn comes is not begun."""
        wanted = True
        for name in "ab":
            self.slices.run(self.work(name, 2), self.seen.append, 1, lambda: wanted)
        self.turn()
        wanted = False
        while self.turns:
            self.turn()
        self.assertEqual(["a0", "a1", "a", None], self.seen)

    def test_room(self) -> None:
        """There is room as long as what waits in that queue has not waited for long."""
        for name in "ab":
            self.begin(self.work(name, 2), self.seen.append, SHORT + 1)
        self.turn()
        self.now += LONGEST_WAIT - 2 * SLICE
        self.assertTrue(self.slices.has_room(SHORT + 1))
        self.now += 2 * SLICE
        self.assertEqual((False, True), (self.slices.has_room(SHORT + 1), self.slices.has_room(SHORT)))
        self.turn()
        self.turn()
        self.assertTrue(self.slices.has_room(SHORT + 1))

    def test_no_thread(self) -> None:
        """When no thread can be had the work has failed, and later work has another chance."""
        with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
            self.begin(self.work("a", 1), self.seen.append)
            self.turn()
        self.assertEqual([RuntimeError], [failure.type for failure in self.seen])
        self.begin(self.work("b", 1), self.seen.append)
        while self.turns:
            self.turn()
        self.assertEqual(["b0", "b"], self.seen[1:])

    def test_collector(self) -> None:
        """Cycles are collected between slices, and not within them."""
        enabled: list[bool] = []

        def work() -> None:
            enabled.append(gc.isenabled())

        self.begin(work, lambda _: enabled.append(gc.isenabled()))
        self.turn()
        self.assertEqual([False, True], enabled)


class AsideTests(SynchronousTestCase):
    """Long calls of the compiled path work beside the reactor."""

    def setUp(self) -> None:
        self.turns: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.seen: list[str] = []
        self.slices = TimeSlices(self.turns.put, lambda: 0.0)
        self.may_end = threading.Event()

    def turn(self) -> None:
        """Wait for a turn, and let it pass."""
        self.turns.get(timeout=10)()

    def begin(self, name: str, call: Callable[[], object], size: int = LONG_CALL + 1) -> None:
        """Begin work on so many bytes that calls a function."""

        def work() -> str:
            self.seen.append(f"{name} begins")
            run_unlocked(size, call)
            return f"{name} ends"

        self.slices.run(work, lambda outcome: self.seen.append(str(outcome)), size, lambda: True)

    def test_others_go_on(self) -> None:
        """Meanwhile short work is done, work of the same queue waits, and no turn is taken for nothing."""
        self.begin("a", self.may_end.wait)
        self.begin("b", lambda: None)
        self.turn()
        self.assertTrue(self.turns.empty())
        self.begin("c", lambda: None, 1)
        self.turn()
        self.assertEqual(["a begins", "c begins", "c ends"], self.seen)
        self.assertTrue(self.turns.empty())
        self.may_end.set()
        while "b ends" not in self.seen:
            self.turn()
        self.assertEqual(["a ends", "b begins", "b ends"], self.seen[3:])

    def test_failure(self) -> None:
        """A call that raises fails the work, which goes on in its slice until then."""
        self.begin("a", lambda: 1 / 0)
        while len(self.seen) < 2:
            self.turn()
        self.assertIn("ZeroDivisionError", self.seen[1])
        self.begin("b", lambda: None)
        while len(self.seen) < 4:
            self.turn()
        self.assertEqual(["b begins", "b ends"], self.seen[2:])

    def test_short_calls(self) -> None:
        """A short call is done in the slice."""
        self.begin("a", lambda: self.seen.append("called"), LONG_CALL)
        self.turn()
        self.assertEqual(["a begins", "called", "a ends"], self.seen)
