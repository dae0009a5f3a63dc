"""
The routes of single sign-on: begin and end of a log-in, and how it is set up.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from webhookrx.console.api.principal import Permission, RoleName
from webhookrx.console.api.problems import NOT_FOUND, ApiProblem
from webhookrx.console.api.route import Answer, ApiCall, ApiRoute
from webhookrx.console.oidc.flows import LONGEST_NEXT, flow_cookie
from webhookrx.console.oidc.provider import ProviderFailed
from webhookrx.console.oidc.single_sign_on import OidcAnswer, SingleSignOn
from webhookrx.console.people.routes import session_cookie

_Text = Annotated[str, Meta(max_length=4096)]


class SignInBegin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    @ivar next: a path of the console, to which somebody wants to come.
    """

    next: Annotated[str, Meta(max_length=LONGEST_NEXT)] = ""


class SignInPlace(msgspec.Struct, frozen=True):
    """
    @ivar url: where a browser goes to sign in. The cookie of the answer comes back with the end of the log-in.
    """

    url: str


class SignInEnd(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    @ivar flow: the value of the cookie that came with the begin.
    @ivar iss: the other fields are those with which the provider sends a browser back.
    """

    flow: _Text
    state: _Text
    code: _Text = ""
    error: _Text = ""
    iss: _Text = ""

    def __repr__(self) -> str:
        return "<SignInEnd>"


class SignedIn(msgspec.Struct, frozen=True):
    """
    @ivar csrf: the CSRF token of the session.
    @ivar next: the path of the begin.
    """

    csrf: str
    next: str


class ShownRoleClaim(msgspec.Struct, frozen=True):
    """Which role a claim gives."""

    claim: str
    value: str
    role: RoleName
    tap: bool


class ShownOidc(msgspec.Struct, frozen=True):
    """
    How single sign-on is set up, without the secret.

    @ivar callback: where the provider sends people back to.
    @ivar only: nobody signs in by a password.
    """

    issuer: str
    client_id: str
    secret_file: str
    callback: str
    only: bool
    roles: tuple[ShownRoleClaim, ...]


class ShownProvider(msgspec.Struct, frozen=True):
    """
    @ivar problem: why the provider can't be used; empty when it can.
    """

    problem: str = ""
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    jwks_uri: str = ""


async def begin(call: ApiCall) -> Answer:
    """Begin a log-in."""
    url, cookie = await _single_sign_on(call).begin(call.body.next)
    return Answer(SignInPlace(url), headers=(("Set-Cookie", cookie),))


async def finish(call: ApiCall) -> Answer:
    """Begin a session."""
    body: SignInEnd = call.body
    answer = OidcAnswer(body.state, body.code, body.error, body.iss)
    made = await _single_sign_on(call).finish(answer, body.flow, call.address, call.agent, call.cookie)
    cookies = (("Set-Cookie", session_cookie(made.secret)), ("Set-Cookie", flow_cookie("")))
    return Answer(SignedIn(made.csrf, made.next), 201, headers=cookies)


async def show(call: ApiCall) -> ShownOidc:
    """Return how it is set up."""
    found = _single_sign_on(call)
    settings = found.settings
    roles = tuple(ShownRoleClaim(each.claim, each.value, each.role, each.tap) for each in settings.roles)
    return ShownOidc(settings.issuer, settings.client_id, settings.secret_file, found.callback, settings.only, roles)


async def show_provider(call: ApiCall) -> ShownProvider:
    """Return whether the provider answers."""
    try:
        document = await _single_sign_on(call).provider.document()
    except ProviderFailed as error:
        return ShownProvider(str(error))
    return ShownProvider("", document.authorization_endpoint, document.token_endpoint, document.jwks_uri)


def _single_sign_on(call: ApiCall) -> SingleSignOn:
    found: SingleSignOn | None = call.console.single_sign_on
    if found is None:
        raise ApiProblem(NOT_FOUND, "This console has no single sign-on: --oidc-issuer sets it up.")
    return found


ROUTES: Final = (
    ApiRoute(
        "POST",
        "/single-sign-on",
        Permission.ANYONE,
        begin,
        "Begin a log-in at the provider of single sign-on.",
        SignInBegin,
        SignInPlace,
        body_limit=4096,
    ),
    ApiRoute(
        "POST",
        "/single-sign-on/session",
        Permission.ANYONE,
        finish,
        "Begin a session by what the provider of single sign-on has sent a browser back with.",
        SignInEnd,
        SignedIn,
        status=201,
        body_limit=32 * 1024,
    ),
    ApiRoute(
        "GET",
        "/single-sign-on",
        Permission.ADMINISTER,
        show,
        "How single sign-on is set up, without its secret.",
        answer=ShownOidc,
    ),
    ApiRoute(
        "GET",
        "/single-sign-on/provider",
        Permission.ADMINISTER,
        show_provider,
        "Whether the provider of single sign-on answers, which takes ten seconds at most.",
        answer=ShownProvider,
    ),
)
