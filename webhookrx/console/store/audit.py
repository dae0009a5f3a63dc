"""
The audit: what happens and changes nothing in a console's store, such as log-ins and taps, in a bounded table.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from webhookrx.console.store.history import StoreTransaction

MOST_AUDITED: Final = 100_000
"""Entries that are kept, unless the setting C{retention} says otherwise; the oldest go first."""

LOGIN_FAILED: Final = "login_failed"
ENROLMENT_REFUSED: Final = "enrolment_refused"
CERTIFICATE: Final = "certificate"

MOST_OF_ONE: Final = 10_000
"""
Of each of those three among them: what strangers and routers make, as often as they like, pushes out nothing of what
people have done.
"""

_OF_STRANGERS: Final = (LOGIN_FAILED, ENROLMENT_REFUSED, CERTIFICATE)
_LOOKED_AT_EACH: Final = 100


class AuditEntry(msgspec.Struct, frozen=True):
    """
    What somebody has done, or tried.

    @ivar by: who; empty for who was not let in.
    @ivar event: such as C{login} or C{tap}.
    @ivar name: what it was about.
    """

    id: int
    at: float
    by: str
    via: str
    address: str
    event: str
    name: str
    details: dict[str, Any]


def note(
    tx: StoreTransaction,
    by: str,
    via: str,
    address: str,
    event: str,
    name: str = "",
    details: Mapping[str, object] | None = None,
) -> None:
    """
    Append an entry.

    @param details: JSON values without a secret.
    """
    text = msgspec.json.encode(dict(details or {})).decode()
    cursor = tx.execute(
        "INSERT INTO audit (at, by, via, address, event, name, details) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (tx.now, by[:64], via, address, event, name[:64], text),
    )
    number = cursor.lastrowid or 0
    is_of_strangers = event in _OF_STRANGERS
    if is_of_strangers and number % _LOOKED_AT_EACH == 0:
        tx.execute(
            "DELETE FROM audit WHERE event = ?1 AND id <="
            " (SELECT id FROM audit WHERE event = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
            (event, MOST_OF_ONE),
        )
    if not is_of_strangers and number > (most := _most_audited(tx)):
        # Entries are counted: ids grow with what strangers do, too.
        tx.execute("DELETE FROM audit WHERE id <= (SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET ?)", (most,))


MOST_SCANNED: Final = 5000
"""Entries that one call looks at; some tens of milliseconds in the thread that reads."""


def find_audit(
    db: sqlite3.Connection, wanted: Callable[[Mapping[str, Any]], bool], *, before: int, count: int
) -> tuple[list[AuditEntry], int | None]:
    """
    Return entries, the newest first, within bounds of work.

    @param wanted: decides by all fields of an entry but its time and details.
    @param before: the id of an entry; only older ones are wanted.
    @return: entries, and C{before} for those that follow; None when there are no older ones.
    """
    rows = db.execute(
        "SELECT id, by, via, address, event, name FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?",
        (before, MOST_SCANNED),
    )
    found: list[int] = []
    scanned = 0
    for number, by, via, address, event, name in rows:
        if wanted({"by": by, "via": via, "address": address, "event": event, "name": name}):
            if len(found) == count:
                return _entries(db, found), before
            found.append(number)
        before = number
        scanned += 1
    return _entries(db, found), before if scanned == MOST_SCANNED else None


def _entries(db: sqlite3.Connection, ids: list[int]) -> list[AuditEntry]:
    return [entry for number in ids for entry in read_audit(db, before=number + 1, count=1)]


def _most_audited(tx: StoreTransaction) -> int:
    row = tx.execute("SELECT json_extract(value, '$.value.audit') FROM setting WHERE name = 'retention'").fetchone()
    return MOST_AUDITED if row is None or row[0] is None else int(row[0])


def read_audit(db: sqlite3.Connection, *, before: int | None = None, count: int = 100) -> list[AuditEntry]:
    """
    Return entries, the newest first.

    @param before: the id of an entry; only older ones are wanted.
    """
    rows = db.execute(
        "SELECT id, at, by, via, address, event, name, details FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?",
        ((1 << 53) if before is None else before, count),
    )
    return [
        AuditEntry(number, at, by, via, address, event, name, msgspec.json.decode(details))
        for number, at, by, via, address, event, name, details in rows
    ]
