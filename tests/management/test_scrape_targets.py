"""
Tests for L{webhookrx.management.scrape_targets}.
"""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.management.agent_protocol import RouterFacts
from webhookrx.management.scrape_targets import ScrapeTarget, may_be_scraped, scrape_target


class ScrapeTargetTests(SynchronousTestCase):
    """Routers as targets."""

    def test_labels(self) -> None:
        """A target has the names, facts and labels of its router."""
        facts = RouterFacts("fra-1", "fra-1.example.com", os="linux", arch="x86_64", version="1", admin="192.0.2.5:90")
        found = scrape_target("g", "edge-1", facts, {"site": "fra"})
        expected = {
            "__meta_webhookrx_router": "edge-1",
            "__meta_webhookrx_guid": "g",
            "__meta_webhookrx_hostname": "fra-1",
            "__meta_webhookrx_fqdn": "fra-1.example.com",
            "__meta_webhookrx_os": "linux",
            "__meta_webhookrx_arch": "x86_64",
            "__meta_webhookrx_version": "1",
            "__meta_webhookrx_form": "router",
            "__meta_webhookrx_label_site": "fra",
        }
        self.assertEqual(ScrapeTarget(("192.0.2.5:90",), expected), found)
        self.assertIsNone(scrape_target("g", "edge-1", RouterFacts(), {}))

    def test_one_name(self) -> None:
        """Of labels whose names become the same, that which needs no change counts, or else the last one."""
        facts = RouterFacts(admin="192.0.2.5:90")
        for labels, value in (
            ({"a.b": "1", "a_b": "2", "a-b": "3"}, "2"),
            ({"a.b": "1", "a-b": "3"}, "1"),
            ({"a b": "1", "a.b": "2"}, "2"),
        ):
            found = scrape_target("g", "n", facts, labels)
            assert found is not None
            self.assertEqual(value, found.labels["__meta_webhookrx_label_a_b"])

    @given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5))
    def test_any_labels(self, labels: dict[str, str]) -> None:
        """Whatever labels are called, Prometheus takes their names, and they hide nothing else."""
        found = scrape_target("g", "n", RouterFacts(admin="192.0.2.5:90"), labels)
        assert found is not None
        for name in found.labels:
            self.assertTrue(re.fullmatch("__meta_webhookrx_[a-zA-Z0-9_]*", name, re.ASCII))
        self.assertEqual(("n", "g"), tuple(found.labels[f"__meta_webhookrx_{each}"] for each in ("router", "guid")))
        self.assertLessEqual(set(found.labels.values()), {"n", "g", "", "router", *labels.values()})

    def test_addresses(self) -> None:
        """Other machines may be asked; nothing of the machine of Prometheus, no link-local address, and no nonsense."""
        for address, may in (
            ("192.0.2.5:9090", True),
            ("10.0.0.1:1", True),
            ("[2001:db8::5]:65535", True),
            ("fra-1.example.com:9090", True),
            ("127.0.0.1:9090", False),
            ("127.1:9090", False),
            ("2130706433:9090", False),
            ("0x7f.0.0.1:9090", False),
            ("0.0.0.0:9090", False),
            ("169.254.169.254:80", False),
            ("224.0.0.1:80", False),
            ("[::1]:9090", False),
            ("[::]:9090", False),
            ("[fe80::1]:9090", False),
            ("[ff02::1]:9090", False),
            ("[::ffff:127.0.0.1]:9090", False),
            ("[::ffff:169.254.169.254]:80", False),
            ("2001:db8::5:9090", False),
            ("[192.0.2.5]:9090", False),
            ("[example.com]:9090", False),
            ("localhost:9090", False),
            ("a.localhost:9090", False),
            ("localhost.localdomain:9090", False),
            ("fra-1:9090", False),
            ("192.0.2.5", False),
            ("192.0.2.5:0", False),
            ("192.0.2.5:65536", False),
            ("192.0.2.5:90\n", False),
            ("192.0.2.5:90/x?y", False),
            ("user@192.0.2.5:90", False),
            ("-a.example.com:90", False),
            ("exämple.com:90", False),
            ("192.0.2.5:٩٠", False),
            ("", False),
        ):
            with self.subTest(address):
                self.assertEqual(may, may_be_scraped(address))
