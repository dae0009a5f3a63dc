"""
Read the private key and the certificate chain of an endpoint, and check that they belong together.

Only parses: nothing here asks for a pass phrase, whatever the files hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import Certificate, load_pem_x509_certificates

from webhookrx.config.settings import TLS
from webhookrx.errors import ConfigError

PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey | Ed448PrivateKey


@dataclass(frozen=True, slots=True)
class KeyAndChain:
    """
    What a server shows to its clients.

    @ivar key: the private key of the first certificate.
    @ivar chain: the host certificate, then each one's issuer as far as the files go.
    """

    key: PrivateKey
    chain: tuple[Certificate, ...]


def load_key_and_chain(tls: TLS) -> KeyAndChain:
    """
    Read C{key_file}, C{cert_file} and C{extra_chain_file}.

    @raise ConfigError: a file is missing, unreadable, encrypted or not PEM; the key does not fit the first
        certificate; a certificate is not followed by its issuer. The text names the file.
    """
    key = _read_key(tls.key_file)
    chain = [(tls.cert_file, certificate) for certificate in _read_certificates(tls.cert_file)]
    if tls.extra_chain_file is not None:
        chain += [(tls.extra_chain_file, certificate) for certificate in _read_certificates(tls.extra_chain_file)]
    certificates = tuple(certificate for _, certificate in chain)
    _check_fit(tls, key, certificates)
    for (_, subject), (path, issuer) in pairwise(chain):
        _check_issuer(subject, issuer, path)
    return KeyAndChain(key, certificates)


def read_file(path: str, what: str) -> bytes:
    """
    @param what: what the file is, for the error.

    @raise ConfigError: it can't be read.
    """
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"The {what} file {path} can't be read: {error.strerror}.") from None


def _read_key(path: str) -> PrivateKey:
    pem = read_file(path, "private key")
    try:
        key = load_pem_private_key(pem, None)
    except TypeError:
        raise ConfigError(f"The private key in {path} is encrypted; it must be unencrypted PEM.") from None
    except (ValueError, UnsupportedAlgorithm):
        raise ConfigError(f"The private key file {path} holds no private key in PEM format.") from None
    if not isinstance(key, PrivateKey):
        raise ConfigError(f"The private key in {path} is of a kind that TLS can't use; RSA, EC and Ed25519 are usual.")
    return key


def _read_certificates(path: str) -> list[Certificate]:
    try:
        return load_pem_x509_certificates(read_file(path, "certificate"))
    except ValueError:
        raise ConfigError(f"The certificate file {path} holds no certificate in PEM format.") from None


def _check_fit(tls: TLS, key: PrivateKey, chain: tuple[Certificate, ...]) -> None:
    fits = [number for number, certificate in enumerate(chain, 1) if _is_certificate_of(certificate, key)]
    if not fits:
        raise ConfigError(f"The private key in {tls.key_file} does not fit the certificate in {tls.cert_file}.")
    if fits[0] != 1:
        raise ConfigError(
            f"The certificate file {tls.cert_file} must begin with the host certificate, but the private key in "
            f"{tls.key_file} fits certificate number {fits[0]}."
        )


def _is_certificate_of(certificate: Certificate, key: PrivateKey) -> bool:
    try:
        return certificate.public_key() == key.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return False


def _check_issuer(subject: Certificate, issuer: Certificate, path: str) -> None:
    try:
        subject.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        raise ConfigError(
            f"The chain in {path} is out of order: {issuer.subject.rfc4514_string()!r} did not issue "
            f"{subject.subject.rfc4514_string()!r} before it; the host certificate comes first, then each issuer."
        ) from None
