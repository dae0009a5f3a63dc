"""
Tests for L{webhookrx.console.oidc}: log-ins by a provider, through the pages.
"""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jws, jwt
from joserfc.jwk import OctKey, RSAKey
from twisted.internet.defer import Deferred

from tests.console.oidc.issuing import CLIENT, ISSUER, KEYS, OTHER_KEY, SECRET, SignOnCase
from tests.console.people.test_people import ORIGIN
from webhookrx.console.api.problems import BAD_PROVIDER, FORBIDDEN, TOO_MANY, ApiProblem
from webhookrx.console.oidc.flows import MOST_USED
from webhookrx.console.oidc.provider import SOONEST
from webhookrx.console.oidc.single_sign_on import OidcAnswer, OidcSession
from webhookrx.console.people.accounts import break_glass, people
from webhookrx.console.people.people import MOST_LOGINS
from webhookrx.console.store.audit import read_audit
from webhookrx.console.store.history import read_history
from webhookrx.service.named_client import NamedAnswer, NotAnswered


class SignInTests(SignOnCase):
    """Log-ins that succeed."""

    def test_begin(self) -> None:
        """The provider is asked for a code with PKCE, and the browser keeps the log-in for ten minutes."""
        self.assertIn('href="/sign-in/oidc?next=%2Frules"', self.get("/sign-in?next=/rules").body.decode())
        response = self.get("/sign-in/oidc?next=/rules")
        asked = parse_qs(urlsplit(response.headers["location"]).query)
        self.assertEqual(
            {
                "realm": ["1"], "response_type": ["code"], "client_id": [CLIENT], "scope": ["openid email groups"],
                "redirect_uri": [f"{ORIGIN}/sign-in/oidc/callback"], "code_challenge_method": ["S256"],
            },
            {name: asked.pop(name) for name in list(asked) if name not in ("state", "nonce", "code_challenge")},
        )  # fmt: skip
        for name in ("state", "nonce", "code_challenge"):
            self.assertRegex(asked[name][0], r"^[\w-]{43}$")
        self.assertRegex(
            response.headers["set-cookie"],
            r"^__Host-wrx-oidc=[\w.-]+; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=600$",
        )
        self.assertNotIn(SECRET, response.headers["location"])

    def test_sign_in(self) -> None:
        """Who comes back is in, comes to where they wanted to be, and has the rights that the claims give."""
        response = self.enter(groups=["all", "dev"])
        session = self.session_of(response)
        self.assertEqual("/rules", response.headers["location"])
        self.assertEqual(2, len(response.cookies))
        self.assertIn("__Host-wrx-oidc=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0", response.cookies)
        me = json.loads(self.ask("GET", "/session", cookie=session).body)
        self.assertEqual(("mara", "editor", False, True), (me["name"], me["role"], me["tap"], me["single_sign_on"]))
        self.assertEqual(200, self.get("/rules", cookie=session).status)
        audit = self.store.reader.read(read_audit)
        self.assertEqual([("mara", "login", {"by": "single sign-on"})], [(e.by, e.event, e.details) for e in audit])
        entries = self.store.reader.read(lambda db: read_history(db, kind="user"))
        self.assertEqual([("mara", "oidc", "create")], [(e.by, e.via, e.operation) for e in entries])
        self.assertEqual([True], [each.single_sign_on for each in self.store.reader.read(people)])

    def test_new_session(self) -> None:
        """The session that a browser came with ends."""
        first = self.session_of(self.enter())
        self.issuer.claims = {}
        state = self.begin()["state"]
        second = self.session_of(self.come_back(state, cookie=f"{self.cookie}; {first}"))
        self.assertEqual([401, 200], [self.ask("GET", "/session", cookie=each).status for each in (first, second)])

    def test_rights(self) -> None:
        """Each log-in gives the rights that claims give then, of several the highest, and other ones end sessions."""
        first = self.session_of(self.enter(groups=["all"]))
        self.session_of(self.enter(groups=["all"]))
        self.assertEqual(200, self.ask("GET", "/session", cookie=first).status)
        session = self.session_of(self.enter(groups=["dev", "ops"], preferred_username="renamed"))
        self.assertEqual(401, self.ask("GET", "/session", cookie=first).status)
        me = json.loads(self.ask("GET", "/session", cookie=session).body)
        self.assertEqual(("mara", "admin", True), (me["name"], me["role"], me["tap"]))
        # The last admin, too: the word of the provider counts.
        session = self.session_of(self.enter(groups="dev"))
        self.assertEqual("editor", json.loads(self.ask("GET", "/session", cookie=session).body)["role"])
        entries = self.store.reader.read(lambda db: read_history(db, kind="user", name="mara"))
        self.assertEqual(["update", "update", "create"], [each.operation for each in entries])

    def test_claims(self) -> None:
        """A claim may be a text, a flag or one in a list, and a member of another one; anything else gives nothing."""
        self.assertEqual(303, self.enter(groups=None, email_verified=True).status)
        cases: tuple[tuple[dict[str, Any], int], ...] = (
            ({"groups": "ops"}, 303),
            ({"groups": None, "email_verified": "true"}, 303),
            ({"groups": None, "email_verified": 1}, 403),
            ({"groups": {"ops": True}}, 403),
            ({"groups": ["OPS", "ops ", ["ops"]]}, 403),
            ({"groups": []}, 403),
            ({"groups": None}, 403),
        )
        for number, (claims, status) in enumerate(cases):
            response = self.enter(sub=f"u{number}", preferred_username=f"user{number}", **claims)
            self.assertEqual(status, response.status, claims)
        self.assertIn("nothing that gives you a role", self.shown(response))

    def test_names(self) -> None:
        """A name is one for people, or made of what can't change."""
        cases: tuple[tuple[dict[str, Any], str], ...] = (
            ({"preferred_username": "Ann"}, "ann"),
            ({"preferred_username": "Ann Lee", "email": "Ann@a.example"}, "ann@a.example"),
            ({"preferred_username": "\u212aim", "email": None}, "sso-"),
            ({"preferred_username": "<script>", "email": "x@a.example", "email_verified": False}, "sso-"),
            ({"preferred_username": ["a"], "email": {"a": 1}}, "sso-"),
        )
        for number, (claims, name) in enumerate(cases):
            session = self.session_of(self.enter(sub=f"n{number}", groups=["all"], **claims))
            found = json.loads(self.ask("GET", "/session", cookie=session).body)["name"]
            self.assertTrue(found == name or (name == "sso-" and found.startswith(name)), (claims, found))

    def test_algorithms(self) -> None:
        """Signatures by RSA, PSS, elliptic curves and Edwards curves count, with or without the name of the key."""
        for kind, alg in (("RSA", "RS512"), ("RSA", "PS256"), ("EC", "ES256"), ("OKP", "Ed25519")):
            for kid in (KEYS[kind].kid, None):
                self.issuer.sign = partial(self.issuer.signed, kind=kind, alg=alg, kid=kid)
                self.session_of(self.enter())

    def test_post(self) -> None:
        """A provider that takes the secret in the form alone gets it there."""
        self.issuer.document["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
        self.session_of(self.enter())
        self.assertEqual(SECRET, self.issuer.posted["client_secret"])

    def test_other_site(self) -> None:
        """A log-in leads to no other site."""
        for path in ("//evil.example", "https://evil.example", "/" + "x" * 3000):
            state = self.begin(f"/sign-in/oidc?next={path}")["state"]
            self.assertEqual("/", self.come_back(state).headers["location"])


class RefusedTests(SignOnCase):
    """Log-ins that nobody is let in by."""

    def test_tokens(self) -> None:
        """No ID token counts of which one thing is not right."""
        now = int(self.clock.seconds())
        none, hs256 = "eyJhbGciOiJub25lIn0.", "eyJhbGciOiJIUzI1NiIsImtpZCI6Im9uZSJ9"
        public = KEYS["RSA"].as_pem(private=False)

        def by_public_key(claims: dict[str, Any]) -> str:
            signed = f"{hs256}.{self.issuer.signed(claims).split('.')[1]}"
            seal = hmac.digest(public, signed.encode(), "sha256")
            return f"{signed}.{urlsafe_b64encode(seal).decode().rstrip('=')}"

        def by_other_key(claims: dict[str, Any]) -> str:
            return jwt.encode({"alg": "RS256", "kid": "one"}, claims, OTHER_KEY, ["RS256"])

        def with_jwk(claims: dict[str, Any]) -> str:
            head = {"alg": "RS256", "kid": "one", "jwk": OTHER_KEY.as_dict(private=False)}
            return jwt.encode(head, claims, OTHER_KEY, ["RS256"])

        def changed(claims: dict[str, Any]) -> str:
            head, _, signature = self.issuer.signed(claims).split(".")
            other = self.issuer.signed({**claims, "sub": "admin"}).split(".")[1]
            return f"{head}.{other}.{signature}"

        def unsigned(claims: dict[str, Any]) -> str:
            return none + self.issuer.signed(claims).split(".")[1] + "."

        def by_encryption_key(claims: dict[str, Any]) -> str:
            return self.issuer.signed(claims, kid="enc")

        def deep_head(claims: dict[str, Any]) -> str:
            head = b'{"alg":"RS256","x":' + b"[" * 3000
            return f"{urlsafe_b64encode(head).decode().rstrip('=')}.e30.AA"

        def deep(claims: dict[str, Any]) -> str:
            return jws.serialize_compact({"alg": "RS256", "kid": "one"}, b'{"sub":' + b"[" * 3000, KEYS["RSA"])

        def half_a_character(claims: dict[str, Any]) -> str:
            content = json.dumps({**claims, "nonce": "\ud800"}).encode()
            return jws.serialize_compact({"alg": "RS256", "kid": "one"}, content, KEYS["RSA"])

        for sentence, claims, sign in (
            ("issuer is another", {"iss": "https://evil.example"}, None),
            ("issuer is another", {"iss": ISSUER + "/"}, None),
            ("issuer is another", {"iss": None}, None),
            ("for another client", {"aud": "other"}, None),
            ("for another client", {"aud": None}, None),
            ("for another client", {"aud": CLIENT, "azp": "other"}, None),
            ("for several clients", {"aud": [CLIENT, "other"]}, None),
            ("of another log-in", {"nonce": "x" * 43}, None),
            ("of another log-in", {"nonce": None}, None),
            ("of another log-in", {"nonce": 1}, None),
            ("of another log-in", {}, half_a_character),
            ("has expired", {"exp": now - 60}, None),
            ("has no exp", {"exp": None}, None),
            ("has no exp", {"exp": "soon"}, None),
            ("has no exp", {"exp": True}, None),
            ("has no exp", {"exp": 10**400}, None),
            ("has no exp", {"exp": float("nan")}, None),
            ("not made just now", {"iat": now - 3600}, None),
            ("not made just now", {"iat": now + 120}, None),
            ("has no iat", {"iat": None}, None),
            ("does not count yet", {"nbf": now + 120}, None),
            ("has no sub", {"sub": None}, None),
            ("has no sub", {"sub": ""}, None),
            ("has no sub", {"sub": "x" * 256}, None),
            ("has no sub", {"sub": ["u-1"]}, None),
            ("algorithm that is not taken", {}, by_public_key),
            ("algorithm that is not taken", {}, unsigned),
            ("No key of the provider", {}, by_other_key),
            ("No key of the provider", {}, with_jwk),
            ("No key of the provider", {}, changed),
            ("No key of the provider", {}, by_encryption_key),
            ("No key of the provider", {}, lambda claims: self.issuer.signed(claims, kid="unknown")),
            ("No key of the provider", {}, lambda claims: self.issuer.signed(claims, "EC", "ES256", kid="one")),
            ("is no JSON Web Token", {}, lambda claims: "a.b"),
            ("algorithm that is not taken", {}, lambda claims: "eyJhbGciOlsxXX0.e30.AA"),
            ("is no JSON Web Token", {}, lambda claims: "e30.e30.AA"),
            ("is no JSON Web Token", {}, deep_head),
            ("No key of the provider", {}, deep),
            ("No key of the provider", {}, lambda claims: self.issuer.signed(claims)[:-4]),
            ("is no JSON Web Token", {}, lambda claims: "\u00e9.b.c"),
            ("It is too long", {}, lambda claims: "x" * 70_000),
        ):
            with self.subTest(sentence=sentence, claims=claims):
                self.store.writer.write(lambda tx: tx.execute("DELETE FROM failed_login").rowcount)
                self.issuer.keys = [*KEYS.values(), {**KEYS["RSA"].as_dict(False), "kid": "enc", "use": "enc"}]
                self.issuer.sign = sign or self.issuer.signed
                self.refused(self.enter(**claims), 502, sentence)
                self.issuer.sign = self.issuer.signed
        self.assertEqual([], self.store.reader.read(people))
        entries = self.store.reader.read(read_audit)
        self.assertEqual({("", "login_failed", "single sign-on")}, {(e.by, e.event, e.name) for e in entries})
        self.assertIn("Its issuer is another.", entries[-1].details["reason"])

    def test_weak_keys(self) -> None:
        """Keys that are too short, or none, are as if they were not there."""
        self.issuer.keys = [
            RSAKey.generate_key(1024, {"kid": "one"}), OctKey.generate_key(256, {"kid": "one"}), {"kty": "RSA"}, "x",
            {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        ]  # fmt: skip
        self.refused(self.enter(), 502, "It has no keys that may sign ID tokens.")

    def test_state(self) -> None:
        """A log-in is of one browser, used once, and over after ten minutes."""
        sentence = "was not begun in this browser"
        state = self.begin()["state"]
        mine = self.cookie
        self.refused(self.come_back(state, cookie=""), 403, sentence)
        self.refused(self.come_back("x" * 43), 403, sentence)
        self.refused(self.come_back(""), 403, sentence)
        self.begin()
        self.refused(self.come_back(state), 403, sentence)
        self.refused(self.come_back(state, cookie=f"{mine}; {mine}"), 403, sentence)
        forged = mine[:-1] + ("A" if mine[-1] != "A" else "B")
        for cookie in (forged, mine.replace(".", "..", 1), "__Host-wrx-oidc=x.1..y"):
            self.refused(self.come_back(state, cookie=cookie), 403, sentence)
        self.assertEqual([], [url for url in self.issuer.asked if url.endswith("/token")])
        state = self.begin()["state"]
        self.session_of(self.come_back(state))
        self.refused(self.come_back(state), 403, sentence)
        self.assertEqual(1, len([url for url in self.issuer.asked if url.endswith("/token")]))
        state = self.begin()["state"]
        self.clock.advance(601)
        self.refused(self.come_back(state), 403, sentence)

    def test_restart(self) -> None:
        """A log-in that was begun before the console started is none."""
        state = self.begin()["state"]
        assert self.console.settings.oidc is not None
        self.use(self.console.settings.oidc)
        self.refused(self.come_back(state), 403, "was not begun in this browser")

    def test_at_once(self) -> None:
        """Of two who come back with the same log-in at a time one is let in, and only so many are under way."""
        single_sign_on = self.console.single_sign_on
        assert single_sign_on is not None
        self.enter()
        state = self.begin()["state"]
        cookie = self.cookie.partition("=")[2]
        self.issuer.held = []

        def come() -> Deferred[OidcSession]:
            answer = OidcAnswer(state, "c", "", "")
            return Deferred.fromCoroutine(single_sign_on.finish(answer, cookie, "192.0.2.7", "", None))

        first = come()
        self.assertEqual(FORBIDDEN, self.failureResultOf(come(), ApiProblem).value.kind)
        (held,), self.issuer.held = self.issuer.held, None
        state = self.begin()["state"]
        cookie = self.cookie.partition("=")[2]
        single_sign_on._logins = MOST_LOGINS
        self.assertEqual(TOO_MANY, self.failureResultOf(come(), ApiProblem).value.kind)
        single_sign_on._logins = 1
        held.errback(NotAnswered("too late"))
        self.assertEqual(BAD_PROVIDER, self.failureResultOf(first, ApiProblem).value.kind)
        self.assertEqual(0, single_sign_on._logins)

    def test_used_bounded(self) -> None:
        """What is remembered of used log-ins is bounded, and goes when they would be over anyway."""
        flows = self.console.single_sign_on._flows  # type: ignore[union-attr]
        for _ in range(MOST_USED):
            self.assertTrue(flows.use(flows.begin("")[0]))
        self.assertFalse(flows.use(flows.begin("")[0]))
        self.clock.advance(602)
        self.assertTrue(flows.use(flows.begin("")[0]))

    def test_answers(self) -> None:
        """The provider may refuse, and nobody may answer in its place; what it says is not shown."""
        for more, sentence in (
            ("error=access_denied&error_description=<b>call+0900</b>", "It has refused: access_denied."),
            ("error=<b>evil</b>", "It has refused: no word on why."),
            ("", "It has refused: no word on why."),
            ("code=c&iss=https://evil.example", "Another one has sent this answer."),
        ):
            response = self.come_back(self.begin()["state"], more)
            self.refused(response, 502, sentence)
            self.assertNotIn("0900", response.body.decode())
            self.assertNotIn("state=", response.body.decode())
        self.issuer.document["authorization_response_iss_parameter_supported"] = True
        assert self.console.settings.oidc is not None
        self.use(self.console.settings.oidc)
        self.refused(self.come_back(self.begin()["state"]), 502, "Another one has sent this answer.")
        self.session_of(self.come_back(self.begin()["state"], f"code=c&iss={ISSUER}"))

    def test_no_role(self) -> None:
        """Who loses all roles at the provider loses sessions and API tokens here."""
        session = self.session_of(self.enter(groups=["ops"]))
        csrf = json.loads(self.ask("GET", "/session", cookie=session).body)["csrf"]
        made = self.ask("POST", "/tokens", {"name": "t"}, cookie=session, origin=ORIGIN, x_csrf_token=csrf)
        token = {"authorization": f"Bearer {json.loads(made.body)['secret']}"}
        self.assertEqual(200, self.ask("GET", "/session", **token).status)
        self.refused(self.enter(groups=["none"]), 403, "nothing that gives you a role in this console")
        self.assertEqual(401, self.ask("GET", "/session", cookie=session).status)
        self.assertEqual(401, self.ask("GET", "/session", **token).status)
        self.session_of(self.enter())

    def test_name_taken(self) -> None:
        """Nobody becomes a person of this console by having their name at the provider."""
        self.add("mara", "admin", True)
        self.refused(self.enter(), 409, "Another person of this console is called mara")
        self.session_of(self.enter(preferred_username="other"))
        self.refused(self.enter(sub="u-2", preferred_username="Other"), 409, "Another person of this console")

    def test_disabled(self) -> None:
        """Whom an admin has disabled stays out."""
        self.session_of(self.enter())
        self.add("root", "admin", True)
        root = self.session("root")
        self.assertEqual(204, self.ask("PATCH", "/people/mara", {"enabled": False}, **root).status)
        self.refused(self.enter(), 403, "An admin of this console has disabled you.")

    def test_no_password(self) -> None:
        """A person of single sign-on has no password, and nobody here decides on their rights."""
        session = self.session_of(self.enter(groups=["all"]))
        self.assertEqual(401, self.log_in("mara", "").status)
        self.assertEqual(401, self.log_in("mara", "None").status)
        self.add("root", "admin", True)
        root = self.session("root")
        for change in ({"password": "correct horse battery"}, {"role": "admin"}, {"tap": True}):
            self.assertEqual(409, self.ask("PATCH", "/people/mara", change, **root).status, change)
        csrf = json.loads(self.ask("GET", "/session", cookie=session).body)["csrf"]
        body = {"old": "", "password": "correct horse battery"}
        response = self.ask("PUT", "/session/password", body, cookie=session, origin=ORIGIN, x_csrf_token=csrf)
        self.assertEqual(409, response.status)
        self.assertEqual(204, self.ask("DELETE", "/people/mara", **root).status)

    def test_limits(self) -> None:
        """Tries of an address are limited as those by password, and succeeding ones don't count."""
        for _ in range(25):
            self.session_of(self.enter())
        for _ in range(20):
            self.refused(self.enter(groups=[]), 403, "nothing that gives you a role")
        response = self.enter()
        self.refused(response, 429, "Too many log-ins have failed.")
        self.assertIn("retry-after", response.headers)
        asked = len(self.issuer.asked)
        self.refused(self.enter(), 429, "Too many log-ins have failed.")
        self.assertEqual(asked, len(self.issuer.asked))


class ProviderTests(SignOnCase):
    """What is asked of a provider, and how often."""

    def asked(self, what: str) -> int:
        """Return how often something was asked for."""
        return len([url for url in self.issuer.asked if url.endswith(what)])

    def test_kept(self) -> None:
        """Document and keys are asked for once an hour, and used for a day when they can't be had."""
        for _ in range(3):
            self.session_of(self.enter())
        self.assertEqual((1, 1), (self.asked("configuration"), self.asked("/keys")))
        self.clock.advance(3601)
        self.session_of(self.enter())
        self.assertEqual((2, 2), (self.asked("configuration"), self.asked("/keys")))
        self.clock.advance(3601)
        self.issuer.down = True
        self.begin()
        self.begin()
        self.assertEqual(3, self.asked("configuration"))
        self.clock.advance(11)
        self.begin()
        self.assertEqual(4, self.asked("configuration"))
        self.clock.advance(86_400)
        self.assertEqual(502, self.get("/sign-in/oidc").status)

    def test_rotation(self) -> None:
        """A key that is not known is looked for in newer ones, but not all the time."""
        self.session_of(self.enter())
        new = RSAKey.generate_key(2048, {"kid": "new"})
        self.issuer.keys = [new]
        self.issuer.sign = lambda claims: jwt.encode({"alg": "RS256", "kid": "new"}, claims, new, ["RS256"])
        for _ in range(3):
            self.refused(self.enter(), 502, "No key of the provider has signed it.")
        self.assertEqual(1, self.asked("/keys"))
        self.clock.advance(SOONEST)
        self.session_of(self.enter())
        self.assertEqual(2, self.asked("/keys"))
        self.issuer.sign = self.issuer.signed
        self.clock.advance(SOONEST)
        self.refused(self.enter(), 502, "No key of the provider")

    def test_once_at_a_time(self) -> None:
        """Who asks while it is asked already waits for that answer."""
        provider = self.console.single_sign_on.provider  # type: ignore[union-attr]
        self.issuer.held = []
        waiting = [Deferred.fromCoroutine(provider.document()) for _ in range(3)]
        self.assertEqual(1, self.asked("configuration"))
        held, self.issuer.held = self.issuer.held, None
        held[0].callback(NamedAnswer(200, json.dumps(self.issuer.document).encode()))
        self.assertEqual({ISSUER}, {self.successResultOf(each).issuer for each in waiting})

    def test_document(self) -> None:
        """What a provider says of itself must be safe; the page says what is not."""
        good = dict(self.issuer.document)
        for changes, sentence in (
            ({"issuer": "https://id.example"}, "by another issuer"),
            ({"token_endpoint": "http://id.example/token"}, "token_endpoint is no URL of HTTPS"),
            ({"jwks_uri": "http://127.0.0.1/keys"}, "jwks_uri is no URL of HTTPS"),
            ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint is no URL"),
            ({"authorization_endpoint": "https://a@id.example/"}, "authorization_endpoint is no URL"),
            ({"authorization_endpoint": "https://id.example/\nx"}, "authorization_endpoint is no URL"),
            ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
            ({"id_token_signing_alg_values_supported": ["HS256", "none"]}, "no algorithm that is taken"),
            ({"token_endpoint_auth_methods_supported": ["private_key_jwt"]}, "no secret of a client"),
            ({"jwks_uri": 1}, "not what a provider says"),
        ):
            self.issuer.document = {**good, **changes}
            self.clock.advance(11)
            response = self.get("/sign-in/oidc")
            self.assertEqual(502, response.status)
            self.assertIn(sentence, self.shown(response))
        self.issuer.document = good
        self.clock.advance(11)
        self.issuer.status = 302
        self.assertIn("answered with status 302", self.shown(self.get("/sign-in/oidc")))
        self.clock.advance(11)
        self.issuer.status, self.issuer.down = 200, True
        self.assertIn("can't be reached", self.shown(self.get("/sign-in/oidc")))
        self.clock.advance(11)
        self.issuer.down = False
        self.assertEqual(303, self.get("/sign-in/oidc").status)

    def test_no_token(self) -> None:
        """An answer without an ID token lets nobody in."""
        self.issuer.sign = lambda claims: 1  # type: ignore[assignment,return-value]
        self.refused(self.enter(), 502, "It gives no ID token.")

    def test_shown(self) -> None:
        """Admins see how it is set up and whether the provider answers, never the secret."""
        self.add("root", "admin")
        self.add("vera", "editor")
        root = self.session("root")
        shown = self.ask("GET", "/single-sign-on", **root)
        self.assertNotIn(SECRET, shown.body.decode())
        self.assertEqual(ISSUER, json.loads(shown.body)["issuer"])
        self.assertEqual("", json.loads(self.ask("GET", "/single-sign-on/provider", **root).body)["problem"])
        vera = self.session("vera")
        for path in ("/single-sign-on", "/single-sign-on/provider"):
            self.assertEqual(403, self.ask("GET", path, **vera).status)
        self.assertNotIn(SECRET, repr(self.console.settings))
        self.console.single_sign_on = None
        self.assertEqual(404, self.ask("GET", "/single-sign-on", **root).status)
        self.assertEqual(404, self.get("/sign-in/oidc").status)


class OnlyTests(SignOnCase):
    """A console without passwords."""

    only = True

    def test_password(self) -> None:
        """A password counts for an hour after the command has set it, and no other one does."""
        self.add("mara", "admin", True)
        response = self.log_in()
        self.assertEqual(401, response.status)
        self.assertIn("webhookrx console user", json.loads(response.body)["detail"])
        self.assertNotIn("correct horse battery", self.hashed[-1])
        self.store.writer.write(lambda tx: break_glass(tx, "mara"))
        self.assertEqual(401, self.log_in(password="wrong").status)
        self.session()
        self.clock.advance(3600)
        self.assertEqual(401, self.log_in().status)
        self.store.writer.write(lambda tx: break_glass(tx, "other"))
        names = self.store.reader.read(lambda db: db.execute("SELECT name FROM setting").fetchall())
        self.assertEqual([("break_glass:other",)], names)

    def test_first_admin(self) -> None:
        """There is no first admin with a password."""
        body = {"secret": "x", "name": "mara", "password": "correct horse battery"}
        self.assertEqual(403, self.ask("POST", "/first-admin", body).status)

    def test_page(self) -> None:
        """The page offers single sign-on, and says how to get in without."""
        page = self.shown(self.get("/sign-in"))
        self.assertIn("Sign in with single sign-on", page)
        self.assertIn("Sign in when the provider is away", page)
        response = self.post("/sign-in", {"name": "mara", "password": "x"})
        self.assertEqual(401, response.status)

    def test_without(self) -> None:
        """Without a provider the page asks for a password alone."""
        self.console.settings = replace(self.console.settings, oidc=None)
        self.assertNotIn("single sign-on", self.shown(self.get("/sign-in")))
