"""
JSON Web Tokens (RFC 7519) that senders sign for each request, and what their claims must be.

The algorithms are those that the definition names: what a token says of its own only picks one of these (RFC 8725
section 3.1). Keys are the secrets of the source, key sets (RFC 7517) in files, or the key set of the issuer that the
definition names, never of one that the token does.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from webhookrx.errors import BAD_SIGNATURE, SIGNATURE_MISSING, STALE_SIGNATURE
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.json_body import PayloadError, parse_strict_json
from webhookrx.senders.signatures.code_verifiers import CodeOptions
from webhookrx.senders.signatures.key_forms import key_bytes
from webhookrx.senders.signatures.key_sets import PublishedKey, key_set
from webhookrx.senders.signatures.named_secrets import SecretError
from webhookrx.senders.signatures.outcome import KeyUnavailable, Unverified, Verified
from webhookrx.senders.signatures.pinned_urls import keys_of
from webhookrx.senders.signatures.public_keys import is_signed_by
from webhookrx.senders.signatures.signed_request import SignedRequest, text_of
from webhookrx.senders.signatures.signed_text import SignedText
from webhookrx.senders.signatures.strict_encodings import ENCODERS, from_base64url
from webhookrx.senders.signatures.token_algorithms import DIGESTS, PUBLIC
from webhookrx.senders.times import from_number

LONGEST_TOKEN: Final = 16 * 1024
"""Bytes of a token; a longer one is none."""

LEEWAY: Final = 60
"""Seconds by which the clocks of a sender and of this machine may differ."""

_NANOSECONDS: Final = 1_000_000_000
_TOKEN: Final = re.compile(rb"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")
_WRONG_CLAIM: Final = "The token is genuine, but says another receiver, sender or body than this."


class _Token(NamedTuple):
    """
    A token that is written as one, and not yet believed.

    @ivar signed: the text that its signature is of.
    """

    algorithm: str
    key_name: str
    signed: bytes
    signature: bytes
    claims: dict[str, Any]


class JwtVerifier:
    """
    Checks tokens.

    @raise SecretError: there are no keys to check them with, or a setting is missing.
    """

    def __init__(self, options: CodeOptions) -> None:
        scheme = options.compiled.scheme
        self._places = options.compiled.places
        self._prefix = options.compiled.prefix
        self._algorithms = frozenset(scheme.algorithms)
        self._keys = options.keys
        self._claims = options.compiled.claims
        self._check_settings(options)
        self._binds_body = options.compiled.binds_body
        self._macs: list[tuple[str, bytes]] = []
        self._public: list[tuple[str, PublishedKey]] = []
        self._url = self._issuer = ""
        if scheme.algorithms[0] in DIGESTS:
            self._macs = [(secret.name, key_bytes(secret, scheme.key)) for secret in options.secrets]
        else:
            self._take_public(options)
        named = [name for name, _ in (*self._macs, *self._public)]
        self.names = tuple(dict.fromkeys([*named, self._issuer] if self._issuer else named))
        if not self.names:
            raise SecretError(
                "There is no key to check tokens with: no secret, no file of signing_certs, no fetch_keys."
            )

    def _check_settings(self, options: CodeOptions) -> None:
        for _, texts in self._claims:
            for name in (name for text in texts for name in text.names("setting")):
                if not options.settings.get(name):
                    raise SecretError(f"This sender's tokens are checked with the setting {name!r}, which is missing.")

    def _take_public(self, options: CodeOptions) -> None:
        for secret in options.secrets:
            keys = key_set(secret.value)
            if not keys:
                raise SecretError(f"The secret {secret.name!r} is no public key that tokens can be checked with.")
            self._public += [(secret.name, key) for key in keys]
        request = _request_for(options)
        for names, texts in self._claims:
            for issuer in [(text.whole(request) or b"").decode() for text in texts] if names == ("iss",) else []:
                if not self._url and keys_of(issuer):
                    self._url, self._issuer = keys_of(issuer), issuer.split("/")[2]
        if options.keys is None or not (options.keys.files or options.keys.are_fetched):
            self._issuer = ""
        elif self._url:
            options.keys.renew(self._url)  # so that they are there when the first token comes

    def check(self, request: SignedRequest, now: int) -> Verified | Unverified:
        """See L{CodeVerifier.check}."""
        values = [value for place in self._places for value in place.values(request)]
        token = _read(values[0].removeprefix(self._prefix)) if _is_one(values, self._prefix) else None
        if token is None:
            return Unverified(SIGNATURE_MISSING, SIGNATURE_MISSING.detail)
        if token.algorithm not in self._algorithms:
            return Unverified(BAD_SIGNATURE, "The token is signed by another algorithm than this sender uses.")
        name = self._signer(token, now)
        if name is None:
            return Unverified(BAD_SIGNATURE, BAD_SIGNATURE.detail)
        if not all(self._is_as_expected(names, texts, token, request) for names, texts in self._claims):
            return Unverified(BAD_SIGNATURE, _WRONG_CLAIM)
        return self._judge_times(name, token.claims, now)

    def sign(self, name: str, request: SignedRequest, now: int) -> Mapping[bytes, bytes]:
        """See L{CodeVerifier.sign}."""
        key = dict(self._macs).get(name)
        if key is None:
            raise SecretError(f"The key {name!r} is a public one; only the sender has the private one.")
        algorithm = min(self._algorithms)
        seconds = now // _NANOSECONDS
        claims: dict[str, Any] = {"iat": seconds, "exp": seconds + 300}
        for names, texts in self._claims:
            text = texts[0].whole(request)
            if text is None:
                raise SecretError("The request lacks a part of what this sender signs.")
            claims[names[0]] = text.decode()
        parts = [msgspec.json.encode({"alg": algorithm, "typ": "JWT"}), msgspec.json.encode(claims)]
        signed = b".".join(map(ENCODERS["base64url"], parts))
        signature = ENCODERS["base64url"](hmac.digest(key, signed, DIGESTS[algorithm]))
        return {self._places[0].header: self._prefix + signed + b"." + signature}

    def _signer(self, token: _Token, now: int) -> str | None:
        """
        Return the name of the key that a token is signed with; None when there is none.

        @raise KeyUnavailable: it may be by a key that is not there now.
        """
        digest = DIGESTS.get(token.algorithm)
        if digest is not None:
            codes = ((name, hmac.digest(key, token.signed, digest)) for name, key in self._macs)
            return next((name for name, code in codes if hmac.compare_digest(code, token.signature)), None)
        for name, key in self._public:
            if _is_by(token, key, now):
                return name
        if not self._issuer:
            return None
        assert self._keys is not None, "there is a URL to ask it for"
        for data in self._keys.files:
            if any(_is_by(token, key, now) for key in key_set(data)):
                return self._issuer
        if not self._keys.are_fetched:
            return None
        published = key_set(self._keys.fetched(self._url))
        if any(_is_by(token, key, now) for key in published):
            return self._issuer
        if token.key_name not in {key.name for key in published} and self._keys.renew(self._url):
            raise KeyUnavailable  # the issuer may have a new key since
        return None

    def _is_as_expected(
        self, names: tuple[str, ...], texts: tuple[SignedText, ...], token: _Token, request: SignedRequest
    ) -> bool:
        """Tell whether the first of some claims that a token has is one of the texts that it may be."""
        claim = next((token.claims[name] for name in names if name in token.claims), None)
        said = [text_of(value) for value in (claim if isinstance(claim, list) else [claim])[:100]]
        wanted = [text.whole(request) for text in texts]
        return any(each and hmac.compare_digest(each, text) for each in wanted for text in said if text is not None)

    def _judge_times(self, name: str, claims: dict[str, Any], now: int) -> Verified | Unverified:
        """RFC 7519 sections 4.1.4 to 4.1.6. A token that binds no body must end."""
        issued, begins, ends = (_moment(claims, claim) for claim in ("iat", "nbf", "exp"))
        signed_at = issued or begins
        skew = (now - signed_at) / _NANOSECONDS if signed_at else None
        leeway = LEEWAY * _NANOSECONDS
        is_late = ends is not None and now > ends + leeway
        is_early = any(moment is not None and moment > now + leeway for moment in (issued, begins))
        unreadable = any(claim in claims and _moment(claims, claim) is None for claim in ("iat", "nbf", "exp"))
        if is_late or is_early or unreadable or (ends is None and not self._binds_body):
            return Unverified(STALE_SIGNATURE, STALE_SIGNATURE.detail, skew)
        return Verified(name, "signature", signed_at, skew)


make = JwtVerifier


def _is_one(values: list[bytes], prefix: bytes) -> bool:
    return len(values) == 1 and values[0].startswith(prefix) and len(values[0]) <= LONGEST_TOKEN


def _request_for(options: CodeOptions) -> SignedRequest:
    """Return an empty request, for texts that only settings are in."""
    head = Head(b"POST", b"/", None, (), Peer("", None, False))
    return SignedRequest(head, {}, options.public_url, options.settings)


def _read(text: bytes) -> _Token | None:
    """Read a token (RFC 7515 section 5.2); None when it is none, or says what must be understood and is not."""
    found = _TOKEN.fullmatch(text)
    if found is None:
        return None
    header, claims = _object(found[1]), _object(found[2])
    signature = from_base64url(found[3])
    if header is None or claims is None or not signature or "crit" in header:
        return None
    algorithm, key_name = header.get("alg"), header.get("kid", "")
    if not isinstance(algorithm, str) or not isinstance(key_name, str):
        return None
    return _Token(algorithm, key_name, text[: found.end(2)], signature, claims)


def _object(part: bytes) -> dict[str, Any] | None:
    data = from_base64url(part)
    try:
        value = parse_strict_json(data) if data else None
    except PayloadError:
        return None
    return value if isinstance(value, dict) else None


def _is_by(token: _Token, key: PublishedKey, now: int) -> bool:
    algorithm = PUBLIC[token.algorithm]
    if not key.is_valid(now) or not algorithm.startswith(f"{key.kind}-"):
        return False
    if token.key_name and key.name and token.key_name != key.name:
        return False
    signature = token.signature
    if key.kind == "ecdsa":
        if len(signature) != 64:  # RFC 7518 section 3.4
            return False
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

        signature = encode_dss_signature(int.from_bytes(signature[:32]), int.from_bytes(signature[32:]))
    return is_signed_by(key.key, algorithm, signature, token.signed)


def _moment(claims: dict[str, Any], name: str) -> int | None:
    value = claims.get(name)
    return None if isinstance(value, str) else from_number(value, _NANOSECONDS)
