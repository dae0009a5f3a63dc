"""
Tests for L{webhookrx.console.lasting_objects}.
"""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.console.lasting_objects import COUNT_INTERVAL, FEWEST, GROWTH, INTERVAL, LastingObjects


class Collector:
    """What is done with a garbage collector."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.count = 0

    def collect(self) -> None:
        """Look at what is not aside."""
        self.done.append("collect")

    def freeze(self) -> None:
        """Put aside."""
        self.done.append("freeze")

    def unfreeze(self) -> None:
        """Put nothing aside any more."""
        self.done.append("unfreeze")

    def get_freeze_count(self) -> int:
        """Return how much is aside."""
        return self.count


class LastingObjectsTests(SynchronousTestCase):
    """What lasts is put aside."""

    def setUp(self) -> None:
        """Start, with nothing aside."""
        self.clock, self.collector = Clock(), Collector()
        self.lasting = LastingObjects(self.clock.seconds, self.collector)
        self.lasting.start()
        self.all_of_it = self.taken()

    def taken(self) -> list[str]:
        """What was done since."""
        done, self.collector.done = self.collector.done, []
        return done

    def test_all_at_the_start(self) -> None:
        """At the start all is looked at."""
        self.assertEqual(["unfreeze", "collect", "freeze"], self.all_of_it)

    def test_new_ones(self) -> None:
        """Each interval, what has lasted goes aside, and garbage does not; in between nothing is done."""
        self.clock.advance(INTERVAL / 2)
        self.lasting.tick()
        self.assertEqual([], self.taken())
        self.clock.advance(INTERVAL / 2)
        self.lasting.tick()
        self.lasting.tick()
        self.assertEqual(["collect", "freeze"], self.taken())

    def test_growth(self) -> None:
        """All is looked at once much has come; what is left then may grow as much again."""
        self.collector.count = FEWEST
        self.clock.advance(COUNT_INTERVAL)
        self.lasting.tick()
        self.assertEqual(["collect", "freeze"], self.taken())
        self.collector.count = FEWEST + 1
        self.clock.advance(COUNT_INTERVAL)
        self.lasting.tick()
        self.assertEqual(["unfreeze", "collect", "freeze"], self.taken())
        self.collector.count = int(FEWEST * GROWTH)
        self.clock.advance(COUNT_INTERVAL)
        self.lasting.tick()
        self.assertEqual(["collect", "freeze"], self.taken())
