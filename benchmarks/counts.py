"""
What can be counted of a request rather than timed: system calls, and instructions. Counts hardly depend on what else
the machine does.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks import clients, system_calls
from benchmarks.callgrind import UnderCallgrind, instructions
from benchmarks.lab import Lab
from benchmarks.runs import Asking, Figures, verify_output, warmed_up
from benchmarks.traffic import prepare


@dataclass(frozen=True)
class SystemCalls(Asking):
    """How often it asks the kernel for something, over connections that stay."""

    connections: int = 64

    @property
    def name(self) -> str:
        """The server, and what is counted."""
        return f"{self.server.name}, system calls @{self.connections}"

    @property
    def once(self) -> bool:
        """Whether one round is enough: they hardly differ."""
        return True

    def measure(self, lab: Lab) -> Figures:
        """Count them; returns C{calls}, a request."""
        running = lab.get(self.server)
        with (
            warmed_up(running, self.connections) as (connections, requests, warm_up),
            system_calls.Count(running.pid) as count,
        ):
            answered = clients.laps(connections, requests, 5000)
        verify_output(running, "plain", warm_up + answered)
        return {"calls": count.total / answered}


@dataclass(frozen=True)
class Instructions(Asking):
    """
    How many instructions of the processor it takes in user space, over connections that stay.

    @ivar requests: how many are counted, after as many again that are not: what is done once has been done by then.
    """

    connections: int = 1
    requests: int = 640

    @property
    def name(self) -> str:
        """The server, and what is counted."""
        return f"{self.server.name}, instructions @{self.connections}"

    @property
    def once(self) -> bool:
        """Whether one round is enough: they hardly differ."""
        return True

    def measure(self, lab: Lab) -> Figures:
        """Count them in a process of its own; returns C{instructions}, a request, in thousands."""
        watched = UnderCallgrind(name=f"{self.name} under callgrind", lines=self.server.lines, watched=self.server)
        running = lab.get(watched)
        requests = prepare("plain").requests
        with clients.connections_to(running.port, self.connections) as connections, instructions(running) as count:
            answered = clients.laps(connections, requests, self.requests)
            count.begin()
            counted = clients.laps(connections, requests, self.requests)
        verify_output(running, "plain", answered + counted)
        compiled = running.compiled
        lab.end(watched)
        return {"compiled": float(compiled), "instructions": count.total / counted / 1000}
