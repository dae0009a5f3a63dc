"""
The reload gate: the real program as a router whose keys and certificates are not there.
"""

from __future__ import annotations

import os
import shutil
import signal
import ssl
import subprocess
import tempfile
import time

from cryptography.hazmat.primitives.serialization import Encoding
from twisted.trial.unittest import SkipTest

from tests.system.certificates import certificates_pem, key_pem, write
from tests.system.hanging_up import hang_up
from tests.system.load import Load
from tests.system.receiver import PATIENCE, Connection, post, wait_until
from tests.system.routers import (
    CHAIN,
    HOST,
    INTERMEDIATE,
    OTHER,
    PLAIN_USER,
    Router,
    RouterCase,
    TLSConnection,
    free_ports,
    https,
    put,
    rule,
    with_key,
)
from tests.system.test_notify import Manager
from tests.system.test_tls import tool
from tests.system.workers import metrics, serves, workers


class GateTests(RouterCase):
    """
    Rules whose keys and certificates are not there.
    """

    def test_closed(self) -> None:
        """A missing key keeps the connectors as they are, and nothing else; once all is there, the gate opens."""
        one, two, source = free_ports(3)
        manager = Manager(self.short_directory())
        self.addCleanup(manager.socket.close)
        self.patch(os, "environ", {**os.environ, "NOTIFY_SOCKET": manager.path})
        router = self.router("--config", "config.yaml")
        key, cert = with_key(router)
        write(router.path("config.yaml"), b"limits: {body: 1MiB}\n")
        running = https("runs", one, key, cert, paths=["/in"])
        router.write(running)
        router.start()
        connection = TLSConnection(one)
        self.addCleanup(connection.socket.close)
        self.assert_taken(connection)
        missing = router.path("missing-key.pem"), router.path("missing-cert.pem")
        wanted = [
            running | {"paths": ["/other"]},
            https("new", two, *missing, paths=["/in"]),
            rule("plain", free_ports(1)[0]),
        ]
        before = router.reloads()
        router.write(*wanted)
        router.wait_for_reload(before, "the rules are seen")
        self.wait_for(router, "degraded", f'"{missing[0]}" does not exist')
        self.assertIn("rules.yaml:", router.health()[1])
        self.assertIn("[tls-file-missing]", router.health()[1])
        self.assertRegex(router.log(), r"The router is blocked: .*missing-key\.pem\" does not exist")
        self.assertEqual(1, metrics(router)["webhookrx_router_blocked"])
        hang_up(router)
        manager.socket.settimeout(PATIENCE)
        while b"the router is blocked: rules.yaml:" not in manager.socket.recv(65536):
            pass  # systemd's status line says it
        # Its own files may go, and what is not of the router changes.
        for path in (key, cert):
            os.rename(path, f"{path}.away")
        write(router.path("config.yaml"), f"limits: {{body: 10}}\nport: 'tcp:{source}:interface=127.0.0.1'\n".encode())
        self.assertIn("the router is blocked", hang_up(router))
        self.assertEqual(413, self.said(connection, b"more than ten").status)
        again = TLSConnection(one)
        self.addCleanup(again.socket.close)
        self.assert_taken(again)
        self.assertEqual((404, 200), (self.said(again, target="/other").status, self.ask(source, post(b"x")).status))
        self.assertFalse(self.is_open(two))
        # All of them come back, the key first.
        for path in (key, cert):
            os.rename(f"{path}.away", path)
        put(missing[0], key_pem(OTHER.key))
        self.wait_for(router, "degraded", f'"{missing[1]}" does not exist')
        put(missing[1], certificates_pem(OTHER.certificate, INTERMEDIATE.certificate))
        self.wait_for(router, "ready")
        self.assertEqual(0, metrics(router)["webhookrx_router_blocked"])
        new = TLSConnection(two)
        self.addCleanup(new.socket.close)
        self.assert_taken(new)
        self.assertEqual(OTHER.certificate.serial_number, new.serial())
        self.assertEqual((404, 200), (self.said(again).status, self.said(again, target="/other").status))
        self.assertNotIn("Traceback", router.log())

    def short_directory(self) -> str:
        """Return a new directory whose path leaves room for the name of a UNIX socket."""
        directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, directory)
        return directory

    def test_at_the_start(self) -> None:
        """A router that begins with a closed gate is not ready, says each thing that is wrong in turn, and then is."""
        router = self.router(command=self.plain_user())
        (port,) = free_ports(1)
        key, cert = router.path("tls/key.pem"), router.path("tls/cert.pem")
        os.mkdir(router.path("tls"), 0)
        router.write(https("tls", port, key, cert, paths=["/in"]))
        router.start()
        self.wait_for(router, "not_ready", "may not be read by the user that webhookrx runs as. [tls-file-unreadable]")
        os.chmod(router.path("tls"), 0o700)
        self.wait_for(router, "not_ready", f'"{key}" does not exist')
        steps: tuple[tuple[str, bytes, int, str], ...] = (
            (key, key_pem(OTHER.key), 0o600, "[tls-file-missing]"),
            (cert, CHAIN, 0o600, "[key-mismatch]"),
            (key, key_pem(HOST.key, b"secret"), 0o600, "[key-encrypted]"),
            (key, key_pem(HOST.key), 0o000, "[tls-file-unreadable]"),
            (cert, HOST.certificate.public_bytes(Encoding.DER), 0o600, ""),
            (key, key_pem(HOST.key), 0o600, "openssl x509 -inform DER"),
            (cert, certificates_pem(INTERMEDIATE.certificate, HOST.certificate), 0o600, "[chain-order]"),
        )
        for path, content, mode, reason in steps:
            put(path, content, mode)
            if reason:
                hang_up(router)
                state, why = router.health()
                self.assertEqual(("not_ready", True), (state, reason in why), (reason, why))
        self.assertFalse(self.is_open(port))
        put(cert, CHAIN)
        self.wait_for(router, "ready")
        connection = TLSConnection(port)
        self.addCleanup(connection.socket.close)
        self.assert_taken(connection)
        self.assertEqual(HOST.certificate.serial_number, connection.serial())
        self.assertNotIn("Traceback", router.log())

    def plain_user(self) -> tuple[str, ...]:
        """Return what runs a command that may not read everything; skip the test where root always may."""
        if os.geteuid() != 0:
            return ()
        if subprocess.run((tool(PLAIN_USER[0]), *PLAIN_USER[1:], "true"), check=False).returncode:
            raise SkipTest("root may read everything here, and can't give that up")
        return PLAIN_USER


