"""
The process of a played HTTP store: C{python -m tests.system.servers.played_http_program KIND PORT JOURNAL}.

What it stores is in JOURNAL, a line of JSON each, before it answers; after a kill it goes on with what is there.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from tests.observers.http_stores.fake_loki import LokiEntry
from tests.system.http_stores import (
    HTTP_STORE_KINDS,
    PlayedCollector,
    PlayedElasticsearch,
    PlayedHTTPStore,
    PlayedLoki,
    StoreServer,
)

#: Writes a row of the journal.
Note = Callable[[Any], None]


class NotedDocuments(dict[tuple[str, str], dict[str, Any]]):
    """Documents that are noted as they are created."""

    def __init__(self, rows: Iterable[Any], note: Note) -> None:
        super().__init__({(index, own_id): {"MESSAGE": text} for index, own_id, text in rows})
        self._note = note

    def __setitem__(self, key: tuple[str, str], document: dict[str, Any]) -> None:
        self._note([*key, document["MESSAGE"]])
        super().__setitem__(key, document)


class NotedList(list[Any]):
    """What is noted as it is appended."""

    def __init__(self, rows: Iterable[Any], note: Note) -> None:
        super().__init__(rows)
        self._note = note

    def append(self, value: Any) -> None:
        """Note it, and append it."""
        self._note(value)
        super().append(value)


def journaled(store: PlayedHTTPStore, rows: list[Any], note: Note) -> PlayedHTTPStore:
    """Let a store hold what the rows say, and note what it stores from now on."""
    if isinstance(store, PlayedElasticsearch):
        store.pipelines.add("p")
        store.documents = NotedDocuments(rows, note)
    elif isinstance(store, PlayedLoki):
        # A namedtuple is an array in JSON.
        store.entries = NotedList([LokiEntry(_pairs(row[0]), row[1], row[2], _pairs(row[3])) for row in rows], note)
        store.know_entries()
    elif isinstance(store, PlayedCollector):
        store.records = NotedList([], lambda record: note([*PlayedCollector.copy_of(record)]))
    return store


def _pairs(rows: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in rows)


def read_journal(path: str) -> list[Any]:
    """Return the rows; what was cut off by a kill is none."""
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        content = file.read()
    return [json.loads(line) for line in content[: content.rfind(b"\n") + 1].splitlines()]


def main(kind: str, port: str, path: str) -> None:
    """Serve until it is killed."""
    rows = read_journal(path)
    with open(path, "wb") as file:
        file.writelines(json.dumps(row).encode() + b"\n" for row in rows)
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    lock = threading.Lock()

    def note(row: Any) -> None:
        with lock:
            os.write(fd, json.dumps(row).encode() + b"\n")

    StoreServer(journaled(HTTP_STORE_KINDS[kind].make(), rows, note), port=int(port))
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
