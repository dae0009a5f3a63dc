"""
What an answer of the bulk API of Elasticsearch or OpenSearch means for each document.

The answer is 200 whatever became of the documents; each has an item of its own, in the order of the request
(U{https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-bulk}). Whoever looks at the status alone loses
documents when the write queue is full (U{https://github.com/vectordotdev/vector/issues/2968},
U{https://github.com/vectordotdev/vector/issues/25799}).

A document is refused for good only by the exceptions that say something of documents and mappings. Anything else that
is 400, such as a pipeline or an index that can't be, is for a person to mend, and then the document is taken.
"""

from __future__ import annotations

from typing import Final

import msgspec

from webhookrx.observers.http_stores.exchange import HTTPAnswer, UnreadableAnswer
from webhookrx.observers.http_stores.http import REDIRECTION_HINT
from webhookrx.observers.http_stores.store import Finding, Verdict

_DOCUMENT: Final = frozenset(
    {
        "document_parsing_exception",
        "input_coercion_exception",
        "json_e_o_f_exception",
        "json_parse_exception",
        "mapper_parsing_exception",
        "max_bytes_length_exceeded_exception",
        "not_x_content_exception",
        "parsing_exception",
        "stream_constraints_exception",
        "strict_dynamic_mapping_exception",
        "x_content_e_o_f_exception",
        "x_content_parse_exception",
    }
)
"""
Types of exceptions of documents and mappings, over Elasticsearch 7 to 9 and OpenSearch 1 to 3. Elasticsearch says
C{document_parsing_exception} since 8.8 (U{https://github.com/elastic/elasticsearch/pull/92646}), and
C{mapper_parsing_exception} before that, as OpenSearch does. With a pipeline, one document that can't be read makes the
whole request 400 (U{https://github.com/elastic/elasticsearch/issues/138445}).
"""
_MAPPING: Final = "mapper_parsing_exception"
_TEMPLATE_REASONS: Final = ("Failed to parse mapping", "Root mapping definition", "No handler for type", "unknown ")
"""How its reason begins when the mapping of an index template is wrong, which a person can mend."""

_ARGUMENT: Final = "illegal_argument_exception"
_DOCUMENT_REASONS: Final = (
    "Document contains at least one immense term in field=",
    "Limit of ",
    "The number of nested documents has exceeded",
    "can't merge a non object mapping",
    "data stream timestamp field [@timestamp]",
    "mapper [",
    "object mapping [",
)
"""
How the reason of an C{illegal_argument_exception} begins that is one of documents or mappings, such as a text that is
too long for a keyword (U{https://github.com/logstash-plugins/logstash-output-elasticsearch/issues/465}) or one field
too many (U{https://github.com/elastic/elasticsearch/issues/33269}). The same exception says that a pipeline does not
exist (U{https://github.com/10up/ElasticPress/issues/927}).
"""

_CREATED: Final = frozenset({200, 201})
_KNOWN: Final = "version_conflict_engine_exception"

_HINTS: Final = {
    _ARGUMENT: "look at the index, its settings and pipeline=",
    "circuit_breaking_exception": "the server is short of memory",
    "cluster_block_exception": "the index or the cluster takes no writes; is a disk full?",
    "es_rejected_execution_exception": "its write queue is full",
    "rejected_execution_exception": "its write queue is full",
    "index_closed_exception": "the index is closed",
    "index_not_found_exception": "the index does not exist and is not created; look at action.auto_create_index",
    "invalid_index_name_exception": "look at the index",
    "security_exception": "look at api_key_file=, token_file= and headers_file=, and at the rights to the index",
    "unavailable_shards_exception": "too few copies of a shard; look at active_shards=",
    "validation_exception": "look at the limits of the cluster, such as cluster.max_shards_per_node",
}
_STATUS_HINTS: Final = {
    401: "look at api_key_file=, token_file= and headers_file=",
    403: "look at api_key_file=, token_file= and headers_file=, and at the rights to the index",
    404: "look at the URL",
    405: "look at the URL",
    406: "look at headers_file=",
    413: "larger than http.max_content_length; look at batch_size=",
    415: "look at headers_file= and gzip=",
}


