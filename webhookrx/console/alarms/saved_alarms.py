"""
Alarms in the store of a console: read, and written with their history in one transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

import msgspec

from webhookrx.console.alarms.documents import AlarmDocument
from webhookrx.console.store.history import Author, Change, Operation, StoreTransaction

_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_decode: Final = msgspec.json.Decoder(AlarmDocument).decode


class SavedAlarm(msgspec.Struct, frozen=True):
    """
    An alarm that somebody has written.

    @ivar generation: how often it was changed; it only grows, also when an alarm of this name is made again.
    @ivar document: None for one that was deleted.
    """

    name: str
    generation: int
    document: AlarmDocument | None


def load_alarms(db: sqlite3.Connection) -> dict[str, SavedAlarm]:
    """Return all alarms by name, also those that were deleted."""
    rows = db.execute("SELECT name, generation, doc, deleted FROM alarm ORDER BY name")
    return {
        name: SavedAlarm(name, generation, None if deleted else _decode(doc)) for name, generation, doc, deleted in rows
    }


def save_alarm(
    transaction: StoreTransaction, author: Author, before: SavedAlarm | None, name: str, document: AlarmDocument | None
) -> None:
    """
    Write an alarm; what is the same as before is no change.

    @param before: the alarm as the transaction finds it.
    @param document: None to delete it.
    """
    old = None if before is None else before.document
    if old == document:
        return
    generation = (0 if before is None else before.generation) + 1
    doc = "{}" if document is None else _encode(document).decode()
    transaction.execute(
        "INSERT INTO alarm (name, generation, doc, deleted) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
        " generation = excluded.generation, doc = excluded.doc, deleted = excluded.deleted",
        (name, generation, doc, document is None),
    )
    operation: Operation = "create" if old is None else "delete" if document is None else "update"
    entries = (None if old is None else old.texts, None if document is None else document.texts)
    transaction.revise(author, [Change("alarm", name, operation, *entries, generation=generation)])


def past_alarm(db: sqlite3.Connection, name: str, generation: int) -> AlarmDocument | None:
    """
    Return what an alarm was at a generation; None for one that was deleted then.

    @raise LookupError: there was no such generation.
    """
    row = db.execute(
        "SELECT after FROM change WHERE kind = 'alarm' AND name = ? AND generation = ?", (name, generation)
    ).fetchone()
    if row is None:
        raise LookupError(name)
    return None if row[0] is None else _decode(row[0])


def used_targets(alarms: Mapping[str, SavedAlarm]) -> dict[str, str]:
    """Return by target the name of an alarm that notifies it."""
    return {
        each.document.notify: name
        for name, each in alarms.items()
        if each.document is not None and each.document.notify
    }
