"""
Played HTTP stores on sockets: what tests need to know of each kind.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from tests.observers.http_stores.fake_collector import FakeCollector
from tests.observers.http_stores.fake_elasticsearch import PARSING, FakeElasticsearch
from tests.observers.http_stores.fake_loki import TOO_LONG, FakeLoki
from tests.system.http_server import Posted, PostServer, Reply


class PlayedHTTPStore(Protocol):
    """
    A store that is played.

    @ivar refused: messages with this text in them are refused for good; none if it is empty.
    """

    refused: str

    def handle(self, target: str, fields: dict[str, str], content: bytes) -> tuple[int, Any]:
        """Answer a POST: a status and a body; one that is no bytes becomes JSON."""

    def copies(self) -> list[tuple[str, str]]:
        """Return id and text of each message that it holds, in the order in which they came."""


class PlayedElasticsearch(FakeElasticsearch):
    """One index or several."""

    refused = ""

    def __init__(self) -> None:
        super().__init__()
        self.judge = lambda index, own_id, document: (
            PARSING if self.refused and self.refused in document["MESSAGE"] else None
        )

    def copies(self) -> list[tuple[str, str]]:
        """Return the documents."""
        return [(own_id, each["MESSAGE"]) for (_, own_id), each in self.documents.items()]


class PlayedLoki(FakeLoki):
    """All streams."""

    refused = ""

    def __init__(self) -> None:
        super().__init__()
        self.judge = lambda entry: TOO_LONG if self.refused and self.refused in entry.line else ""

    def copies(self) -> list[tuple[str, str]]:
        """Return the entries."""
        return [(dict(each.metadata)["id"], json.loads(each.line)["MESSAGE"]) for each in self.entries]


class PlayedCollector(FakeCollector):
    """All records."""

    refused = ""

    def __init__(self) -> None:
        super().__init__()
        self.is_bad = lambda record: bool(self.refused) and self.refused in record.body.string_value

    def copies(self) -> list[tuple[str, str]]:
        """Return the records."""
        return [self.copy_of(record) for record in self.records]

    @staticmethod
    def copy_of(record: LogRecord) -> tuple[str, str]:
        """Return id and text of a record."""
        (own_id,) = (each.value.string_value for each in record.attributes if each.key == "log.record.uid")
        return own_id, record.body.string_value


class HTTPStoreKind(NamedTuple):
    """
    A kind of store.

    @ivar observer: the name of its observer.
    @ivar path: behind host and port in the URL.
    @ivar options: as they are written in a spec string.
    @ivar secret: the option that names a file with a secret.
    """

    observer: str
    path: str
    options: str
    secret: str
    make: Callable[[], PlayedHTTPStore]

    def spec(self, port: int, scheme: str = "http", host: str = "127.0.0.1", **options: str) -> str:
        """Return a spec string."""
        more = "".join(f":{name}={value}" for name, value in options.items())
        return f"{self.observer}:{scheme}://{host}:{port}{self.path}{self.options}{more}"


HTTP_STORE_KINDS = {
    "elasticsearch": HTTPStoreKind(
        "elasticsearch", "/es/logs-%Y.%m.%d", ":pipeline=p", "api_key_file", PlayedElasticsearch
    ),
    "opensearch": HTTPStoreKind("opensearch", "/logs", "", "token_file", PlayedElasticsearch),
    "loki": HTTPStoreKind("loki", "", "", "token_file", PlayedLoki),
    "otlp": HTTPStoreKind("otlp", "", "", "token_file", PlayedCollector),
    "otlp-protobuf": HTTPStoreKind("otlp", "", ":encoding=protobuf", "token_file", PlayedCollector),
}


class StoreServer(PostServer):
    """A played store on a port of 127.0.0.1."""

    def __init__(self, store: PlayedHTTPStore, context: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.store = store
        super().__init__(context, port)

    def decide(self, posted: Posted) -> Reply:
        """Let the store answer."""
        return reply_of(self.store, posted.path, posted.fields, posted.body)


def reply_of(store: PlayedHTTPStore, target: str, fields: dict[str, str], content: bytes) -> Reply:
    """Return what a store answers."""
    status, body = store.handle(target, fields, content)
    return Reply(status, body=body if isinstance(body, bytes) else json.dumps(body).encode())
