"""
Receivers of the router form: rules files that are written for them, and what they say of their gate.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

from tests.system.certificates import Authority, certificates_pem, write
from tests.system.hanging_up import hang_up
from tests.system.receiver import Answer, Connection, Receiver, ReceiverCase, post, wait_until
from tests.system.servers.process import free_port
from tests.system.workers import ask_admin

NAME = "edge-1"

#: Whether root may read any file is one of its capabilities (capabilities(7)), and this takes it away.
PLAIN_USER = ("setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search")


ROOT_CA = Authority("root")
INTERMEDIATE = Authority("intermediate", ROOT_CA)
HOST = INTERMEDIATE.issue("host")
OTHER = INTERMEDIATE.issue("other")
CHAIN = certificates_pem(HOST.certificate, INTERMEDIATE.certificate)


def free_ports(count: int) -> list[int]:
    """Return so many ports, see L{free_port}."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port())
    return list(ports)


def rule(name: str, port: int, *paths: str, **members: Any) -> dict[str, Any]:
    """Return a rule for plain HTTP, but for what is different."""
    return {"name": name, "protocol": "HTTP", "port": port, **({"paths": paths} if paths else {}), **members}


def https(name: str, port: int, key_file: str, cert_file: str, **members: Any) -> dict[str, Any]:
    """Return a rule for HTTPS."""
    return rule(name, port, protocol="HTTPS", key_file=key_file, cert_file=cert_file, **members)


def rules_text(rules: Iterable[dict[str, Any]]) -> str:
    """Return a rules file: JSON is YAML, too."""
    return json.dumps({"connector_rules": list(rules)}, indent=1)


class Router(Receiver):
    """
    The router C{edge-1}, with an endpoint for operators.

    @param command: stands before the command, and runs it.
    """

    def __init__(self, *options: str, directory: str, command: Sequence[str] = ()) -> None:
        router = ("--rules", "rules.yaml", "--router-name", NAME, "--router-label", "site=fra", "--admin", "unix:admin")
        super().__init__(*router, *options, directory=directory, port=None)
        self._arguments = (*command, *self._arguments)  # type: ignore[assignment]

    def start(self) -> Router:
        """Start it and wait until it is up: one that is blocked listens to operators only."""
        self.spawn()
        wait_until(self._answers, f"it is up; its log: {self.log()}")
        return self

    def _answers(self) -> bool:
        assert self.is_running, self.log()
        try:
            return "starting" not in self.health()[1]
        except OSError:
            return False

    def write(self, *rules: dict[str, Any]) -> None:
        """Put a rules file in the place of another, in one step."""
        self.write_text(rules_text(rules))

    def write_text(self, text: str) -> None:
        """Put a text in the place of the rules file, in one step."""
        with open(self.path("rules.new"), "w") as file:
            file.write(text)
        os.rename(self.path("rules.new"), self.path("rules.yaml"))

    def take(self, *rules: dict[str, Any]) -> str:
        """Put a rules file in the place of another, and hang up; return what was logged meanwhile."""
        before = len(self.log())
        self.write(*rules)
        hang_up(self)
        return self.log()[before:]

    def reloads(self) -> int:
        """Return how many reloads there have been, good or bad."""
        log = self.log()
        return log.count("Reloaded: ") + log.count("Reload failed")

    def wait_for_reload(self, before: int, what: str) -> None:
        """Wait for one that nobody has asked for."""
        wait_until(lambda: self.reloads() > before, f"{what}; its log: {self.log()}")

    def wait_for(self, text: str, count: int) -> None:
        """Wait until a text is in the log so many times."""
        wait_until(lambda: self.log().count(text) >= count, f"{text} is there {count} times; its log: {self.log()}")

    def health(self) -> tuple[str, str]:
        """Return what it is like: C{ready}, C{degraded} or C{not_ready}; and why."""
        answer = json.loads(ask_admin(self, "/readyz").body)
        return answer["status"], "\n".join(answer["reasons"])

    def bodies(self) -> list[Any]:
        """Return the bodies of all messages."""
        return [message["log"]["body"] for message in self.messages()]


def with_key(router: Router, name: str = "host") -> tuple[str, str]:
    """Write a good key and certificate; return their paths."""
    key, cert = HOST.write(router.directory, name)
    os.chmod(key, 0o600)
    return key, cert


def put(path: str, content: bytes, mode: int = 0o600) -> None:
    """Put a file in its place in one step."""
    os.chmod(write(f"{path}.new", content), mode)
    os.rename(f"{path}.new", path)


class TLSConnection(Connection):
    """A connection with TLS, to a server whose name is known to the authority of these tests."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        context = ssl.create_default_context(cadata=certificates_pem(ROOT_CA.certificate).decode())
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")

    def serial(self) -> int:
        """Return the serial number of the server's certificate."""
        assert isinstance(self.socket, ssl.SSLSocket)
        found = self.socket.getpeercert()
        assert found is not None
        return int(str(found["serialNumber"]), 16)


class RouterCase(ReceiverCase):
    """
    Starts routers, leaves none behind, and asks them.
    """

    def router(self, *options: str, command: Sequence[str] = ()) -> Router:
        """Make one that is yet to be started."""
        directory = tempfile.mkdtemp(prefix="webhookrx-")
        router = Router(*options, directory=directory, command=command)
        self.addCleanup(shutil.rmtree, directory)
        self.addCleanup(router.kill)
        return router

    def start_router(self, *rules: dict[str, Any], options: Sequence[str] = ()) -> Router:
        """Start one with these rules."""
        router = self.router(*options)
        router.write(*rules)
        return router.start()

    def is_open(self, port: int) -> bool:
        """Tell whether somebody listens there."""
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
        except ConnectionRefusedError:
            return False
        return True

    def said(self, connection: Connection, body: bytes = b"{}", target: str = "/in") -> Answer:
        """Post on a connection that stays, and return the answer."""
        answer = connection.send(post(body, target)).answer()
        assert answer is not None, "closed without an answer"
        return answer

    def assert_taken(self, connection: Connection, body: bytes = b"{}", target: str = "/in") -> None:
        """The connection is there, and its requests are answered with 200."""
        self.assertEqual(200, self.said(connection, body, target).status)

    def wait_for(self, router: Router, state: str, reason: str = "") -> None:
        """Wait until it is in a state for a reason."""

        def is_so() -> bool:
            found, why = router.health()
            return found == state and reason in why

        wait_until(is_so, f"{state}: {reason}; its log: {router.log()}")
