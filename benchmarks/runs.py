"""
What can be measured: each run asks a server for something and returns figures.

Figures have these names: C{rate} (answers a second), C{cpu} (microseconds of processor time a request, the whole tree
of processes), C{busy} (cores' worth that it took), C{others} (cores' worth that programs took which have nothing to do
with this), C{p50}, C{p99}, C{p99.9} (ms from request to answer), C{memory} (MiB resident after the load), C{compiled}
(1 when the compiled path of a webhookrx was in use, else 0), and some that the class of a run names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from socket import socket
from typing import TypeAlias

from benchmarks import clients, load
from benchmarks.lab import Lab, Running
from benchmarks.measure import connections_of, machine_cpu_seconds, own_cpu_seconds
from benchmarks.servers import Server
from benchmarks.tools import ROOT, Unavailable
from benchmarks.traffic import prepare
from benchmarks.verify import verify

Figures: TypeAlias = "dict[str, float]"

_PATIENCE = 3.0
"""Seconds that a message may take from its answer into the file, where a peer answers first."""

WARM_UP = 128
"""Requests before each measurement."""


class Run(ABC):
    """Something to measure."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called in tables; no other run has that name."""

    @property
    def once(self) -> bool:
        """Whether one round is enough."""
        return False

    @property
    def less(self) -> str:
        """What is not done that webhookrx does, in favour of a peer."""
        return ""

    @abstractmethod
    def measure(self, lab: Lab) -> Figures:
        """
        Measure once.

        @raise Unavailable: it can't be measured here.
        @raise Broken: what came out is worth nothing.
        """


@dataclass(frozen=True)
class Asking(Run):
    """
    What a server does when it is asked.

    @ivar server: what is asked.
    """

    server: Server

    @property
    def less(self) -> str:
        """See L{Server.less}."""
        return self.server.less


def verify_output(running: Running, kind: str, answered: int) -> None:
    """
    Look for what was answered in the file of a server, and empty it.

    @raise Broken: something is missing or wrong.
    """
    server = running.server
    verify(running.output, prepare(kind), answered, server.lines, server.settle, _PATIENCE)


@contextmanager
def warmed_up(running: Running, count: int) -> Iterator[tuple[list[socket], Sequence[bytes], int]]:
    """Hold connections open that have had some requests; gives them, what is sent, and how many answers they had."""
    requests = prepare("plain").requests
    with clients.connections_to(running.port, count) as connections:
        yield connections, requests, clients.laps(connections, requests, WARM_UP)


@dataclass(frozen=True)
class Loaded(Asking):
    """As many requests as it answers, from wrk."""

    traffic: str = "plain"
    connections: int = 64

    @property
    def name(self) -> str:
        """The server, the traffic unless plain, and behind C{@} the connections."""
        what = "" if self.traffic == "plain" else f", {self.traffic}"
        return f"{self.server.name}{what} @{self.connections}"

    def measure(self, lab: Lab) -> Figures:
        """Let wrk ask; returns all common figures."""
        running = lab.get(self.server)
        began, cpu = time.monotonic(), running.cpu_seconds()
        own, all_of_it = own_cpu_seconds(), machine_cpu_seconds()
        answers = load.wrk(lab, running, self.traffic, self.connections, lab.seconds)
        own, all_of_it = own_cpu_seconds() - own, machine_cpu_seconds() - all_of_it
        cpu, seconds = running.cpu_seconds() - cpu, time.monotonic() - began
        memory = running.resident_kib() / 1024
        verify_output(running, self.traffic, answers.answered)
        return {
            "rate": answers.answered / answers.seconds,
            "cpu": cpu / answers.answered * 1e6,
            "busy": cpu / answers.seconds,
            "others": max(0.0, all_of_it - cpu - own) / seconds,
            "p50": answers.p50,
            "p99": answers.p99,
            "p99.9": answers.p999,
            "memory": memory,
        }


