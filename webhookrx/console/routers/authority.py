"""
The authority of a console: its CA, which certifies the routers and the console's port for them, and its signing key.

Nobody but the console and its routers trusts this CA. Its keys lie beside the database, in files that only their owner
may read, and never in it.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import re
import secrets
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from webhookrx.config.files import read_state, write_state
from webhookrx.diagnostics import quoted
from webhookrx.errors import CannotStart, ConfigError
from webhookrx.management.bundle import MOST_KEYS, public_text

CA_FILE: Final = "ca.pem"
"""The CA: its private key, its certificate, and the certificates of CAs before it that still count."""

SIGNING_FILE: Final = "signing.pem"
"""The private keys for bundles: the one that signs, then those whose bundles routers still take."""

KEY_FILES: Final = (CA_FILE, SIGNING_FILE)
"""The files beside the database that a console can't do without."""

ROUTER_DAYS: Final = 30
"""For which a router's certificate is valid."""

RENEWABLE_DAYS: Final = 180
"""After its end a certificate is still good for a renewal for these."""

LONGEST_REQUEST: Final = 8192
"""Characters of a certificate request."""

_CA_DAYS: Final = 3650
_PORT_DAYS: Final = 90
_EARLY: Final = timedelta(hours=1)
_PRIVATE_KEY: Final = re.compile(rb"-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----")


class BadCertificateRequest(Exception):
    """A certificate request can't be granted. The text quotes nothing of it."""


@dataclass(frozen=True)
class RouterCertificate:
    """
    A certificate that a router gets.

    @ivar pem: the certificate.
    @ivar fingerprint: its SHA-256, hexadecimal.
    @ivar ends: when it expires, seconds since the epoch.
    """

    pem: str
    fingerprint: str
    ends: float


@dataclass(frozen=True)
class PortIdentity:
    """
    Key and certificate of the port for routers.

    @ivar key: its key, PEM.
    @ivar certificate: its certificate, PEM.
    @ivar renew_at: when it should have a new one, seconds since the epoch.
    """

    key: bytes = field(repr=False)
    certificate: bytes
    renew_at: float


