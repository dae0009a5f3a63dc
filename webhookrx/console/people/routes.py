"""
The routes of people, sessions and API tokens.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from webhookrx.console.api.principal import Permission, Principal, RoleName
from webhookrx.console.api.problems import FORBIDDEN, ApiProblem
from webhookrx.console.api.reading import COOKIE
from webhookrx.console.api.route import Answer, ApiCall, ApiRoute
from webhookrx.console.people import accounts, sessions
from webhookrx.console.people.accounts import PersonView, TokenView
from webhookrx.console.people.password_rules import check_password
from webhookrx.console.people.sessions import SessionView
from webhookrx.console.store.audit import note

Password = Annotated[str, msgspec.Meta(max_length=256)]
Name = Annotated[str, msgspec.Meta(max_length=63)]

_GONE: Final = ("Set-Cookie", f"{COOKIE}=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0")


class LogIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Name and password."""

    name: Name
    password: Password


class OwnPassword(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    The caller's password as it is, and as it is to be.

    @ivar keep_tokens: the caller's API tokens go on; else they end, as all other sessions do.
    """

    old: Password
    password: Password
    keep_tokens: bool = False


class FirstAdmin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The secret of the one-time URL, and who is to be the first admin."""

    secret: Annotated[str, msgspec.Meta(max_length=100)]
    name: Name
    password: Password


class WhoAmI(msgspec.Struct, frozen=True):
    """Who calls. The CSRF token is empty for an API token; by single sign-on nobody has a password."""

    name: str
    role: RoleName
    tap: bool
    csrf: str
    single_sign_on: bool = False


class NewPerson(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person to be added."""

    name: Name
    password: Password
    role: RoleName = "viewer"
    tap: bool = False


class PersonChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    What is to be changed of a person; what is left out stays.

    @ivar keep_tokens: with a new password, the person's API tokens go on; else they end.
    """

    role: RoleName | msgspec.UnsetType = msgspec.UNSET
    tap: bool | msgspec.UnsetType = msgspec.UNSET
    enabled: bool | msgspec.UnsetType = msgspec.UNSET
    password: Password | msgspec.UnsetType = msgspec.UNSET
    keep_tokens: bool = False


class NewToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An API token to be made."""

    name: Name
    role: RoleName = "viewer"
    tap: bool = False
    days: Annotated[int, msgspec.Meta(ge=1, le=366)] = 90


class MadeToken(msgspec.Struct, frozen=True):
    """A new API token, with its secret, which is shown once."""

    token: TokenView
    secret: str


def session_cookie(secret: str) -> str:
    """Return the header that has a browser keep a session."""
    return f"{COOKIE}={secret}; Path=/; Secure; HttpOnly; SameSite=Lax"


async def log_in(call: ApiCall) -> Answer:
    """Begin a session."""
    body: LogIn = call.body
    secret, csrf = await call.console.people.log_in(body.name, body.password, call.address, call.agent, call.cookie)
    return Answer({"csrf": csrf}, 201, headers=(("Set-Cookie", session_cookie(secret)),))


async def first_admin(call: ApiCall) -> None:
    """Make the first admin."""
    body: FirstAdmin = call.body
    await call.console.people.make_first_admin(body.secret, body.name, body.password, call.address)


async def who_am_i(call: ApiCall) -> WhoAmI:
    """Return the caller."""
    caller = call.caller
    person = await call.console.store.look(lambda db: accounts.find_person(db, caller.name))
    return WhoAmI(caller.name, caller.role, caller.tap, caller.csrf, person.single_sign_on)


async def log_out(call: ApiCall) -> Answer:
    """End this session."""
    caller = _in_session(call)
    await _end(call, caller.session_id, "logout")
    return Answer(None, 204, headers=(_GONE,))


async def change_own_password(call: ApiCall) -> None:
    """Change the caller's password."""
    body: OwnPassword = call.body
    caller = _in_session(call)
    people = call.console.people
    await people.change_password(caller, body.old, body.password, call.address, keep_tokens=body.keep_tokens)


async def list_sessions(call: ApiCall) -> Any:
    """Return the caller's sessions."""
    now = call.console.clock()
    return await call.console.store.read(lambda db: sessions.sessions(db, call.caller.name, now))


async def end_session(call: ApiCall) -> None:
    """End one of the caller's sessions."""
    _in_session(call)
    await _end(call, call.path["id"], "session_ended")


async def _end(call: ApiCall, session_id: str, event: str) -> None:
    caller = call.caller

    def end(tx: Any) -> None:
        sessions.end_session(tx, caller.name, session_id)
        note(tx, caller.name, "ui", call.address, event)

    await call.console.store.write(end)


async def list_people(call: ApiCall) -> Any:
    """Return all people."""
    return await call.console.store.read(accounts.people)


async def add_person(call: ApiCall) -> PersonView:
    """Add a person."""
    body: NewPerson = call.body
    accounts.check_name(body.name)
    check_password(body.password)
    _check_tap(call.caller, True)
    hashed = await call.console.people.passwords.hash(body.password)
    person = PersonView(body.name, body.role, body.tap, True)

    def add(tx: Any) -> None:
        accounts.require(tx, call.caller, Permission.ADMINISTER)
        accounts.add_person(tx, accounts.author(call.caller), person, hashed)

    await call.console.store.write(add)
    return person


async def change_person(call: ApiCall) -> None:
    """Change a person."""
    body: PersonChange = call.body
    changes = {key: value for key, value in msgspec.structs.asdict(body).items() if value is not msgspec.UNSET}
    password, keep_tokens = changes.pop("password", None), changes.pop("keep_tokens")
    _check_tap(call.caller, bool(changes.get("tap")) or password is not None or changes.get("role") == "admin")
    if password is not None:
        check_password(password)
    hashed = None if password is None else await call.console.people.passwords.hash(password)

    def change(tx: Any) -> None:
        accounts.require(tx, call.caller, Permission.ADMINISTER)
        by = accounts.author(call.caller)
        accounts.change_person(tx, by, call.path["name"], changes, hashed, keep_tokens=keep_tokens)

    await call.console.store.write(change)


async def remove_person(call: ApiCall) -> None:
    """Remove a person."""

    def remove(tx: Any) -> None:
        accounts.require(tx, call.caller, Permission.ADMINISTER)
        accounts.remove_person(tx, accounts.author(call.caller), call.path["name"])

    await call.console.store.write(remove)


async def list_tokens(call: ApiCall) -> Any:
    """Return the caller's tokens; all for an admin."""
    person = None if call.caller.may(Permission.ADMINISTER) else call.caller.name
    return await call.console.store.read(lambda db: accounts.tokens(db, person))


async def add_token(call: ApiCall) -> MadeToken:
    """Make a token."""
    caller, body = _in_session(call), call.body

    def add(tx: Any) -> Any:
        accounts.require(tx, caller, Permission(body.role))
        return accounts.add_token(tx, caller, body.name, body.role, body.tap, body.days)

    return MadeToken(*await call.console.store.write(add))


async def remove_token(call: ApiCall) -> None:
    """Remove a token."""

    def remove(tx: Any) -> None:
        accounts.require(tx, call.caller, Permission.SIGNED_IN)
        accounts.remove_token(tx, call.caller, call.path["id"])

    await call.console.store.write(remove)


def _in_session(call: ApiCall) -> Principal:
    """
    Return the caller, who is a person in a session: no token makes tokens, or ends sessions.

    @raise ApiProblem: it is a token.
    """
    if not call.caller.session_id:
        raise ApiProblem(FORBIDDEN, "Sign in for this; a token can't do it.")
    return call.caller


def _check_tap(caller: Principal, gains_tap: bool) -> None:
    """
    Let no token give what it does not have: whoever signs in with a password that it has set
    may have the permission, or as an admin grant it.

    @raise ApiProblem: it would.
    """
    if gains_tap and caller.token_id and not caller.tap:
        raise ApiProblem(FORBIDDEN, "This token lacks the permission tap, and can't give it.")


_ANY: Final = Permission.SIGNED_IN
_ADMIN: Final = Permission.ADMINISTER

ROUTES: Final = (
    ApiRoute(
        "POST",
        "/session",
        Permission.ANYONE,
        log_in,
        "Begin a session.",
        LogIn,
        dict[str, str],
        status=201,
        body_limit=2048,
    ),
    ApiRoute("GET", "/session", _ANY, who_am_i, "Tell who calls, and the CSRF token of a session.", answer=WhoAmI),
    ApiRoute("DELETE", "/session", _ANY, log_out, "End this session."),
    ApiRoute(
        "PUT",
        "/session/password",
        _ANY,
        change_own_password,
        "Change one's own password; other sessions end, and API tokens unless they are to stay.",
        OwnPassword,
        body_limit=2048,
    ),
    ApiRoute("GET", "/sessions", _ANY, list_sessions, "List one's own sessions.", answer=list[SessionView]),
    ApiRoute("DELETE", "/sessions/{id}", _ANY, end_session, "End one of one's own sessions."),
    ApiRoute(
        "POST",
        "/first-admin",
        Permission.ANYONE,
        first_admin,
        "Make the first admin by the one-time URL.",
        FirstAdmin,
        body_limit=2048,
    ),
    ApiRoute("GET", "/people", _ADMIN, list_people, "List all people.", answer=list[PersonView]),
    ApiRoute(
        "POST", "/people", _ADMIN, add_person, "Add a person.", NewPerson, PersonView, status=201, body_limit=2048
    ),
    ApiRoute(
        "PATCH",
        "/people/{name}",
        _ADMIN,
        change_person,
        "Change rights or password; sessions end.",
        PersonChange,
        body_limit=2048,
    ),
    ApiRoute("DELETE", "/people/{name}", _ADMIN, remove_person, "Remove a person, with sessions and tokens."),
    ApiRoute(
        "GET", "/tokens", _ANY, list_tokens, "List one's own API tokens; all for an admin.", answer=list[TokenView]
    ),
    ApiRoute(
        "POST",
        "/tokens",
        _ANY,
        add_token,
        "Make an API token; its secret is shown once.",
        NewToken,
        MadeToken,
        status=201,
        body_limit=2048,
    ),
    ApiRoute("DELETE", "/tokens/{id}", _ANY, remove_token, "Remove an API token."),
)
