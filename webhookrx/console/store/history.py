"""
The history: revisions and their changes, written in the transaction of the change itself and never altered.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["rule", "router", "enrolment", "token", "user", "setting", "alarm"]
Operation: TypeAlias = Literal["create", "update", "delete"]

_encode: Final = msgspec.json.Encoder(order="deterministic").encode

#: A number with a fraction or an exponent keeps its digits, however large it is.
_decode: Final = msgspec.json.Decoder(float_hook=lambda text: msgspec.Raw(text.encode())).decode

_ENTRIES: Final = """
SELECT change.id, change.revision, at, by, via, note, kind, name, operation, generation, before, after
FROM change JOIN revision ON revision.number = change.revision
"""

_HEADS: Final = """
SELECT change.id, coalesce(length(before), 0) + coalesce(length(after), 0), change.revision, by, via, note, kind, name,
operation FROM change JOIN revision ON revision.number = change.revision
"""


@dataclass(frozen=True, slots=True)
class Author:
    """
    Who makes a change, and by which way.

    @ivar by: the name of a person or token.
    @ivar via: C{ui}, C{api}, C{push:NAME}, C{rollback:REVISION}, or C{command}.
    """

    by: str
    via: str


@dataclass(frozen=True, slots=True)
class Change:
    """
    One object before and after, as JSON values without a secret.

    @ivar generation: that of the object after it, for kinds that have generations.
    """

    kind: Kind
    name: str
    operation: Operation
    before: object = None
    after: object = None
    generation: int | None = None


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A change with its revision, as the activity log shows it."""

    id: int
    revision: int
    at: float
    by: str
    via: str
    note: str
    kind: str
    name: str
    operation: str
    generation: int | None
    before: Any
    after: Any


class StoreTransaction:
    """
    A transaction under way. It is committed when the function that has it returns, and undone when that raises.

    @ivar db: for statements of any kind; C{COMMIT} and C{ROLLBACK} are not for it.
    @ivar now: when it began, seconds since the epoch.
    """

    def __init__(self, db: sqlite3.Connection, now: float) -> None:
        self.db = db
        self.now = now

    def execute(self, statement: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> sqlite3.Cursor:
        """Execute one statement."""
        return self.db.execute(statement, parameters)

    def revise(self, author: Author, changes: Sequence[Change], note: str = "", *, number: int | None = None) -> int:
        """
        Append a revision of these changes, which this transaction makes, and return its number.

        @param number: a later one than the next.
        @raise ValueError: there are no changes, or the number is too low.
        """
        following = newest_revision(self.db) + 1
        number = following if number is None else number
        if not changes or number < following:
            raise ValueError("a revision has at least one change, and a number above all others")
        self.execute(
            "INSERT INTO revision (number, at, by, via, note) VALUES (?, ?, ?, ?, ?)",
            (number, self.now, author.by, author.via, note),
        )
        self.db.executemany(
            "INSERT INTO change (revision, kind, name, operation, generation, before, after)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (number, each.kind, each.name, each.operation, each.generation, _json(each.before), _json(each.after))
                for each in changes
            ],
        )
        return number


def newest_revision(db: sqlite3.Connection) -> int:
    """Return the number of the newest revision, 0 before the first."""
    (number,) = db.execute("SELECT coalesce(max(number), 0) FROM revision").fetchone()
    return int(number)


def read_history(
    db: sqlite3.Connection,
    *,
    before: int | None = None,
    count: int = 100,
    kind: str | None = None,
    name: str | None = None,
    revision: int | None = None,
) -> list[HistoryEntry]:
    """
    Return changes, the newest first.

    @param before: the id of a change; only older ones are wanted.
    """
    wanted: list[tuple[str, object]] = [
        (text, value)
        for text, value in (
            ("change.id < ?", before),
            ("kind = ?", kind),
            ("name = ?", name),
            ("change.revision = ?", revision),
        )
        if value is not None
    ]
    where = f"WHERE {' AND '.join(text for text, _ in wanted)}" if wanted else ""
    rows = db.execute(f"{_ENTRIES} {where} ORDER BY change.id DESC LIMIT ?", (*(value for _, value in wanted), count))
    return [_entry(row) for row in rows]


MOST_SCANNED: Final = 2000
"""Changes that one call looks at; some tens of milliseconds in the thread that reads."""

MOST_PAGE_BYTES: Final = 4 * 1024 * 1024
"""Bytes of documents in the entries of one call, unless the first alone has more."""


def find_changes(
    db: sqlite3.Connection,
    wanted: Callable[[Mapping[str, Any]], bool] | None,
    *,
    before: int,
    count: int,
    most_bytes: int = MOST_PAGE_BYTES,
) -> tuple[list[HistoryEntry], int | None]:
    """
    Return changes, the newest first, within bounds of work and memory.

    @param wanted: decides by all fields of an entry but times and documents; None for all.
    @param before: the id of a change; only older ones are wanted.
    @return: changes, and C{before} for those that follow; None when there are no older ones.
    """
    rows = db.execute(f"{_HEADS} WHERE change.id < ? ORDER BY change.id DESC LIMIT ?", (before, MOST_SCANNED))
    found: list[int] = []
    left, scanned = most_bytes, 0
    for id, size, revision, by, via, note, kind, name, operation in rows:
        record = {"revision": revision, "by": by, "via": via, "note": note, "kind": kind, "name": name}
        if wanted is None or wanted({**record, "operation": operation}):
            if found and (len(found) == count or size > left):
                return _entries(db, found), before
            found.append(id)
            left -= size
        before = id
        scanned += 1
    return _entries(db, found), before if scanned == MOST_SCANNED else None


def _entries(db: sqlite3.Connection, ids: Sequence[int]) -> list[HistoryEntry]:
    places = ",".join("?" * len(ids))
    return [_entry(row) for row in db.execute(f"{_ENTRIES} WHERE change.id IN ({places}) ORDER BY change.id DESC", ids)]


def _json(value: object) -> str | None:
    return None if value is None else _encode(value).decode()


def _entry(row: Sequence[Any]) -> HistoryEntry:
    *plain, before, after = row
    values = dict(zip(HistoryEntry.__struct_fields__, plain, strict=False))
    return HistoryEntry(**values, before=_value(before), after=_value(after))


def _value(text: str | None) -> object:
    return None if text is None else _decode(text)
