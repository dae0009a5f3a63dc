"""
One setting in the store of a console: its value, and how often it was changed, written with its history.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Final

import msgspec

from webhookrx.console.api.problems import STALE, ApiProblem
from webhookrx.console.store.history import Author, Change, StoreTransaction

MASKS: Final = "masks"
RETENTION: Final = "retention"


class SavedSetting(msgspec.Struct, frozen=True):
    """
    A setting.

    @ivar generation: 0 while nobody has changed it.
    @ivar value: what JSON can hold; None while nobody has changed it.
    """

    generation: int = 0
    value: Any = None


_decode: Final = msgspec.json.Decoder(SavedSetting).decode


def read_setting(db: sqlite3.Connection, name: str) -> SavedSetting:
    """Return a setting."""
    row = db.execute("SELECT value FROM setting WHERE name = ?", (name,)).fetchone()
    return SavedSetting() if row is None else _decode(row[0])


def save_setting(tx: StoreTransaction, author: Author, name: str, generation: int, value: object) -> SavedSetting:
    """
    Save a setting, and return it. One that stays as it is makes no history.

    @param generation: that of what the author has read.
    @raise ApiProblem: it has changed since.
    """
    before = read_setting(tx.db, name)
    if before.generation != generation:
        raise ApiProblem(
            STALE,
            f"It is at generation {before.generation} now.",
            members={"current": before.value, "generation": before.generation},
        )
    plain = msgspec.json.decode(msgspec.json.encode(value))
    if plain == before.value:
        return before
    after = SavedSetting(generation + 1, plain)
    tx.execute(
        "INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)", (name, msgspec.json.encode(after).decode())
    )
    operation = Change("setting", name, "create", None, plain, after.generation)
    if before.generation:
        operation = Change("setting", name, "update", before.value, plain, after.generation)
    tx.revise(author, [operation])
    return after
