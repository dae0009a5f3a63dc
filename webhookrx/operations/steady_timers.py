"""
Timers of a reactor that keep their pace when the clock of the machine is set.
"""

from __future__ import annotations

import time
from typing import Any


def use_monotonic_clock(reactor: Any) -> bool:
    """
    Have a reactor tell time by the monotonic clock. Twisted's own goes by the wall clock, which time services and
    people set: back by an hour, and each pause, deadline and poll that is under way is an hour longer.

    @param reactor: that of this process, which nothing has asked for a timer yet.
    @return: whether it does; not where timers wait already, which go by the clock from before.
    """
    if reactor.getDelayedCalls():
        return False
    reactor.seconds = time.monotonic
    return True
