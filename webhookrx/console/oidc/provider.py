"""
The provider: what it says of itself and its keys, both kept for an hour, and the token for a code.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Generic, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from twisted.internet.defer import Deferred

from webhookrx.console.oidc.flows import LoginFlow
from webhookrx.console.oidc.id_token import ALGORITHMS, PublicKey, key_name, keys_for, read_keys
from webhookrx.console.oidc.oidc_settings import OidcSettings, is_endpoint, is_endpoint_here
from webhookrx.service.named_client import NamedAnswer, NotAnswered

FRESH: Final = 3600.0
"""Seconds for which something is used without being asked for again."""

LONGEST: Final = 86_400.0
"""Seconds after which what can't be had again is not used any more: keys are withdrawn, too."""

SOONEST: Final = 60.0
"""Seconds for which a key that is not there is not looked for again."""

PAUSE: Final = 10.0
"""Seconds after which what has failed is tried again."""

_WELL_KNOWN: Final = "/.well-known/openid-configuration"
_WANTED_SCOPES: Final = ("openid", "profile", "email", "groups")

T = TypeVar("T")

#: See L{webhookrx.service.named_client.NamedClient.ask}.
Ask: TypeAlias = Callable[[str, str, Mapping[str, str], bytes | None], Awaitable[NamedAnswer]]


class ProviderFailed(Exception):
    """The provider has not answered as it should; the text is one sentence that holds nothing that it has said."""


