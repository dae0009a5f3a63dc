"""
Idempotency windows of workers that are no processes, on one clock.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from twisted.internet.task import Clock

from webhookrx.idempotency.key_ring import KeyRing, ring_size
from webhookrx.idempotency.window import DeliveryWindow, SharedLocks
from webhookrx.interfaces import Claim
from webhookrx.shared_memory import LOCK_FILES, ByteLock, KeyLocks, map_memory, memory_file

EPOCH = 1_700_000_000.0
ANSWER_TIME = 30.0
CAPACITY = 1000


class Turns(Clock):
    """A clock and reactor, whose turns come when time passes."""

    def callFromThread(self, call: Callable[..., object], *args: Any) -> None:
        """See C{IReactorFromThreads.callFromThread}."""
        self.callLater(0, call, *args)


class Worker:
    """
    One process with a window.

    @ivar told: what each waiting request was told, by key.
    """

    def __init__(self, ring: KeyRing, clock: Turns, files: list[int] | None) -> None:
        self.ring_lock: ByteLock | None = None
        self.key_locks: KeyLocks | None = None
        locks = None
        if files is not None:
            self.ring_lock, self.key_locks = ByteLock(files[0]), KeyLocks(files[1:])
            locks = SharedLocks(self.key_locks, self.ring_lock)
        self.window = DeliveryWindow(ring, clock.seconds, clock, ANSWER_TIME, locks)
        self.told: list[tuple[bytes, Claim]] = []

    def claim(self, key: bytes, seconds: float = 3600.0) -> Claim:
        """Claim a key; what comes of it later is in L{told}."""
        return self.window.claim(key, seconds, lambda claim: self.told.append((key, claim)))

    def die(self) -> None:
        """End, as by SIGKILL."""
        assert self.ring_lock is not None and self.key_locks is not None
        self.ring_lock.close()
        self.key_locks.close()
        # The calls that it would still make later would use the descriptors of others.
        self.window._elsewhere.clear()
        self.window._unwritten.clear()


class Workers:
    """
    Some workers with one window, or a process alone.

    @param count: how many; 1 for a process alone.
    """

    def __init__(self, count: int) -> None:
        self.clock = Turns()
        self.clock.advance(1000.0)
        self.ring = KeyRing(map_memory(None, ring_size(CAPACITY)), CAPACITY)
        self.ring.epoch = EPOCH
        self.files = None
        if count > 1:
            self.files = [memory_file("test", 1) for _ in range(1 + LOCK_FILES)]
        self.all = [self.start() for _ in range(count)]

    def start(self) -> Worker:
        """Return one more."""
        return Worker(self.ring, self.clock, self.files)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, in steps of at most half a second, each with a tick."""
        while seconds > 0:
            self.clock.advance(min(seconds, 0.5))
            seconds -= 0.5
            for worker in self.all:
                worker.window.tick()
        self.clock.advance(0)

    def close(self) -> None:
        """End all of them."""
        for worker in self.all:
            if worker.ring_lock is not None:
                worker.die()
        for fd in self.files or ():
            os.close(fd)
