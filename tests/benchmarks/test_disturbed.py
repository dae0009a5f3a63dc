"""Tests for L{benchmarks.disturbed}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.disturbed import hostile_bodies, hostile_heads
from benchmarks.hostile_bodies import SHAPES, MiB
from webhookrx.settings import Limits


class HostileTests(SynchronousTestCase):
    """What others send."""

    def test_bodies(self) -> None:
        """Each shape comes whole, in no more bytes than any server takes."""
        self.assertEqual(len(SHAPES), len(hostile_bodies()))
        for request in hostile_bodies():
            head, _, body = request.partition(b"\r\n\r\n")
            self.assertTrue(head.endswith(b"Content-Length: %d" % len(body)))
            self.assertLess(len(body), MiB)

    def test_heads(self) -> None:
        """Some are within the limits of webhookrx and cost as much as these let them, others are beyond."""
        limits = Limits()
        blocks = [len(request.partition(b"\r\n\r\n")[0]) for request in hostile_heads()]
        self.assertTrue(any(limits.header_block * 0.75 < block <= limits.header_block for block in blocks))
        self.assertTrue(any(block > limits.header_block for block in blocks))
