"""Tests of the benchmarks' own parts that ask a real receiver: that they see what is there."""

from __future__ import annotations

import os
from unittest import SkipTest

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.clients import connections_to, laps
from benchmarks.compared import PURE, WRITTEN
from benchmarks.disturbed import HOSTILE, RATE, honest_times, hostile_heads
from benchmarks.lab import Lab
from benchmarks.lines import FLATTENED
from benchmarks.measure import connections_of
from benchmarks.stores.places import PLACES
from benchmarks.stores.runs import EndToEnd, Storing
from benchmarks.tools import Tools, Unavailable, program
from benchmarks.traffic import prepare
from benchmarks.verify import look_for
from webhookrx.speedups import compiled


class MeasuringTests(SynchronousTestCase):
    """Small measurements, whose figures nobody judges."""

    def lab(self, seconds: float = 0.0) -> Lab:
        """Make a place for servers."""
        directory = self.mktemp()
        os.mkdir(directory)
        return Lab(Tools(), seconds, os.path.abspath(directory))

    def test_connections(self) -> None:
        """The connections to a receiver are counted, each at the process that has it."""
        with self.lab() as lab:
            running = lab.get(WRITTEN)
            with connections_to(running.port, 3) as connections:
                laps(connections, prepare("plain").requests, 3)
                self.assertEqual([3], connections_of(running.pid, running.port))

    def test_compiled(self) -> None:
        """A receiver without its compiled module is told from one that has it."""
        with self.lab() as lab:
            for server, used in ((WRITTEN, compiled is not None), (PURE, False)):
                self.assertIs(None, lab.compiled(server))
                lab.get(server)
                self.assertIs(used, lab.compiled(server))
                lab.end(server)
                self.assertIs(used, lab.compiled(server))

    def test_stores(self) -> None:
        """An observer and its client alone are measured at a store that is started for them."""
        for name in ("Kafka", "Splunk HEC"):
            (place,) = (place for place in PLACES if place.name == name)
            for alone in (True, False):
                with self.subTest(f"{name}, {alone}"), self.lab() as lab:
                    figures = Storing(place, alone).measure(lab)
                    self.assertGreater(min(figures["rate"], figures["cpu"]), 0.0)

    def test_to_kafka(self) -> None:
        """A receiver that sends to Kafka is measured, and each of its answers is in the topic."""
        try:
            program("wrk")
        except Unavailable as missing:
            raise SkipTest(str(missing)) from None
        with self.lab(0.2) as lab:
            self.assertGreater(EndToEnd(8).measure(lab)["rate"], 0.0)

    def test_hostile(self) -> None:
        """All requests of an honest sender are answered and stored beside hostile ones, who have answers as well."""
        with self.lab() as lab:
            running = lab.get(WRITTEN)
            traffic = prepare("plain")
            times, answers = honest_times(running.port, traffic.requests, hostile_heads(), 0.25)
            self.assertEqual(RATE * 0.25, len(times))
            self.assertGreaterEqual(answers, HOSTILE)
            look_for(running.output, traffic, len(times), FLATTENED)
