"""
Tests for L{webhookrx.service.taps}: which sources a tap is about, and masks. The rest is in C{tests/system}.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import BAD_TOKEN, CantTap, GateIsClosed
from webhookrx.router.gate import GateReason
from webhookrx.service.taps import LocalTaps, tapped_sources
from webhookrx.settings import BundleInUse, RouterSettings, Settings, Source
from webhookrx.tapping.tap_request import TapRequest


class TappedSourcesTests(SynchronousTestCase):
    """Tests for L{tapped_sources}."""

    def test_named(self) -> None:
        """A tap is about the source that it names, or about all; one that is not there is refused."""
        settings = Settings((Source("a"), Source("b")), ())
        self.assertEqual(["b"], tapped_sources(settings, TapRequest(source="b")))
        self.assertEqual(["a", "b"], tapped_sources(settings, TapRequest()))
        self.assertEqual([], tapped_sources(settings, TapRequest(point="service")))
        self.assertRaisesRegex(CantTap, "The sources are: a, b", tapped_sources, settings, TapRequest(source="c"))

    def test_closed_gate(self) -> None:
        """While the gate is closed none starts, and each missing file is named once."""
        reasons = (GateReason("No /k.", "/k"), GateReason("No /k again.", "/k"), GateReason("No sender."))
        settings = Settings((Source("a"),), (), router=RouterSettings("r", blocked=reasons))
        for request in (TapRequest(), TapRequest(point="service")):
            refused = self.assertRaises(GateIsClosed, tapped_sources, settings, request)
            self.assertEqual(("/k",), refused.paths)
            self.assertIn("No /k. No /k again. No sender.", str(refused))


class MaskTests(SynchronousTestCase):
    """The masks of L{LocalTaps}."""

    def test_of_console(self) -> None:
        """A console only adds names to those that are masked anyway, and a reload changes them for taps that run."""
        traffic: Any = SimpleNamespace(watch_refusals=None)
        reactor = SimpleNamespace(callFromThread=lambda call, *arguments: call(*arguments))
        taps = LocalTaps(reactor, traffic, Clock().seconds)
        shown = []
        tap = None
        for masks in ((), ("Peer", "METHOD"), ("peer",), ()):
            taps.use(Settings((), (), router=RouterSettings("r", bundle=BundleInUse(1, "", masks))), {})
            tap = tap or taps.start(TapRequest(point="refused", rate=20), lambda tap: None)
            traffic.watch_refusals(BAD_TOKEN, "", "192.0.2.7", "POST", "/a?token=t", "")
            (row,) = map(json.loads, tap.take())
            shown.append((row["peer"], row["method"], row["path"]))
        self.assertEqual(
            shown,
            [
                ("192.0.2.7", "POST", "/a?token=***"),
                ("***", "***", "/a?token=***"),
                ("***", "POST", "/a?token=***"),
                ("192.0.2.7", "POST", "/a?token=***"),
            ],
        )
        assert tap is not None
        taps.stop(tap)
        self.assertIsNone(traffic.watch_refusals)
