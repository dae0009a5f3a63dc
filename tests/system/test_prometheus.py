"""
A real Prometheus that finds the routers of a console.
"""

from __future__ import annotations

import json
import ssl
import urllib.request
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from twisted.trial.unittest import SynchronousTestCase

from tests.console.routers.test_authority import request_of
from tests.system.console_process import ConsoleProcess
from tests.system.receiver import wait_until
from tests.system.servers.prometheus import Prometheus
from webhookrx.management.agent_body import write_body
from webhookrx.management.agent_protocol import EnrolRequest, RouterFacts


class PrometheusTests(SynchronousTestCase):
    """C{/prometheus/sd}."""

    def setUp(self) -> None:
        """Start a console with one router, which has told of its endpoint."""
        if reason := Prometheus.missing():
            self.skipTest(reason)
        self.console = ConsoleProcess()
        self.addCleanup(self.console.stop)
        admin = self.console.token()
        asked = {"approve": "auto", "labels": {"site": "fra"}}
        status, _, content = self.console.call("POST", "/enrolments", asked, authorization=f"Bearer {admin}")
        self.assertEqual(201, status, content)
        token = json.loads(content)["token"]
        facts = RouterFacts(hostname="fra-1", admin="fra-1.example.com:9090")
        csr = request_of(ec.generate_private_key(ec.SECP256R1()))
        body = write_body(EnrolRequest(token=token, csr=csr, name="fra-1", facts=facts))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        url = f"https://127.0.0.1:{self.console.routers}/agent/v1/enrol"
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=60, context=context) as answer:
            self.assertEqual(200, answer.status)

    def prometheus(self, token: str) -> Prometheus:
        """Start it with a token of the console. It asks the console in place of the router, which is not there."""
        job = {
            "job_name": "webhookrx",
            "http_sd_configs": [
                {
                    "url": f"http://127.0.0.1:{self.console.port}/api/v1/prometheus/sd?query=label.site%20%3D%20fra",
                    # Prometheus 2.42 sends no type here by itself.
                    "authorization": {"type": "Bearer", "credentials": token},
                    "refresh_interval": "1s",
                }
            ],
            "relabel_configs": [
                {"source_labels": ["__meta_webhookrx_router"], "target_label": "instance"},
                {"source_labels": ["__meta_webhookrx_label_site"], "target_label": "site"},
                {"source_labels": ["__address__"], "target_label": "endpoint"},
                {"target_label": "__address__", "replacement": f"127.0.0.1:{self.console.admin}"},
            ],
        }
        server = Prometheus(job)
        self.addCleanup(server.clean_up)
        return server.start()

    def test_found(self) -> None:
        """With the token of a viewer it finds the router with its labels, and scrapes it."""
        server = self.prometheus(self.console.token("viewer", name="prometheus"))
        found: list[dict[str, Any]] = []

        def is_up() -> bool:
            found[:] = server.targets()
            return bool(found) and found[0]["health"] == "up"

        wait_until(is_up, f"a target is up; its log: {server.log()}")
        (target,) = found
        expected = {"instance": "fra-1", "site": "fra", "endpoint": "fra-1.example.com:9090", "job": "webhookrx"}
        self.assertEqual(expected, target["labels"])
        self.assertEqual("fra-1", target["discoveredLabels"]["__meta_webhookrx_hostname"])

    def test_no_token(self) -> None:
        """Without a token that is good it finds nothing."""
        server = self.prometheus("wrxp_" + "a" * 43)
        wait_until(lambda: "401" in server.log(), "it was refused")
        self.assertEqual([], server.targets())
