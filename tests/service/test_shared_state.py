"""
Tests for L{webhookrx.service.shared_state}.
"""

from __future__ import annotations

import os
import time

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.guard.quota import SourceQuota
from webhookrx.interfaces import Claim
from webhookrx.service.shared_state import (
    STATE_FILES,
    delivery_file,
    longest_window,
    make_state_files,
    open_state,
)
from webhookrx.settings import GuardSettings, Settings, Source

QUOTA = SourceQuota(messages=1.0, burst=1.0)


def settings(*windows: float | None, state_dir: str | None = "/var/lib/webhookrx") -> Settings:
    """Return settings with sources of these windows."""
    guards = (GuardSettings(idempotency=window) for window in windows)
    return Settings(tuple(Source(guard=guard) for guard in guards), (), state_dir=state_dir)


class SharedStateTests(SynchronousTestCase):
    """
    Tests for L{make_state_files} and L{open_state}.
    """

    def test_shared(self) -> None:
        """Workers that have opened the same files know the same deliveries and buckets; the files may be closed."""
        files = make_state_files()
        self.assertEqual(STATE_FILES, len(files))
        states = [open_state(files) for _ in range(2)]
        for fd in files:
            os.close(fd)
        one, other = [state.window(Clock(), 30.0) for state in states]
        key = os.urandom(16)
        self.assertEqual(
            [Claim.NEW, Claim.UNDER_WAY], [window.claim(key, 60.0, lambda _: None) for window in (one, other)]
        )
        one.settle(key, True)
        third = states[0].window(Clock(), 30.0)
        self.assertIs(Claim.KNOWN, third.claim(key, 60.0, lambda _: None))
        now = time.monotonic()
        self.assertEqual(0.0, states[0].buckets.take(QUOTA, "s", "", 1, 0, now))
        self.assertLess(0.0, states[1].buckets.take(QUOTA, "s", "", 1, 0, now))

    def test_alone(self) -> None:
        """A process alone has a state of its own, whose buckets are where nobody can guess."""
        one, other = open_state(), open_state()
        self.assertIsNone(one.locks)
        now = time.monotonic()
        self.assertEqual([0.0, 0.0], [state.buckets.take(QUOTA, "s", "", 1, 0, now) for state in (one, other)])
        self.assertNotEqual(one.buckets._hash("s", ""), other.buckets._hash("s", ""))

    def test_times(self) -> None:
        """Times in the ring are those of the wall clock at the start."""
        state = open_state(files := make_state_files())
        for fd in files:
            os.close(fd)
        self.assertAlmostEqual(time.time() - time.monotonic(), state.ring.epoch, places=-2)


class DeliveryFileOfSettingsTests(SynchronousTestCase):
    """
    Tests for L{longest_window} and L{delivery_file}.
    """

    def test_longest(self) -> None:
        """The longest window of all sources counts."""
        self.assertEqual(
            [0.0, 0.0, 60.0], [longest_window(settings(*windows)) for windows in ((), (None,), (None, 60.0, 5.0))]
        )

    def test_file(self) -> None:
        """There is a file when a source has a window, and there is a state directory."""
        self.assertEqual("/var/lib/webhookrx/deliveries.sqlite", delivery_file(settings(60.0)))
        self.assertIsNone(delivery_file(settings(None)))
        self.assertIsNone(delivery_file(settings(60.0, state_dir=None)))
