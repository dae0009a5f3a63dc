"""
A whole console with real routers, each with a rule of its own for senders and one that changes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from tests.system.console_process import ConsoleProcess
from tests.system.receiver import PATIENCE, ROOT, NotReached, wait_until
from tests.system.routers import free_ports
from tests.system.test_console_router import ConsoleRouter


class FleetRouter(ConsoleRouter):
    """
    A router of a fleet, which is enrolled; a file C{token} with a token is in its directory.

    @ivar hooks: the port that senders post to, whatever the rules are.
    @ivar ports: those of the rule that changes; one of them is open at a time.
    """

    def __init__(self, name: str, directory: str, console: int, ports: list[int]) -> None:
        keys = os.path.join(directory, "keys")
        os.mkdir(keys)
        super().__init__(directory, console, keys)
        options = list(self._arguments)
        options[options.index("--router-label") + 1] = f"site={name}"
        self._arguments = tuple(options)
        self.name = name
        self.hooks, *self.ports = ports
        command = [sys.executable, "-m", "webhookrx", "enrol", "--console", f"https://localhost:{console}"]
        command += ["--console-dir", self.path("console"), "--token-file", self.path("token"), "--name", name]
        command += ["--label", f"site={name}"]
        # A console takes only so many enrolments of an address at a time; a status of 4 says to ask again.
        wait_until(lambda: self._enrolled(command), f"{name} is enrolled", 2 * PATIENCE)

    def allow_keys(self, directory: str) -> None:
        """Let rules name files there, too, from the next start on."""
        self._arguments = (*self._arguments, "--key-directory", directory)

    def _enrolled(self, command: list[str]) -> bool:
        """Run the command that enrols; tell whether it has."""
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode in (0, 4), done.stderr
        if done.returncode:
            time.sleep(1)
        return done.returncode == 0

    def open_ports(self) -> set[int]:
        """Return those of its ports that it listens on, as the kernel tells."""
        with open("/proc/net/tcp", encoding="ascii") as file:
            rows = [line.split() for line in list(file)[1:]]
        listening = {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A"}
        return listening & {self.hooks, *self.ports}

    def open_states(self) -> tuple[set[int], set[int]]:
        """Return the ports of its two states."""
        return {self.hooks, self.ports[0]}, {self.hooks, self.ports[1]}


class Fleet:
    """
    The console and its routers.

    @ivar changes: how many rules were saved, and accepted.
    """

    def __init__(self, count: int) -> None:
        self.console = ConsoleProcess()
        self.authorization = f"Bearer {self.console.token()}"
        self.changes = 0
        self.routers: list[FleetRouter] = []
        try:
            token = self.call("POST", "/enrolments", {"approve": "auto", "uses": count})["token"]
            ports = free_ports(3 * count)
            for number in range(count):
                here = tempfile.mkdtemp(prefix="webhookrx-")
                secret = os.open(os.path.join(here, "token"), os.O_WRONLY | os.O_CREAT, 0o600)
                with open(secret, "w", encoding="ascii") as file:
                    file.write(token)
                self.routers.append(
                    FleetRouter(f"edge-{number}", here, self.console.routers, ports[3 * number : 3 * number + 3])
                )
            for router in self.routers:
                self.save(self.rule(router, "hooks", router.hooks), None)
                self.save(self.rule(router, "moving", router.ports[0]), None)
                router.spawn()
            for router in self.routers:
                self.wait_for_state(router, 0)
        except BaseException:
            self.clean_up()
            raise

    def clean_up(self) -> None:
        """Leave nothing behind."""
        for router in self.routers:
            router.clean_up()
        self.console.stop()

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return what a call answers, which is good."""
        status, _, content = self.console.call(method, path, body, authorization=self.authorization, **headers)
        assert status < 300, (method, path, status, content)
        return json.loads(content) if content else None

    def rule(self, router: FleetRouter, name: str, port: int) -> dict[str, Any]:
        """Return a rule for one router."""
        selector = f"label.site = {router.name}"
        return {
            "name": f"{name}-{router.name}",
            "protocol": "HTTP",
            "port": port,
            "selector": selector,
            "paths": ["/in"],
        }

    def save(self, rule: dict[str, Any], generation: str | None) -> None:
        """Save a rule, a new one without a generation."""
        if generation is None:
            self.call("POST", "/rules", rule)
        else:
            self.call("PUT", f"/rules/{rule['name']}", rule, if_match=generation)
        self.changes += 1

    def move(self, router: FleetRouter, state: int) -> None:
        """Change the rule of a router that changes."""
        rule = self.rule(router, "moving", router.ports[state])
        path = f"/rules/{rule['name']}"
        status, headers, content = self.console.call("GET", path, authorization=self.authorization)
        assert status == 200, content
        self.save(rule, headers["etag"])

    def shown(self, router: FleetRouter) -> dict[str, Any]:
        """Return a router as the API shows it; nothing while it is unknown."""
        routers = self.call("GET", "/routers")["routers"]
        return next((dict(each) for each in routers if each["name"] == router.name), {})

    def wait_for_state(self, router: FleetRouter, state: int) -> dict[str, Any]:
        """Wait until a router listens as a state says, and has told the console so; return what it shows."""
        seen: dict[str, Any] = {}

        def is_there() -> bool:
            seen.clear()
            seen.update(self.shown(router))
            return (
                router.open_ports() == router.open_states()[state]
                and seen.get("status") == "APPLIED"
                and seen["online"] is True
                and not os.path.exists(router.path("console/next.json"))
            )

        try:
            wait_until(is_there, f"{router.name} is in state {state}")
        except NotReached as error:
            raise NotReached(f"{error}; {seen}; {router.open_ports()}; {router.log()[-4000:]}") from None
        return dict(seen)