class _Cause(msgspec.Struct):
    type: str = ""


class _BulkError(msgspec.Struct):
    type: str = ""
    reason: str | None = None
    caused_by: _Cause | None = None

    @property
    def is_of_document(self) -> bool:
        if self.type == _ARGUMENT:
            caused = self.caused_by is not None and self.caused_by.type in _DOCUMENT
            return caused or (self.reason or "").startswith(_DOCUMENT_REASONS)
        if self.type == _MAPPING and (self.reason or "").startswith(_TEMPLATE_REASONS):
            return False
        return self.type in _DOCUMENT


class _Item(msgspec.Struct):
    status: int
    error: _BulkError | None = None


class _Items(msgspec.Struct, forbid_unknown_fields=True):
    create: _Item


class _BulkAnswer(msgspec.Struct):
    items: list[_Items]
    # Not asked for; something between may add it.
    errors: bool = False


class _ErrorAnswer(msgspec.Struct):
    error: _BulkError


_decode_bulk: Final = msgspec.json.Decoder(_BulkAnswer).decode
_decode_error: Final = msgspec.json.Decoder(_ErrorAnswer).decode


def read_bulk(answer: HTTPAnswer, count: int, *, has_ids: bool) -> Finding | list[Finding]:
    """
    Tell what an answer means for the documents of its request.

    @param has_ids: they have ids of their own: one that is there already is from an earlier try.
    @raise CutAnswer: see L{webhookrx.observers.http_stores.store.HTTPStore.read}.
    @raise UnreadableAnswer: likewise.
    """
    if answer.status != 200:
        return _read_whole(answer)
    try:
        bulk = _decode_bulk(answer.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise UnreadableAnswer(f"{answer.describe()}, but not as the bulk API does") from None
    items = bulk.items
    if len(items) != count:
        raise UnreadableAnswer(f"{answer.describe()} with {len(items)} items for {count} documents")
    # The usual case, in a tenth of the time.
    if all(item.create.error is None and item.create.status in _CREATED for item in items):
        if bulk.errors:
            raise UnreadableAnswer(f"{answer.describe()} with errors, and none in an item")
        return Finding(Verdict.STORED)
    return [_read_item(item.create, has_ids=has_ids) for item in items]


def _read_item(item: _Item, *, has_ids: bool) -> Finding:
    error, status = item.error, item.status
    if error is None:
        if status in _CREATED:
            return Finding(Verdict.STORED)
        return Finding(Verdict.LATER, f"item {status}")
    if status == 409 and has_ids and error.type == _KNOWN:
        return Finding(Verdict.KNOWN)
    verdict = Verdict.REFUSED if status == 400 and error.is_of_document else Verdict.LATER
    return Finding(verdict, _code(f"item {status}", error), error.reason or "")


def _read_whole(answer: HTTPAnswer) -> Finding:
    """Judge a request that failed as a whole: none of its documents was judged."""
    status = answer.status
    if status == 413:
        return Finding(Verdict.REFUSED, _STATUS_HINTS[status], answer.beginning)
    try:
        error = _decode_error(answer.beginning).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        hint = REDIRECTION_HINT if 300 <= status < 400 else _STATUS_HINTS.get(status, "")
        return Finding(Verdict.LATER, hint, answer.beginning)
    verdict = Verdict.REFUSED if status == 400 and error.is_of_document else Verdict.LATER
    return Finding(verdict, _code("", error) or _STATUS_HINTS.get(status, ""), error.reason or "")


def _code(item: str, error: _BulkError) -> str:
    """Return what is shown of an error even after a secret was sent: words that are ours."""
    known = error.type in _DOCUMENT or error.type in _HINTS or error.type == _KNOWN
    words = (item, error.type if known else "", _HINTS.get(error.type, ""))
    return ", ".join(word for word in words if word)
