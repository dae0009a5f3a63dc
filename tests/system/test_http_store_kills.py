"""
Played HTTP stores that are killed while messages come, see L{tests.system.kill_case}.
"""

from __future__ import annotations

from tests.system.http_store_places import ElasticsearchPlace, LokiPlace, OTLPPlace, OTLPProtobufPlace
from tests.system.kill_case import KillCase


class HTTPStoreKillTests(KillCase):
    """Nothing that got a 200 is missing; no real server of these is at hand."""

    def test_elasticsearch(self) -> None:
        """Elasticsearch, which keeps a document once that comes twice."""
        self.holds(ElasticsearchPlace, spool=False)

    def test_elasticsearch_spool(self) -> None:
        """Elasticsearch behind a spool."""
        self.holds(ElasticsearchPlace, spool=True)

    def test_loki(self) -> None:
        """Loki, for which an entry that comes twice is one."""
        self.holds(LokiPlace, spool=False)

    def test_loki_spool(self) -> None:
        """Loki behind a spool."""
        self.holds(LokiPlace, spool=True)

    def test_otlp(self) -> None:
        """A collector, which may have records twice."""
        self.holds(OTLPPlace, spool=False)

    def test_otlp_spool(self) -> None:
        """A collector behind a spool, by protobuf."""
        self.holds(OTLPProtobufPlace, spool=True)
