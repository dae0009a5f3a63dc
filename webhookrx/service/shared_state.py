"""
What all workers know together: deliveries that were stored or are under way, and how much has come of each quota.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from webhookrx.guard.quota import BUCKETS_SIZE, SECRET_SIZE, Buckets
from webhookrx.idempotency.keeper import FILE_NAME, DeliveryKeeper
from webhookrx.idempotency.key_ring import KeyRing, ring_size
from webhookrx.idempotency.window import DeliveryWindow, SharedLocks
from webhookrx.settings import Settings
from webhookrx.shared_memory import LOCK_FILES, ByteLock, KeyLocks, map_memory, memory_file

STATE_FILES: Final = 2 + LOCK_FILES
"""Files of the state: keys of deliveries, buckets, and the locks of keys."""


class SharedState(NamedTuple):
    """
    The state as one process has it.

    @ivar locks: None in a process that has no others beside it.
    """

    ring: KeyRing
    buckets: Buckets
    locks: SharedLocks | None

    def window(self, reactor: Any, answer_time: float) -> DeliveryWindow:
        """Return the idempotency window of this process."""
        return DeliveryWindow(self.ring, time.monotonic, reactor, answer_time, self.locks)

    def keeper(self, reactor: Any) -> DeliveryKeeper:
        """Return what keeps the window for the next start, in one of the processes."""
        return DeliveryKeeper(self.ring, self.locks and self.locks.ring, reactor, time.monotonic)


def make_state_files() -> tuple[int, ...]:
    """
    Return the descriptors of files for a new state, which all workers inherit.

    @raise OSError: there is no descriptor left.
    """
    files: list[int] = []
    try:
        files.append(memory_file("deliveries", ring_size()))
        files.append(memory_file("quotas", BUCKETS_SIZE))
        files.extend(memory_file(f"delivery-locks-{number}", 0) for number in range(LOCK_FILES))
        _begin(KeyRing(map_memory(files[0], ring_size())))
        os.pwrite(files[1], os.urandom(SECRET_SIZE), 0)
    except BaseException:
        for fd in files:
            os.close(fd)
        raise
    return tuple(files)


def _begin(ring: KeyRing) -> None:
    ring.epoch = time.time() - time.monotonic()


def open_state(files: Sequence[int] = ()) -> SharedState:
    """
    Open the state.

    @param files: those of L{make_state_files}, which may be closed afterwards; none for a process alone.
    @raise OSError: there is no memory or descriptor left.
    """
    if not files:
        ring, memory = KeyRing(map_memory(None, ring_size())), map_memory(None, BUCKETS_SIZE)
        _begin(ring)
        memory[:SECRET_SIZE] = os.urandom(SECRET_SIZE)
        return SharedState(ring, Buckets(memory), None)
    deliveries, quotas, *key_locks = files
    return SharedState(
        KeyRing(map_memory(deliveries, ring_size())),
        Buckets(map_memory(quotas, BUCKETS_SIZE), ByteLock(quotas)),
        SharedLocks(KeyLocks(key_locks), ByteLock(deliveries)),
    )


def longest_window(settings: Settings) -> float:
    """Return the seconds of the longest idempotency window of a source; 0.0 when none has one."""
    guards = [source.guard for source in settings.sources]
    return max((guard.idempotency for guard in guards if guard is not None and guard.idempotency), default=0.0)


def delivery_file(settings: Settings) -> str | None:
    """Return the path of the file in which the window is kept; None for none."""
    if settings.state_dir is None or not longest_window(settings):
        return None
    return os.path.join(settings.state_dir, FILE_NAME)