class ProviderDocument(msgspec.Struct, frozen=True):
    """What a provider says of itself (OpenID Connect Discovery 1.0, section 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    id_token_signing_alg_values_supported: tuple[str, ...] = ("RS256",)
    code_challenge_methods_supported: tuple[str, ...] | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    scopes_supported: tuple[str, ...] = _WANTED_SCOPES[:3]
    authorization_response_iss_parameter_supported: bool = False


class _TokenAnswer(msgspec.Struct, frozen=True):
    id_token: str


class _Kept(Generic[T]):
    """
    One thing that a provider has, asked for once at a time.

    @param fetch: asks for it; raises L{ProviderFailed}.
    @param seconds: monotonic.
    """

    def __init__(self, fetch: Callable[[], Awaitable[T]], seconds: Callable[[], float]) -> None:
        self._fetch = fetch
        self._seconds = seconds
        self._value: T | None = None
        self._fetched_at = self._failed_at = float("-inf")
        self._why = ""
        self._waiting: list[Deferred[None]] | None = None

    async def get(self, *, newer: bool = False) -> T:
        """
        Return it.

        @param newer: than what is kept, if that was not asked for just now.
        @raise ProviderFailed: it is not there.
        """
        age = self._seconds() - self._fetched_at
        is_wanted = self._value is None or age > FRESH or (newer and age >= SOONEST)
        if is_wanted and self._seconds() - self._failed_at >= PAUSE:
            await self._renew()
        if self._value is None or self._seconds() - self._fetched_at > LONGEST:
            raise ProviderFailed(self._why)
        return self._value

    async def _renew(self) -> None:
        if self._waiting is not None:
            renewed: Deferred[None] = Deferred()
            self._waiting.append(renewed)
            await renewed
            return
        self._waiting = []
        try:
            self._value = await self._fetch()
            self._fetched_at = self._seconds()
        except ProviderFailed as error:
            self._failed_at, self._why = self._seconds(), str(error)
        finally:
            waiting, self._waiting = self._waiting, None
            for each in waiting:
                each.callback(None)


class OidcProvider:
    """
    Asks a provider.

    @param callback: where it sends people back to.
    @param seconds: monotonic.
    """

    def __init__(self, settings: OidcSettings, callback: str, ask: Ask, seconds: Callable[[], float]) -> None:
        self._settings = settings
        self._callback = callback
        self._ask = ask
        self._document = _Kept(self._fetch_document, seconds)
        self._keys = _Kept(self._fetch_keys, seconds)

    async def document(self) -> ProviderDocument:
        """
        Return what it says of itself.

        @raise ProviderFailed: that can't be had, or not be used.
        """
        return await self._document.get()

    async def keys_for(self, token: str) -> list[PublicKey]:
        """
        Return the keys that may have signed an ID token; newer ones are asked for when its own is not known.

        @raise ProviderFailed: they can't be had.
        @raise webhookrx.console.oidc.claims.BadIdToken: see L{key_name}.
        """
        key_name(token)
        return keys_for(token, await self._keys.get()) or keys_for(token, await self._keys.get(newer=True))

    async def sign_in_url(self, flow: LoginFlow) -> str:
        """
        Return where a browser goes to sign in.

        @raise ProviderFailed: see L{document}.
        """
        document = await self.document()
        fields = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self._callback,
            "scope": " ".join(each for each in _WANTED_SCOPES if each in ("openid", *document.scopes_supported)),
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": flow.challenge,
            "code_challenge_method": "S256",
        }
        endpoint = document.authorization_endpoint
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(fields)}"

    async def id_token(self, code: str, flow: LoginFlow) -> str:
        """
        Return the ID token for a code, which is good once.

        @raise ProviderFailed: it gives none.
        """
        document = await self.document()
        settings = self._settings
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._callback,
            "code_verifier": flow.verifier,
        }
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        if "client_secret_basic" in document.token_endpoint_auth_methods_supported:
            # RFC 6749, section 2.3.1: encoded as in a form before.
            pair = f"{quote(settings.client_id, safe='')}:{quote(settings.secret, safe='')}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        else:
            fields |= {"client_id": settings.client_id, "client_secret": settings.secret}
        content = await self._content("POST", document.token_endpoint, headers, urlencode(fields).encode())
        try:
            return msgspec.json.decode(content, type=_TokenAnswer).id_token
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ProviderFailed("It gives no ID token.") from None

    async def _fetch_document(self) -> ProviderDocument:
        issuer = self._settings.issuer
        content = await self._content("GET", issuer.removesuffix("/") + _WELL_KNOWN, {"Accept": "application/json"})
        try:
            document = msgspec.json.decode(content, type=ProviderDocument)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ProviderFailed(f"What it has at {_WELL_KNOWN} is not what a provider says of itself.") from None
        if document.issuer != issuer:
            raise ProviderFailed("It calls itself by another issuer than --oidc-issuer.")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            url = getattr(document, name)
            may_be_plain = is_endpoint_here(issuer) and is_endpoint_here(url)
            if len(url) > 2000 or not (is_endpoint(url, plain=False) or may_be_plain):
                raise ProviderFailed(f"Its {name} is no URL of HTTPS.")
        methods = document.code_challenge_methods_supported
        if methods is not None and "S256" not in methods:
            raise ProviderFailed("It does not take PKCE by S256.")
        if not set(document.id_token_signing_alg_values_supported) & set(ALGORITHMS):
            raise ProviderFailed("It signs ID tokens by no algorithm that is taken.")
        if not set(document.token_endpoint_auth_methods_supported) & {"client_secret_basic", "client_secret_post"}:
            raise ProviderFailed("It takes no secret of a client.")
        return document

    async def _fetch_keys(self) -> tuple[PublicKey, ...]:
        document = await self.document()
        content = await self._content("GET", document.jwks_uri, {"Accept": "application/json"})
        try:
            keys = read_keys(msgspec.json.decode(content))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            keys = ()
        if not keys:
            raise ProviderFailed("It has no keys that may sign ID tokens.")
        return keys

    async def _content(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Any:
        try:
            answer = await self._ask(method, url, headers, body)
        except NotAnswered as error:
            raise ProviderFailed(str(error)) from None
        if answer.status != 200:
            # A redirect is none of these either.
            raise ProviderFailed(f"It has answered with status {answer.status}.")
        return answer.body
