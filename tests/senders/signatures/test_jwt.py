"""Tests for L{webhookrx.senders.signatures.jwt}."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.signatures.keys import private_key, public_text
from tests.senders.signatures.published_keys import KeyTable, web_key, web_keys
from tests.senders.signatures.requests import SECOND, check, head_of, verdict, verifier_of
from webhookrx.senders.signatures.named_secrets import NamedSecret, SecretError
from webhookrx.senders.signatures.outcome import Verified
from webhookrx.senders.signatures.signing import sign
from webhookrx.senders.signatures.verifier import Verifier, asks_for_secrets

_BODY = b'{"id":"1"}'
_GOOGLE_KEYS = "https://www.googleapis.com/oauth2/v3/certs"
_NETLIFY = {
    "code": "jwt",
    "at": "header:x-webhook-signature",
    "algorithms": ["HS256"],
    "claims": {"iss": "netlify", "sha256": "{body:sha256}"},
}
_PUBSUB = {
    "code": "jwt",
    "at": "header:authorization",
    "prefix": "Bearer ",
    "algorithms": ["RS256"],
    "claims": {
        "iss": "https://accounts.google.com",
        "aud": "{setting:audience}",
        "email": "{setting:email}",
        "email_verified": "true",
    },
}
_SETTINGS = {"audience": "https://logs.example", "email": "push@acme.example"}
_HAS = {name: {"meaning": "m"} for name in _SETTINGS}
_CLAIMS = {
    "aud": "https://logs.example",
    "email": "push@acme.example",
    "email_verified": True,
    "iss": "https://accounts.google.com",
    "iat": 1000,
    "exp": 4600,
}


def _part(value: Any) -> bytes:
    data = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _token(claims: Any, algorithm: str = "HS256", key: Any = b"s3cret", **header: Any) -> str:
    """Return a token, signed by its algorithm."""
    signed = _part({"alg": algorithm, "typ": "JWT", **header}) + b"." + _part(claims)
    if algorithm.startswith("HS"):
        signature = hmac.digest(key, signed, f"sha{algorithm[2:]}")
    elif algorithm.startswith("RS"):
        signature = key.sign(signed, PKCS1v15(), getattr(hashes, f"SHA{algorithm[2:]}")())
    elif algorithm == "ES256":
        first, second = decode_dss_signature(key.sign(signed, ECDSA(hashes.SHA256())))
        signature = first.to_bytes(32) + second.to_bytes(32)
    else:
        signature = b""
    return (signed + b"." + _part(signature)).decode()


def _netlify(secret: str = "s3cret", **members: Any) -> Verifier:
    return verifier_of(_NETLIFY | members, secrets={"a": "other", "b": secret})


def _pubsub(keys: KeyTable | None = None, **members: Any) -> Verifier:
    keys = KeyTable({_GOOGLE_KEYS: web_keys(web_key("rsa", "k1", 1), web_key("rsa", "k0"))}) if keys is None else keys
    return verifier_of(_PUBSUB | members, secrets={}, settings=_SETTINGS, has_settings=_HAS, keys=keys)


def _bearer(claims: dict[str, Any] = _CLAIMS, key: int = 0, **header: Any) -> dict[str, str]:
    return {"authorization": "Bearer " + _token(claims, "RS256", private_key("rsa", key), **header)}


class SharedSecretTests(SynchronousTestCase):
    """Tokens that are signed with a secret, such as Netlify's."""

    def _verdict(self, token: str, body: bytes = _BODY, verifier: Verifier | None = None, now: float = 0) -> str:
        return verdict(check(verifier or _netlify(), {"X-Webhook-Signature": token}, body, now=now))

    def test_body(self) -> None:
        """A token is for one body, and for the sender that the definition names."""
        claims = {"iss": "netlify", "sha256": hashlib.sha256(_BODY).hexdigest()}
        self.assertEqual("ok:b", self._verdict(_token(claims)))
        self.assertEqual("bad_signature", self._verdict(_token(claims), b"{}"))
        self.assertEqual("bad_signature", self._verdict(_token(claims | {"iss": "other"})))
        self.assertEqual("bad_signature", self._verdict(_token({"iss": "netlify"})))
        self.assertEqual("bad_signature", self._verdict(_token(claims | {"sha256": None})))
        self.assertEqual("bad_signature", self._verdict(_token(claims, key=b"another")))
        self.assertTrue(_netlify().binds_body)

    def test_algorithm(self) -> None:
        """The algorithm is the definition's: none, another one, or a public key as a secret don't do."""
        claims = {"iss": "netlify", "sha256": hashlib.sha256(_BODY).hexdigest()}
        for algorithm in ("none", "None", "HS512", "HS384", "hs256"):
            key_algorithm = algorithm if algorithm in ("HS384", "HS512") else "none"
            token = _token(claims, key_algorithm, alg=algorithm)
            self.assertIn(self._verdict(token), ("bad_signature", "signature_missing"), algorithm)
        both = _netlify(algorithms=["HS256", "HS512"])
        self.assertEqual("ok:b", self._verdict(_token(claims, "HS512"), verifier=both))

    def test_public_key_is_no_secret(self) -> None:
        """A token that is signed with the text of a public key, as if that were a secret, is refused."""
        text = public_text("rsa", "pem")
        verifier = verifier_of(
            _PUBSUB, secrets={"a": text}, settings=_SETTINGS, has_settings=_HAS, keys=KeyTable(are_fetched=False)
        )
        token = _token(_CLAIMS, "HS256", text.encode())
        self.assertEqual(
            "bad_signature", verdict(check(verifier, {"authorization": f"Bearer {token}"}, _BODY, now=1000))
        )
        self.assertEqual("ok:a", verdict(check(verifier, _bearer(), _BODY, now=1000)))

    def test_form(self) -> None:
        """What is not written as a token is none: three parts of strict Base64, two of which are objects of JSON."""
        claims = {"iss": "netlify", "sha256": hashlib.sha256(_BODY).hexdigest()}
        good = _token(claims)
        header, body, signature = good.split(".")
        for token in (
            "",
            ".",
            "..",
            header,
            f"{header}.{body}",
            f"{header}.{body}.",
            f"{header}..{signature}",
            f"{good}.{signature}",
            f"{good}=",
            f" {header}.{body}.{signature}"[1:] + ".",
            f"{header}.{_part([1]).decode()}.{signature}",
            f"{_part('x').decode()}.{body}.{signature}",
            f"{_part(b'{').decode()}.{body}.{signature}",
            f"{_part({'alg': 7}).decode()}.{body}.{signature}",
            f"{_part({'alg': 'HS256', 'kid': 7}).decode()}.{body}.{signature}",
            _token(claims, crit=["exp"]),
            _token(claims | {"x": "y" * 20_000}),
        ):
            self.assertEqual("signature_missing", self._verdict(token), token[:80])
        twice = [("x-webhook-signature", good)] * 2
        self.assertEqual("signature_missing", verdict(check(_netlify(), twice, _BODY)))
        self.assertEqual("signature_missing", verdict(check(_netlify(), {}, _BODY)))

    def test_times(self) -> None:
        """A token that binds its body need not end; the times that it has must hold, within a minute."""
        claims = {"iss": "netlify", "sha256": hashlib.sha256(_BODY).hexdigest()}
        for times, now, expected in (
            ({"exp": 1000}, 1060, "ok:b"),
            ({"exp": 1000}, 1061, "stale_signature"),
            ({"nbf": 1000}, 940, "ok:b"),
            ({"nbf": 1000}, 939, "stale_signature"),
            ({"iat": 1000}, 939, "stale_signature"),
            ({"iat": 1000}, 10**6, "ok:b"),
            ({"exp": "9999999999"}, 0, "stale_signature"),
            ({"exp": None}, 0, "stale_signature"),
            ({"exp": [1]}, 0, "stale_signature"),
        ):
            self.assertEqual(expected, self._verdict(_token(claims | times), now=now), times)

    def test_sign(self) -> None:
        """A request can be signed here, with the claims that its check wants."""
        verifier = _netlify()
        signed = sign(verifier, NamedSecret("b", b"s3cret"), head_of(), {}, _BODY, 1000 * SECOND)
        headers = [(name.decode(), value) for name, value in signed.headers.items()]
        self.assertEqual("ok:b", verdict(check(verifier, headers, _BODY, now=1000)))
        self.assertEqual("stale_signature", verdict(check(verifier, headers, _BODY, now=10**6)))

    def test_secrets(self) -> None:
        """Without a secret nothing can be checked."""
        self.assertRaises(SecretError, verifier_of, _NETLIFY, secrets={})


