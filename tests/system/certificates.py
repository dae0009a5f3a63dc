"""
Certificates for tests: small authorities, and every kind of good and bad certificate they can issue.

Dates are fixed, so that nothing here reads a clock. Keys are elliptic-curve ones, which are quick to make.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from OpenSSL.crypto import X509

from webhookrx.settings import TLS

CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH
SERVER = ExtendedKeyUsageOID.SERVER_AUTH

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
A_YEAR_LATER = datetime(2021, 1, 1, tzinfo=UTC)
A_YEAR_BEFORE = datetime(2097, 1, 1, tzinfo=UTC)
FAR_AWAY = datetime(2098, 1, 1, tzinfo=UTC)

LOCAL_NAMES = (
    x509.DNSName("localhost"),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    x509.IPAddress(ipaddress.ip_address("::1")),
)


@dataclass(frozen=True)
class Identity:
    """
    A key, its certificate and the intermediates above it, without the root.
    """

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    intermediates: tuple[x509.Certificate, ...] = ()

    def write(self, directory: str, name: str, *, with_intermediates: bool = True) -> tuple[str, str]:
        """Write the key and the chain as PEM, and return the two paths."""
        key_file = os.path.join(directory, f"{name}-key.pem")
        write(key_file, key_pem(self.key))
        cert_file = os.path.join(directory, f"{name}-cert.pem")
        write(cert_file, certificates_pem(self.certificate, *(self.intermediates if with_intermediates else ())))
        return key_file, cert_file


class Authority:
    """
    Issues certificates: a root, or an intermediate below another.
    """

    def __init__(self, name: str, parent: Authority | None = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _name(name)
        builder = (
            _builder(self._subject, parent._subject if parent else self._subject, self.key, LONG_AGO, FAR_AWAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(ca=True), critical=True)
        )
        self.certificate = _sign(builder, parent.key if parent else self.key)
        self.intermediates: tuple[x509.Certificate, ...] = (self.certificate, *parent.intermediates) if parent else ()

    def issue(
        self,
        name: str,
        usages: Sequence[x509.ObjectIdentifier] = (CLIENT, SERVER),
        *,
        not_before: datetime = LONG_AGO,
        not_after: datetime = FAR_AWAY,
        names: Sequence[x509.GeneralName] = LOCAL_NAMES,
    ) -> Identity:
        """
        Issue a certificate.

        @param usages: the extended key usages; an empty sequence leaves the extension out.
        @param names: the subject alternative names; an empty sequence leaves the extension out.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _leaf_builder(_name(name), self._subject, key, usages, not_before, not_after, names)
        return Identity(key, _sign(builder, self.key), self.intermediates)


def self_signed(name: str) -> Identity:
    """A certificate for clients and servers that nobody but itself vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _leaf_builder(_name(name), _name(name), key, (CLIENT, SERVER), LONG_AGO, FAR_AWAY, LOCAL_NAMES)
    return Identity(key, _sign(builder, key))


def server_settings(directory: str, identity: Identity, name: str = "server", **policy: object) -> TLS:
    """Write the files of a server and return the settings that name them."""
    key_file, cert_file = identity.write(directory, name)
    return TLS(key_file, cert_file, **policy)  # type: ignore[arg-type]


def certificates_pem(*certificates: x509.Certificate) -> bytes:
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def key_pem(key: ec.EllipticCurvePrivateKey, pass_phrase: bytes | None = None) -> bytes:
    encryption: KeySerializationEncryption = BestAvailableEncryption(pass_phrase) if pass_phrase else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def write(path: str, content: bytes) -> str:
    with open(path, "wb") as file:
        file.write(content)
    return path


def write_ca_file(directory: str, name: str, *authorities: Authority) -> str:
    return write(
        os.path.join(directory, f"{name}.pem"), certificates_pem(*(authority.certificate for authority in authorities))
    )


def write_hashed_directory(directory: str, *authorities: Authority) -> str:
    """Make a directory as C{openssl rehash} leaves it."""
    os.makedirs(directory, exist_ok=True)
    for authority in authorities:
        write(os.path.join(directory, hashed_name(authority)), certificates_pem(authority.certificate))
    return directory


def hashed_name(authority: Authority) -> str:
    return f"{X509.from_cryptography(authority.certificate).subject_name_hash():08x}.0"


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, not_before: datetime, not_after: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before)
        .not_valid_after(not_after)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _sign(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    """Sign as RFC 5280 has it, which clients since Python 3.13 insist on."""
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    return builder.add_extension(issuer, critical=False).sign(key, SHA256())


def _leaf_builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    usages: Sequence[x509.ObjectIdentifier],
    not_before: datetime,
    not_after: datetime,
    names: Sequence[x509.GeneralName],
) -> x509.CertificateBuilder:
    builder = (
        _builder(subject, issuer, key, not_before, not_after)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(ca=False), critical=True)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False) if usages else builder


def _key_usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )
