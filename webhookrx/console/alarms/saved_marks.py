"""
The alarms that are not ok in the store of a console, so that a restart tells none twice and loses none.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from webhookrx.console.store.history import StoreTransaction
from webhookrx.management.alarm_values import AlarmMark

Marks: TypeAlias = Mapping[tuple[str, str], AlarmMark | None]
"""By alarm and subject; None: there is nothing to keep any more."""

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class _MarkDetails(msgspec.Struct):
    """The column C{details}."""

    kind: str
    text: str
    notify: str = ""


_decode: Final = msgspec.json.Decoder(_MarkDetails).decode


def read_marks(db: sqlite3.Connection) -> list[AlarmMark]:
    """Return all that is kept."""
    rows = db.execute("SELECT alarm, about, state, since, details FROM alarm_state")
    return [_mark(*row) for row in rows]


def write_marks(transaction: StoreTransaction, marks: Marks) -> None:
    """Keep what has changed."""
    transaction.db.executemany(
        "DELETE FROM alarm_state WHERE alarm = ? AND about = ?", [key for key, mark in marks.items() if mark is None]
    )
    transaction.db.executemany(
        "INSERT OR REPLACE INTO alarm_state (alarm, about, state, since, details) VALUES (?, ?, ?, ?, ?)",
        [
            (
                mark.alarm,
                mark.subject,
                mark.state,
                mark.since,
                _encode(_MarkDetails(mark.kind, mark.text, mark.notify)).decode(),
            )
            for mark in marks.values()
            if mark is not None
        ],
    )


def _mark(alarm: str, about: str, state: Any, since: float, details: str) -> AlarmMark:
    more = _decode(details)
    return AlarmMark(alarm, more.kind, about, state, since, more.text, more.notify)
