"""
Accounts: people and their API tokens in the store. Of random secrets only SHA-256 is kept.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import sqlite3
from typing import Any, Final

import msgspec

from webhookrx.console.api.principal import ROLES, Permission, Principal, RoleName
from webhookrx.console.api.problems import CONFLICT, FORBIDDEN, INVALID, NOT_FOUND, ApiProblem
from webhookrx.console.store.history import Author, Change, StoreTransaction

MOST_TOKENS: Final = 50
"""Of one person."""

MOST_PEOPLE: Final = 1000
BACKWARDS: Final = 300
"""Seconds that the clock may have been set back by before a session is not believed any more."""

FIRST_ADMIN: Final = "first_admin"
BREAK_GLASS: Final = "break_glass:"
BREAK_GLASS_FOR: Final = 3600
"""Seconds for which a password that was set on the machine of the console counts, where others don't."""

OF_PROVIDER: Final = "The provider of single sign-on decides on role, tap and password of this person."
NO_OFFER: Final = (
    "The link is wrong, was used or has expired, or there are people already; webhookrx console user --first-admin, "
    "on the machine of the console, makes another while there is nobody."
)
_PERSON: Final = "SELECT name, role, tap, enabled, subject IS NOT NULL FROM person"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._@-]{0,62}")


class PersonView(msgspec.Struct, frozen=True):
    """
    A person, as the API shows one.

    @ivar single_sign_on: the provider of single sign-on knows who it is, and decides on role and C{tap}; there is no
        password.
    """

    name: str
    role: RoleName
    tap: bool
    enabled: bool
    single_sign_on: bool = False


class TokenView(msgspec.Struct, frozen=True):
    """An API token, without its secret."""

    id: str
    name: str
    person: str
    role: RoleName
    tap: bool
    made_at: float
    expires_at: float


def digest(secret: str) -> bytes:
    """Return what is kept of a random secret."""
    return hashlib.sha256(secret.encode()).digest()


def is_name(name: str) -> bool:
    """Return whether a person or token may have a name."""
    return _NAME.fullmatch(name) is not None


def check_name(name: str) -> None:
    """
    Check the name of a person or token.

    @raise ApiProblem: it has other characters.
    """
    if not is_name(name):
        raise ApiProblem(INVALID, "A name has 1 to 63 of a-z, 0-9, dot, dash, underscore and @.")


def author(principal: Principal) -> Author:
    """Return a caller as the history names one."""
    return Author(principal.name, principal.via)


# -- who shows what ----------------------------------------------------------------------------------------------


def of_token(db: sqlite3.Connection, secret: str, now: float) -> Principal | None:
    """Return for whom an API token speaks, with no more rights than that person has now."""
    row = db.execute(
        "SELECT person.name, person.role, person.tap, api_token.id, api_token.role, api_token.tap FROM api_token"
        " JOIN person ON person.id = api_token.person"
        " WHERE hash = ? AND enabled AND expires_at > ? AND api_token.made_at <= ?",
        (digest(secret), now, now + BACKWARDS),
    ).fetchone()
    if row is None:
        return None
    name, role, tap, token_id, own_role, own_tap = row
    least: RoleName = min(role, own_role, key=ROLES.index)
    return Principal(name, least, bool(tap and own_tap), token_id=token_id)


def require(tx: StoreTransaction, principal: Principal, permission: Permission) -> None:
    """
    Ask once more, in the transaction of a change of rights, whether its caller may do it.

    @raise ApiProblem: not any more.
    """
    if principal.token_id:
        found = tx.execute(
            "SELECT person.role, api_token.role FROM api_token JOIN person ON person.id = person"
            " WHERE api_token.id = ? AND enabled AND expires_at > ?",
            (principal.token_id, tx.now),
        ).fetchone()
    else:
        found = tx.execute(
            "SELECT role, role FROM session JOIN person ON person.id = person WHERE session.id = ? AND enabled",
            (principal.session_id,),
        ).fetchone()
    if found is None or not Principal("", min(found, key=ROLES.index)).may(permission):
        raise ApiProblem(FORBIDDEN, "The right was taken away.")


# -- people ------------------------------------------------------------------------------------------------------


def people(db: sqlite3.Connection) -> list[PersonView]:
    """Return all people by name."""
    return [_person(row) for row in db.execute(f"{_PERSON} ORDER BY name")]


def add_person(
    tx: StoreTransaction, by: Author, person: PersonView, password: str | None, subject: str | None = None
) -> None:
    """
    Add a person.

    @param password: its hash; None for somebody of single sign-on.
    @param subject: how the provider of single sign-on knows the person; None for somebody with a password.
    @raise ApiProblem: the name is wrong or taken, or there are too many.
    """
    check_name(person.name)
    if tx.execute("SELECT count(*) FROM person").fetchone()[0] >= MOST_PEOPLE:
        raise ApiProblem(CONFLICT, f"There are {MOST_PEOPLE} people.")
    if tx.execute("SELECT 1 FROM person WHERE name = ?", (person.name,)).fetchone():
        raise ApiProblem(CONFLICT, "The name is taken.")
    tx.execute(
        "INSERT INTO person (name, password, subject, role, tap, enabled, made_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (person.name, password, subject, person.role, person.tap, person.enabled, tx.now),
    )
    tx.revise(by, [Change("user", person.name, "create", None, msgspec.to_builtins(person))])


