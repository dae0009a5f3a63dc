"""
Public keys as they are published: certificates and keys in PEM, and key sets in JSON (RFC 7517).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import msgspec

from webhookrx.intake.json_body import PayloadError, parse_strict_json
from webhookrx.senders.signatures.strict_encodings import from_base64url

MAX_KEYS: Final = 32
"""Keys of one set that are looked at. Issuers publish two or three."""

_SMALLEST: Final = 2048
_NANOSECONDS: Final = 1_000_000_000
_PEM: Final = re.compile(rb"-----BEGIN (CERTIFICATE|PUBLIC KEY)-----[^-]{1,20000}-----END \1-----")


class PublishedKey(msgspec.Struct, frozen=True):
    """
    A public key.

    @ivar name: by which tokens name it; empty without one.
    @ivar kind: C{rsa} or C{ecdsa}, which is on the curve P-256.
    @ivar key: of C{cryptography}.
    @ivar begins: nanoseconds since the epoch, from when on it may be used; 0 without such a moment.
    @ivar ends: the last such moment.
    """

    name: str
    kind: str
    key: Any
    begins: int = 0
    ends: int = 2**63

    def is_valid(self, now: int) -> bool:
        """Tell whether it may be used now."""
        return self.begins <= now <= self.ends


@lru_cache(maxsize=32)
def key_set(data: bytes) -> tuple[PublishedKey, ...]:
    """
    Read keys.

    @param data: PEM or JSON.
    @return: those that can be used; none when it is something else. RSA keys have 2,048 bits at least.
    """
    if b"-----BEGIN " in data:
        found = [_of_pem(block[0]) for block in _PEM.finditer(data)]
    else:
        try:
            document = parse_strict_json(data)
        except PayloadError:
            return ()
        keys = document.get("keys") if isinstance(document, dict) else None
        found = [_of_json(key) for key in keys[:MAX_KEYS]] if isinstance(keys, list) else []
    return tuple(key for key in found if key is not None)


def _of_pem(block: bytes) -> PublishedKey | None:
    # It takes a tenth of a second to import, which most receivers need not spend.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from cryptography.x509 import load_pem_x509_certificate

    try:
        if b"PUBLIC KEY" in block:
            return _checked("", load_pem_public_key(block), 0, 2**63)
        certificate = load_pem_x509_certificate(block)
        begins, ends = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
        return _checked("", certificate.public_key(), round(begins) * _NANOSECONDS, round(ends) * _NANOSECONDS)
    except (ValueError, UnsupportedAlgorithm):
        return None


def _of_json(key: Any) -> PublishedKey | None:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicNumbers
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

    if not isinstance(key, dict) or key.get("use", "sig") != "sig":
        return None
    name = key.get("kid", "")
    try:
        made: Any = None
        if key.get("kty") == "RSA":
            made = RSAPublicNumbers(_number(key["e"]), _number(key["n"])).public_key()
        elif key.get("kty") == "EC" and key.get("crv") == "P-256":
            made = EllipticCurvePublicNumbers(_number(key["x"]), _number(key["y"]), SECP256R1()).public_key()
    except (ValueError, KeyError):
        return None
    return _checked(name if isinstance(name, str) else "", made, 0, 2**63)


def _number(text: Any) -> int:
    """@raise ValueError: it is no number as RFC 7518 section 2 writes one."""
    data = from_base64url(text.encode()) if isinstance(text, str) and len(text) <= 2048 else None
    if not data:
        raise ValueError
    return int.from_bytes(data)


def _checked(name: str, key: Any, begins: int, ends: int) -> PublishedKey | None:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    if isinstance(key, RSAPublicKey) and key.key_size >= _SMALLEST:
        return PublishedKey(name, "rsa", key, begins, ends)
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return PublishedKey(name, "ecdsa", key, begins, ends)
    return None
