"""
The check of an ID token: its signature by a key of the provider, and all claims that say for whom and when it is
(OpenID Connect Core 1.0, section 3.1.3.7).
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, OKPKey, RSAKey

from webhookrx.console.oidc.claims import BadIdToken

#: Those with two keys. With one key for both, whoever knows the public one could sign.
ALGORITHMS: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    **dict.fromkeys(("EdDSA", "Ed25519", "Ed448"), "OKP"),
}
"""The algorithms that are taken, with the type of their keys."""

LEEWAY: Final = 60
"""Seconds by which the clock of the provider may be off."""

MOST_AGE: Final = 600
"""Seconds since it was made."""

MOST_KEYS: Final = 64
_LATEST: Final = 1 << 53
"""Seconds since the epoch; JSON may have any number, and those that are none."""

_LEAST_BITS: Final = 2048
_LONGEST: Final = 64 * 1024
_MOST_TRIED: Final = 8

PublicKey = RSAKey | ECKey | OKPKey


class IdTokenRegistry(jws.JWSRegistry):
    """Bounds of a token; parameters of its head that nobody knows are let be, as RFC 7515 section 4 has it."""

    max_header_length = 8192

    def __init__(self) -> None:
        super().__init__(algorithms=list(ALGORITHMS), strict_check_header=False)


_REGISTRY: Final = IdTokenRegistry()


def read_keys(document: object) -> tuple[PublicKey, ...]:
    """
    Return those keys of a JWK Set (RFC 7517) that may sign ID tokens; the others are left out.

    @param document: of JSON.
    """
    given = document.get("keys") if isinstance(document, dict) else None
    keys: list[PublicKey] = []
    for each in given[:MOST_KEYS] if isinstance(given, list) else ():
        if not isinstance(each, dict) or each.get("kty") not in ("RSA", "EC", "OKP") or each.get("use", "sig") != "sig":
            continue
        try:
            key = JWKRegistry.import_key(each)
            is_short = isinstance(key, RSAKey) and key.raw_value.key_size < _LEAST_BITS
        except (JoseError, UnsupportedAlgorithm, ValueError, TypeError, LookupError, AttributeError, OverflowError):
            continue
        if isinstance(key, RSAKey | ECKey | OKPKey) and not is_short:
            keys.append(key)
    return tuple(keys)


def key_name(token: str) -> str | None:
    """
    Return the C{kid} of a token, which is not verified yet; None without one.

    @raise BadIdToken: it is none, or signed by what is not taken.
    """
    kid = _head(token).get("kid")
    return kid if isinstance(kid, str) else None


def keys_for(token: str, keys: Iterable[PublicKey]) -> list[PublicKey]:
    """
    Return the keys that may have signed a token: that with its C{kid}; without one, all of its type.

    @raise BadIdToken: see L{key_name}.
    """
    head, kid = _head(token), key_name(token)
    fitting = [each for each in keys if each.key_type == ALGORITHMS[head["alg"]]]
    return [each for each in fitting if kid is None or each.kid == kid][:_MOST_TRIED]


def verified_claims(
    token: str, keys: Sequence[PublicKey], *, issuer: str, client_id: str, nonce: str, now: float
) -> dict[str, Any]:
    """
    Return the claims of a token that is good.

    @param keys: see L{keys_for}.
    @param nonce: that of the log-in.
    @param now: seconds since the epoch.
    @raise BadIdToken: it is not; nothing of it counts.
    """
    algorithm = _head(token)["alg"]
    for key in keys:
        try:
            claims = jwt.decode(token, key, [algorithm], _REGISTRY).claims
        except (JoseError, ValueError, TypeError, RecursionError):
            continue
        _check(claims, issuer, client_id, nonce, now)
        return dict(claims)
    raise BadIdToken("No key of the provider has signed it.")


def _head(token: str) -> Mapping[str, Any]:
    try:
        if len(token) > _LONGEST:
            raise BadIdToken("It is too long.")
        head = jws.extract_compact(token.encode("ascii"), registry=_REGISTRY).headers()
    except (JoseError, ValueError, TypeError, RecursionError):
        raise BadIdToken("It is no JSON Web Token.") from None
    algorithm = head.get("alg") if isinstance(head, dict) else None
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise BadIdToken("It is signed by an algorithm that is not taken.")
    return head


def _check(claims: Mapping[str, Any], issuer: str, client_id: str, nonce: str, now: float) -> None:
    if claims.get("iss") != issuer:
        raise BadIdToken("Its issuer is another.")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    party = claims.get("azp")
    if client_id not in audiences or (party is not None and party != client_id):
        raise BadIdToken("It is for another client.")
    if len(audiences) > 1 and party is None:
        raise BadIdToken("It is for several clients, and does not say which asks.")
    if now >= _time(claims, "exp") + LEEWAY:
        raise BadIdToken("It has expired.")
    if not now - MOST_AGE - LEEWAY <= _time(claims, "iat") <= now + LEEWAY:
        raise BadIdToken("It was not made just now; are the clocks right?")
    if "nbf" in claims and _time(claims, "nbf") > now + LEEWAY:
        raise BadIdToken("It does not count yet.")
    given = claims.get("nonce")
    if not isinstance(given, str) or not given.isascii() or not hmac.compare_digest(given, nonce):
        raise BadIdToken("It is of another log-in.")


def _time(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LATEST:
        raise BadIdToken(f"It has no {name}.")
    return float(value)