def change_person(
    tx: StoreTransaction,
    by: Author,
    name: str,
    changes: dict[str, Any],
    password: str | None,
    *,
    keep_tokens: bool = False,
) -> None:
    """
    Change rights or password. All sessions of the person end: the next one has the new rights.

    @param changes: some of C{role}, C{tap} and C{enabled}.
    @param password: a new hash.
    @param keep_tokens: with a new password, the API tokens of the person go on, too.
    @raise ApiProblem: there is no such person, no admin would be left, or it is not for this console to decide.
    """
    before = find_person(tx.db, name)
    after = msgspec.structs.replace(before, **changes)
    if before.single_sign_on and (password is not None or (after.role, after.tap) != (before.role, before.tap)):
        raise ApiProblem(CONFLICT, OF_PROVIDER)
    tx.execute(
        "UPDATE person SET role = ?, tap = ?, enabled = ?, password = coalesce(?, password),"
        " generation = generation + 1 WHERE name = ?",
        (after.role, after.tap, after.enabled, password, name),
    )
    tx.execute("DELETE FROM session WHERE person = (SELECT id FROM person WHERE name = ?)", (name,))
    _check_admins(tx)
    extra = {} if password is None else {"password": "changed"}
    change = Change("user", name, "update", msgspec.to_builtins(before), {**msgspec.to_builtins(after), **extra})
    gone = [] if password is None or keep_tokens else remove_tokens(tx, name)
    tx.revise(by, [change, *gone])


def change_own_password(
    tx: StoreTransaction, caller: Principal, password: str, verified: int, *, keep_tokens: bool
) -> None:
    """
    Change the password of a caller. The other sessions end, and API tokens unless they are kept: whoever knows the
    old password may have made some.

    @param password: a new hash.
    @param verified: the generation of which the old password was verified.
    @raise ApiProblem: the person has changed since.
    """
    person = find_person(tx.db, caller.name)
    changed = tx.execute(
        "UPDATE person SET password = ?, generation = generation + 1 WHERE name = ? AND enabled AND generation = ?"
        " AND EXISTS (SELECT 1 FROM session WHERE session.id = ? AND session.person = person.id)",
        (password, caller.name, verified, caller.session_id),
    )
    if not changed.rowcount:
        raise ApiProblem(CONFLICT, "Your account has changed meanwhile.")
    tx.execute(
        "DELETE FROM session WHERE id != ? AND person = (SELECT id FROM person WHERE name = ?)",
        (caller.session_id, caller.name),
    )
    plain = msgspec.to_builtins(person)
    change = Change("user", caller.name, "update", plain, {**plain, "password": "changed"})
    tx.revise(author(caller), [change, *([] if keep_tokens else remove_tokens(tx, caller.name))])


def remove_person(tx: StoreTransaction, by: Author, name: str) -> None:
    """
    Remove a person, with sessions and tokens.

    @raise ApiProblem: see L{change_person}.
    """
    before = find_person(tx.db, name)
    tx.execute("DELETE FROM session WHERE person = (SELECT id FROM person WHERE name = ?)", (name,))
    gone = remove_tokens(tx, name)
    tx.execute("DELETE FROM person WHERE name = ?", (name,))
    _check_admins(tx)
    tx.revise(by, [Change("user", name, "delete", msgspec.to_builtins(before), None), *gone])


