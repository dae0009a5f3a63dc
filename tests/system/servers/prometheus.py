"""A real Prometheus, which finds its targets by HTTP."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from tests.system.servers.process import Server, ask, program


class Prometheus(Server):
    """
    C{prometheus} of Debian.

    @param job: a C{scrape_config}.
    """

    name = "prometheus"

    def __init__(self, job: dict[str, Any]) -> None:
        super().__init__()
        self._job = job

    @classmethod
    def missing(cls) -> str:
        """Say that it is not installed."""
        return "" if program("prometheus") else "no prometheus: apt-get install prometheus"

    def command(self) -> list[str]:
        """Write the configuration, and run it."""
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": [self._job]}
        return [
            program("prometheus"),
            f"--config.file={self.write('prometheus.yml', json.dumps(config))}",
            f"--storage.tsdb.path={self.path('data')}",
            f"--web.listen-address={self.address}",
        ]

    def is_ready(self) -> bool:
        """Tell whether it says so."""
        return b" 200 " in ask(self.port, b"GET /-/ready HTTP/1.0\r\n\r\n", b"\r\n").partition(b"\r\n")[0]

    def targets(self) -> list[dict[str, Any]]:
        """Return what it scrapes."""
        with urllib.request.urlopen(f"http://{self.address}/api/v1/targets?state=active", timeout=60) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["activeTargets"]
        return found
