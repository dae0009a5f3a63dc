"""
Who calls the console: people by sessions, programs by API tokens, and how one logs in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger

from webhookrx.console.api.principal import Principal
from webhookrx.console.api.problems import CONFLICT, FORBIDDEN, NOT_SIGNED_IN, ApiProblem, too_many
from webhookrx.console.api.reading import Shown
from webhookrx.console.people.accounts import (
    NO_OFFER,
    OF_PROVIDER,
    change_own_password,
    is_let_in,
    is_offered,
    of_token,
    take_first_admin,
)
from webhookrx.console.people.login_limits import RefusedAddresses, TooManyTries, begin_try, try_succeeded
from webhookrx.console.people.password_rules import MOST_LENGTH, check_password
from webhookrx.console.people.passwords import Passwords
from webhookrx.console.people.sessions import begin_session, of_session
from webhookrx.console.store.audit import LOGIN_FAILED, note
from webhookrx.console.store.history import StoreTransaction
from webhookrx.errors import StoreUnavailable
from webhookrx.intake.client_address import sender_of

if TYPE_CHECKING:
    from webhookrx.console.console import Console

NOTED_EACH = 60.0
"""Seconds between two notes that a session is used."""

MOST_LOGINS = 16
"""Log-ins under way at a time, with those that wait for their delay."""


_ONLY_BY_PROVIDER = (
    "Name or password is wrong, or the hour is over: people of this console sign in by single sign-on, and by a "
    "password within an hour after webhookrx console user has set it, on the machine of the console."
)


class People:
    """
    A L{webhookrx.console.api.callers.Doorkeeper} by the store of a console.

    @param console: the L{webhookrx.console.console.Console}.
    @ivar passwords: its threads are to be started and stopped with the console.
    """

    _log = Logger()

    def __init__(self, console: Console) -> None:
        self._console = console
        self.passwords = Passwords(console.reactor)
        self._noting: set[str] = set()
        self._logins = 0
        self._refused = RefusedAddresses(console.reactor.seconds)

    @property
    def has_single_sign_on_alone(self) -> bool:
        """Whether nobody signs in by a password, but for L{webhookrx.console.people.accounts.break_glass}."""
        oidc = self._console.settings.oidc
        return oidc is not None and oidc.only

    async def identify(self, shown: Shown) -> Principal | None:
        """See L{webhookrx.console.api.callers.Doorkeeper.identify}."""
        store, now = self._console.store, self._console.clock()
        if shown.token is not None:
            secret = shown.token
            of: Principal | None = await store.look(lambda db: of_token(db, secret, now))
            return of
        if shown.cookie is None:
            return None
        cookie = shown.cookie
        found = await store.look(lambda db: of_session(db, cookie, now))
        if found is None:
            return None
        principal: Principal = found[0]
        if now - found[1] >= NOTED_EACH and principal.session_id not in self._noting:
            self._noting.add(principal.session_id)
            noted = Deferred.fromCoroutine(self._note_use(principal.session_id))
            noted.addErrback(lambda failure: self._log.failure("The use of a session was not noted.", failure))
        return principal

    async def _note_use(self, session_id: str) -> None:
        try:
            await self._console.store.write(
                lambda tx: tx.execute("UPDATE session SET used_at = ? WHERE id = ?", (tx.now, session_id)).rowcount
            )
        except StoreUnavailable:
            pass  # a full disk ends no session before its time
        finally:
            self._noting.discard(session_id)

    async def log_in(self, name: str, password: str, address: str, agent: str, old: str | None) -> tuple[str, str]:
        """
        Begin a session.

        @param agent: what the caller's program calls itself, for the list of sessions.
        @param old: the secret of the session that the request came with; it ends.
        @return: the secret and the CSRF token of the new one.
        @raise ApiProblem: name or password is wrong, without a word which; or there were too many tries.
        """
        network = network_of(address)
        self._refused.check(network)
        if self._logins >= MOST_LOGINS:
            raise too_many("Too many log-ins are under way.", 2)
        self._logins += 1
        try:
            return await self._log_in(name, password[: MOST_LENGTH + 1], address, agent, old)
        except TooManyTries as refused:
            self._refused.note(network, refused)
            raise
        finally:
            self._logins -= 1

    async def _log_in(self, name: str, password: str, address: str, agent: str, old: str | None) -> tuple[str, str]:
        store = self._console.store
        name, network = name[:64], network_of(address)
        _, delay = await store.write(lambda tx: begin_try(tx, name, network))
        only, now = self.has_single_sign_on_alone, self._console.clock()
        row = await store.look(
            lambda db: (
                None
                if only and not is_let_in(db, name, now)
                else db.execute(
                    "SELECT password, generation FROM person WHERE name = ? AND enabled", (name,)
                ).fetchone()
            )
        )
        stored, generation = row or (None, 0)
        if delay:
            await deferLater(self._console.reactor, delay)
        right, is_old = await self.passwords.verify(stored, password)
        rehashed = await self.passwords.hash(password) if right and is_old else None

        def finish(tx: StoreTransaction) -> tuple[str, str] | None:
            # What was verified may have changed meanwhile.
            still = tx.execute(
                "SELECT 1 FROM person WHERE name = ? AND enabled AND generation = ?", (name, generation)
            ).fetchone()
            if not right or still is None:
                note(tx, "", "ui", address, LOGIN_FAILED, name)
                return None
            try_succeeded(tx, name, network)
            if rehashed is not None:
                tx.execute("UPDATE person SET password = ? WHERE name = ?", (rehashed, name))
            note(tx, name, "ui", address, "login")
            return begin_session(tx, name, address, agent, old)

        made: tuple[str, str] | None = await store.write(finish)
        if made is None:
            raise ApiProblem(NOT_SIGNED_IN, _ONLY_BY_PROVIDER if only else "Name or password is wrong.")
        return made

    async def change_password(
        self, caller: Principal, old: str, new: str, address: str, *, keep_tokens: bool = False
    ) -> None:
        """
        Change the password of a caller in a session. Wrong old ones count as failed log-ins: a session that somebody
        else has found is no way to guess the password.

        @raise ApiProblem: the old password is wrong, the new one can't be one, or there were too many tries.
        """
        store = self._console.store
        check_password(new)
        network = network_of(address)
        await store.write(lambda tx: begin_try(tx, caller.name, network))
        row = await store.look(
            lambda db: db.execute("SELECT password, generation FROM person WHERE name = ?", (caller.name,)).fetchone()
        )
        stored, generation = row or (None, 0)
        if row is not None and stored is None:
            raise ApiProblem(CONFLICT, OF_PROVIDER)
        right, _ = await self.passwords.verify(stored, old[: MOST_LENGTH + 1])
        if not right:
            await store.write(lambda tx: note(tx, "", "ui", address, LOGIN_FAILED, caller.name))
            raise ApiProblem(FORBIDDEN, "The old password is wrong.")
        hashed = await self.passwords.hash(new)

        def change(tx: StoreTransaction) -> None:
            try_succeeded(tx, caller.name, network)
            change_own_password(tx, caller, hashed, generation, keep_tokens=keep_tokens)

        await store.write(change)

    async def make_first_admin(self, secret: str, name: str, password: str, address: str) -> None:
        """
        Make the first admin by the secret of the one-time URL.

        @raise ApiProblem: it is not the secret, or there are people.
        """
        store, now = self._console.store, self._console.clock()
        if self.has_single_sign_on_alone:
            raise ApiProblem(FORBIDDEN, "People of this console sign in by single sign-on alone.")
        check_password(password)
        # Before a thread hashes anything for whoever asks.
        if not await store.look(lambda db: is_offered(db, secret, now)):
            await store.write(lambda tx: begin_try(tx, "", network_of(address))[0])
            raise ApiProblem(FORBIDDEN, NO_OFFER)
        hashed = await self.passwords.hash(password)

        def make(tx: StoreTransaction) -> None:
            take_first_admin(tx, secret, name, hashed)
            note(tx, name, "ui", address, "first_admin")

        await store.write(make)


def network_of(address: str) -> str:
    """Return what tries are counted by: an address, or the network that one sender has."""
    return address if address == "unix" else sender_of(address)