class WorkerTests(RouterCase):
    """
    The same with two workers.
    """

    def test_gate(self) -> None:
        """Connectors are on all workers, change with the file, and outlive a closed gate, on new workers too."""
        one, two = free_ports(2)
        router = self.router("--workers", "2")
        key, cert = with_key(router)
        steps = [{"set": {"field": "meta.large", "value": 10**30}}, {"probe": "all"}]
        running = https("runs", one, key, cert, paths=["/in"], preprocessing={"classify": True, "steps": steps})
        router.write(running)
        router.start()
        self.connect_to_each(router, one)
        before = router.reloads()
        plain = rule("plain", two, "/in")
        router.write(running, plain)
        router.wait_for_reload(before, "the rules are seen")
        connections = [*self.connect_to_each(router, one).values(), self.connect(two)]
        load = Load(two, senders=4).start()
        router.take(running, plain, rule("more", free_ports(1)[0]))
        missing = router.path("missing.pem")
        before = router.reloads()
        router.write(https("new", free_ports(1)[0], missing, missing), running, plain | {"paths": ["/other"]})
        router.wait_for_reload(before, "the rules are seen")
        self.wait_for(router, "degraded", f'"{missing}" does not exist')
        os.rename(key, f"{key}.away")
        wait_until(lambda: f'"{key}" does not exist' in router.health()[1], "the other key has gone, too")
        for connection in connections:
            self.assert_taken(connection)
        acknowledged = load.stop()
        self.assertEqual(([], []), (load.refused, load.broken))
        self.assertEqual(set(), set(acknowledged) - {body for body in router.bodies() if isinstance(body, str)})
        # One that begins anew has the key as all have it, though it is in no file.
        killed, _ = workers(router)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: "another one follows" in router.log(), "another worker is begun")
        wait_until(lambda: "not up" not in router.health()[1], "another worker is up")
        for port in (one, two):
            self.assertNotIn(killed, self.connect_to_each(router, port))
        self.assertEqual(1, metrics(router)["webhookrx_router_blocked"])
        os.rename(f"{key}.away", key)
        put(missing, key_pem(OTHER.key) + certificates_pem(OTHER.certificate, INTERMEDIATE.certificate))
        self.wait_for(router, "ready")
        self.connect_to_each(router, one)
        self.assertEqual(404, self.said(self.connect(two)).status)
        names = {message["meta"]["connector"]["name"]: message["meta"].get("large") for message in router.messages()}
        self.assertEqual({"edge-1-runs-runs": 10**30, "edge-1-plain-plain": None}, names)
        self.assertNotIn("Traceback", router.log())

    def connect_to_each(self, router: Router, port: int) -> dict[int, Connection]:
        """Return a connection with each worker, which has been answered once."""
        found: dict[int, Connection] = {}
        deadline = time.monotonic() + PATIENCE
        while set(found) < set(workers(router)):
            self.assertLess(time.monotonic(), deadline, "one worker has all connections")
            connection = self.open(port)
            found.setdefault(self.server_of(router, connection), connection)
        return found

    def server_of(self, router: Router, connection: Connection) -> int:
        """Return the worker that has the other end of a connection, once it has answered there."""
        self.assert_taken(connection)
        # The one that is busy now is not the next to accept.
        time.sleep(0.005)
        (pid,) = [pid for pid in workers(router) if serves(pid, connection)]
        return pid

    def open(self, port: int) -> Connection:
        """Open a connection that is closed after the test, with TLS where it is spoken."""
        try:
            connection: Connection = TLSConnection(port)
        except ssl.SSLError:
            return self.connect(port)
        self.addCleanup(connection.socket.close)
        return connection
