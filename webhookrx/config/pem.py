"""
Keys, certificates and CA directories, checked at start and reload.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from webhookrx.config.files import Snapshot, public_warning
from webhookrx.diagnostics import ERROR, Diagnostic, diagnose, quoted
from webhookrx.errors import ConfigError
from webhookrx.settings import TLS, FileContents, Source

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey

SOON = timedelta(days=30)
"""A certificate that expires within this is worth a warning."""

SHORTEST_RSA_KEY = 2048
"""Bits; OpenSSL refuses shorter ones at its default security level."""

_PEM_CERTIFICATE = re.compile(rb"-----BEGIN (?:X509 )?CERTIFICATE-----")
_HASHED_NAME = re.compile(r"[0-9a-f]{8}\.[0-9]+")


class _Stop(Exception):
    """
    A file that can't be used, so that the rest can't be checked.

    @param role: the field of L{TLS} that names the file.
    """

    def __init__(self, role: str, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.diagnostic = diagnose(code, (role,), sentence)


def check_tls_files(tls: TLS, now: datetime, files: Snapshot) -> list[Diagnostic]:
    """
    Read every file that it names and return what is wrong with them. The path of each diagnostic is the field of
    L{TLS} that names the file, and that file is its C{named}.

    @param now: the time, with its zone.
    @param files: reads keys and certificates.
    """
    found: list[Diagnostic] = []
    for check in (_check_pair, _check_ca_file, _check_ca_dir):
        try:
            found.extend(check(tls, now, files))
        except _Stop as stop:
            found.append(stop.diagnostic)
    return [msgspec.structs.replace(each, named=getattr(tls, str(each.path[0]))) for each in found]


def check_cert_file(path: str, now: datetime, files: Snapshot) -> list[Diagnostic]:
    """
    Read a certificate, or the whole chain, whose key is not at hand, and return what is wrong with it.

    @param now: the time, with its zone.
    """
    try:
        chain = _load_chain(TLS("", path), files)
        _check_order(chain)
        found = [each for certificate in chain for each in certificate.check_dates(now)]
    except _Stop as stop:
        found = [stop.diagnostic]
    return [msgspec.structs.replace(each, named=path) for each in found]


def contents_of(sources: Iterable[Source], files: Snapshot) -> FileContents:
    """Return the contents of the files that the TLS of sources names, as far as they have been read."""
    paths: list[str] = []
    for tls in {listener.tls for source in sources for listener in source.listeners}:
        if tls is None:
            continue
        named = (tls.key_file, tls.cert_file, tls.extra_chain_file, tls.ca_file)
        paths += [path for path in named if path is not None]
        paths += [] if tls.ca_dir is None else files.below(tls.ca_dir)
    return files.contents(paths)


def load_key_and_chain(tls: TLS, known: FileContents | None = None) -> tuple[PrivateKey, list[x509.Certificate]]:
    """
    Read the key of a server, and its chain: the host certificate with each one's signer after it.

    @param known: the contents of files; others are read.
    @raise ConfigError: a file is missing or wrong, or they do not belong together.
    """
    try:
        key, _, chain = _load_pair(tls, Snapshot(known))
    except _Stop as stop:
        raise ConfigError(stop.diagnostic.sentence) from None
    return key, [certificate.value for certificate in chain]


class Trust(NamedTuple):
    """
    CA certificates.

    @ivar from_file: those of the CA file.
    @ivar from_directory: those of the CA directory.
    """

    from_file: list[x509.Certificate]
    from_directory: list[x509.Certificate]


def load_trust(tls: TLS, known: FileContents | None = None) -> Trust:
    """
    Read the CA file and the CA directory.

    @param known: see L{load_key_and_chain}.
    @raise ConfigError: one of them is missing or wrong.
    """
    now = datetime.now(UTC)
    files = Snapshot(known)
    try:
        for found in (*_check_ca_file(tls, now, files), *_check_ca_dir(tls, now, files)):
            if found.severity == ERROR:
                raise ConfigError(found.sentence)
        from_file = [] if tls.ca_file is None else _load_certificates("ca_file", tls.ca_file, files)
        paths = [] if tls.ca_dir is None else _hashed_files(tls.ca_dir, files)
        from_directory = [each for path in paths for each in _load_certificates("ca_dir", path, files)]
    except _Stop as stop:
        raise ConfigError(stop.diagnostic.sentence) from None
    return Trust([each for _, each in from_file], [each for _, each in from_directory])


def _load_pair(tls: TLS, files: Snapshot) -> tuple[PrivateKey, int, list[_Certificate]]:
    """Return the key, the mode bits of its file, and the chain."""
    key, key_mode = _load_key(tls.key_file, files)
    chain = _load_chain(tls, files)
    _check_fit(key, tls.key_file, chain)
    _check_order(chain)
    return key, key_mode, chain


def _load_chain(tls: TLS, files: Snapshot) -> list[_Certificate]:
    named = [("cert_file", tls.cert_file), ("extra_chain_file", tls.extra_chain_file)]
    return [
        _Certificate(role, path, number, each)
        for role, path in named
        if path is not None
        for number, each in _load_certificates(role, path, files)
    ]


def _check_pair(tls: TLS, now: datetime, files: Snapshot) -> Iterator[Diagnostic]:
    try:
        _, key_mode, chain = _load_pair(tls, files)
    except _Stop as stop:
        yield stop.diagnostic
        if stop.diagnostic.path == ("key_file",):
            # A certificate that can't be used, too, is a mistake of the same start.
            _load_chain(tls, files)
        return
    warning = public_warning(tls.key_file, key_mode)
    if warning:
        yield diagnose("key-file-open", ("key_file",), warning)
    for certificate in chain:
        yield from certificate.check_dates(now)


def _check_ca_file(tls: TLS, now: datetime, files: Snapshot) -> Iterator[Diagnostic]:
    if tls.ca_file is not None:
        for number, certificate in _load_certificates("ca_file", tls.ca_file, files):
            yield from _Certificate("ca_file", tls.ca_file, number, certificate).check_dates(now)


def _check_ca_dir(tls: TLS, now: datetime, files: Snapshot) -> Iterator[Diagnostic]:
    if tls.ca_dir is None:
        return
    for path in _hashed_files(tls.ca_dir, files):
        try:
            for number, certificate in _load_certificates("ca_dir", path, files):
                yield from _Certificate("ca_dir", path, number, certificate).check_dates(now)
        except _Stop as stop:
            yield stop.diagnostic


def _hashed_files(directory: str, files: Snapshot) -> list[str]:
    """Return the hashed files of a CA directory; at least one."""
    name = quoted(directory)
    rehash = f"run: openssl rehash {directory}"
    try:
        names = files.names(directory)
    except ConfigError as error:
        raise _Stop("ca_dir", _reading(directory), error.problem) from None
    if not names:
        raise _Stop(
            "ca_dir",
            "bad-ca-directory",
            f"{name} is empty, so no client could be trusted; put CA certificates there and {rehash}",
        )
    hashed = [each for each in names if _HASHED_NAME.fullmatch(each)]
    if not hashed:
        raise _Stop(
            "ca_dir",
            "bad-ca-directory",
            f"{name} has no hashed names (hhhhhhhh.0), without which OpenSSL finds nothing; {rehash}",
        )
    return [os.path.join(directory, each) for each in hashed]


@dataclass(frozen=True, slots=True)
class _Certificate:
    """A certificate, and its number from 1 in its file."""

    role: str
    path: str
    number: int
    value: x509.Certificate

    @property
    def name(self) -> str:
        return f"certificate {self.number} of {quoted(self.path)}"

    def public_key(self) -> bytes:
        """Return its public key in DER; empty for an unknown kind of key."""
        try:
            return self.value.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        except (ValueError, UnsupportedAlgorithm):
            return b""

    def check_dates(self, now: datetime) -> Iterator[Diagnostic]:
        """Warn of dates; they are no error, since the certificate may be renewed while we run."""
        begin, end = self.value.not_valid_before_utc, self.value.not_valid_after_utc
        if now < begin:
            yield self._warning("certificate-not-yet-valid", f"is not valid before {begin:%Y-%m-%d %H:%M} UTC")
        elif end < now:
            yield self._warning("certificate-expired", f"has expired on {end:%Y-%m-%d %H:%M} UTC")
        elif end - now < SOON:
            yield self._warning(
                "certificate-expires-soon", f"expires on {end:%Y-%m-%d %H:%M} UTC, in {(end - now).days} days"
            )

    def _warning(self, code: str, text: str) -> Diagnostic:
        return diagnose(code, (self.role,), f"{self.name} {text}.")


def _load_key(path: str, files: Snapshot) -> tuple[PrivateKey, int]:
    """Return the key and the mode bits of its file."""
    name = quoted(path)
    data, mode = _read("key_file", path, files)
    try:
        key = load_pem_private_key(data, password=None)
    except TypeError:
        # Never a prompt: a service has no terminal.
        raise _Stop(
            "key_file",
            "key-encrypted",
            f"{name} is encrypted; an unencrypted key is needed (openssl pkey -in … -out …).",
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        hint = _der_hint(data, f"openssl pkey -inform DER -in {path} -out …")
        raise _Stop(
            "key_file", "tls-file-not-pem", f"{name} holds no private key in PEM format that can be read{hint}."
        ) from None
    if not isinstance(key, PrivateKey):
        raise _Stop(
            "key_file", "key-unusable", f"{name} is a key of a kind that TLS can't use; RSA, EC and Ed25519 are usual."
        )
    if isinstance(key, rsa.RSAPrivateKey) and key.key_size < SHORTEST_RSA_KEY:
        raise _Stop(
            "key_file",
            "key-unusable",
            f"{name} is an RSA key of {key.key_size} bits; TLS needs {SHORTEST_RSA_KEY} or more.",
        )
    return key, mode


def _load_certificates(role: str, path: str, files: Snapshot) -> list[tuple[int, x509.Certificate]]:
    """Return the certificates of a file, each with its number from 1; at least one."""
    data, _ = _read(role, path, files)
    if not _PEM_CERTIFICATE.search(data):
        hint = _der_hint(data, f"openssl x509 -inform DER -in {path} -out …")
        raise _Stop(role, "tls-file-not-pem", f"{quoted(path)} holds no certificate in PEM format{hint}.")
    try:
        return list(enumerate(x509.load_pem_x509_certificates(data), 1))
    except ValueError:
        raise _Stop(role, "tls-file-not-pem", f"{quoted(path)} holds a certificate that is damaged.") from None


def _read(role: str, path: str, files: Snapshot) -> tuple[bytes, int]:
    try:
        data, mode = files.read(path)
    except ConfigError as error:
        raise _Stop(role, _reading(path), error.problem) from None
    if not data.strip():
        raise _Stop(role, "tls-file-not-pem", f"{quoted(path)} is empty.")
    return data, mode


def _der_hint(data: bytes, command: str) -> str:
    """Return how to convert what looks like DER: a sequence of ASN.1, with a short or a long length."""
    is_short = 2 <= len(data) < 130 and data[:2] == bytes((0x30, len(data) - 2))
    is_long = data.startswith((b"0\x81", b"0\x82"))
    return f"; it looks like DER, convert it: {command}" if is_short or is_long else ""


def _reading(path: str) -> str:
    """Return the code for a file that could not be read: it may be there, behind a directory without access."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return "tls-file-missing"
    except OSError:
        pass
    return "tls-file-unreadable"


def _check_fit(key: PrivateKey, key_file: str, chain: list[_Certificate]) -> None:
    """
    @raise _Stop: the key does not belong to the first certificate.
    """
    ours = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    fitting = next((each for each in chain if each.public_key() == ours), None)
    if fitting is None:
        raise _Stop(
            "cert_file",
            "key-mismatch",
            f"The key {quoted(key_file)} does not match the certificate {quoted(chain[0].path)}.",
        )
    if fitting is not chain[0]:
        raise _Stop(
            fitting.role,
            "chain-order",
            f"The chain is in the wrong order: the key {quoted(key_file)} matches {fitting.name}, "
            "but the host certificate must come first.",
        )


def _check_order(chain: list[_Certificate]) -> None:
    """
    @raise _Stop: a certificate is not signed by the one that follows it.
    """
    for signed, signer in pairwise(chain):
        try:
            signed.value.verify_directly_issued_by(signer.value)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            raise _Stop(
                signer.role,
                "chain-order",
                f"The chain is in the wrong order: {signer.name} did not sign {signed.name}. "
                "The host certificate comes first, then each one's signer.",
            ) from None