@dataclass(frozen=True)
class Shares(Asking):
    """
    How the processes of a server share the connections of a load.

    @ivar tries: loads, each over connections of its own.
    """

    connections: int = 64
    tries: int = 5

    @property
    def name(self) -> str:
        """The server, and what is counted."""
        return f"{self.server.name}, shares of {self.connections} connections"

    def measure(self, lab: Lab) -> Figures:
        """Let wrk ask, and count sockets meanwhile; returns C{busiest}, the most at one process in any of the tries."""
        running = lab.get(self.server)
        counts: list[int] = []

        def count() -> None:
            counts.append(max(connections_of(running.pid, running.port)))

        for _ in range(self.tries):
            answers = load.wrk(lab, running, "plain", self.connections, 0.4, count)
            verify_output(running, "plain", answers.answered)
        return {"busiest": max(counts)}


@dataclass(frozen=True)
class Laps(Asking):
    """
    A number of requests from this process, in laps: slower than wrk, and the same everywhere.

    @ivar requests: how many.
    """

    requests: int = 16_000
    connections: int = 64

    @property
    def name(self) -> str:
        """The server, and behind C{@} the connections."""
        return f"{self.server.name}, laps @{self.connections}"

    def measure(self, lab: Lab) -> Figures:
        """Send them; returns C{cpu}."""
        running = lab.get(self.server)
        with warmed_up(running, self.connections) as (connections, requests, warm_up):
            cpu = running.cpu_seconds()
            answered = clients.laps(connections, requests, self.requests)
            cpu = running.cpu_seconds() - cpu
        verify_output(running, "plain", warm_up + answered)
        return {"cpu": cpu / answered * 1e6}


@dataclass(frozen=True)
class Handshakes(Asking):
    """New TLS connections with full handshakes and one request each."""

    @property
    def name(self) -> str:
        """The server, and what is asked of it."""
        return f"{self.server.name}, new connections"

    def measure(self, lab: Lab) -> Figures:
        """Open them; C{rate} is bounded by the client, so C{cpu} is what counts."""
        running = lab.get(self.server)
        requests = prepare("closing").requests
        cpu, began = running.cpu_seconds(), time.monotonic()
        answered = clients.new_tls_connections(running.port, requests, lab.seconds)
        cpu, seconds = running.cpu_seconds() - cpu, time.monotonic() - began
        verify_output(running, "closing", answered)
        return {"rate": answered / seconds, "cpu": cpu / answered * 1e6, "busy": cpu / seconds}


@dataclass(frozen=True)
class ConstantRate(Asking):
    """Requests that come whether or not earlier ones are answered."""

    rate: int = 3200
    connections: int = 64

    @property
    def name(self) -> str:
        """The server and the rate."""
        return f"{self.server.name}, {self.rate} requests/s"

    def measure(self, lab: Lab) -> Figures:
        """Send them; the percentiles count from when each was due."""
        running = lab.get(self.server)
        with warmed_up(running, self.connections) as (connections, requests, warm_up):
            cpu = running.cpu_seconds()
            times = clients.at_rate(connections, requests, self.rate, lab.seconds)
            cpu = running.cpu_seconds() - cpu
        verify_output(running, "plain", warm_up + len(times))
        times.sort()
        return {
            "rate": self.rate,
            "cpu": cpu / len(times) * 1e6,
            **{f"p{percent}": times[int(len(times) * percent / 100)] * 1e3 for percent in (50, 99, 99.9)},
        }


@dataclass(frozen=True)
class Steps(Run):
    """What is done to a message of the router form, part by part, without a server: see L{benchmarks.steps}."""

    @property
    def name(self) -> str:
        """What is looked at."""
        return "webhookrx, processing steps"

    def measure(self, lab: Lab) -> Figures:
        """Let a process of its own do it; returns the figures that L{benchmarks.steps} names."""
        tools = lab.tools
        if tools.twistd is not None:
            raise Unavailable("only the webhookrx of this interpreter can be looked at without a server")
        done = subprocess.run(
            (sys.executable, "-m", "benchmarks.steps"),
            env={**os.environ, "PYTHONPATH": ROOT},
            stdout=subprocess.PIPE,
            preexec_fn=lambda: os.sched_setaffinity(0, {tools.cores.server}),
            check=True,
        )
        figures: Figures = json.loads(done.stdout)
        return figures
