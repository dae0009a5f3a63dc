"""
The console of L{benchmarks.fleet}: a process of its own, called by its API.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from contextlib import closing
from typing import Any, Final

from tests.system.receiver import wait_until
from tests.system.servers.process import free_port
from webhookrx.console.api.principal import Principal
from webhookrx.console.people.accounts import PersonView, add_person, add_token
from webhookrx.console.store.database import StoreWriter
from webhookrx.console.store.history import Author

SITES: Final = ("fra", "ams", "lon", "nyc", "sfo", "sin", "syd", "gru")


def make_token(directory: str) -> str:
    """Return an API token of the console whose files are there, and which does not run yet."""
    writer = StoreWriter(os.path.join(directory, "console.sqlite"), time.time)
    view = PersonView("mara", "admin", True, True)
    writer.write(lambda tx: add_person(tx, Author("benchmark", "api"), view, "none"))
    _, secret = writer.write(lambda tx: add_token(tx, Principal("mara", "admin"), "benchmark", "admin", False, 1))
    writer.close()
    return secret


class BenchmarkedConsole:
    """
    The process.

    @ivar routers: its port for routers.
    @ivar turns: a file with the long turns of its reactor.
    """

    def __init__(self, directory: str, token: str) -> None:
        self._token = token
        self._directory = directory
        self.turns = os.path.join(directory, "turns")
        self.port, self.routers = free_port(), free_port()
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [sys.executable, "-m", "benchmarks.fleet.watched", self.turns]
        command += ["-n", "--pidfile=", "webhookrx-console"]
        command += ["--port", f"tcp:{self.port}:interface=127.0.0.1", "--url", f"http://127.0.0.1:{self.port}"]
        command += ["--routers", f"ssl:{self.routers}:interface=127.0.0.1:backlog=1024"]
        command += ["--db", os.path.join(self._directory, "console.sqlite")]
        with open(os.path.join(self._directory, "log"), "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        wait_until(self._answers, "the console answers", 60)

    def _answers(self) -> bool:
        try:
            return bool(self.call("GET", "/rules"))
        except OSError:
            return False

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return what a call answers, and fail where it is refused."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            data = body if isinstance(body, bytes | None) else json.dumps(body)
            fields = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}", **headers}
            connection.request(method, f"/api/v1{path}", data, fields)
            answer = connection.getresponse()
            content = answer.read()
            if answer.status >= 300:
                raise RuntimeError(content)
            return json.loads(content)

    def push(self, count: int) -> None:
        """Have it have so many rules, each for the routers of one site."""
        text = json.dumps({"connector_rules": [_rule(n, f"label.site = {SITES[n % 8]}") for n in range(count)]})
        headers = {"Content-Type": "application/yaml", "If-Match": '"r0"'}
        self.call("PUT", "/rules.yaml?manager=benchmark", text.encode(), **headers)

    def save(self, number: int) -> None:
        """Save a rule for all routers."""
        self.call("POST", "/rules", _rule(number, ""))

    def preview(self, number: int) -> float:
        """Return how long the preview of a rule for all routers takes, seconds."""
        began = time.monotonic()
        found = self.call(
            "POST",
            "/rules:preview",
            {"rule": _rule(number, f"NOT name = router-{number}"), "replaces": f"rule-{number}"},
        )
        if not found["matched"]:
            raise RuntimeError(found)
        return time.monotonic() - began

    @property
    def memory(self) -> float:
        """Its resident memory, in MiB."""
        with open(f"/proc/{self.process.pid}/status") as file:
            line = next(line for line in file if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024

    @property
    def processor_time(self) -> float:
        """Its processor time so far, seconds."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()


def labels_of_rule(number: int) -> dict[str, str]:
    """Return the labels of a rule."""
    return {"product": f"product-{number % 20}", "vendor": f"vendor-{number % 7}"}


def _rule(number: int, selector: str) -> dict[str, object]:
    rule: dict[str, object] = {"name": f"rule-{number}", "protocol": "HTTP", "port": 8000 + number}
    rule["labels"] = labels_of_rule(number)
    return rule | {"selector": selector} if selector else rule
