"""
What a server keeps: resident memory at rest, for each connection, and after many requests.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from benchmarks import clients, load
from benchmarks.lab import Lab, Running
from benchmarks.runs import WARM_UP, Asking, Figures, verify_output
from benchmarks.servers import Server
from benchmarks.traffic import prepare


@dataclass(frozen=True)
class Memory(Asking):
    """
    Resident memory: at rest, for each idle connection, and what is left of many requests.

    @ivar requests: how many are sent to see what it keeps.
    """

    requests: int
    connections: int = 2000

    @property
    def name(self) -> str:
        """The server, and what is looked at."""
        return f"{self.server.name}, memory"

    @property
    def once(self) -> bool:
        """Whether one round is enough: it takes long, and hardly differs."""
        return True

    def measure(self, lab: Lab) -> Figures:
        """
        Look at a process of its own: returns C{rest} (MiB), C{connection} and C{tls connection} (KiB each), C{growth}
        (KiB) over C{requests}.
        """
        plain = replace(self.server, name=f"{self.server.name} for memory")
        tls = replace(plain, tls="ecdsa")
        figures = {"connection": self._idle(lab, plain), "tls connection": self._idle(lab, tls)}
        lab.end(tls)
        lab.end(plain)
        figures["rest"] = self._at_rest(lab, plain) / 1024
        figures["growth"], figures["requests"] = _growth(lab, plain, self.requests)
        lab.end(plain)
        return figures

    def _at_rest(self, lab: Lab, server: Server) -> int:
        running = lab.get(server)
        requests = prepare("plain").requests
        with clients.idle_connections(running.port, requests, WARM_UP, tls=server.tls is not None):
            pass
        time.sleep(0.2)
        return running.resident_kib()

    def _idle(self, lab: Lab, server: Server) -> float:
        rest = self._at_rest(lab, server)
        running = lab.get(server)
        requests = prepare("plain").requests
        with clients.idle_connections(running.port, requests, self.connections, tls=server.tls is not None):
            time.sleep(0.2)
            return (running.resident_kib() - rest) / self.connections


@dataclass(frozen=True)
class Growth(Asking):
    """
    Resident memory: what is left of many requests.

    @ivar requests: how many are sent to see what it keeps.
    """

    requests: int

    @property
    def name(self) -> str:
        """The server, and what is looked at."""
        return f"{self.server.name}, growth"

    @property
    def once(self) -> bool:
        """Whether one round is enough: it takes long, and hardly differs."""
        return True

    def measure(self, lab: Lab) -> Figures:
        """Look at a process of its own: returns C{growth} (KiB) over C{requests}."""
        alone = replace(self.server, name=f"{self.server.name} for growth")
        growth, requests = _growth(lab, alone, self.requests)
        lab.end(alone)
        return {"growth": growth, "requests": requests}


def _growth(lab: Lab, server: Server, requests: int) -> tuple[float, float]:
    """Return by how many KiB a server has grown over so many requests, once it has had some, and how many they were."""
    running = lab.get(server)
    _send(lab, running, requests // 4)
    rest = running.resident_kib()
    sent = _send(lab, running, requests)
    return running.resident_kib() - rest, sent


def _send(lab: Lab, running: Running, count: int) -> int:
    sent = 0
    while sent < count:
        answered = load.wrk(lab, running, "plain", 64, 1.0).answered
        verify_output(running, "plain", answered)
        sent += answered
    return sent
