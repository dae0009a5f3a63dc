"""
Tests for L{webhookrx.service.drain}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.service.drain import STOP_NOW_TIME, Drain


class _Connections:
    """
    Counts.

    @ivar total: how many are open.
    """

    total = 0


class _Listeners:
    """Listeners whose course the test decides."""

    def __init__(self, events: list[str]) -> None:
        self._events = events
        self.closed: list[Deferred[None]] = [Deferred(), Deferred()]
        self.drained: list[Deferred[None]] = [Deferred(), Deferred()]
        self.requests = 0
        self.connections = _Connections()

    def finish(self) -> None:
        self._events.append("finish")

    def close(self) -> list[Deferred[None]]:
        self._events.append("close")
        return self.closed

    def drain(self) -> list[Deferred[None]]:
        self._events.append("drain")
        return self.drained

    def abort(self) -> None:
        self._events.append("abort")


class _Budget:
    messages = 3


class _Chain:
    """A chain whose end the test decides."""

    budget = _Budget()

    def __init__(self, events: list[str]) -> None:
        self._events = events
        self.stopped: Deferred[None] = Deferred()

    def stop(self) -> Deferred[None]:
        self._events.append("stop")
        return self.stopped

    def give_up(self) -> None:
        self._events.append("give up")


class DrainTests(SynchronousTestCase):
    """
    The order of the end, and its time: forty seconds in all, thirty of them for senders.
    """

    def setUp(self) -> None:
        self.clock = Clock()
        self.events: list[str] = []
        self.listeners: Any = _Listeners(self.events)
        self.chain: Any = _Chain(self.events)
        self.turns: list[Deferred[None]] = []
        self.drain = Drain(
            self.listeners, self.chain, 40.0, self._turn, self.clock.seconds, lambda: self.events.append("closed")
        )
        self.log: list[str] = []
        self.patch_log()

    def patch_log(self) -> None:
        """Keep what is logged."""
        observe: Callable[[Any], None] = lambda event: self.log.append(event["log_format"])  # noqa: E731
        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)

    def _turn(self) -> Deferred[None]:
        turn: Deferred[None] = Deferred()
        self.turns.append(turn)
        return turn

    def run_turns(self) -> None:
        """Let the reactor come round as often as it is wanted."""
        while self.turns:
            self.turns.pop().callback(None)

    def begin(self) -> Deferred[bool]:
        """Begin, with ports that close at once."""
        result = Deferred.fromCoroutine(self.drain.run())
        for closed in self.listeners.closed:
            closed.callback(None)
        return result

    def pass_time(self, seconds: float) -> None:
        """Let time pass and be looked at."""
        self.clock.advance(seconds)
        self.drain.tick()

    def finish_senders(self) -> None:
        """All senders are done."""
        for drained in self.listeners.drained:
            drained.callback(None)

    def test_order(self) -> None:
        """Ports close, then senders finish, then the chain stops, and what is left ends."""
        result = Deferred.fromCoroutine(self.drain.run())
        self.assertEqual(["finish", "close"], self.events)
        for closed in self.listeners.closed:
            closed.callback(None)
        self.assertEqual(["finish", "close", "closed", "drain"], self.events)
        self.finish_senders()
        self.assertEqual(["finish", "close", "closed", "drain", "stop"], self.events)
        self.chain.stopped.callback(None)
        self.assertEqual(["finish", "close", "closed", "drain", "stop", "abort"], self.events)
        self.assertTrue(self.successResultOf(result))
        self.assertEqual([], self.log)

    def test_last_requests(self) -> None:
        """Connections have half a second for a last request, or as long as there are any."""
        for moments, left in (((0.4, 0.1), 3), ((0.2,), 0)):
            self.setUp()
            self.listeners.connections.total = 3
            self.begin()
            self.assertEqual(["finish", "close", "closed"], self.events)
            for moment in moments:
                self.assertEqual(["finish", "close", "closed"], self.events)
                self.listeners.connections.total = left
                self.pass_time(moment)
            self.assertEqual(["finish", "close", "closed"], self.events)
            self.run_turns()
            self.assertEqual(["finish", "close", "closed", "drain"], self.events)

    def test_slow_senders(self) -> None:
        """Senders get three quarters of the time; what they have sent in full is stored, and answered."""
        result = self.begin()
        self.pass_time(29.9)
        self.assertEqual(["finish", "close", "closed", "drain"], self.events)
        self.listeners.drained[0].callback(None)
        self.pass_time(0.2)
        self.assertEqual(["finish", "close", "closed", "drain", "stop"], self.events)
        self.listeners.requests = 1
        self.chain.stopped.callback(None)
        self.assertNotIn("abort", self.events)
        self.run_turns()
        self.assertEqual("abort", self.events[-1])
        self.assertFalse(self.successResultOf(result))
        self.assertEqual(["Cutting off senders that have not finished"], self.log)

    def test_late_answers(self) -> None:
        """Senders that waited only for the chain get their answers, so the end is a good one."""
        result = self.begin()
        self.pass_time(30)
        self.chain.stopped.callback(None)
        self.run_turns()
        self.assertTrue(self.successResultOf(result))

    def test_hanging_observer(self) -> None:
        """An observer that hangs is given up at the end of all the time."""
        result = self.begin()
        self.finish_senders()
        self.pass_time(39.9)
        self.assertNoResult(result)
        self.pass_time(0.1)
        self.assertEqual("give up", self.events[-1])
        self.run_turns()
        self.assertEqual("abort", self.events[-1])
        self.assertFalse(self.successResultOf(result))
        self.assertTrue(self.log[0].startswith("An observer hangs"))

    def test_ports_that_do_not_close(self) -> None:
        """A port that does not close holds nothing up."""
        result = Deferred.fromCoroutine(self.drain.run())
        self.pass_time(30)
        self.assertEqual(["finish", "close", "closed", "drain", "stop"], self.events)
        self.pass_time(10)
        self.run_turns()
        self.assertFalse(self.successResultOf(result))

    def test_stop_now(self) -> None:
        """Told to stop now, senders get no time any more, and the observers a moment."""
        result = self.begin()
        self.drain.stop_now()
        self.assertEqual(["finish", "close", "closed", "drain", "stop"], self.events)
        self.pass_time(STOP_NOW_TIME / 2)
        self.drain.stop_now()
        self.assertNotIn("abort", self.events)
        self.pass_time(STOP_NOW_TIME / 2)
        self.run_turns()
        self.assertEqual("abort", self.events[-1])
        self.assertFalse(self.successResultOf(result))

    def test_stop_now_for_last_requests(self) -> None:
        """Told to stop now, there are no last requests."""
        self.listeners.connections.total = 3
        self.begin()
        self.drain.stop_now()
        self.run_turns()
        self.assertEqual(["finish", "close", "closed", "drain", "stop"], self.events)

    def test_stop_now_before_the_start(self) -> None:
        """It counts from before the start, too."""
        self.drain.stop_now()
        self.begin()
        self.assertEqual(["finish", "close", "closed", "drain", "stop"], self.events)

    def test_stop_now_late(self) -> None:
        """Told to stop now, it gives no more time than was left."""
        result = self.begin()
        self.finish_senders()
        self.pass_time(40 - STOP_NOW_TIME / 2)
        self.drain.stop_now()
        self.pass_time(STOP_NOW_TIME / 2)
        self.run_turns()
        self.assertFalse(self.successResultOf(result))
