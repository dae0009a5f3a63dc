"""When there should be room again."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.pipeline.rig import LinesObserver, Rig
from webhookrx.pipeline.outflow import Outflow


class OutflowTests(SynchronousTestCase):
    """The rate is taken from tick to tick, whenever there is something to do."""

    def flowing(self, messages: int = 50, size: int = 5_000) -> Outflow:
        """Let so much leave each half second, for ten of them."""
        outflow = Outflow(100.0)
        for number in range(1, 21):
            outflow.left(messages, size)
            outflow.tick(100 + number / 2, waiting=1)
        return outflow

    def test_rate(self) -> None:
        """The slower of bytes and messages decides; seconds are whole, from 1 to 60."""
        outflow = self.flowing()
        for messages, size, seconds in (
            (0, 0, 1),
            (-5, -5, 1),
            (10, 0, 1),
            (150, 0, 2),
            (0, 25_000, 3),
            (150, 25_000, 3),
            (500, 25_000, 5),
            (10**9, 0, 60),
        ):
            self.assertEqual(seconds, outflow.seconds_for(110.0, messages, size), (messages, size))

    def test_change(self) -> None:
        """The rate follows within seconds."""
        outflow = self.flowing()
        for number in range(1, 11):
            outflow.left(5, 500)
            outflow.tick(110 + number / 2, waiting=1)

        self.assertIn(outflow.seconds_for(115.0, 100, 0), (6, 7, 8, 9, 10))

    def test_idle(self) -> None:
        """Time in which there is nothing to do says nothing about the rate."""
        outflow = self.flowing()
        for number in range(1, 100):
            outflow.tick(110 + number, waiting=0)

        self.assertEqual(2, outflow.seconds_for(209.0, 150, 0))

    def test_nothing_drains(self) -> None:
        """When nothing leaves, it is guessed to last as long again as it has lasted."""
        outflow = self.flowing()
        for number, seconds in ((1, 1), (5, 5), (20, 20), (300, 60)):
            outflow.tick(110.0 + number, waiting=10)

            self.assertEqual(seconds, outflow.seconds_for(110.0 + number, 10, 0))
        self.assertEqual(1, outflow.seconds_for(410.0, 0, 0))

    def test_first(self) -> None:
        """The first tick alone says how fast it is, for want of others."""
        outflow = Outflow(100.0)
        outflow.left(10, 1000)
        outflow.tick(101.0, waiting=1)
        self.assertEqual((10, 20), (outflow.seconds_for(101.0, 100, 0), outflow.seconds_for(101.0, 0, 20_000)))

    def test_nothing_yet(self) -> None:
        """Before the first tick it is a second, and a tick that comes twice harms nothing."""
        outflow = Outflow(100.0)
        self.assertEqual(1, outflow.seconds_for(100.0, 10, 10))
        outflow.tick(100.0, waiting=5)

        self.assertEqual(1, outflow.seconds_for(100.0, 10, 10))


class RetryAfterTests(SynchronousTestCase):
    """The chain tells seconds by what has left it, and what has to leave until senders are read from again."""

    def test_draining(self) -> None:
        """A full queue that drains is expected to be half full by then."""
        rig = Rig(LinesObserver(lambda message: b"x"), max_messages=100, max_batch_bytes=2)
        self.assertEqual(1, rig.chain.retry_after())
        for _ in range(20):
            rig.write(*"12345")
            rig.turns()
            rig.wait(0.5)
        rig.threads[0].hold()
        rig.write(*("x" * 100))

        self.assertEqual(5, rig.chain.retry_after())

    def test_standing(self) -> None:
        """A queue that does not drain at all says so for longer and longer."""
        rig = Rig(LinesObserver(lambda message: b"x"), max_messages=4)
        rig.threads[0].hold()
        rig.write(*"1234")
        rig.turns()
        told = []
        for _ in range(5):
            rig.wait(4)
            told.append(rig.chain.retry_after())

        self.assertEqual([4, 8, 12, 16, 20], told)
