"""
Tests for L{webhookrx.service.service_taps}: taps of the log, and what they have in common with others.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from twisted.internet.task import Clock
from twisted.logger import Logger
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import CantTap, GateIsClosed
from webhookrx.router.gate import GateReason
from webhookrx.service.service_taps import ServiceTaps
from webhookrx.settings import BundleInUse, RouterSettings, Settings, Source
from webhookrx.tapping.tap import Tap
from webhookrx.tapping.tap_request import TapRequest
from webhookrx.tapping.taps import MOST_TAPS

LINES = TapRequest(point="service", rate=20)


class PlayedReceiver:
    """
    A receiver without messages.

    @ivar taps: those that run.
    """

    def __init__(self) -> None:
        self.settings = Settings((Source("a"),), ())
        self.taps: list[Tap] = []

    def start_tap(self, request: TapRequest, deliver: Any) -> Tap:
        self.taps.append(Tap(request, 0.0, lambda: None))
        return self.taps[-1]

    def stop_tap(self, tap: Tap) -> None:
        self.taps.remove(tap)


class ServiceTapsTests(SynchronousTestCase):
    """Tests for L{ServiceTaps}."""

    def setUp(self) -> None:
        self.receiver: Any = PlayedReceiver()
        self.delivered: list[Tap] = []
        reactor = SimpleNamespace(callFromThread=lambda call, *arguments: call(*arguments))
        self.taps = ServiceTaps(reactor, self.receiver, Clock().seconds)

    def lines(self, **request: Any) -> Tap:
        """Start a tap of the log."""
        return self.taps.start(TapRequest(point="service", rate=20, **request), self.delivered.append)

    def shown(self, tap: Tap) -> list[dict[str, Any]]:
        return [json.loads(row) for row in tap.take()]

    def test_messages(self) -> None:
        """A tap of messages is the receiver's."""
        tap = self.taps.start(TapRequest(), self.delivered.append)
        self.assertEqual(self.receiver.taps, [tap])
        self.assertEqual(self.taps.sources(TapRequest()), ["a"])
        self.taps.stop(tap)
        self.assertEqual(self.receiver.taps, [])

    def test_lines(self) -> None:
        """A tap of the log shows lines as they are written, those that its filter takes, until it ends."""
        every, some = self.lines(), self.lines(filter="level = error")
        log = Logger("test")
        log.info("Started {name}, password={secret}", name="here", secret="hush")
        log.error("Broken")
        self.assertEqual(self.delivered, [every, some])
        self.assertEqual(
            [(row["row"], row["level"], row["text"]) for row in self.shown(every)],
            [("service", "info", "Started here, password=***"), ("service", "error", "Broken")],
        )
        self.assertEqual([row["text"] for row in self.shown(some)], ["Broken"])
        self.taps.stop(every)
        log.error("Again")
        self.assertEqual((len(self.shown(every)), len(self.shown(some))), (0, 1))
        self.taps.stop(some)
        log.error("Again")
        self.assertEqual(some.counts.seen, 3)

    def test_masks(self) -> None:
        """What the console wants masked is masked in lines, too, as its bundles have it at that time."""
        tap = self.lines()
        log = Logger("test")
        for masks in ((), ("Customer",), ("order",)):
            router = RouterSettings("r", bundle=BundleInUse(1, "", masks))
            self.receiver.settings = Settings((), (), router=router)
            log.info("customer=ann&order=7&token=t")
        self.assertEqual(
            [row["text"] for row in self.shown(tap)],
            ["customer=ann&order=7&token=***", "customer=***&order=7&token=***", "customer=ann&order=***&token=***"],
        )
        self.taps.stop(tap)

    def test_too_many(self) -> None:
        """There are so many taps of the log at a time."""
        taps = [self.lines() for _ in range(MOST_TAPS)]
        self.assertEqual(self.assertRaises(CantTap, self.lines).code, "too_many_taps")
        for tap in taps:
            self.taps.stop(tap)
        self.taps.stop(self.lines())

    def test_gate(self) -> None:
        """While the gate is closed no tap may run, with the missing files."""
        self.taps.check_gate()
        reasons = (GateReason("No /k.", "/k"),)
        self.receiver.settings = Settings((), (), router=RouterSettings("r", blocked=reasons))
        for check in (self.taps.check_gate, lambda: self.taps.sources(LINES)):
            self.assertEqual(self.assertRaises(GateIsClosed, check).paths, ("/k",))
