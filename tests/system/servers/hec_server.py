"""Splunk's HTTP Event Collector as it is documented, in a process that can be killed: no real one is at hand."""

from __future__ import annotations

import sys

from tests.system.servers.process import Server, ask


class HECServer(Server):
    """A collector with indexer acknowledgement, whose token is C{t0ken}."""

    name = "hec"

    @classmethod
    def missing(cls) -> str:
        """It is always there."""
        return ""

    def command(self) -> list[str]:
        """Run it."""
        return [sys.executable, "-m", "tests.system.servers.hec_program", str(self.port), self.path("index")]

    def is_ready(self) -> bool:
        """Ask for its health."""
        return b"healthy" in ask(self.port, b"GET /services/collector/health HTTP/1.0\r\n\r\n", b"healthy")
