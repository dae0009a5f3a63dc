"""
Tests for L{webhookrx.config.reachable}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.endpoints import parse_endpoint
from webhookrx.config.machine import HostFacts
from webhookrx.config.reachable import reachable_at
from webhookrx.management.scrape_targets import may_be_scraped

HOST = HostFacts("fra-1", "fra-1.example.com", ("2001:db8::5", "192.0.2.5"), "linux", "x86_64", "26.11")


class ReachableTests(SynchronousTestCase):
    """Where others reach an endpoint."""

    def test_addresses(self) -> None:
        """It is the address that the endpoint is bound to, or one of the machine; for this machine alone it is none."""
        for text, expected in (
            ("tcp:9090:interface=198.51.100.7", "198.51.100.7:9090"),
            ("tcp6:9090:interface=2001\\:db8\\:\\:7", "[2001:db8::7]:9090"),
            ("tcp:9090", "192.0.2.5:9090"),
            ("tcp:9090:interface=0.0.0.0", "192.0.2.5:9090"),
            ("tcp6:9090", "[2001:db8::5]:9090"),
            ("tcp:9090:interface=127.0.0.2", ""),
            ("tcp6:9090:interface=\\:\\:1", ""),
            ("tcp:9090:interface=169.254.1.1", ""),
            ("tcp:0", ""),
            ("unix:@admin", ""),
            ("systemd:domain=INET:index=0", ""),
        ):
            with self.subTest(text):
                found = reachable_at(parse_endpoint(text).socket, HOST)
                self.assertEqual(expected, found)
                self.assertEqual(bool(expected), may_be_scraped(found))

    def test_name(self) -> None:
        """A machine without a fitting address is known by its name with the domain, if it has one."""
        self.assertEqual("fra-1.example.com:9090", reachable_at("tcp:9090", HOST._replace(ip=("2001:db8::5",))))
        self.assertEqual("", reachable_at("tcp:9090", HOST._replace(ip=(), fqdn="")))

    def test_socket_without_directory(self) -> None:
        """A socket whose directory has gone since is no mistake here."""
        self.assertEqual("", reachable_at("unix:/none/of/these/admin:mode=666", HOST))
