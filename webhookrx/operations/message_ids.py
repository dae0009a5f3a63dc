"""
When a message was received, and its number.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from itertools import count

from webhookrx.intake.judge import Receipt


class MessageIds:
    """
    Gives each message the time of its receipt and an id that no other message has, in this process or another.

    Ids of one process sort in the order of receipt, also when somebody sets the clock back.

    @param wall_clock: nanoseconds since the epoch.
    @param start: a text that no other process begins its ids with.
    """

    def __init__(self, wall_clock: Callable[[], int] = time.time_ns, start: str | None = None) -> None:
        self._wall_clock = wall_clock
        if start is None:
            start = f"{wall_clock() // 1_000_000:012x}-{secrets.token_hex(4)}"
        self._id = start.replace("%", "%%") + "-%010x"
        self._numbers = count(1)

    def __call__(self) -> Receipt:
        """Return the next receipt."""
        return Receipt(self._wall_clock(), self._id % next(self._numbers))