def find_person(db: sqlite3.Connection, name: str) -> PersonView:
    """
    Return a person.

    @raise ApiProblem: there is none of that name.
    """
    row = db.execute(f"{_PERSON} WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise ApiProblem(NOT_FOUND, "There is no such person.")
    return _person(row)


def _person(row: tuple[Any, ...]) -> PersonView:
    name, role, tap, enabled, is_single = row
    return PersonView(name, role, bool(tap), bool(enabled), bool(is_single))


def _check_admins(tx: StoreTransaction) -> None:
    if not tx.execute("SELECT 1 FROM person WHERE role = 'admin' AND enabled").fetchone():
        raise ApiProblem(CONFLICT, "No admin would be left.")


def break_glass(tx: StoreTransaction, name: str) -> None:
    """Let a person sign in by the password for a while, also where people sign in by single sign-on alone."""
    known = tx.execute("SELECT name, value FROM setting WHERE name GLOB ?", (f"{BREAK_GLASS}*",)).fetchall()
    for key, until in known:
        if float(until) <= tx.now:
            tx.execute("DELETE FROM setting WHERE name = ?", (key,))
    value = str(tx.now + BREAK_GLASS_FOR)
    tx.execute("INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)", (BREAK_GLASS + name, value))


def is_let_in(db: sqlite3.Connection, name: str, now: float) -> bool:
    """Return whether L{break_glass} lets a person in now."""
    row = db.execute("SELECT value FROM setting WHERE name = ?", (BREAK_GLASS + name,)).fetchone()
    return row is not None and now < float(row[0]) <= now + BREAK_GLASS_FOR


# -- the first admin ---------------------------------------------------------------------------------------------


def offer_first_admin(tx: StoreTransaction, seconds: int = 3600) -> str:
    """
    Return a secret by which the first admin makes an account, once. An earlier one is void.

    @raise ApiProblem: there are people.
    """
    if tx.execute("SELECT 1 FROM person").fetchone():
        raise ApiProblem(CONFLICT, "There are people already.")
    secret = secrets.token_urlsafe(32)
    value = msgspec.json.encode({"hash": digest(secret).hex(), "expires_at": tx.now + seconds}).decode()
    tx.execute("INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)", (FIRST_ADMIN, value))
    return secret


def is_offered(db: sqlite3.Connection, secret: str, now: float) -> bool:
    """Return whether the secret of L{offer_first_admin} is this one, and still good."""
    row = db.execute("SELECT value FROM setting WHERE name = ?", (FIRST_ADMIN,)).fetchone()
    if row is None or db.execute("SELECT 1 FROM person").fetchone():
        return False
    offer = msgspec.json.decode(row[0])
    return secrets.compare_digest(offer["hash"], digest(secret).hex()) and now < offer["expires_at"]


def take_first_admin(tx: StoreTransaction, secret: str, name: str, password: str) -> None:
    """
    Make the first admin, with the permission C{tap}.

    @param password: its hash.
    @raise ApiProblem: the secret is not the one, or was used.
    """
    if not is_offered(tx.db, secret, tx.now):
        raise ApiProblem(FORBIDDEN, NO_OFFER)
    tx.execute("DELETE FROM setting WHERE name = ?", (FIRST_ADMIN,))
    add_person(tx, Author(name, "ui"), PersonView(name, "admin", True, True), password)


# -- tokens ------------------------------------------------------------------------------------------------------


def add_token(
    tx: StoreTransaction, maker: Principal, name: str, role: RoleName, tap: bool, days: int
) -> tuple[TokenView, str]:
    """
    Make an API token of its maker, with no more rights than that has.

    @return: it, and its secret.
    @raise ApiProblem: the name is wrong or taken, the rights are more than the maker's, or there are too many.
    """
    check_name(name)
    if ROLES.index(role) > ROLES.index(maker.role) or tap > maker.tap:
        raise ApiProblem(FORBIDDEN, "A token has no more rights than its maker.")
    person, count = tx.execute(
        "SELECT id, (SELECT count(*) FROM api_token WHERE person = person.id) FROM person WHERE name = ?",
        (maker.name,),
    ).fetchone()
    if count >= MOST_TOKENS or tx.execute("SELECT 1 FROM api_token WHERE name = ?", (name,)).fetchone():
        raise ApiProblem(CONFLICT, f"The name is taken, or you have {MOST_TOKENS} tokens.")
    secret = f"wrxp_{secrets.token_urlsafe(32)}"
    token = TokenView(secrets.token_hex(8), name, maker.name, role, tap, tx.now, tx.now + days * 86400)
    tx.execute(
        "INSERT INTO api_token (id, hash, name, person, role, tap, made_at, expires_at) VALUES (?,?,?,?,?,?,?,?)",
        (token.id, digest(secret), name, person, role, tap, token.made_at, token.expires_at),
    )
    tx.revise(author(maker), [Change("token", name, "create", None, msgspec.to_builtins(token))])
    return token, secret


def tokens(db: sqlite3.Connection, person: str | None) -> list[TokenView]:
    """Return the tokens of a person, or of all."""
    rows = db.execute(
        "SELECT api_token.id, api_token.name, person.name, api_token.role, api_token.tap, api_token.made_at,"
        " expires_at FROM api_token JOIN person ON person.id = person"
        " WHERE ?1 IS NULL OR person.name = ?1 ORDER BY api_token.name",
        (person,),
    )
    return [
        TokenView(token_id, name, of, role, bool(tap), made_at, ends)
        for token_id, name, of, role, tap, made_at, ends in rows
    ]


def remove_tokens(tx: StoreTransaction, person: str) -> list[Change]:
    """Remove all tokens of a person, and return the changes that this makes."""
    gone = tokens(tx.db, person)
    tx.execute("DELETE FROM api_token WHERE person = (SELECT id FROM person WHERE name = ?)", (person,))
    return [Change("token", token.name, "delete", msgspec.to_builtins(token), None) for token in gone]


def remove_token(tx: StoreTransaction, by: Principal, token_id: str) -> None:
    """
    Remove a token: one's own, or any as an admin.

    @raise ApiProblem: there is none.
    """
    person = None if by.may(Permission.ADMINISTER) else by.name
    token = next((token for token in tokens(tx.db, person) if token.id == token_id), None)
    if token is None:
        raise ApiProblem(NOT_FOUND)
    tx.execute("DELETE FROM api_token WHERE id = ?", (token_id,))
    tx.revise(author(by), [Change("token", token.name, "delete", msgspec.to_builtins(token), None)])
