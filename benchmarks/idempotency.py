"""
What the idempotency window and a quota cost: C{python -m benchmarks.idempotency}.

In a full window of a million keys: a look-up, by which a delivery is known or claimed; its end, by which it is
remembered; and the bytes of memory of a key. Then the same for workers, once with the window to themselves and once
while others use it as fast as they can. Each figure is the median of rounds.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from twisted.internet.task import Clock

from webhookrx.guard.quota import SourceQuota
from webhookrx.idempotency.key_ring import CAPACITY
from webhookrx.interfaces import Claim
from webhookrx.service.shared_state import SharedState, make_state_files, open_state

ROUNDS: Final = 100
BATCH: Final = 200
OTHERS: Final = 2
"""Processes that use the same window beside the one that is measured."""

_QUOTA: Final = SourceQuota(messages=1e9)
_USED_UP: Final = SourceQuota(messages=1e-9)


def main() -> None:
    """Measure and print."""
    before = _resident()
    alone = open_state()
    _fill(alone)
    print(f"memory of a key: {(_resident() - before) / CAPACITY:.0f} bytes")
    _report("one process", alone)
    files = make_state_files()
    shared = open_state(files)
    _fill(shared)
    _report("a worker", shared)
    with _others(files):
        _report(f"a worker beside {OTHERS} that do nothing else", shared)


def _fill(state: SharedState) -> None:
    state.ring.append((os.urandom(16) for _ in range(CAPACITY)), int(time.time()))


def _report(who: str, state: SharedState) -> None:
    window, buckets = state.window(Clock(), 30.0), state.buckets
    names = ("claim of a new key", "its end, remembered", "look-up of a known key")
    rows: dict[str, list[float]] = {name: [] for name in (*names, "take from a quota", "refusal by a quota")}
    for _ in range(ROUNDS):
        keys = [os.urandom(16) for _ in range(BATCH)]
        now = time.monotonic()
        buckets.take(_USED_UP, "b", "", 1, 0, now)

        def claim(keys: list[bytes] = keys) -> None:
            for key in keys:
                window.claim(key, 3600.0, _told)

        def settle(keys: list[bytes] = keys) -> None:
            for key in keys:
                window.settle(key, True)

        def take(quota: SourceQuota, source: str, now: float = now) -> None:
            for _ in range(BATCH):
                buckets.take(quota, source, "", 1, 0, now)

        steps: tuple[Callable[[], object], ...] = (
            claim,
            settle,
            claim,
            partial(take, _QUOTA, "a"),
            partial(take, _USED_UP, "b"),
        )
        for times, step in zip(rows.values(), steps, strict=True):
            times.append(_timed(step))
            window.tick()
    print(f"{who}: " + ", ".join(f"{name} {statistics.median(times):.1f} us" for name, times in rows.items()))


def _told(claim: Claim) -> None: ...


def _timed(call: Callable[[], object]) -> float:
    """Return the microseconds of one of a batch."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) / BATCH * 1e6


def _resident() -> int:
    """Return the bytes of memory that this process has in use, shared ones included."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def _others(files: Sequence[int]) -> Iterator[None]:
    """Have other processes claim and settle all the time."""
    fork = multiprocessing.get_context("fork")
    others = [fork.Process(target=_use, args=(files,), daemon=True) for _ in range(OTHERS)]
    for other in others:
        other.start()
    try:
        time.sleep(0.5)
        yield
    finally:
        for other in others:
            other.kill()


def _use(files: Sequence[int]) -> None:
    window = open_state(files).window(Clock(), 30.0)
    while True:
        key = os.urandom(16)
        window.claim(key, 3600.0, _told)
        window.settle(key, True)
        window.tick()


if __name__ == "__main__":
    main()
