"""
C{elasticsearch:URL/INDEX} and C{opensearch:URL/INDEX}: creates documents by the bulk API, whose answer judges each.

A document is created under the id of its message, never replaced: one that is there already was stored by an earlier
try. That is so in an index; a data stream looks for the id in its newest backing index only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from urllib.parse import quote

from webhookrx.config.observers import Argument, ObserverSpec, OptionText
from webhookrx.config.specs import SpecOptions
from webhookrx.diagnostics import quoted
from webhookrx.interfaces import LARGEST_BATCH, Wants
from webhookrx.message.encoders import encode_line
from webhookrx.message.escapes import encode
from webhookrx.message.identity import MakeID, message_id, parse_id
from webhookrx.message.message import Message
from webhookrx.message.record import said_or_received
from webhookrx.message.rfc5424 import timestamp
from webhookrx.observers.addresses import refuse_password
from webhookrx.observers.batch_limits import BatchLimits, read_limits
from webhookrx.observers.client_tls import TLS_OPTIONS, TLS_SECRETS
from webhookrx.observers.http_stores.bulk_answers import read_bulk
from webhookrx.observers.http_stores.exchange import HTTPAnswer, StoreRequest
from webhookrx.observers.http_stores.observer import HTTPObserver, connect
from webhookrx.observers.http_stores.options import HTTPTarget, SecretFile, read_target, read_token, secret_fields
from webhookrx.observers.http_stores.store import HTTPStore, Reading
from webhookrx.observers.receipt_template import ReceiptTemplate
from webhookrx.settings import MiB
from webhookrx.yield_point import PIECE

_SECRETS: Final = ("api_key_file", "token_file", "headers_file")

ELASTICSEARCH_SPEC = ObserverSpec(
    options=(
        "id",
        "pipeline",
        "active_shards",
        "batch",
        "batch_size",
        "gzip",
        "allow_plaintext",
        "timeout",
        "retry_for",
        *_SECRETS,
        *TLS_OPTIONS,
    ),
    argument=Argument.URL,
    files=(*_SECRETS, *TLS_OPTIONS),
    secrets=(*_SECRETS, *TLS_SECRETS),
    texts={
        "id": OptionText(
            "the message's id", "[template](messages.md#templates) of `_id`; `off` lets the server make ids"
        ),
        "pipeline": OptionText("that of the index", "the name of an ingest pipeline"),
        "active_shards": OptionText(
            "that of the index", "copies of a shard that must be there before it takes documents: a number, or `all`"
        ),
        "batch": OptionText("`5000`", "most documents in one request"),
        "batch_size": OptionText(
            "`5MiB`", "most bytes of one request, before compression; a larger document goes alone"
        ),
        "api_key_file": OptionText("none", "file with one API key of Elasticsearch, encoded, sent as `ApiKey …`"),
        "token_file": OptionText("none", "file with one token, sent as `Bearer …`"),
    },
)
"""C{opensearch:} has the same."""

_LIMITS: Final = BatchLimits(messages=5000, size=5 * MiB)
_KEEP: Final = 4 * MiB
"""An answer is about 25 bytes for a document that is created, and some hundred for one that is not."""

_FILTER: Final = ",".join(
    f"items.create.{field}" for field in ("status", "error.type", "error.reason", "error.caused_by.type")
)
"""What is asked of an answer. The status of each item is among it: an item of which nothing is left is left out."""

_TIMESTAMP: Final = "@timestamp"
#: The same in a line that has it.
_NAMED: Final = b'"@timestamp":'
"""A data stream takes no document without it."""

_LONGEST_INDEX: Final = 255
_INDEX: Final = re.compile(r"[a-z0-9][a-z0-9._+-]*")
_NOT_INDEX: Final = re.compile(r"[^a-z0-9._-]")
_PIPELINE: Final = re.compile(r"[!-~]+")
_SHARDS: Final = re.compile(r"all|[1-9][0-9]{0,3}")

#: Makes the action in front of a document, with its line end.
_MakeAction = Callable[[Message], bytes]


@dataclass(frozen=True, kw_only=True)
class BulkStore(HTTPStore):
    """
    Elasticsearch from 7.0 on, or OpenSearch.

    @ivar path: where bulk requests go, with the query.
    @ivar has_ids: documents have the ids of their messages.
    """

    limits: BatchLimits = _LIMITS
    keep: int = _KEEP
    content_type: str = "application/x-ndjson"
    path: str
    has_ids: bool = True

    def make(self, lines: Sequence[bytes]) -> StoreRequest:
        """Join actions and documents."""
        return StoreRequest(self.pack(b"".join(lines)), path=self.path)

    def read(self, answer: HTTPAnswer, count: int) -> Reading:
        """Judge each document by its own item; the status of the answer says nothing of them."""
        return read_bulk(answer, count, has_ids=self.has_ids)


def document(message: Message, before: bytes = b"") -> bytes:
    """
    Return a message as a document, behind something else: its JSON line with C{@timestamp} in front, the time that the
    message says or that of receipt. C{@timestamp} of a sender gets C{webhook.} in front of its name: one that is no
    date would make the index refuse all others.
    """
    stamp = timestamp(said_or_received(message)).encode("ascii")
    line = message.line
    # A look at a short line that is there spares that at the values.
    if (line is None or len(line) > PIECE or _NAMED in line) and _TIMESTAMP in message.values:
        values = message.values
        rest = {name: value for name, value in values.items() if name != _TIMESTAMP}
        message = Message({**rest, f"webhook.{_TIMESTAMP}": values[_TIMESTAMP]}, message.received)
    return b"".join((before, b'{"@timestamp":"', stamp, b'",', memoryview(encode_line(message))[1:]))


def _action(message: Message, make_id: MakeID | None, index: ReceiptTemplate | None) -> bytes:
    action = {} if index is None else {"_index": index.render(message, _clean)[:_LONGEST_INDEX]}
    own_id = "" if make_id is None else make_id(message)
    # An empty one is an error. Without one the server makes it.
    if own_id:
        action["_id"] = own_id
    return encode({"create": action}) + b"\n"


def _render(message: Message, *, make_action: _MakeAction) -> bytes:
    return document(message, make_action(message))


def _clean(value: str) -> str:
    return _NOT_INDEX.sub("_", value[:_LONGEST_INDEX].lower())


def _read_index(text: str) -> ReceiptTemplate:
    index = ReceiptTemplate.parse(text)
    sample = index.sample()
    if not _INDEX.fullmatch(sample) or len(sample) > _LONGEST_INDEX:
        raise ValueError(
            "an index has lower-case letters, digits and . _ + -, and begins with a letter or digit that is not a macro"
        )
    return index


def _read_path(url: str, options: SpecOptions) -> tuple[str, ReceiptTemplate]:
    """Take the index off a URL, and return the rest of it."""
    refuse_password(url, options, "api_key_file= or headers_file=")
    base, sign, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    before, between, name = path.rpartition("/")
    if not sign or not slash or not name or "?" in name:
        raise options.problem(
            f"takes the URL of a server and an index, such as {options.observer}:https://h:9200/logs-%Y.%m.%d"
        )
    try:
        index = _read_index(name)
    except ValueError as error:
        raise options.problem(f"the index {quoted(name)}: {error}") from None
    return f"{base}://{place}/{before}{between}", index


def _path(base: str, index: ReceiptTemplate, options: SpecOptions) -> str:
    path = "/" + base.partition("://")[2].partition("/")[2]
    query = [f"filter_path={_FILTER}"]
    pipeline = options.read("pipeline", "", partial(_matching, _PIPELINE, "the name of an ingest pipeline"))
    if pipeline:
        query.append(f"pipeline={quote(pipeline, safe='')}")
    shards = options.read("active_shards", "", partial(_matching, _SHARDS, "a number of copies, such as 2, or all"))
    if shards:
        query.append(f"wait_for_active_shards={shards}")
    place = f"{quote(index.sample(), safe='')}/" if index.is_constant else ""
    return f"{path}{place}_bulk?{'&'.join(query)}"


def _matching(pattern: re.Pattern[str], takes: str, text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"it takes {takes}")
    return text


def _read_ids(options: SpecOptions) -> MakeID | None:
    if options.given.get("id") in ("off", "no"):
        return None
    own: MakeID = message_id
    return options.read("id", own, parse_id)


def read_elasticsearch(name: str, args: Sequence[str], given: Mapping[str, str]) -> tuple[HTTPTarget, BulkStore]:
    """
    Read C{elasticsearch:URL/INDEX[:key=value…]}, or C{opensearch:}, but not the files.

    @param name: which of both it is, for errors.
    @raise ConfigError: an argument or option is wrong.
    """
    options = SpecOptions(name, given)
    base, index = _read_path(args[0] if len(args) == 1 else "", options)
    secrets = secret_fields(given, "Bearer")
    if "api_key_file" in given:
        key = SecretFile("api_key_file", given["api_key_file"], partial(read_token, scheme="ApiKey"))
        secrets = [key, *secrets]
    target = read_target(options, [base], example="https://h:9200/logs-%Y.%m.%d", secrets=secrets)
    make_id = _read_ids(options)
    make_action = partial(_action, make_id=make_id, index=None if index.is_constant else index)
    limits = read_limits(options, _LIMITS)
    store = BulkStore(
        render=partial(_render, make_action=make_action),
        takes_lines=True,
        limits=limits,
        wants=Wants(limits.messages, min(limits.size, LARGEST_BATCH)),
        gzip=options.flag("gzip", False),
        path=_path(base, index, options),
        has_ids=make_id is not None,
    )
    return replace(target, url=base), store


def build_elasticsearch(name: str, spec: str, args: Sequence[str], given: Mapping[str, str], ack: str) -> HTTPObserver:
    """
    Make the observer.

    @raise ConfigError: an argument, an option or a file is wrong.
    """
    observer = HTTPObserver(spec, *read_elasticsearch(name, args, given), connect)
    observer.check()
    return observer
