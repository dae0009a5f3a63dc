"""
Tests for L{webhookrx.console.routers.discovery_routes}.
"""

from __future__ import annotations

from types import SimpleNamespace

from tests.console.routers import test_port
from webhookrx.console.api.principal import Principal
from webhookrx.console.api.route import ApiCall
from webhookrx.console.routers.discovery_routes import scrape_targets
from webhookrx.console.routers.routes import RouterQuery
from webhookrx.management.scrape_targets import ScrapeTarget


class DiscoveryTests(test_port.PortCase):
    def found(self, query: str = "") -> list[ScrapeTarget]:
        """Call the route."""
        console = SimpleNamespace(reactor=self.clock, fleet=self.fleet)
        call = ApiCall(console, Principal("mara", "viewer"), query=RouterQuery(query))
        targets: list[ScrapeTarget] = self.done(scrape_targets(call))
        return targets

    def test_targets(self) -> None:
        """Approved routers with an endpoint within reach are found, by name and by queries, with all their labels."""
        self.router("fra-1", admin="192.0.2.5:9090", labels={"site": "lab", "rack": "7"})
        self.router("ber-1", admin="ber-1.example.com:9090")
        self.router("ams-1", admin="")
        self.router("rtm-1", admin="127.0.0.1:9090")
        self.router("new-1", "manual", admin="192.0.2.6:9090")
        fra = self.known_by_name("fra-1")
        self.done(self.fleet.change(test_port.MARA, fra, labels={"site": "fra"}))
        found = self.found()
        self.assertEqual([("ber-1.example.com:9090",), ("192.0.2.5:9090",)], [each.targets for each in found])
        labels = found[1].labels
        wanted = ("router", "guid", "label_site", "label_rack")
        self.assertEqual(["fra-1", fra.guid, "fra", "7"], [labels[f"__meta_webhookrx_{name}"] for name in wanted])
        self.assertEqual(found[1:], self.found("label.site = fra"))

    def test_changes(self) -> None:
        """A router that is away stays a target, which is to be seen; one that is disabled is none."""
        self.router("fra-1", admin="192.0.2.5:9090")
        router = self.known_by_name("fra-1")
        router.seen_at -= 86_400
        self.assertTrue(router.is_away(self.fleet.clock()))
        self.assertEqual(1, len(self.found()))
        self.done(self.fleet.change(test_port.MARA, router, state="disabled"))
        self.assertEqual([], self.found())
