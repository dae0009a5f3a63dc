"""
How the text of a secret becomes the key of an algorithm.
"""

from __future__ import annotations

from typing import Any, Final

from webhookrx.senders.signatures.named_secrets import NamedSecret, SecretError
from webhookrx.senders.signatures.scheme import PUBLIC_KEY_ALGORITHMS
from webhookrx.senders.signatures.strict_encodings import from_base64, from_hex

_WANTED: Final = {
    "base64": "Base64",
    "hex": "an even number of hexadecimal digits",
    "whsec": "Base64 behind whsec_",
    "whpk": "Base64 behind whpk_",
    "pem": "a public key or certificate in PEM",
}
_PREFIXES: Final = {"whsec": b"whsec_", "whpk": b"whpk_"}


def key_bytes(secret: NamedSecret, form: str, *, strict: bool = False) -> bytes:
    """
    Return the bytes of a key.

    @param form: one of L{webhookrx.senders.signatures.scheme.KEY_FORMS}.
    @param strict: a key that has a prefix by its form must have it here, too.
    @raise SecretError: the secret is no key of that form, or empty.
    """
    value = secret.value
    if form in _PREFIXES:
        prefix = _PREFIXES[form]
        key = from_base64(value.removeprefix(prefix)) if not strict or value.startswith(prefix) else None
    elif form == "base64":
        key = from_base64(value)
    else:
        key = from_hex(value) if form == "hex" else value
    if key is None:
        raise SecretError(f"The secret {secret.name!r} is not {_WANTED[form]}.")
    if not key:
        raise SecretError(f"The secret {secret.name!r} is empty.")
    return key


def public_key(secret: NamedSecret, form: str, algorithm: str, *, strict: bool = False) -> Any:
    """
    Return a public key of C{cryptography}, or that of a certificate.

    @param algorithm: one of L{PUBLIC_KEY_ALGORITHMS}.
    @raise SecretError: the secret is no public key of that form for that algorithm.
    """
    # It takes a tenth of a second to import, which most receivers need not spend.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_der_public_key, load_pem_public_key
    from cryptography.x509 import load_pem_x509_certificate

    assert algorithm in PUBLIC_KEY_ALGORITHMS, algorithm
    kind: type[Any] = {"ed25519": Ed25519PublicKey, "ecdsa-sha256": EllipticCurvePublicKey}.get(algorithm, RSAPublicKey)
    data = key_bytes(secret, form, strict=strict)
    key: Any
    try:
        if form == "pem":
            is_certificate = b"-----BEGIN CERTIFICATE-----" in data
            key = load_pem_x509_certificate(data).public_key() if is_certificate else load_pem_public_key(data)
        elif algorithm == "ed25519" and len(data) == 32:
            key = Ed25519PublicKey.from_public_bytes(data)
        else:
            key = load_der_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, kind):
        is_part = form == "pem" and b"-----END" not in data
        hint = " A key in PEM is a file of its own, as NAME = @FILE." if is_part else ""
        raise SecretError(f"The secret {secret.name!r} is not a public key for {algorithm}.{hint}")
    if isinstance(key, RSAPublicKey) and key.key_size < SMALLEST_RSA:
        raise SecretError(f"The RSA key {secret.name!r} has less than {SMALLEST_RSA} bits.")
    return key


SMALLEST_RSA: Final = 1024
"""Bits of an RSA key at least. Fewer can be forged by anyone."""
