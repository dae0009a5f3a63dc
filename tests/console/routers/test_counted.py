"""
Tests for L{webhookrx.console.routers.counted}.
"""

from __future__ import annotations

from tests.console.routers.test_authority import NOW
from tests.console.routers.test_port import MARA, PortCase
from webhookrx.console.counts.console_counts import ConsoleCounts
from webhookrx.console.counts.count_tables import read_series
from webhookrx.console.routers.counted import RouterCounting
from webhookrx.console.rules.rulebook import Rulebook
from webhookrx.management.agent_protocol import ConnectorState, CountsReport, SeriesCounts

SECOND = 1_000_000_000
RULE = "{name: hooks, protocol: HTTP, port: 8080, labels: {vendor: acme, team: web}}"


class RouterCountingTests(PortCase):
    def setUp(self) -> None:
        super().setUp()
        rulebook = Rulebook(self.store)
        self.done(rulebook.save(RULE, MARA, name=None, generation=None, as_written=False))
        self.counts = ConsoleCounts(self.store, lambda: self.wall, self.clock.seconds)
        self.done(self.counts.start())
        self.resource._on_counts = RouterCounting(self.counts, rulebook, self.clock)
        self.reporting = self.router("fra-1", labels={"site": "fra"})

    def told(self, name: str, *states: ConnectorState) -> dict[str, object]:
        """Have messages of a connector reported, and return the series that has them, as queries see it."""
        at = int(NOW.timestamp()) * SECOND
        series = (SeriesCounts(name=name, messages=7, bytes=70, last=NOW.timestamp()),)
        counts = CountsReport(begun=at - 30 * SECOND, since=at - 30 * SECOND, until=at, series=series)
        self.assertEqual(self.reporting.report(connectors=states, counts=counts).responseCode, 204)
        self.assertTrue(self.done(self.counts.write()))
        (series,) = self.done(self.store.read(lambda db: list(read_series(db, of_routers=True))))
        labels = series.labels
        record: dict[str, object] = labels.record
        return record

    def test_labels_of_a_rule(self) -> None:
        """Counts are found by the labels of the rule, over the usual ones, and by those of the router."""
        record = self.told("fra-1-hooks", ConnectorState(name="fra-1-hooks", rule="hooks", port=8080))
        connector = {
            "type": "webhook",
            "name": "fra-1-hooks",
            "port": 8080,
            "labels": {"product": "webhook", "vendor": "acme", "team": "web"},
        }
        self.assertEqual((record["connector"], record["rule"]), (connector, "hooks"))
        self.assertEqual((record["router"], record["label"]), ("fra-1", {"site": "fra"}))

    def test_no_rule(self) -> None:
        """A source of the router's own configuration, or a rule that is gone, has no labels but the router's."""
        record = self.told("own")
        self.assertEqual(record["connector"], {"type": "webhook", "name": "own"})
        self.assertEqual(record["label"], {"site": "fra"})
