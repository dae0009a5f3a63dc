"""
A console as a process of its own, with an admin and API tokens.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from contextlib import closing
from shutil import rmtree
from typing import Any

from tests.system.receiver import wait_until
from tests.system.servers.process import free_port
from webhookrx.console.people.break_glass import AccountChange, change_account
from webhookrx.console.upkeep import init_console

PASSWORD = "correct horse battery"


class ConsoleProcess:
    """
    One console on loopback by plain HTTP.

    @param options: further ones of its command.

    @ivar port: that of its API.
    @ivar routers: that for routers.
    @ivar admin: that for operators.
    """

    def __init__(self, *options: str) -> None:
        self._options = options
        self.directory = tempfile.mkdtemp(prefix="webhookrx-console-")
        self.path = os.path.join(self.directory, "console.sqlite")
        self.port, self.routers, self.admin = free_port(), free_port(), free_port()
        self.log = os.path.join(self.directory, "log")
        init_console(self.path)
        password = os.path.join(self.directory, "password")
        with open(os.open(password, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(PASSWORD)
        change_account(self.path, "mara", AccountChange(True, "admin", True, password_file=password))
        self.start()

    def start(self) -> None:
        """Start it, again after L{kill}, and wait until it is ready."""
        self.spawn()
        wait_until(self.is_ready, "the console is ready", 60)

    def spawn(self) -> None:
        """Start it without waiting for anything."""
        command = [os.path.join(os.path.dirname(sys.executable), "twistd"), "-n", "--pidfile=", "webhookrx-console"]
        command += ["--port", f"tcp:{self.port}:interface=127.0.0.1", "--url", f"http://127.0.0.1:{self.port}"]
        command += ["--routers", f"ssl:{self.routers}:interface=127.0.0.1", "--db", self.path]
        command += ["--admin", f"tcp:{self.admin}:interface=127.0.0.1", *self._options]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def kill(self) -> None:
        """End it, as a crash would."""
        self.process.kill()
        self.process.wait()

    def is_ready(self) -> bool:
        """Tell whether it answers."""
        assert self.process.poll() is None, self.log_text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self.process.pid

    def health(self) -> dict[str, Any]:
        """Return what it says of itself to operators, whatever the status of the answer."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.admin, timeout=60)) as connection:
            connection.request("GET", "/readyz")
            return dict(json.loads(connection.getresponse().read()))

    def log_text(self) -> str:
        """Return its log."""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of the answer to a call."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            data = None if body is None else json.dumps(body)
            connection.request(method, f"/api/v1{path}", data, {"Content-Type": "application/json", **fields})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def token(self, role: str = "admin", *, tap: bool = False, name: str = "token") -> str:
        """Return the secret of a new API token of the admin."""
        status, headers, content = self.call("POST", "/session", {"name": "mara", "password": PASSWORD})
        assert status == 201, content
        cookie = headers["set-cookie"].partition(";")[0]
        ours = {
            "cookie": cookie,
            "origin": f"http://127.0.0.1:{self.port}",
            "x_csrf_token": json.loads(content)["csrf"],
        }
        status, _, content = self.call("POST", "/tokens", {"name": name, "role": role, "tap": tap}, **ours)
        assert status == 201, content
        secret: str = json.loads(content)["secret"]
        return secret

    def end(self) -> int:
        """End it well, and return its exit status; its files stay."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def stop(self) -> int:
        """End it well, return its exit status, and remove its files."""
        try:
            return self.end()
        finally:
            self.process.kill()
            self.process.wait()
            rmtree(self.directory, ignore_errors=True)
