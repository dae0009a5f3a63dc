"""
The algorithms of JSON Web Tokens (RFC 7518 section 3.1) that may be named in a definition.
"""

from __future__ import annotations

from typing import Final

DIGESTS: Final = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}
"""Those with a secret, and the digest of their HMAC."""

PUBLIC: Final = {"RS256": "rsa-sha256", "RS384": "rsa-sha384", "RS512": "rsa-sha512", "ES256": "ecdsa-sha256"}
"""Those with a public key, as L{webhookrx.senders.signatures.public_keys.is_signed_by} calls them."""


def check_algorithms(algorithms: tuple[str, ...]) -> str:
    """Return what is wrong with the algorithms of a definition, in one sentence; empty when nothing is."""
    known = (*DIGESTS, *PUBLIC)
    if not algorithms:
        return f"The algorithms are missing: some of {', '.join(known)}."
    for algorithm in algorithms:
        if algorithm not in known:
            return f"{algorithm!r} is not one of {', '.join(known)}."
    if len({algorithm in DIGESTS for algorithm in algorithms}) > 1:
        return "Secrets and public keys don't go together: a public key must never be taken for a secret."
    return ""


def is_public(algorithms: tuple[str, ...]) -> bool:
    """Tell whether tokens are checked with public keys, by algorithms that nothing is wrong with."""
    return algorithms[0] in PUBLIC
