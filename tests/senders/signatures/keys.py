"""
Key pairs for tests, made once.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa


def private_key(algorithm: str, number: int = 0) -> Any:
    """Return one of several private keys for an algorithm such as C{ecdsa-sha256}."""
    return _made(algorithm.partition("-")[0], number)


@lru_cache
def _made(kind: str, number: int) -> Any:
    if kind == "ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key(ec.SECP256R1()) if kind == "ecdsa" else rsa.generate_private_key(65537, 2048)


def private_pem(algorithm: str, number: int = 0) -> bytes:
    """Return the same in PEM."""
    pem: bytes = private_key(algorithm, number).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return pem


def public_text(algorithm: str, form: str, number: int = 0) -> str:
    """Return the public key as a secrets file has it."""
    public = private_key(algorithm, number).public_key()
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    if form == "pem":
        return str(public.public_bytes(serialization.Encoding.PEM, info).decode())
    if algorithm == "ed25519":
        data = public.public_bytes_raw()
    else:
        data = public.public_bytes(serialization.Encoding.DER, info)
    return str(data.hex()) if form == "hex" else ("whpk_" if form == "whpk" else "") + base64.b64encode(data).decode()
