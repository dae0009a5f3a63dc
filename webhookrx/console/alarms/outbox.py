"""
The outbox: what targets of alarms are to be told, in the store until it was told or given up.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from webhookrx.console.store.history import StoreTransaction
from webhookrx.service.alarm_posts import AlarmPost

MOST_FOR_ONE: Final = 10_000
"""POSTs that wait for one target; of more, the oldest are given up."""


class WaitingRow(NamedTuple):
    """
    A POST that waits.

    @ivar at: since when, seconds since the epoch.
    """

    id: int
    at: float
    post: AlarmPost


def add_posts(transaction: StoreTransaction, posts: Iterable[tuple[str, AlarmPost]]) -> tuple[int, int]:
    """
    Add POSTs, each with the name of its target.

    @return: how many wait, and how many older ones were given up.
    """
    rows = [(post.key, target, transaction.now, post.body) for target, post in posts]
    transaction.db.executemany("INSERT INTO alarm_post (key, target, at, body) VALUES (?, ?, ?, ?)", rows)
    given_up = 0
    for target in {row[1] for row in rows}:
        given_up += transaction.execute(
            "DELETE FROM alarm_post WHERE target = ?1 AND id <="
            " (SELECT id FROM alarm_post WHERE target = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
            (target, MOST_FOR_ONE),
        ).rowcount
    return count_posts(transaction.db), given_up


def read_posts(db: sqlite3.Connection, target: str, after: int, count: int) -> list[WaitingRow]:
    """
    Return what waits for a target, the oldest first.

    @param after: the id of one; only later ones are wanted.
    """
    rows = db.execute(
        "SELECT id, at, key, body FROM alarm_post WHERE target = ? AND id > ? ORDER BY id LIMIT ?",
        (target, after, count),
    )
    return [WaitingRow(id, at, AlarmPost(key, body)) for id, at, key, body in rows]


def drop_posts(transaction: StoreTransaction, keys: Sequence[str]) -> int:
    """Forget what was told or given up, and return how many others wait."""
    transaction.db.executemany("DELETE FROM alarm_post WHERE key = ?", [(key,) for key in keys])
    return count_posts(transaction.db)


def count_posts(db: sqlite3.Connection) -> int:
    """Return how many wait."""
    (count,) = db.execute("SELECT count(*) FROM alarm_post").fetchone()
    return int(count)
