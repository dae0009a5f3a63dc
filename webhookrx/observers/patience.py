"""
How long a thread waits for its sockets: up to a deadline, and less once another thread is in a hurry.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from math import ceil, inf
from typing import Final, Protocol

from webhookrx.quantities import format_duration

HURRIED: Final = 1.0
"""Seconds that are left, at most, once somebody is in a hurry."""


class HasFileno(Protocol):
    """A socket, or what else can be polled."""

    def fileno(self) -> int:
        """Return the file descriptor."""


class Patience:
    """
    Waits for one socket at a time. Everything but L{hurry} belongs to the thread that waits.

    @param seconds: from L{begin} to the deadline.
    @ivar now: the time in seconds, monotonic.
    """

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self.now = now
        self._deadline = now() + seconds
        self._hurried = False
        self._bell, self._rope = socket.socketpair()
        self._rope.setblocking(False)

    def begin(self) -> None:
        """Set the deadline anew."""
        self._deadline = self.now() + self._seconds

    def hurry(self) -> None:
        """Let every wait end soon, from any thread: the one that is under way, and all to come."""
        if not self._hurried:
            self._hurried = True
            with suppress(OSError):  # it may have been closed just now
                self._rope.send(b"!")

    def left(self) -> float:
        """Return the seconds to the deadline, never less than 0."""
        if self._hurried:
            self._deadline = min(self._deadline, self.now() + HURRIED)
        return max(0.0, self._deadline - self.now())

    def wait(self, waited_for: HasFileno, events: int, *, at_most: float = inf) -> bool:
        """
        Wait until something happens on a socket. It is looked at once in any case.

        @param events: as for C{select.poll}; errors and hang-ups always count.
        @param at_most: seconds.
        @return: False when C{at_most} has passed before.
        @raise TimeoutError: the deadline has passed before.
        """
        end = self.now() + at_most
        while True:
            poller = select.poll()
            poller.register(waited_for, events)
            if not self._hurried:
                poller.register(self._bell, select.POLLIN)
            time_left = min(self.left(), max(0.0, end - self.now()))
            ready = dict(poller.poll(ceil(time_left * 1000)))
            if waited_for.fileno() in ready:
                return True
            if not self.left():
                raise TimeoutError(self._complaint())
            if self.now() >= end:
                return False

    def _complaint(self) -> str:
        if self._hurried:
            return "the receiver stops, and it did not answer soon"
        return f"it did not answer within {format_duration(self._seconds)}"

    def close(self) -> None:
        """Let go of the descriptors. Nobody waits any more, or hurries."""
        self._hurried = True
        self._bell.close()
        self._rope.close()
