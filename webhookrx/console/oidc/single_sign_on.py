"""
Single sign-on as a whole: sends browsers to the provider, and makes sessions of what they bring back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from twisted.logger import Logger

from webhookrx.console.api.problems import BAD_PROVIDER, FORBIDDEN, ApiProblem, too_many
from webhookrx.console.oidc.claims import BadIdToken, name_of, rights_of, subject_of
from webhookrx.console.oidc.flows import LoginFlow, LoginFlows, flow_cookie
from webhookrx.console.oidc.id_token import verified_claims
from webhookrx.console.oidc.oidc_people import admit, shut_out
from webhookrx.console.oidc.oidc_settings import OidcSettings
from webhookrx.console.oidc.provider import Ask, OidcProvider, ProviderFailed
from webhookrx.console.people.login_limits import RefusedAddresses, TooManyTries, begin_try, try_succeeded
from webhookrx.console.people.people import MOST_LOGINS, network_of
from webhookrx.console.people.sessions import begin_session
from webhookrx.console.store.audit import LOGIN_FAILED, note
from webhookrx.console.store.history import StoreTransaction

if TYPE_CHECKING:
    from webhookrx.console.console import Console

CALLBACK: Final = "/sign-in/oidc/callback"
"""The path of the console to which the provider sends people back."""

NO_FLOW: Final = (
    "This log-in was not begun in this browser, was used already, or has taken longer than 10 minutes. Begin again."
)
NO_ROLE: Final = (
    "The provider says who you are, and nothing that gives you a role in this console. Ask its admins for a group or "
    "claim that --oidc-role names."
)
_WHO: Final = "single sign-on"

_log = Logger()


class OidcAnswer(NamedTuple):
    """
    What a browser brings back from the provider.

    @ivar error: a word for why there is no code.
    @ivar issuer: who has sent it (RFC 9207); empty if it does not say.
    """

    state: str
    code: str
    error: str
    issuer: str


class OidcSession(NamedTuple):
    """
    A new session.

    @ivar next: where somebody wanted to be.
    """

    secret: str
    csrf: str
    next: str


class SingleSignOn:
    """
    Lets people in by the word of a provider.

    @param ask: asks the provider; by default over TLS.
    """

    def __init__(self, console: Console, settings: OidcSettings, ask: Ask | None = None) -> None:
        self._console = console
        self.settings = settings
        self.callback = f"{console.settings.url}{CALLBACK}"
        self._flows = LoginFlows(console.reactor.seconds)
        self.provider = OidcProvider(settings, self.callback, ask or _asking(console.reactor), console.reactor.seconds)
        self._logins = 0
        self._refused = RefusedAddresses(console.reactor.seconds)

    async def begin(self, next_path: str) -> tuple[str, str]:
        """
        Return where a browser goes to sign in, and the header with its cookie.

        @raise ApiProblem: the provider does not answer.
        """
        flow, cookie = self._flows.begin(next_path)
        try:
            return await self.provider.sign_in_url(flow), flow_cookie(cookie)
        except ProviderFailed as error:
            raise _of_provider(error) from None

    async def finish(self, answer: OidcAnswer, cookie: str, address: str, agent: str, old: str | None) -> OidcSession:
        """
        Begin a session for who comes back from the provider.

        @param cookie: that of L{begin}; empty without one.
        @param agent: what the caller's program calls itself, for the list of sessions.
        @param old: the secret of the session that the request came with; it ends.
        @raise ApiProblem: it is no log-in of this browser, what the provider says is not good, it gives the person no
            role, or there were too many tries.
        """
        network = network_of(address)
        self._refused.check(network)
        flow = self._flows.find(cookie, answer.state)
        if flow is None:
            raise ApiProblem(FORBIDDEN, NO_FLOW)
        if self._logins >= MOST_LOGINS:
            raise too_many("Too many log-ins are under way.", 2)
        self._logins += 1
        # Tries are counted by the address alone: who it is nobody knows yet.
        try_name = f"{_WHO} {flow.state[:20]}"
        try:
            await self._console.store.write(lambda tx: begin_try(tx, try_name, network))
            if not self._flows.use(flow):
                raise ApiProblem(FORBIDDEN, NO_FLOW)
            claims = await self._claims(answer, flow)
            return await self._admit(claims, flow, try_name, address, agent, old)
        except TooManyTries as refused:
            self._refused.note(network, refused)
            raise
        except ApiProblem as problem:
            detail = problem.detail
            await self._console.store.write(
                lambda tx: note(tx, "", "ui", address, LOGIN_FAILED, _WHO, {"reason": detail})
            )
            raise
        finally:
            self._logins -= 1

    async def _claims(self, answer: OidcAnswer, flow: LoginFlow) -> dict[str, Any]:
        """
        Return what the provider says of a person.

        @raise ApiProblem: it says nothing that is good.
        """
        try:
            document = await self.provider.document()
            is_silent = not answer.issuer and not document.authorization_response_iss_parameter_supported
            if answer.issuer != self.settings.issuer and not is_silent:
                raise ProviderFailed("Another one has sent this answer.")
            if answer.error or not answer.code:
                raise ProviderFailed(f"It has refused: {_word(answer.error)}.")
            token = await self.provider.id_token(answer.code, flow)
            claims = verified_claims(
                token,
                await self.provider.keys_for(token),
                issuer=self.settings.issuer,
                client_id=self.settings.client_id,
                nonce=flow.nonce,
                now=self._console.clock(),
            )
            subject_of(claims, self.settings.issuer)
        except ProviderFailed as error:
            raise _of_provider(error) from None
        except BadIdToken as error:
            raise _of_provider(f"Its ID token can't be used: {error}") from None
        return claims

    async def _admit(
        self, claims: dict[str, Any], flow: LoginFlow, try_name: str, address: str, agent: str, old: str | None
    ) -> OidcSession:
        subject = subject_of(claims, self.settings.issuer)
        rights = rights_of(claims, self.settings.roles)
        if rights is None:
            await self._console.store.write(lambda tx: shut_out(tx, subject))
            raise ApiProblem(FORBIDDEN, NO_ROLE)

        def begin(tx: StoreTransaction) -> tuple[str, str]:
            name = admit(tx, subject, name_of(claims), rights)
            try_succeeded(tx, try_name, network_of(address))
            note(tx, name, "ui", address, "login", details={"by": _WHO})
            return begin_session(tx, name, address, agent, old)

        return OidcSession(*await self._console.store.write(begin), flow.next)


def _asking(reactor: Any) -> Ask:
    # It brings TLS and a client of HTTP, which only a console with a provider needs.
    from webhookrx.service.named_client import NamedClient

    return NamedClient(reactor).ask


def _of_provider(why: ProviderFailed | str) -> ApiProblem:
    _log.warn("Single sign-on has failed: {why}", why=str(why))
    return ApiProblem(BAD_PROVIDER, str(why))


def _word(error: str) -> str:
    """Return the word of an error (RFC 6749, section 4.1.2.1) if it is one: pages show no text of others for ours."""
    return error if 0 < len(error) <= 40 and error.isascii() and error.replace("_", "").isalpha() else "no word on why"