class PublicKeyTokenTests(SynchronousTestCase):
    """Tokens that are signed by who publishes its keys, such as those of Pub/Sub."""

    def _verdict(self, verifier: Verifier, headers: Any, now: float = 1000) -> str:
        return verdict(check(verifier, headers, _BODY, now=now))

    def test_genuine(self) -> None:
        """A token by a key of the issuer, named or not, proves the account and the audience."""
        result = check(_pubsub(), _bearer(kid="k0"), _BODY, now=1100)
        self.assertEqual(
            Verified("accounts.google.com", "signature", 1000 * SECOND, 100.0),
            result,
        )
        self.assertEqual("ok:accounts.google.com", self._verdict(_pubsub(), _bearer()))
        self.assertFalse(_pubsub().binds_body)
        listed = _bearer(_CLAIMS | {"aud": ["https://other.example", "https://logs.example"]})
        self.assertEqual("ok:accounts.google.com", self._verdict(_pubsub(), listed))

    def test_claims(self) -> None:
        """Another audience, account or issuer, or an account that is not verified, is refused."""
        for change in (
            {"aud": "https://other.example"},
            {"aud": []},
            {"aud": None},
            {"email": "other@acme.example"},
            {"email_verified": False},
            {"email_verified": "TRUE"},
            {"iss": "https://evil.example"},
            {"iss": "https://accounts.google.com.evil.example"},
        ):
            self.assertEqual("bad_signature", self._verdict(_pubsub(), _bearer(_CLAIMS | change)), change)

    def test_must_end(self) -> None:
        """A token that binds no body must end, and only counts until then."""
        without = {name: value for name, value in _CLAIMS.items() if name != "exp"}
        self.assertEqual("stale_signature", self._verdict(_pubsub(), _bearer(without)))
        self.assertEqual("ok:accounts.google.com", self._verdict(_pubsub(), _bearer(), 4660))
        self.assertEqual("stale_signature", self._verdict(_pubsub(), _bearer(), 4661))

    def test_own_keys(self) -> None:
        """A token can't bring its key, or name where that is."""
        for header in (
            {"jwk": web_key("rsa", "", 2)},
            {"jku": "https://evil.example/keys"},
            {"x5u": "https://evil.example/cert"},
            {"kid": "../../dev/null"},
        ):
            keys = KeyTable({_GOOGLE_KEYS: web_keys(web_key("rsa", "k0"))})
            keys.can_renew = False
            self.assertEqual("bad_signature", self._verdict(_pubsub(keys), _bearer(key=2, **header)), header)
            self.assertEqual({_GOOGLE_KEYS}, {*keys.asked, *keys.renewed})

    def test_unknown_key(self) -> None:
        """A key that is not in the set may be new: the sender tries again while another set is on its way."""
        keys = KeyTable({_GOOGLE_KEYS: web_keys(web_key("rsa", "k0"))})
        verifier = _pubsub(keys)
        self.assertEqual([_GOOGLE_KEYS], keys.renewed)  # at once, for the first token
        self.assertEqual("key_unavailable", self._verdict(verifier, _bearer(key=1, kid="k1")))
        self.assertEqual([_GOOGLE_KEYS] * 2, keys.renewed)
        keys.can_renew = False
        self.assertEqual("bad_signature", self._verdict(_pubsub(keys), _bearer(key=1, kid="k1")))
        self.assertEqual("key_unavailable", self._verdict(_pubsub(KeyTable()), _bearer()))

    def test_files(self) -> None:
        """A key set in a file does without any request to the issuer."""
        keys = KeyTable(files=[web_keys(web_key("rsa", "k0"))], are_fetched=False)
        self.assertEqual("ok:accounts.google.com", self._verdict(_pubsub(keys), _bearer(kid="k0")))
        self.assertEqual("bad_signature", self._verdict(_pubsub(keys), _bearer(key=1, kid="k1")))
        self.assertEqual([], keys.asked)

    def test_curve(self) -> None:
        """Tokens by keys on P-256 verify; those of another length or kind don't."""
        keys = KeyTable({_GOOGLE_KEYS: web_keys(web_key("ecdsa", "e"), web_key("rsa", "k0"))})
        verifier = _pubsub(keys, algorithms=["ES256", "RS256"])
        token = _token(_CLAIMS, "ES256", private_key("ecdsa"), kid="e")
        self.assertEqual("ok:accounts.google.com", self._verdict(verifier, {"authorization": f"Bearer {token}"}))
        short = f"{token.rpartition('.')[0]}.{_part(bytes(63)).decode()}"
        self.assertEqual("bad_signature", self._verdict(verifier, {"authorization": f"Bearer {short}"}))
        mixed = _token(_CLAIMS, "RS256", private_key("rsa"), kid="e")
        self.assertEqual("bad_signature", self._verdict(verifier, {"authorization": f"Bearer {mixed}"}))

    def test_names_of_claims(self) -> None:
        """Of names with a bar between them, the first claim that is there counts; of texts, any."""
        verifier = _pubsub(claims=_PUBSUB["claims"] | {"azp|appid": ["one", "two"]})  # type: ignore[operator]
        for claims, expected in (
            ({"azp": "one"}, "ok:accounts.google.com"),
            ({"appid": "two"}, "ok:accounts.google.com"),
            ({"azp": "three", "appid": "one"}, "bad_signature"),
            ({}, "bad_signature"),
        ):
            self.assertEqual(expected, self._verdict(verifier, _bearer(_CLAIMS | claims)), claims)

    def test_settings(self) -> None:
        """Without a setting that a claim must be, or any key, nothing can be checked; no secret is needed."""
        verifier = _pubsub()
        self.assertEqual(("accounts.google.com",), verifier.names)
        for settings, keys in (
            ({"email": "x"}, KeyTable()),
            (_SETTINGS, None),
            (_SETTINGS, KeyTable(are_fetched=False)),
        ):
            self.assertRaises(
                SecretError, verifier_of, _PUBSUB, secrets={}, settings=settings, has_settings=_HAS, keys=keys
            )
        error = self.assertRaises(
            SecretError, verifier_of, _PUBSUB, secrets={"a": "hunter2"}, settings=_SETTINGS, has_settings=_HAS
        )
        self.assertNotIn("hunter2", str(error))
        from tests.senders.requests import entry_of

        for scheme, asks in ((_PUBSUB, False), (_NETLIFY, True)):
            self.assertEqual(asks, asks_for_secrets(entry_of(verify=scheme, settings=_HAS)))
        self.assertRaises(SecretError, sign, verifier, NamedSecret("accounts.google.com", b""), head_of(), {}, b"", 0)
