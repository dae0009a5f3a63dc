"""
What the machine's own operator does to the people of a console by a command, also while it runs: the way in when nobody
can sign in any more.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final, TypeVar

import msgspec

from webhookrx.config.files import read_file
from webhookrx.console.api.principal import RoleName
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.people import accounts
from webhookrx.console.people.accounts import PersonView
from webhookrx.console.people.password_rules import check_password
from webhookrx.console.store.database import StoreReader, StoreWriter
from webhookrx.console.store.history import Author, StoreTransaction
from webhookrx.diagnostics import quoted
from webhookrx.errors import CannotStart, ConfigError, StoreUnavailable, UnusableFile

_COMMAND: Final = Author("root", "command")

T = TypeVar("T")


class AccountChange(msgspec.Struct, frozen=True):
    """
    What is to be done to a person; None leaves it as it is.

    @ivar create: there is no such person yet; a password is needed.
    @ivar password_file: a file with nothing but the password, and a line break at most.
    @ivar keep_tokens: with a new password, the API tokens of the person go on.
    """

    create: bool = False
    role: RoleName | None = None
    tap: bool | None = None
    enabled: bool | None = None
    password_file: str | None = None
    keep_tokens: bool = False


def list_people(path: str) -> list[PersonView]:
    """
    Return the people of a console.

    @raise CannotStart: its store can't be read.
    """
    _check_there(path)
    try:
        with closing(StoreReader(path)) as reader:
            return reader.read(accounts.people)
    except (StoreUnavailable, UnusableFile, sqlite3.Error) as error:
        raise CannotStart(f"{quoted(path)}: {error}") from None


def offer_first_admin(path: str) -> str:
    """
    Return a new secret by which the first admin is made, once and within an hour.

    @raise CannotStart: there are people already, or the store can't be written.
    """
    return _write(path, accounts.offer_first_admin)


def change_account(path: str, name: str, change: AccountChange) -> None:
    """
    Add or change a person, as the log then says, by the command. All sessions of the person end. A password that is set
    lets the person in for an hour where people sign in by single sign-on alone.

    @raise CannotStart: that can't be done, or the store can't be written; nothing is changed then.
    @raise ConfigError: the file of the password can't be used.
    """
    hashed = None if change.password_file is None else _hashed(change.password_file)
    if change.create and hashed is None:
        raise ConfigError("A new person needs a password: --password-file FILE.")

    def apply(tx: StoreTransaction) -> None:
        if change.create:
            enabled = change.enabled is not False
            person = PersonView(name, change.role or "viewer", bool(change.tap), enabled)
            accounts.add_person(tx, _COMMAND, person, hashed or "")
            accounts.break_glass(tx, name)
            return
        rights: dict[str, Any] = {"role": change.role, "tap": change.tap, "enabled": change.enabled}
        given = {key: value for key, value in rights.items() if value is not None}
        accounts.change_person(tx, _COMMAND, name, given, hashed, keep_tokens=change.keep_tokens)
        if hashed is not None:
            accounts.break_glass(tx, name)

    _write(path, apply)


def _hashed(path: str) -> str:
    # argon2 comes with the extra of the console; only what hashes needs it.
    from webhookrx.console.people.passwords import hash_password

    try:
        password = read_file(path)[0].removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{quoted(path)} is not UTF-8.") from None
    try:
        check_password(password)
    except ApiProblem as problem:
        raise ConfigError(f"{quoted(path)}: {problem.detail}") from None
    return hash_password(password)


def _write(path: str, work: Callable[[StoreTransaction], T]) -> T:
    """Write to a store that a console may have open: SQLite makes the one wait for the other."""
    _check_there(path)
    try:
        with closing(StoreWriter(path)) as writer:
            return writer.write(work)
    except ApiProblem as problem:
        raise CannotStart(problem.detail or problem.kind.title) from None
    except (StoreUnavailable, UnusableFile, OSError) as error:
        raise CannotStart(f"{quoted(path)}: {error}") from None


def _check_there(path: str) -> None:
    if not os.path.exists(path):
        raise CannotStart(f"There is no console in {quoted(path)}: make one with webhookrx console init.")
