"""
Answers of the bulk API of Elasticsearch and OpenSearch, and what each means for a document.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.observers.http_stores.fake_elasticsearch import FakeResponse, whole_error
from tests.observers.http_stores.played_http_store import answer, broken, cut
from webhookrx.observers.http_stores.exchange import HTTPAnswer


class Items(NamedTuple):
    """An answer 200 with this item for each document, changed as told."""

    item: dict[str, Any]
    change: Callable[[list[Any]], Any] = lambda items: {"items": items}

    def of(self, count: int) -> HTTPAnswer:
        """Make it for a number of documents."""
        return answer(200, self.change([{"create": self.item}] * count))


def failed(status: int, kind: str, reason: str = "why", **cause: str) -> Items:
    """Return an answer whose items have an error."""
    caused = {"caused_by": cause} if cause else {}
    return Items({"status": status, "error": {"type": kind, "reason": reason, **caused}})


def as_answer(response: FakeResponse) -> HTTPAnswer:
    """Return a response of the fake as an answer."""
    return answer(*response)


CREATED = {"status": 201}

STORED = (
    ("201", Items(CREATED)),
    ("200", Items({"status": 200})),
    ("409 of create", failed(409, "version_conflict_engine_exception")),
)
REJECTED: tuple[tuple[str, Any], ...] = (
    ("document_parsing_exception", failed(400, "document_parsing_exception", "[1:5] failed to parse")),
    ("mapper_parsing_exception", failed(400, "mapper_parsing_exception", "failed to parse")),
    ("strict_dynamic_mapping_exception", failed(400, "strict_dynamic_mapping_exception")),
    ("x_content_parse_exception", failed(400, "x_content_parse_exception")),
    (
        "immense term",
        failed(
            400,
            "illegal_argument_exception",
            'Document contains at least one immense term in field="ex" (whose UTF8 encoding is longer than …',
            type="max_bytes_length_exceeded_exception",
        ),
    ),
    (
        "total fields",
        failed(400, "illegal_argument_exception", "Limit of total fields [1000] in index [logs] has been exceeded"),
    ),
    (
        "type of a field",
        failed(400, "illegal_argument_exception", "mapper [n] cannot be changed from type [long] to [text]"),
    ),
    ("413 alone", answer(413, b"")),
    ("400 of a document in a pipeline", as_answer(whole_error(400, "x_content_parse_exception", "[1:2] Duplicate"))),
)
LATER: tuple[tuple[str, Any], ...] = (
    ("write queue full", failed(429, "es_rejected_execution_exception")),
    ("write queue of OpenSearch full", failed(429, "rejected_execution_exception")),
    ("circuit breaker", failed(429, "circuit_breaking_exception")),
    ("flood stage", failed(429, "cluster_block_exception", "index [logs] blocked by: [TOO_MANY_REQUESTS/12/disk …]")),
    ("read-only", failed(403, "cluster_block_exception")),
    ("no right", failed(403, "security_exception")),
    ("no such index", failed(404, "index_not_found_exception", "no such index [logs]")),
    ("too few copies", failed(503, "unavailable_shards_exception")),
    ("500", failed(500, "null_pointer_exception")),
    ("no such pipeline", failed(400, "illegal_argument_exception", "pipeline with id [p] does not exist")),
    ("processor", failed(400, "illegal_argument_exception", "field [x] not present as part of path [x]")),
    ("index name", failed(400, "invalid_index_name_exception", "Invalid index name [X], must be lowercase")),
    ("closed", failed(400, "index_closed_exception")),
    ("too many shards", failed(400, "validation_exception", "this action would add [2] total shards, but …")),
    ("no write index", failed(400, "illegal_argument_exception", "no write index is defined for alias [logs]")),
    ("wrong template", failed(400, "mapper_parsing_exception", "Failed to parse mapping: unknown parameter [x]")),
    ("409 of another kind", failed(409, "resource_already_exists_exception")),
    ("unknown 400", failed(400, "exception_of_tomorrow")),
    ("no error told", Items({"status": 400})),
    ("429", as_answer(whole_error(429, "es_rejected_execution_exception", "rejected execution of coordinating …"))),
    ("429 with Retry-After", answer(429, b"", retry_after="5")),
    ("401", as_answer(whole_error(401, "security_exception", "missing authentication credentials"))),
    ("403", as_answer(whole_error(403, "security_exception", "action [indices:data/write/bulk] is unauthorized"))),
    ("404", as_answer(whole_error(404, "index_not_found_exception", "no such index [logs]"))),
    ("400 of a pipeline", as_answer(whole_error(400, "illegal_argument_exception", "pipeline with id [p] …"))),
    ("400 of the request", as_answer(whole_error(400, "action_request_validation_exception", "Validation Failed: 1"))),
    ("400 of a proxy", answer(400, b"<html>The plain HTTP request was sent to HTTPS port</html>")),
    ("302", answer(302, b"")),
    ("204", answer(204)),
    ("500 whole", as_answer(whole_error(500, "null_pointer_exception", "…"))),
    ("502", answer(502, b"<html>Bad Gateway</html>")),
    ("504", answer(504, b"<html>Gateway Time-out</html>")),
    ("503", as_answer(whole_error(503, "cluster_block_exception", "blocked by: [SERVICE_UNAVAILABLE/1/state …]"))),
)
NONSENSE: tuple[Any, ...] = (
    Items(CREATED, lambda items: {"errors": True, "items": items}),
    Items(CREATED, lambda items: {"items": items[1:]}),
    Items(CREATED, lambda items: {"items": [*items, *items]}),
    Items(CREATED, lambda items: {"items": []}),
    Items(CREATED, lambda items: {"errors": False}),
    Items(CREATED, lambda items: items),
    Items(CREATED, lambda items: {"items": [{"index": item["create"]} for item in items]}),
    Items(CREATED, lambda items: {"items": [{"create": {"status": "201"}}] * len(items)}),
    Items(CREATED, lambda items: {"items": [{"create": {}}] * len(items)}),
    failed(201, "document_parsing_exception"),
    answer(200, b""),
    answer(200, b"{}"),
    answer(200, b"<html>Welcome</html>"),
    answer(200, b'{"items":[{"create":{"status":201}}'),
    answer(200, b"[" * 100_000),
    answer(200, b"\xff\xfe"),
    cut(answer(200, {"items": [{"create": CREATED}]})),
    broken(answer(200, {"items": [{"create": CREATED}]})),
)
