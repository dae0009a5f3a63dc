"""
The process that is measured: C{python -m benchmarks.stores.process observer SPEC SECONDS BATCH}, or C{alone CLIENT
ADDRESS SPEC SECONDS BATCH} with a client of L{benchmarks.stores.alone}.

It prints C{rate}, messages a second, and C{cpu}, microseconds of its processor time a message, as JSON. What the
receiver's own thread does for a message, C{prepare}, is not in it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import TypeAlias, cast

from twisted.python.failure import Failure

from benchmarks.stores.alone import CLIENTS, treq
from benchmarks.stores.messages import message, ready
from webhookrx.config.observers import parse_observer
from webhookrx.interfaces import IMessageObserver
from webhookrx.message.message import Message
from webhookrx.observers.http_stores.observer import HTTPObserver
from webhookrx.observers.registry import build, find_spec

WARM_UP = 5
"""Batches before those that count: they connect, and make what is made once."""


Prepare: TypeAlias = Callable[[Sequence[Message]], Callable[[], object]]
"""Prepares a batch, and returns what then stores it."""


def make(spec: str) -> IMessageObserver:
    """Make an observer."""
    return build(parse_observer(spec, find_spec), "durable")


def observer(spec: str) -> Prepare:
    """Return what lets an observer store."""
    made = make(spec)
    made.open()

    def prepare(batch: Sequence[Message]) -> Callable[[], object]:
        prepared = [made.prepare(each) for each in batch]

        def store() -> None:
            outcomes = made.store(prepared)
            assert outcomes is None, next(filter(None, outcomes))

        return store

    return prepare


def alone(name: str, address: str, spec: str) -> Prepare:
    """Return what lets a client store; that of HTTP gets the observer's lines, and makes the same bodies of them."""
    line: Callable[[Message], bytes] | None = None
    if name == "treq":
        made = make(spec)
        assert isinstance(made, HTTPObserver)
        line, body = made.prepare, made._store.make
        client = treq(address, lambda lines: body(lines).content)
    else:
        client = CLIENTS[name](address)

    def prepare(batch: Sequence[Message]) -> Callable[[], object]:
        prepared = [ready(each, line) for each in batch]
        return lambda: client(prepared)

    return prepare


def measure(prepare: Prepare, seconds: float, size: int) -> dict[str, float]:
    """Store batches one after the other until that took so long."""
    numbers = count()
    took = cpu = 0.0
    stored = done = 0
    while took < seconds or done <= WARM_UP:
        store = prepare([message(number) for _, number in zip(range(size), numbers, strict=False)])
        began, cpu_began = time.perf_counter(), time.process_time()
        store()
        done += 1
        if done > WARM_UP:
            took += time.perf_counter() - began
            cpu += time.process_time() - cpu_began
            stored += size
    return {"rate": stored / took, "cpu": cpu / stored * 1e6}


def _run_reactor(work: Callable[[], None]) -> None:
    """Work in a thread beside the reactor, which HTTP clients need."""
    from twisted.internet import reactor
    from twisted.internet.interfaces import IReactorCore
    from twisted.internet.threads import deferToThread

    running = cast(IReactorCore, reactor)
    failed: list[Failure] = []

    def end(_: object) -> None:
        running.stop()

    running.callWhenRunning(lambda: deferToThread(work).addErrback(failed.append).addBoth(end))
    running.run()
    for failure in failed:
        failure.raiseException()


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    mode, *what, seconds, size = arguments

    def work() -> None:
        prepare = observer(*what) if mode == "observer" else alone(*what)
        print(json.dumps(measure(prepare, float(seconds), int(size))), flush=True)

    _run_reactor(work)


if __name__ == "__main__":
    main(sys.argv[1:])
