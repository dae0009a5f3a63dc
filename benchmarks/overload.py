"""
What a receiver with a twentieth of a core makes of four thousand senders: C{python -m benchmarks.overload}.

First its capacity is measured: the 200s a second that 64 senders get who post as fast as they are answered. Then three
times as many requests a second are begun over all connections, whatever the answers; one that is due while all
connections wait is not sent. Impatient senders give up after three seconds, close, and come again; patient ones wait.
Then the load ends, and a tenth of the capacity follows.

Everything is on the loopback address, and bounded in time and number. The share of processor time is that of a control
group.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.clients import tls_context
from benchmarks.lab import Lab, heed_signals
from benchmarks.receivers import Receiver
from benchmarks.senders import Answered, Crowd
from benchmarks.tools import Broken, Tools, Unavailable
from benchmarks.traffic import prepare

CORES = 0.05
UNBOUNDED = 2.0
CONNECTIONS = 4000
PATIENCE = 3.0
"""Seconds after which impatient senders give up."""
USUAL = 64
"""Patient senders by which capacity is measured."""
SECONDS = 20
"""Of overload."""
LIGHT = 5
"""Seconds of light load afterwards."""
SETTLED = 1.0
"""Seconds after which light load should be served as ever."""

_CONNECTING = 120.0
_LAST_ANSWERS = 60.0


@dataclass(frozen=True)
class Case:
    """
    One way to overload it.

    @ivar impatient: whether senders give up.
    """

    impatient: bool
    tls: bool
    workers: int

    @property
    def name(self) -> str:
        """What it is called."""
        parts = ("impatient" if self.impatient else "patient", "tls" if self.tls else "plain", f"{self.workers}")
        return "-".join(parts)


CASES = tuple(itertools.starmap(Case, itertools.product((True, False), (False, True), (1, 2))))


@dataclass(frozen=True)
class Figures:
    """
    What came of it; all but the capacity are seconds, counts, or parts of the capacity.

    @ivar capacity: 200s a second.
    @ivar good: 200s in each second of overload; C{refused}, 503s with C{Retry-After}.
    @ivar other: other answers, and connections that ended without one though their sender had not given up.
    @ivar unanswered: requests whose senders gave up.
    @ivar slowest: 99 % of the 200s under overload came within so many seconds.
    @ivar light: 99 % of the light load's, from L{SETTLED} on; infinite when one was not answered with 200. C{rest}:
        likewise, before the overload.
    @ivar stored: messages that were stored, and whose sender got no 200.
    """

    capacity: float
    good: tuple[float, ...]
    refused: tuple[float, ...]
    other: int
    unanswered: int
    slowest: float
    rest: float
    light: float
    stored: int

    def lines(self) -> list[str]:
        """Say it all."""
        steady = self.good[2:] or self.good
        return [
            f"capacity                     {self.capacity:.0f} 200s a second",
            f"200s, part of capacity       {sum(self.good) / len(self.good):.2f}, least in a second {min(steady):.2f}",
            f"  second by second           {' '.join(f'{part:.2f}' for part in self.good)}",
            f"503 with Retry-After         {sum(self.refused) / len(self.refused):.2f}",
            f"without an answer            {self.unanswered}; answered otherwise {self.other}",
            f"99 % of 200s within          {self.slowest:.2f} s",
            f"stored for nobody            {self.stored}",
            f"light load, 99 % within      {self.light * 1000:.0f} ms from {SETTLED:g} s after the end on",
            f"  before the overload        {self.rest * 1000:.0f} ms",
        ]


def measure(case: Case, tools: Tools, connections: int, seconds: float, cores: float) -> Figures:
    """
    Overload a receiver.

    @raise Unavailable: its processor time can't be bounded here.
    @raise Broken: it does not do its usual work.
    """
    most = connections + 1000
    options: tuple[str, ...] = ("--limit", f"connections={most}")
    if case.workers > 1:
        options += (f"--workers={case.workers}",)
    server = Receiver(name="webhookrx", tls="ecdsa" if case.tls else None, options=options, quota=UNBOUNDED)
    requests = prepare("plain").requests
    tls = tls_context() if case.tls else None
    with Lab(tools) as lab:
        running = lab.get(server)
        usual = Crowd(running.port, USUAL, requests, tls=tls)
        crowd = Crowd(running.port, connections, requests, patience=PATIENCE if case.impatient else None, tls=tls)
        try:
            usual.connect(_CONNECTING)
            running.limit(cores)
            capacity = _capacity(usual)
            rest = _light(usual, capacity)
            running.limit(UNBOUNDED)
            if crowd.connect(_CONNECTING) < connections:
                raise Broken("not all senders could connect")
            running.limit(cores)
            began = time.monotonic()
            crowd.run(seconds, 3 * capacity)
            ended = time.monotonic()
            if case.impatient:
                crowd.close()
            light = _light(usual, capacity)
            if not case.impatient:
                crowd.wait(_LAST_ANSWERS)
            # The machine may have become slower or quicker meanwhile.
            capacity = (capacity + _capacity(usual)) / 2
            running.limit(UNBOUNDED)
            time.sleep(1.0)
            with open(running.output, "rb") as file:
                stored = sum(1 for _ in file)
        finally:
            usual.close()
            crowd.close()
    known = sum(1 for each in (*crowd.answers, *usual.answers) if each.status == 200)
    return _figures(capacity, crowd.answers, (rest, light), began, ended, stored - known)


def _capacity(crowd: Crowd) -> float:
    """Return the 200s a second to senders that post as fast as they are answered."""
    crowd.run(1.0)
    before = len(crowd.answers)
    began = time.monotonic()
    crowd.run(5.0)
    rate = (len(crowd.answers) - before) / (time.monotonic() - began)
    crowd.wait(PATIENCE)
    if not rate or any(answer.status != 200 for answer in crowd.answers[before:]):
        raise Broken("the usual senders are not all answered with 200")
    return rate


def _light(crowd: Crowd, capacity: float) -> list[Answered]:
    """Send a tenth of the capacity, and return what became of it."""
    before = len(crowd.answers)
    crowd.run(LIGHT, capacity / 10)
    crowd.wait(PATIENCE)
    return crowd.answers[before:]


def _figures(
    capacity: float,
    answers: Sequence[Answered],
    light: tuple[Sequence[Answered], Sequence[Answered]],
    began: float,
    ended: float,
    stored: int,
) -> Figures:
    seconds = round(ended - began)
    settled = ended + SETTLED
    good, refused = Counter[int](), Counter[int]()
    times = []
    other = unanswered = 0
    for each in answers:
        second = int(each.at - began)
        if each.status == 200:
            good[second] += 1
            if each.at < ended:
                times.append(each.at - each.due)
        elif each.polite:
            refused[second] += 1
        elif each.status == 0 and each.at - each.due >= PATIENCE - 0.1:
            unanswered += 1
        else:
            other += 1
    before, after = (
        [each.at - each.due if each.status == 200 else math.inf for each in some if not began <= each.due < settled]
        for some in light
    )
    return Figures(
        capacity=capacity,
        good=tuple(good[second] / capacity for second in range(seconds)),
        refused=tuple(refused[second] / capacity for second in range(seconds)),
        other=other,
        unanswered=unanswered,
        slowest=percentile(times),
        rest=percentile(before),
        light=percentile(after),
        stored=stored,
    )


def percentile(times: Sequence[float], share: float = 0.99) -> float:
    """Return the time that such a share of them does not exceed; infinite when there is none."""
    return sorted(times)[math.ceil(len(times) * share) - 1] if times else math.inf


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases that are asked for, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overload", description=__doc__)
    names = [case.name for case in CASES]
    parser.add_argument("--case", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of overload")
    parser.add_argument("--cores", type=float, default=CORES, help="the receiver's share of processor time")
    parser.add_argument("--twistd", help="the twistd to measure, such as that of a release")
    options = parser.parse_args(arguments)
    if not (1 <= options.connections <= 20_000 and 1 <= options.seconds <= 300 and 0.01 <= options.cores <= 1):
        parser.error("at most 20000 connections, 300 seconds and one core")
    heed_signals()
    for case in CASES:
        if options.case and case.name not in options.case:
            continue
        try:
            figures = measure(case, Tools(twistd=options.twistd), options.connections, options.seconds, options.cores)
        except (Broken, Unavailable) as problem:
            print(f"{case.name}: {problem}")
            return 1
        print(case.name, *figures.lines(), "", sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
