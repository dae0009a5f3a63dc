"""
Tests for L{webhookrx.operations.steady_timers}.
"""

from __future__ import annotations

import time
from typing import Any

from twisted.internet.base import ReactorBase
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.operations.steady_timers import use_monotonic_clock


class IdleReactor(ReactorBase):
    """A reactor that waits for nothing."""

    def installWaker(self) -> None:
        """It is never woken."""


class SteadyTimersTests(SynchronousTestCase):
    """The clock of timers."""

    def test_new_timers(self) -> None:
        """Timers that are asked for later are due by the monotonic clock."""
        reactor: Any = IdleReactor()
        before = time.monotonic()
        self.assertTrue(use_monotonic_clock(reactor))
        call = reactor.callLater(5.0, self.fail)
        self.assertTrue(before + 5 <= call.getTime() <= time.monotonic() + 5)
        self.assertTrue(4.0 < reactor.timeout() <= 5.0)

    def test_timers_that_wait(self) -> None:
        """Where timers wait already, nothing changes: they would never be due."""
        reactor: Any = IdleReactor()
        seconds = reactor.seconds
        reactor.callLater(5.0, self.fail)
        self.assertFalse(use_monotonic_clock(reactor))
        self.assertIs(seconds, reactor.seconds)
