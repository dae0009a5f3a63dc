"""
Previews of rules at a whole console with a real router: its files, and a saved rule that waits for them.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.system.console_process import ConsoleProcess
from tests.system.receiver import wait_until
from tests.system.servers.process import free_port
from tests.system.test_console_router import ConsoleRouter


class ConsolePreviewTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.console = ConsoleProcess()
        self.addCleanup(self.console.stop)
        self.authorization = f"Bearer {self.console.token()}"
        here = tempfile.mkdtemp(prefix="webhookrx-")
        with open(os.path.join(here, "token"), "w", encoding="ascii") as file:
            file.write(self.call("POST", "/enrolments", {"approve": "auto"})["token"])
        self.keys = os.path.join(here, "keys")
        os.mkdir(self.keys)
        self.router = ConsoleRouter(here, self.console.routers, self.keys)
        self.addCleanup(self.router.clean_up)
        self.router.start()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return what a call answers."""
        status, _, content = self.console.call(method, path, body, authorization=self.authorization)
        self.assertLess(status, 300, content)
        return json.loads(content)

    def shown(self) -> dict[str, Any]:
        """Return the router as the API shows it; nothing before it has reported."""
        routers = self.call("GET", "/routers")["routers"]
        return dict(routers[0]) if routers and routers[0]["health"] else {}

    def test_previewed_and_saved(self) -> None:
        """Files are seen where keys may be and nowhere else; a rule that is saved then waits for them."""
        wait_until(self.shown, f"the router has reported: {self.router.log()}")
        key, cert, port = f"{self.keys}/key.pem", f"{self.keys}/cert.pem", free_port()
        rule = {"name": "tls", "protocol": "HTTPS", "port": port, "key_file": key, "cert_file": cert}
        found = self.call("POST", "/rules:preview", {"rule": rule})
        self.assertEqual((found["matched"], found["added"], found["findings"]), (1, 1, []))
        with open(key, "w", encoding="ascii") as file:
            file.write("no key\n")
        found = self.call("POST", "/rules:files", {"rule": rule})
        self.assertEqual(found["counts"], {key: {"present": 1}, cert: {"missing": 1}})
        self.assertEqual([each["paths"] for each in found["gates"]], [[cert]])
        elsewhere = rule | {"key_file": "/etc/passwd", "cert_file": "/etc/none"}
        found = self.call("POST", "/rules:files", {"rule": elsewhere})
        self.assertEqual(found["counts"], {"/etc/passwd": {"not_allowed": 1}, "/etc/none": {"not_allowed": 1}})
        self.call("POST", "/rules", rule)
        wait_until(lambda: self.shown().get("status") == "BLOCKED", f"it waits for files: {self.router.log()}")
        found = self.call("POST", "/rules:preview", {"rule": rule, "replaces": "tls"})
        self.assertTrue(found["gates"][0]["closed"])