class Authority:
    """
    A console's CA and signing keys.

    @ivar certificates: the CA certificates that count, that in use first.
    @ivar signing_key: signs bundles.
    @ivar signing_keys: the public keys of bundles that routers take, as texts, that in use first.
    @ivar pin: the SHA-256 of the CA certificate in use, hexadecimal.
    """

    def __init__(
        self,
        ca_key: ec.EllipticCurvePrivateKey,
        certificates: tuple[x509.Certificate, ...],
        signing_keys: tuple[Ed25519PrivateKey, ...],
    ) -> None:
        self._ca_key = ca_key
        self.certificates = certificates
        self.signing_key = signing_keys[0]
        self.signing_keys = tuple(public_text(each.public_key()) for each in signing_keys)
        self.pin = certificates[0].fingerprint(SHA256()).hex()

    @property
    def authorities(self) -> tuple[str, ...]:
        """The CA certificates that count, PEM."""
        return tuple(each.public_bytes(Encoding.PEM).decode() for each in self.certificates)

    def issue(self, request: str, guid: str, now: datetime) -> RouterCertificate:
        """
        Certify the key of a certificate request for a router. Nothing else in the request counts.

        @param request: PKCS #10, PEM.
        @param guid: the router: it becomes the subject.
        @raise BadCertificateRequest: it is not one, or its key is not on P-256, or it is not signed by that key.
        """
        certificate = self._certify(
            _key_of(request),
            guid,
            now,
            timedelta(days=ROUTER_DAYS),
            ExtendedKeyUsageOID.CLIENT_AUTH,
        )
        return RouterCertificate(
            certificate.public_bytes(Encoding.PEM).decode(),
            certificate.fingerprint(SHA256()).hex(),
            certificate.not_valid_after_utc.timestamp(),
        )

    def guid_of(self, request: str, token: str) -> str:
        """
        Return the guid of the router that enrols with a key and a token: the same for both once more.

        @param request: see L{issue}.
        @param token: the id of the enrolment.
        @raise BadCertificateRequest: see L{issue}.
        """
        key = _key_of(request).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return str(uuid.UUID(bytes=hashlib.sha256(token.encode() + b"\0" + key).digest()[:16]))

    def identity_of_port(self, names: Iterable[str], now: datetime) -> PortIdentity:
        """
        Make a new key and certificate for the port.

        @param names: host names and addresses by which routers call the console; the first is the subject.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        named = list(dict.fromkeys(names))
        life = timedelta(days=_PORT_DAYS)
        certificate = self._certify(key.public_key(), named[0][:64], now, life, ExtendedKeyUsageOID.SERVER_AUTH, named)
        return PortIdentity(_private_pem(key), certificate.public_bytes(Encoding.PEM), (now + life * 2 / 3).timestamp())

    def _certify(
        self,
        key: ec.EllipticCurvePublicKey,
        subject: str,
        now: datetime,
        life: timedelta,
        usage: x509.ObjectIdentifier,
        names: Iterable[str] = (),
    ) -> x509.Certificate:
        ca = self.certificates[0]
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(subject))
            .issuer_name(ca.subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            # The clock of the other side may be behind.
            .not_valid_before(now - _EARLY)
            .not_valid_after(min(now + life, ca.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._ca_key.public_key()), False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), False)
        )
        alternatives = [_alternative(each) for each in names]
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return builder.sign(self._ca_key, SHA256())


def make_authority(directory: str, now: datetime) -> Authority:
    """
    Make the keys of a new console. A file that is there already stays as it is, and counts.

    @param directory: where its database is.
    @raise CannotStart: they can't be written, or those that are there can't be used.
    """
    contents = {CA_FILE: lambda: _new_ca(now), SIGNING_FILE: lambda: _private_pem(Ed25519PrivateKey.generate())}
    for name, make in contents.items():
        path = os.path.join(directory, name)
        if not os.path.lexists(path):
            try:
                write_state(directory, name, make())
            except OSError as error:
                raise CannotStart(f"The keys of the console can't be written to {quoted(path)}: {error}") from None
    return load_authority(directory)


def load_authority(directory: str) -> Authority:
    """
    Read the keys of a console.

    @raise CannotStart: a file is missing, damaged, or open to others. No key is made in its place: the routers would
        trust no other.
    """
    return authority_of({name: _read(directory, name) for name in KEY_FILES})


def authority_of(files: Mapping[str, bytes]) -> Authority:
    """
    Return the authority whose files have these contents.

    @param files: the contents of L{KEY_FILES}.
    @raise CannotStart: one of them is damaged.
    """
    try:
        key = load_pem_private_key(files[CA_FILE], password=None)
        certificates = tuple(x509.load_pem_x509_certificates(files[CA_FILE]))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CannotStart(f"{CA_FILE} of the console holds no key and certificate of a CA.") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificates[0].public_key() != key.public_key():
        raise CannotStart(f"The key and the first certificate in {CA_FILE} of the console don't belong together.")
    try:
        signing = tuple(load_pem_private_key(each, password=None) for each in _PRIVATE_KEY.findall(files[SIGNING_FILE]))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        signing = ()
    ed25519 = tuple(each for each in signing if isinstance(each, Ed25519PrivateKey))
    if not ed25519 or len(ed25519) != len(signing):
        raise CannotStart(f"{SIGNING_FILE} of the console holds no Ed25519 keys.")
    if max(len(certificates), len(ed25519)) > MOST_KEYS:
        raise CannotStart(f"A console has {MOST_KEYS} CA certificates and signing keys at most.")
    return Authority(key, certificates, ed25519)


def _read(directory: str, name: str) -> bytes:
    path = os.path.join(directory, name)
    try:
        data = read_state(directory, name)
        mode = 0 if data is None else os.stat(path).st_mode
    except (ConfigError, OSError) as error:
        raise CannotStart(f"A key of the console can't be used: {error}") from None
    if data is None:
        raise CannotStart(
            f"{quoted(path)} is missing. Routers trust no other key: restore it from the backup of the keys."
        )
    if mode & 0o077:
        raise CannotStart(f"Others may read {quoted(path)}, the key of the console: its mode must be 0600.")
    return data


def _new_ca(now: datetime) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    # Its name is of its own, so that two consoles' certificates are not mixed up.
    name = _name(f"webhookrx console {secrets.token_hex(4)}")
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLY)
        .not_valid_after(now + timedelta(days=_CA_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, SHA256())
    )
    return _private_pem(key) + certificate.public_bytes(Encoding.PEM)


def _private_pem(key: ec.EllipticCurvePrivateKey | Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _key_of(request: str) -> ec.EllipticCurvePublicKey:
    """
    @raise BadCertificateRequest: see L{Authority.issue}.
    """
    if len(request) > LONGEST_REQUEST:
        raise BadCertificateRequest(f"A certificate request has {LONGEST_REQUEST:,} characters at most.")
    try:
        asked = x509.load_pem_x509_csr(request.encode())
        key = asked.public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise BadCertificateRequest("The certificate request is not PKCS #10 in PEM format.") from None
    # Before its signature: anybody may ask, and that of a large key of another kind takes long.
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise BadCertificateRequest("The key of a certificate request must be on the curve P-256.")
    try:
        signed = asked.is_signature_valid
    except (ValueError, UnsupportedAlgorithm, InvalidSignature):
        signed = False
    if not signed:
        raise BadCertificateRequest("The certificate request is not signed by its key.")
    return key


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=key_cert_sign,
        encipher_only=False,
        decipher_only=False,
    )
