"""
Loki, played from its documentation and the words of its validation: the push API, which takes what is good in a request
and answers 400 for the rest.

Sources: U{https://grafana.com/docs/loki/latest/reference/loki-http-api/#ingest-logs} and
U{https://grafana.com/docs/loki/latest/operations/request-validation-rate-limits/}.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from typing import NamedTuple

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")

TOO_OLD = "entry for stream '{}' has timestamp too old: 2026-01-01T00:00:00Z, oldest acceptable timestamp is: …"
TOO_LONG = "Max entry size '262144' bytes exceeded for stream '{}' while adding an entry with length '300000' bytes"
TOO_FAR_BEHIND = (
    "entry with timestamp 2026-01-01 00:00:00 +0000 UTC ignored, reason: 'entry too far behind, entry timestamp is: "
    "2026-01-01T00:00:00Z, oldest acceptable timestamp is: 2026-01-02T00:00:00Z',\n"
    "user 'fake', total ignored: {} out of {} for stream: {{}}"
)


class LokiEntry(NamedTuple):
    """
    An entry that is stored. Those that are equal in all but metadata are one.

    @ivar labels: names and values, sorted.
    """

    labels: tuple[tuple[str, str], ...]
    moment: str
    line: str
    metadata: tuple[tuple[str, str], ...] = ()


class FakeLoki:
    """
    Keeps entries in memory.

    @ivar entries: in the order in which they came.
    @ivar judge: returns the words of a 400 for entries that are not taken; empty to take it.
    @ivar is_limited: the tenant has sent too much: 429.
    @ivar allows_metadata: as C{allow_structured_metadata}.
    """

    def __init__(self) -> None:
        self.entries: list[LokiEntry] = []
        self._known: set[LokiEntry] = set()
        self.judge: Callable[[LokiEntry], str] = lambda entry: ""
        self.is_limited = False
        self.allows_metadata = True
        self.tenants: list[str | None] = []
        self.requests: list[dict[str, list[dict[str, object]]]] = []

    def know_entries(self) -> None:
        """Know the entries that are there as those that it has."""
        self._known = {entry._replace(metadata=()) for entry in self.entries}

    def handle(self, target: str, fields: dict[str, str], content: bytes) -> tuple[int, bytes]:
        """Answer a POST: a status and a body."""
        self.tenants.append(fields.get("x-scope-orgid"))
        if target != "/loki/api/v1/push":
            return 404, b"404 page not found\n"
        if fields["content-type"] != "application/json":
            return 415, b""
        if fields.get("content-encoding") == "gzip":
            content = gzip.decompress(content)
        request = json.loads(content)
        self.requests.append(request)
        entries = [entry for stream in request["streams"] for entry in _entries(stream)]
        if self.is_limited:
            return 429, b"Ingestion rate limit exceeded for user fake (limit: 4194304 bytes/sec) while attempting"
        problems = [problem for entry in entries if (problem := self._take(entry))]
        return (400, "\n".join(problems[-1:]).encode()) if problems else (204, b"")

    def _take(self, entry: LokiEntry) -> str:
        if not entry.labels:
            return "error at least one label pair is required per stream"
        if len(entry.labels) > 15:
            return f"entry for stream '{{}}' has {len(entry.labels)} label names; limit 15"
        if any(len(value.encode()) > 2048 for _, value in entry.labels):
            return "stream '{}' has label value too long: 'x'"
        if entry.metadata and not self.allows_metadata:
            return "stream '{}' includes structured metadata, but this feature is disallowed. Please see …"
        problem = self.judge(entry)
        if not problem and entry._replace(metadata=()) not in self._known:
            self._known.add(entry._replace(metadata=()))
            self.entries.append(entry)
        return problem


def _entries(stream: dict[str, object]) -> list[LokiEntry]:
    assert {*stream} == {"stream", "values"}
    labels, values = stream["stream"], stream["values"]
    assert isinstance(labels, dict) and isinstance(values, list)
    assert all(_NAME.fullmatch(name) and isinstance(value, str) and value for name, value in labels.items())
    entries = []
    for moment, line, *more in values:
        assert isinstance(moment, str) and moment.isdecimal() and isinstance(line, str) and len(more) < 2
        metadata = more[0] if more else {}
        assert all(isinstance(value, str) for value in metadata.values())
        entries.append(LokiEntry(tuple(sorted(labels.items())), moment, line, tuple(sorted(metadata.items()))))
    return entries
