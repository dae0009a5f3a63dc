"""
A restart of the real program as a router, while something of its rules is not as it should be.
"""

from __future__ import annotations

import json
import os
import stat

from tests.system.receiver import Receiver, post, wait_until
from tests.system.routers import Router, RouterCase, TLSConnection, free_ports, https, rule, with_key
from tests.system.workers import metrics


class RestartTests(RouterCase):
    """
    Rules whose files are gone when the router is started again.
    """

    def restarted(self, before: Receiver, *options: str) -> Router:
        """Stop a router and start another one in its directory."""
        self.assertEqual(0, before.stop())
        router = Router(*options, directory=before.directory)
        self.addCleanup(router.kill)
        return router.start()

    def kept(self, router: Receiver) -> str:
        """Return the path of what is kept, once it is there."""
        path = router.path("state/connectors.json")
        wait_until(lambda: os.path.exists(path), f"it is kept; the log: {router.log()}")
        return path

    def text(self, path: str) -> str:
        """Return what is in a file."""
        with open(path) as file:
            return file.read()

    def test_missing_certificate(self) -> None:
        """Five connectors of plain HTTP are open though the certificate of a sixth is gone; it follows by itself."""
        self.check_missing_certificate("--state-dir", "state")

    def test_workers(self) -> None:
        """The same with two workers."""
        self.check_missing_certificate("--state-dir", "state", "--workers", "2")

    def check_missing_certificate(self, *options: str) -> None:
        """Restart without a certificate; put it back."""
        *plain, secure = free_ports(6)
        router = self.router(*options)
        key, cert = with_key(router)
        rules = [*(rule(f"p{port}", port, "/in") for port in plain), https("tls", secure, key, cert, paths=["/in"])]
        router.write(*rules)
        router.start()
        path = self.kept(router)
        self.assertEqual(0o600, stat.S_IMODE(os.stat(path).st_mode))
        content = self.text(path)
        self.assertEqual(("edge-1", 6), (json.loads(content)["router"], len(json.loads(content)["rules"])))
        self.assertNotIn("PRIVATE KEY", content)
        os.rename(cert, f"{cert}.away")
        router.write(*rules[1:], rule("new", free_ports(1)[0]))
        again = self.restarted(router, *options)
        self.wait_for(again, "degraded", 'Connector "edge-1-tls-tls" is closed')
        self.assertIn("[tls-file-missing]", again.health()[1])
        self.assertEqual(1, metrics(again)["webhookrx_closed_connectors"])
        for port in plain:
            self.assertEqual(200, self.ask(port, post(b"{}", "/in")).status)
        self.assertFalse(self.is_open(secure))
        os.rename(f"{cert}.away", cert)
        self.wait_for(again, "ready")
        self.assert_taken(TLSConnection(secure))
        self.assertFalse(self.is_open(plain[0]))
        wait_until(lambda: '"new"' in self.text(path), "the new set is kept")
        self.assertNotIn("Traceback", again.log())

    def test_bad_rules(self) -> None:
        """With rules that can't be read the router does what it did, says so, and takes them once they are mended."""
        one, two = free_ports(2)
        options = ("--state-dir", "state")
        router = self.router(*options)
        router.write(rule("one", one, "/in"))
        router.start()
        self.kept(router)
        router.write_text("connector_rules: [")
        again = self.restarted(router, *options)
        self.wait_for(again, "degraded", "The rules file is not in use: ")
        self.assertEqual(200, self.ask(one, post(b"{}", "/in")).status)
        self.assertEqual(1, metrics(again)["webhookrx_rules_not_taken"])
        again.write(rule("two", two, "/in"))
        self.wait_for(again, "ready")
        self.assertEqual((False, 200), (self.is_open(one), self.ask(two, post(b"{}", "/in")).status))

    def test_nothing_kept(self) -> None:
        """Without anything kept the connectors whose files are there are open, and stay as they are until all are."""
        one, two = free_ports(2)
        router = self.router()
        key, cert = with_key(router)
        os.rename(key, f"{key}.away")
        secure = https("tls", two, key, cert, paths=["/in"])
        router.write(rule("one", one, "/in"), secure)
        router.start()
        self.wait_for(router, "degraded", 'Connector "edge-1-tls-tls" is closed')
        self.assertEqual(200, self.ask(one, post(b"{}", "/in")).status)
        before = router.reloads()
        router.write(rule("one", one, "/other"), secure)
        router.wait_for_reload(before, "the rules are seen")
        self.assertEqual(200, self.ask(one, post(b"{}", "/in")).status)
        os.rename(f"{key}.away", key)
        self.wait_for(router, "ready")
        self.assertEqual(404, self.ask(one, post(b"{}", "/in")).status)
        self.assert_taken(TLSConnection(two))

    def test_not_kept(self) -> None:
        """A directory that can't be written is told and counted, and nothing else."""
        (port,) = free_ports(1)
        router = self.router("--state-dir", "/proc/self")
        router.write(rule("one", port, "/in"))
        router.start()
        wait_until(lambda: metrics(router)["webhookrx_state_writes_failed_total"] == 1, "it is counted")
        self.assertIn("connectors.json could not be kept in /proc/self", router.log())
        self.assertEqual(200, self.ask(port, post(b"{}", "/in")).status)
