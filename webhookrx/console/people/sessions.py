"""
Sessions of people in the store: begun, known by a secret of which only SHA-256 is kept, listed and ended.
"""

from __future__ import annotations

import secrets
import sqlite3
from typing import Final

import msgspec

from webhookrx.console.api.principal import Principal
from webhookrx.console.api.problems import NOT_FOUND, ApiProblem
from webhookrx.console.people.accounts import BACKWARDS, digest
from webhookrx.console.store.history import StoreTransaction

IDLE: Final = 8 * 3600
WHOLE: Final = 24 * 3600
"""Seconds that a session lives without a request, and in all."""

MOST_SESSIONS: Final = 20
"""Of one person."""


class SessionView(msgspec.Struct, frozen=True):
    """One session of the caller."""

    id: str
    address: str
    agent: str
    made_at: float
    used_at: float


def of_session(db: sqlite3.Connection, secret: str, now: float) -> tuple[Principal, float] | None:
    """Return whose session a secret is, and when it was last noted as used."""
    row = db.execute(
        "SELECT name, role, tap, session.id, csrf, session.made_at, used_at FROM session"
        " JOIN person ON person.id = session.person WHERE hash = ? AND enabled",
        (digest(secret),),
    ).fetchone()
    if row is None:
        return None
    name, role, tap, session_id, csrf, made_at, used_at = row
    if not made_at - BACKWARDS <= now < made_at + WHOLE or now >= used_at + IDLE:
        return None
    return Principal(name, role, bool(tap), session_id=session_id, csrf=csrf), used_at


def begin_session(tx: StoreTransaction, name: str, address: str, agent: str, old: str | None) -> tuple[str, str]:
    """
    Begin a session with a new secret; the oldest of too many ends.

    @param old: the secret of the session that the request came with, which ends.
    @return: secret and CSRF token.
    """
    if old is not None:
        tx.execute("DELETE FROM session WHERE hash = ?", (digest(old),))
    tx.execute("DELETE FROM session WHERE made_at <= ? OR used_at <= ?", (tx.now - WHOLE, tx.now - IDLE))
    (person,) = tx.execute("SELECT id FROM person WHERE name = ?", (name,)).fetchone()
    tx.execute(
        "DELETE FROM session WHERE hash IN"
        " (SELECT hash FROM session WHERE person = ? ORDER BY made_at DESC LIMIT -1 OFFSET ?)",
        (person, MOST_SESSIONS - 1),
    )
    secret, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    tx.execute(
        "INSERT INTO session (hash, id, person, csrf, address, agent, made_at, used_at) VALUES (?,?,?,?,?,?,?,?)",
        (digest(secret), secrets.token_hex(8), person, csrf, address, agent, tx.now, tx.now),
    )
    return secret, csrf


def sessions(db: sqlite3.Connection, name: str, now: float) -> list[SessionView]:
    """Return the sessions of a person that still count."""
    rows = db.execute(
        "SELECT session.id, address, agent, session.made_at, used_at FROM session"
        " JOIN person ON person.id = person WHERE name = ? AND session.made_at > ? AND used_at > ?"
        " ORDER BY session.made_at",
        (name, now - WHOLE, now - IDLE),
    )
    return [SessionView(*row) for row in rows]


def end_session(tx: StoreTransaction, name: str, session_id: str) -> None:
    """
    End a session of a person.

    @raise ApiProblem: it is not one of theirs.
    """
    ended = tx.execute(
        "DELETE FROM session WHERE id = ? AND person = (SELECT id FROM person WHERE name = ?)", (session_id, name)
    )
    if not ended.rowcount:
        raise ApiProblem(NOT_FOUND)
