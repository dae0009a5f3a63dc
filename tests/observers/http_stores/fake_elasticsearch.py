"""
Elasticsearch and OpenSearch, played from their documentation: the bulk API, and what becomes of each document.

Sources: the reference of the bulk API (U{https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-bulk}),
C{filter_path} (U{https://www.elastic.co/docs/reference/elasticsearch/rest-apis/common-options}), which is not applied
to errors of a whole request, and answers that people have quoted in the threads that the tests name.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

#: Lower case, none of these characters, not too long (U{https://www.elastic.co/docs/api/doc/elasticsearch}: create).
_INDEX = re.compile(r"(?![-_+.])[^A-Z\\/*?\"<>| ,#:]{1,255}")


class FakeResponse(NamedTuple):
    """A status and what becomes the JSON of its body."""

    status: int
    body: Any


class BulkError(NamedTuple):
    """Why a document is not created."""

    status: int
    type: str
    reason: str
    caused_by: dict[str, str] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as in an item, with members that nobody needs."""
        more = {} if self.caused_by is None else {"caused_by": self.caused_by}
        return {"type": self.type, "reason": self.reason, "index_uuid": "aAsFqTI0Tc2W0LCWgPNrOA", "shard": "0", **more}


#: Judges a document: its index, its id and its members; None to create it.
JudgeDocument = Callable[[str, str, dict[str, Any]], BulkError | None]

PARSING = BulkError(
    400,
    "document_parsing_exception",
    "[1:57] failed to parse field [n] of type [long] in document with id '1'. Preview of field's value: 'abc'",
    {"type": "illegal_argument_exception", "reason": 'For input string: "abc"'},
)
QUEUE_FULL = BulkError(
    429,
    "es_rejected_execution_exception",
    "rejected execution of primary operation [coordinating_and_primary_bytes=0, max_coordinating_and_primary_bytes=1]",
)


class FakeElasticsearch:
    """
    Keeps documents in memory.

    @ivar documents: by index and id, in the order in which they were created.
    @ivar judge: says which documents are not created.
    @ivar pipelines: those that exist.
    @ivar data_streams: those that exist; a document of theirs needs a date in C{@timestamp}.
    @ivar largest: bytes of a request, as C{http.max_content_length}.
    """

    def __init__(self) -> None:
        self.documents: dict[tuple[str, str], dict[str, Any]] = {}
        self.judge: JudgeDocument = lambda index, own_id, document: None
        self.pipelines: set[str] = set()
        self.data_streams: set[str] = set()
        self.largest = 100 * 1024 * 1024
        self.targets: list[str] = []

    def handle(self, target: str, fields: dict[str, str], content: bytes) -> FakeResponse:
        """
        Answer a POST.

        @param target: path and query.
        @param fields: header fields, by names in lower case.
        """
        self.targets.append(target)
        if fields.get("content-encoding") == "gzip":
            content = gzip.decompress(content)
        if len(content) > self.largest:
            return FakeResponse(413, "")
        if fields["content-type"] not in ("application/x-ndjson", "application/json"):
            return whole_error(406, "media_type_header_exception", "Invalid media-type value on headers [Content-Type]")
        parts = urlsplit(target)
        place, _, api = parts.path.removeprefix("/").rpartition("/")
        query = {name: values[0] for name, values in parse_qs(parts.query, strict_parsing=True).items()}
        if api != "_bulk":
            return whole_error(400, "illegal_argument_exception", f"no handler found for uri [{target}]")
        if not content.endswith(b"\n"):
            reason = "The bulk request must be terminated by a newline [\\n]"
            return whole_error(400, "illegal_argument_exception", reason)
        lines = content.split(b"\n")[:-1]
        actions = [json.loads(line)["create"] for line in lines[::2]]
        if any(len(action.get("_id", "x").encode()) > 512 for action in actions):
            return whole_error(400, "action_request_validation_exception", "Validation Failed: 1: id [x] is too long")
        items = [
            self._create(action.get("_index", unquote(place)), action.get("_id"), line, query.get("pipeline"))
            for action, line in zip(actions, lines[1::2], strict=True)
        ]
        body = {"errors": any("error" in item for item in items), "took": 30, "items": [{"create": i} for i in items]}
        return FakeResponse(200, filtered(body, query.get("filter_path")))

    def _create(self, index: str, own_id: str | None, line: bytes, pipeline: str | None) -> dict[str, Any]:
        if own_id is None:
            own_id = f"made-{len(self.documents)}"
        error = self._error(index, own_id, line, pipeline)
        found = {"_index": index, "_id": own_id}
        if error is not None:
            return {**found, "status": error.status, "error": error.as_json()}
        self.documents[index, own_id] = json.loads(line)
        shards = {"total": 2, "successful": 1, "failed": 0}
        return {**found, "_version": 1, "result": "created", "_shards": shards, "_seq_no": 0, "status": 201}

    def _error(self, index: str, own_id: str, line: bytes, pipeline: str | None) -> BulkError | None:
        if own_id == "":
            return BulkError(400, "illegal_argument_exception", "if _id is specified it must not be empty")
        if not _INDEX.fullmatch(index):
            return BulkError(400, "invalid_index_name_exception", f"Invalid index name [{index}], must be lowercase")
        if pipeline is not None and pipeline not in self.pipelines:
            return BulkError(400, "illegal_argument_exception", f"pipeline with id [{pipeline}] does not exist")
        try:
            document = json.loads(line, object_pairs_hook=_without_duplicates)
        except ValueError as error:
            return BulkError(400, "document_parsing_exception", f"[1:1] failed to parse: {error}")
        if index in self.data_streams and not _is_date(document.get("@timestamp")):
            cause = {"type": "illegal_argument_exception", "reason": "data stream timestamp field is missing"}
            return BulkError(400, "mapper_parsing_exception", "failed to parse", cause)
        if (index, own_id) in self.documents:
            reason = f"[{own_id}]: version conflict, document already exists (current version [1])"
            return BulkError(409, "version_conflict_engine_exception", reason)
        return self.judge(index, own_id, document)


def whole_error(status: int, kind: str, reason: str) -> FakeResponse:
    """Return the answer to a request that failed as a whole."""
    cause = {"type": kind, "reason": reason}
    return FakeResponse(status, {"error": {"root_cause": [cause], **cause}, "status": status})


def filtered(value: Any, filter_path: str | None) -> Any:
    """Return what C{filter_path} leaves of an answer; an object of which nothing is left is left out."""
    if filter_path is None:
        return value
    left = _left(value, [path.split(".") for path in filter_path.split(",")])
    return {} if left is None else left


def _left(value: Any, paths: list[list[str]]) -> Any:
    if any(not path for path in paths):
        return value
    if isinstance(value, list):
        elements = [left for each in value if (left := _left(each, paths)) is not None]
        return elements or None
    if not isinstance(value, dict):
        return None
    members = {}
    for name, member in value.items():
        behind = [path[1:] for path in paths if path[0] in (name, "*")]
        left = _left(member, behind) if behind else None
        if left is not None:
            members[name] = left
    return members or None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len({*names}) < len(names):
        raise ValueError("Duplicate field")
    return dict(pairs)


def _is_date(value: Any) -> bool:
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True
