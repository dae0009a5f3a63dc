"""
Played HTTP stores as places: servers that are killed, with what they hold in the end.
"""

from __future__ import annotations

import json
from typing import ClassVar

from tests.system.http_stores import HTTP_STORE_KINDS
from tests.system.servers.played_http import PlayedHTTPServer
from tests.system.store_places import Copy, KilledPlace


class PlayedHTTPPlace(KilledPlace):
    """
    A played store.

    @cvar kind: which, by its key in C{HTTP_STORE_KINDS}.
    """

    kind: ClassVar[str]
    server: PlayedHTTPServer

    def start(self) -> None:
        """Start it."""
        port = self.serve(PlayedHTTPServer, self.kind)
        self.spec = HTTP_STORE_KINDS[self.kind].spec(port, retry_for="5s")

    def copies(self) -> list[Copy]:
        """Read what it has noted."""
        return [Copy(own_id, text.split(" ", 1)[0]) for own_id, text in map(self.copy, self.server.rows())]

    def copy(self, row: list[str]) -> tuple[str, str]:
        """Return id and text."""
        return row[0], row[1]


class ElasticsearchPlace(PlayedHTTPPlace):
    """An index of each day."""

    name = "Elasticsearch (played)"
    kind = "elasticsearch"

    def copy(self, row: list[str]) -> tuple[str, str]:
        """Return id and text."""
        return row[1], row[2]


class LokiPlace(PlayedHTTPPlace):
    """All streams."""

    name = "Loki (played)"
    kind = "loki"

    def copy(self, row: list[str]) -> tuple[str, str]:
        """Return id and text."""
        line = json.loads(row[2])
        return line["RCPTID"], line["MESSAGE"]


class OTLPPlace(PlayedHTTPPlace):
    """A collector, which knows no id."""

    name = "OTLP (played)"
    kind = "otlp"
    once = False


class OTLPProtobufPlace(OTLPPlace):
    """The same by protobuf."""

    name = "OTLP by protobuf (played)"
    kind = "otlp-protobuf"
