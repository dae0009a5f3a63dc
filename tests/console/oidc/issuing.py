"""
A provider of OpenID Connect in memory, which tells what it is asked and signs whatever a test wants.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey, RSAKey
from twisted.internet.defer import Deferred, fail, succeed

from tests.console.pages.paging import PageCase
from tests.http.wire import Response
from webhookrx.console.oidc.flows import FLOW_COOKIE
from webhookrx.console.oidc.oidc_settings import OidcSettings, parse_role
from webhookrx.console.oidc.single_sign_on import SingleSignOn
from webhookrx.service.named_client import NamedAnswer, NotAnswered

ISSUER = "https://id.example/realm"
CLIENT = "console 1"
SECRET = "s:e%c ret"
ROLES = ("groups=ops:admin+tap", "groups=dev:editor", "groups=all:viewer", "email_verified=true:viewer")
KEYS: dict[str, Any] = {
    "RSA": RSAKey.generate_key(2048, {"kid": "one", "use": "sig"}),
    "EC": ECKey.generate_key("P-256", {"kid": "two", "alg": "ES256"}),
    "OKP": OKPKey.generate_key("Ed25519", {"kid": "three"}),
}
OTHER_KEY = RSAKey.generate_key(2048, {"kid": "other"})


class FakeIssuer:
    """
    The provider.

    @ivar asked: each URL that was asked for.
    @ivar claims: what the next ID token says beside, or instead of, what is right; None leaves one out.
    @ivar sign: makes the token of its claims.
    @ivar down: nothing is answered.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.asked: list[str] = []
        self.posted: dict[str, str] = {}
        self.nonce = self.challenge = ""
        self.claims: dict[str, Any] = {}
        self.keys: list[Any] = list(KEYS.values())
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self.document: dict[str, Any] = {
            "issuer": ISSUER,
            "authorization_endpoint": "https://id.example/authorize?realm=1",
            "token_endpoint": "https://id.example/token",
            "jwks_uri": "https://id.example/keys",
            "scopes_supported": ["openid", "email", "groups", "offline_access"],
        }
        self.status = 200
        self.down = False
        self.held: list[Deferred[NamedAnswer]] | None = None

    def signed(self, claims: dict[str, Any], kind: str = "RSA", alg: str = "RS256", **head: Any) -> str:
        """Return a token that is signed well."""
        head = {"alg": alg, "kid": KEYS[kind].kid, "typ": "JWT", **head}
        return jwt.encode({k: v for k, v in head.items() if v is not None}, claims, KEYS[kind], [alg])

    def ask(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Any:
        """Answer."""
        self.asked.append(url)
        if self.down:
            return fail(NotAnswered("id.example can't be reached (ConnectError)."))
        if url.endswith("/.well-known/openid-configuration"):
            content: Any = self.document
        elif url == "https://id.example/keys":
            content = {"keys": [each if isinstance(each, dict | str) else each.as_dict(False) for each in self.keys]}
        else:
            content = self._token(method, headers, body)
        answer = NamedAnswer(self.status, content if isinstance(content, bytes) else msgspec.json.encode(content))
        if self.held is None:
            return succeed(answer)
        waiting: Deferred[NamedAnswer] = Deferred()
        self.held.append(waiting)
        return waiting

    def _token(self, method: str, headers: Mapping[str, str], body: bytes | None) -> Any:
        assert method == "POST" and body is not None
        self.posted = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if "Authorization" in headers:
            pair = b64decode(headers["Authorization"].removeprefix("Basic ")).decode().split(":")
            assert [unquote(each) for each in pair] == [CLIENT, SECRET]
        else:
            assert (self.posted["client_id"], self.posted["client_secret"]) == (CLIENT, SECRET)
        digest = hashlib.sha256(self.posted["code_verifier"].encode()).digest()
        assert urlsafe_b64encode(digest).decode().rstrip("=") == self.challenge
        now = int(self.now())
        claims = {"iss": ISSUER, "aud": CLIENT, "sub": "u-1", "iat": now, "exp": now + 300, "nonce": self.nonce}
        claims |= {"preferred_username": "Mara", "groups": ["all", "dev"], **self.claims}
        return {"id_token": self.sign({k: v for k, v in claims.items() if v is not None}), "access_token": "x"}


class SignOnCase(PageCase):
    """
    A console whose people sign in at the provider.

    @ivar cookie: that of the log-in under way.
    """

    only = False

    def setUp(self) -> None:
        """Set single sign-on up."""
        super().setUp()
        self.issuer = FakeIssuer(self.clock.seconds)
        oidc = OidcSettings(ISSUER, CLIENT, SECRET, "/secret", tuple(map(parse_role, ROLES)), self.only)
        self.console.settings = replace(self.console.settings, oidc=oidc)
        self.use(oidc)

    def use(self, oidc: OidcSettings) -> None:
        """Have a new process of the console go by these settings."""
        self.console.single_sign_on = SingleSignOn(self.console, oidc, self.issuer.ask)

    def begin(self, path: str = "/sign-in/oidc?next=%2Frules") -> dict[str, str]:
        """Begin a log-in; return what the provider is asked."""
        response = self.get(path)
        self.assertEqual(303, response.status, response.body)
        place = urlsplit(response.headers["location"])
        self.assertEqual(("id.example", "/authorize"), (place.netloc, place.path))
        self.cookie = response.headers["set-cookie"].partition(";")[0]
        asked = {name: values[0] for name, values in parse_qs(place.query).items()}
        self.issuer.nonce, self.issuer.challenge = asked["nonce"], asked["code_challenge"]
        return asked

    def come_back(self, state: str, more: str = "code=c", **headers: str) -> Response:
        """Return the answer to a browser that comes back."""
        return self.get(f"/sign-in/oidc/callback?state={state}&{more}", **{"cookie": self.cookie, **headers})

    def enter(self, **claims: Any) -> Response:
        """Return the answer to a whole log-in, in which the ID token says this beside."""
        self.issuer.claims = claims
        return self.come_back(self.begin()["state"])

    def session_of(self, response: Response) -> str:
        """Return the cookie of a session that has begun."""
        self.assertEqual(303, response.status, self.shown(response))
        (line,) = [each for each in response.cookies if each.startswith("__Host-wrx=")]
        return line.partition(";")[0]

    def refused(self, response: Response, status: int, sentence: str) -> None:
        """Check that nobody was let in, and that the page says why."""
        self.assertEqual(status, response.status)
        self.assertIn(sentence, self.shown(response))
        self.assertEqual([f"{FLOW_COOKIE}="], [each.partition(";")[0] for each in response.cookies])
