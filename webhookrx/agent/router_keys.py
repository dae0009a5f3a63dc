"""
The key and certificate of a router: made here, signed by the console, renewed in time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)


class KeyRequest(NamedTuple):
    """
    A new private key, and the request to certify it, both PEM. The request is signed by the key, and names nobody: the
    console decides who its bearer is.
    """

    key: str
    csr: str

    def __repr__(self) -> str:
        return "<KeyRequest>"


def new_key() -> KeyRequest:
    """Return a new key of P-256."""
    return _request_for(generate_private_key(SECP256R1()))


def request_for(key: str) -> KeyRequest:
    """
    Return a request to certify a key that is there already.

    @param key: PEM, as L{new_key} makes it.
    @raise ValueError: it is none; the text does not quote it.
    """
    try:
        private = load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError):
        raise ValueError("This is no private key.") from None
    if not isinstance(private, EllipticCurvePrivateKey) or not isinstance(private.curve, SECP256R1):
        raise ValueError("This is no private key of P-256.")
    return _request_for(private)


def _request_for(key: EllipticCurvePrivateKey) -> KeyRequest:
    csr = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyRequest(text.decode(), csr.public_bytes(Encoding.PEM).decode())


def check_certificate(certificate: str, key: str) -> None:
    """
    Check that a certificate is for a key.

    @raise ValueError: it is not, or one of them is none. The text quotes neither.
    """
    try:
        certified = x509.load_pem_x509_certificate(certificate.encode()).public_key()
        private = load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError):
        raise ValueError("The console has sent something that is no certificate.") from None
    if not isinstance(private, EllipticCurvePrivateKey) or _bytes_of(certified) != _bytes_of(private.public_key()):
        raise ValueError("The console has certified another key than the one of this router.")


def renewal_is_due(certificate: str, now: datetime) -> bool:
    """
    Tell whether a certificate is to be renewed: from two thirds of its life.

    A clock that has jumped back before its beginning does not make it due: a console would not take an hour that is
    wrong for a reason, and the certificate is as good as it was.

    @param now: the time with its zone.
    @raise ValueError: it is no certificate.
    """
    read = x509.load_pem_x509_certificate(certificate.encode())
    life = read.not_valid_after_utc - read.not_valid_before_utc
    return now.astimezone(UTC) >= read.not_valid_before_utc + life * 2 / 3


def pinned_authority(chain: Iterable[bytes], authority: str) -> str | None:
    """
    Return the certificate of a chain that an enrolment token names, as PEM; None when it is not there, or is no CA.

    @param chain: certificates as a console has shown them, DER. Nothing of them is trusted yet.
    @param authority: the SHA-256 of the certificate, in hexadecimal digits.
    """
    for data in chain:
        if hashlib.sha256(data).hexdigest() != authority:
            continue
        certificate = x509.load_der_x509_certificate(data)
        try:
            is_ca = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        except (x509.ExtensionNotFound, ValueError):
            is_ca = False
        return certificate.public_bytes(Encoding.PEM).decode() if is_ca else None
    return None


def _bytes_of(key: object) -> bytes:
    data: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[attr-defined]
    return data
