"""
What five taps cost whose filter never matches: C{python -m benchmarks.taps [--rounds N] [--requests N]}.

Loads with and without the taps take turns at one receiver. Printed is the processor time of a request in each, and the
median of what the taps add; it fails past 3 %. What no tap costs is counted in instructions, by
C{python -m benchmarks.compare BASE --case instructions}.

Taps look at messages for 10 ms of each second, whatever part of it the receiver gets of its core: on a machine that is
busy with other things that is a larger part of a request, and says nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from statistics import median
from threading import Thread
from typing import Final

from benchmarks import clients
from benchmarks.compared import WRITTEN
from benchmarks.lab import Lab, heed_signals
from benchmarks.tools import Broken, Tools, Unavailable
from benchmarks.traffic import prepare

TAPS: Final = 5
GOAL: Final = 0.03
"""The part of the processor time of a request that they may add."""

_CONTROL: Final = "control.sock"
_CONNECTIONS: Final = 64
_WARM_UP: Final = 2_000
_QUESTION: Final = {"do": "tap", "tap": {"filter": "webhook.query.team = nobody", "rate": 1, "seconds": 600}}


@contextmanager
def taps(control: str) -> Iterator[None]:
    """Have L{TAPS} taps run, and read what they say."""
    with ExitStack() as stack:
        for _ in range(TAPS):
            tap = stack.enter_context(socket.socket(socket.AF_UNIX))
            tap.settimeout(30)
            tap.connect(control)
            tap.sendall(json.dumps(_QUESTION).encode() + b"\n")
            lines = stack.enter_context(tap.makefile("rb"))
            if b'"start"' not in (said := lines.readline()):
                raise Broken(f"no tap has started: {said[:200]!r}")
            Thread(target=_read, args=(tap,), daemon=True).start()
            # As a thread reads from it, it would not be closed before the next row.
            stack.callback(tap.shutdown, socket.SHUT_RDWR)
        yield


def _read(tap: socket.socket) -> None:
    try:
        while tap.recv(65536):
            pass
    except OSError:
        pass


def added(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the median of what the second of each pair takes more than the first, as a part of that."""
    return median(tapped / plain - 1 for plain, tapped in pairs)


def measure(lab: Lab, rounds: int, requests: int) -> list[tuple[float, float]]:
    """Return the processor time of a request without and with the taps, in seconds, of each round."""
    running = lab.get(replace(WRITTEN, name="webhookrx with taps", options=("--control", _CONTROL)))
    control = os.path.join(os.path.dirname(running.output), _CONTROL)
    prepared = prepare("plain").requests
    with clients.connections_to(running.port, _CONNECTIONS) as connections:

        def seconds() -> float:
            before = running.cpu_seconds()
            answered = clients.laps(connections, prepared, requests)
            return (running.cpu_seconds() - before) / answered

        seconds()
        pairs = []
        for number in range(rounds):
            figures = {}
            for tapped in (False, True) if number % 2 == 0 else (True, False):
                with taps(control) if tapped else ExitStack():
                    # What a tap does once, and what one that has ended leaves to be done, is no part of it.
                    clients.laps(connections, prepared, _WARM_UP)
                    figures[tapped] = seconds()
            pairs.append((figures[False], figures[True]))
    return pairs


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; return 1 if the goal is missed, or nothing could be measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.taps", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=20_000, help="of each load (default: %(default)s)")
    asked = parser.parse_args(arguments)
    heed_signals()
    try:
        tools = Tools()
        os.sched_setaffinity(0, {tools.cores.load})
        with Lab(tools) as lab:
            pairs = measure(lab, asked.rounds, asked.requests)
    except (Broken, Unavailable) as problem:
        print(problem, file=sys.stderr)
        return 1
    plain, tapped = (median(side) * 1e6 for side in zip(*pairs, strict=True))
    part = added(pairs)
    print(f"{plain:.1f} µs a request; with {TAPS} taps whose filter never matches {tapped:.1f} µs: ", end="")
    print(f"{part:+.1%} in the middle of {len(pairs)} rounds (goal: {GOAL:.0%} at most)")
    return int(part > GOAL)


if __name__ == "__main__":
    sys.exit(main())
