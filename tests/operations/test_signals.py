"""
Tests for L{webhookrx.operations.signals}.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable
from io import StringIO
from queue import Empty
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.operations import signals
from webhookrx.operations.signals import CUT_OFF, GRACE, LAST_SECOND, Backstop, Signals, end_with

TAKEN = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)


class _Backstop:
    """Records what it hears."""

    def __init__(self) -> None:
        self.orders: list[object] = []

    def start(self) -> None:
        self.orders.append("start")

    def end_in(self, seconds: float) -> None:
        self.orders.append(seconds)

    def stop(self) -> None:
        self.orders.append("stop")


class SignalsTests(SynchronousTestCase):
    """
    Signals, with a backstop that does nothing.
    """

    def setUp(self) -> None:
        self.before = {number: signal.getsignal(number) for number in TAKEN}
        for number, handler in self.before.items():
            self.addCleanup(signal.signal, number, handler)
        self.backstop = _Backstop()
        self.patch(signals, "Backstop", lambda: self.backstop)
        self.calls: list[str] = []
        self.signals = Signals(
            self,
            hang_up=lambda: self.calls.append("hang up"),
            stop=lambda: self.calls.append("stop"),
            stop_now=lambda: self.calls.append("stop now"),
            time_to_stop=lambda: 30.0,
        )

    def callFromThread(self, call: Callable[[], Any]) -> None:
        """As the reactor's, at once."""
        call()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to this process, and see it dealt with."""
        os.kill(os.getpid(), number)

    def test_hang_up(self) -> None:
        """Each SIGHUP is handled."""
        self.signals.take_hang_up()
        self.send(signal.SIGHUP)
        self.send(signal.SIGHUP)
        self.assertEqual((["hang up"] * 2, [], False), (self.calls, self.backstop.orders, self.signals.stopping))

    def test_end(self) -> None:
        """The first signal stops, each further one hurries; behind each stands the backstop."""
        for first, second in ((signal.SIGTERM, signal.SIGINT), (signal.SIGINT, signal.SIGTERM)):
            self.setUp()
            self.signals.take_termination()
            self.send(first)
            self.assertTrue(self.signals.stopping)
            self.send(second)
            self.send(second)
            self.assertEqual(["stop", "stop now", "stop now"], self.calls)
            self.assertEqual(["start", 30.0 + GRACE, LAST_SECOND, LAST_SECOND], self.backstop.orders)

    def test_told_otherwise(self) -> None:
        """What else tells it to stop is like the first signal, and no signal after that."""
        self.signals.take_termination()
        self.signals.terminate()
        self.signals.terminate()
        self.assertEqual((["stop"], ["start", 30.0 + GRACE]), (self.calls, self.backstop.orders))
        os.kill(os.getpid(), signal.SIGTERM)
        self.signals.terminate()
        self.assertEqual(["stop", "stop now"], self.calls)

    def test_taken_again(self) -> None:
        """What the reactor has taken meanwhile is ours again, and one backstop is enough."""
        self.signals.take_termination()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self.signals.take_termination()
        self.send(signal.SIGTERM)
        self.assertEqual((["stop"], ["start", 30.0 + GRACE]), (self.calls, self.backstop.orders))

    def test_ignored_interrupt(self) -> None:
        """SIGINT stays ignored where it was, as for a job in the background of a shell."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.signals.take_termination()
        self.send(signal.SIGINT)
        self.assertEqual([], self.calls)

    def test_release(self) -> None:
        """A service that ends without a signal gives them back as they were, and can take them again."""
        for _ in range(2):
            self.signals.take_hang_up()
            self.signals.take_termination()
            self.assertNotEqual(self.before, {number: signal.getsignal(number) for number in TAKEN})
            self.signals.release()
            self.assertEqual(self.before, {number: signal.getsignal(number) for number in TAKEN})
        self.assertEqual(["start", "stop"] * 2, self.backstop.orders)

    def test_late_signals(self) -> None:
        """Once a signal has begun the end they are kept: a late one must not make the process die by it."""
        self.signals.take_hang_up()
        self.signals.take_termination()
        self.send(signal.SIGTERM)
        self.signals.release()
        self.send(signal.SIGHUP)
        self.assertEqual(["stop", "hang up"], self.calls)
        self.assertNotIn("stop", self.backstop.orders)


class _Orders:
    """
    A queue whose waits end at once.

    @ivar waits: for how long it was waited.
    """

    def __init__(self, orders: list[float | None]) -> None:
        self._orders = orders
        self.waits: list[float | None] = []

    def get(self, timeout: float | None = None) -> float | None:
        self.waits.append(timeout)
        if not self._orders:
            raise Empty
        return self._orders.pop(0)


class BackstopTests(SynchronousTestCase):
    """
    The end that comes whatever hangs.
    """

    def wait(self, *orders: float | None) -> tuple[list[int], list[float | None]]:
        """Give orders; return the statuses that the process was ended with, and the waits."""
        left: list[int] = []
        backstop = Backstop(left.append)
        queue = _Orders(list(orders))
        backstop._orders = queue  # type: ignore[assignment]
        backstop._wait()
        return left, queue.waits

    def test_orders(self) -> None:
        """It ends the process when the time of the last order is over, unless it was stopped."""
        for orders, outcome in (
            ((30.0,), ([CUT_OFF], [None, 30.0])),
            ((30.0, 0.9), ([CUT_OFF], [None, 30.0, 0.9])),
            ((None,), ([], [None])),
            ((30.0, None), ([], [None, 30.0])),
        ):
            self.assertEqual(outcome, self.wait(*orders))

    def test_thread(self) -> None:
        """It waits in a thread of its own, which ends when it is stopped."""
        import threading

        backstop = Backstop()
        backstop.start()
        (thread,) = [each for each in threading.enumerate() if each.name == "webhookrx-backstop"]
        self.assertTrue(thread.daemon)
        backstop.end_in(3600)
        backstop.stop()
        thread.join(10)
        self.assertFalse(thread.is_alive())


class StatusTests(SynchronousTestCase):
    """
    A status for an end that was not good.
    """

    def test_status(self) -> None:
        """What was written is flushed, and the process ends with the status, when all else that is due was done."""
        registered: list[Any] = []
        left: list[int] = []
        self.patch(atexit, "register", lambda *call: registered.append(call))
        self.patch(os, "_exit", left.append)
        stream = StringIO()
        flushed: list[bool] = []
        self.patch(stream, "flush", lambda: flushed.append(True))
        self.patch(sys, "stdout", stream)
        end_with(1)
        self.assertEqual([], left)
        ((leave, status),) = registered
        leave(status)
        self.assertEqual(([1], [True]), (left, flushed))
