"""A real Alertmanager, which sends groups of alerts to a webhook."""

from __future__ import annotations

import http.client
import json
from typing import Any

from tests.system.servers.process import Server, ask, program


class Alertmanager(Server):
    """
    C{prometheus-alertmanager} of Debian.

    @param url: where it sends to.
    @param token: what it shows there.
    """

    name = "alertmanager"

    def __init__(self, url: str, token: str) -> None:
        super().__init__()
        self._url = url
        self._token = token

    @classmethod
    def missing(cls) -> str:
        """Say that it is not installed."""
        if program("prometheus-alertmanager"):
            return ""
        return "no prometheus-alertmanager: apt-get install prometheus-alertmanager"

    def command(self) -> list[str]:
        """Write the configuration, and run it."""
        config = {
            "route": {
                "receiver": "hook",
                "group_by": ["group"],
                "group_wait": "0s",
                "group_interval": "1s",
                "repeat_interval": "1h",
            },
            "receivers": [
                {
                    "name": "hook",
                    "webhook_configs": [
                        {
                            "url": self._url,
                            "http_config": {"authorization": {"type": "Bearer", "credentials": self._token}},
                        }
                    ],
                }
            ],
        }
        return [
            program("prometheus-alertmanager"),
            f"--config.file={self.write('alertmanager.yml', json.dumps(config))}",
            f"--storage.path={self.path('data')}",
            f"--web.listen-address={self.address}",
            "--cluster.listen-address=",
        ]

    def is_ready(self) -> bool:
        """Tell whether it says so."""
        return b" 200 " in ask(self.port, b"GET /-/ready HTTP/1.0\r\n\r\n", b"\r\n").partition(b"\r\n")[0]

    def alert(self, alerts: list[dict[str, Any]]) -> None:
        """Give it alerts, as Prometheus does."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/api/v2/alerts", json.dumps(alerts), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        connection.close()
