"""
People of single sign-on in the store: made at their first log-in, and given at each one the rights that the provider
says.
"""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from webhookrx.console.api.problems import CONFLICT, FORBIDDEN, ApiProblem
from webhookrx.console.oidc.claims import GivenRights
from webhookrx.console.people.accounts import PersonView, add_person, find_person, remove_tokens
from webhookrx.console.store.history import Author, Change, StoreTransaction

VIA: Final = "oidc"
"""By which way the history has such changes."""


def admit(tx: StoreTransaction, subject: str, name: str, rights: GivenRights) -> str:
    """
    Return the name of a person who may sign in, added if this is the first time. Other rights than at the last log-in
    end the sessions that there are.

    The provider's word counts even when no admin is left then: others become one by it.

    @param name: what a person is called who comes for the first time.
    @raise ApiProblem: another person has the name, or an admin has disabled this one.
    """
    known = _find(tx.db, subject)
    if known is None:
        if tx.execute("SELECT 1 FROM person WHERE name = ?", (name,)).fetchone():
            raise ApiProblem(
                CONFLICT, f"Another person of this console is called {name}: an admin is to remove that one first."
            )
        add_person(tx, Author(name, VIA), PersonView(name, rights.role, rights.tap, True, True), None, subject)
        return name
    if not known.enabled:
        raise ApiProblem(FORBIDDEN, "An admin of this console has disabled you.")
    after = msgspec.structs.replace(known, role=rights.role, tap=rights.tap)
    if after != known:
        tx.execute(
            "UPDATE person SET role = ?, tap = ?, generation = generation + 1 WHERE name = ?",
            (after.role, after.tap, known.name),
        )
        _end_sessions(tx, known.name)
        change = Change("user", known.name, "update", msgspec.to_builtins(known), msgspec.to_builtins(after))
        tx.revise(Author(known.name, VIA), [change])
    return known.name


def shut_out(tx: StoreTransaction, subject: str) -> None:
    """End the sessions and API tokens of a person to whom the provider gives no role any more."""
    known = _find(tx.db, subject)
    if known is not None:
        _end_sessions(tx, known.name)
        gone = remove_tokens(tx, known.name)
        if gone:
            tx.revise(Author(known.name, VIA), gone)


def _find(db: sqlite3.Connection, subject: str) -> PersonView | None:
    row = db.execute("SELECT name FROM person WHERE subject = ?", (subject,)).fetchone()
    return None if row is None else find_person(db, row[0])


def _end_sessions(tx: StoreTransaction, name: str) -> None:
    tx.execute("DELETE FROM session WHERE person = (SELECT id FROM person WHERE name = ?)", (name,))
