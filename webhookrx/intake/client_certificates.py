"""
Client certificates: whom one names, within bounds, however odd it is.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from webhookrx.intake.provenance import ClientIdentity

MOST_NAMES: Final = 100
"""Alternative names of a certificate that count, as many as public authorities put into one."""

LONGEST_NAME: Final = 255
"""Characters of a name; a longer one counts as none, and of an issuer that many are kept."""

MOST_BYTES: Final = 32 * 1024
"""Bytes of a certificate that is read: a larger one takes milliseconds."""

#: A name of a host, or a wildcard for some, as distinct from the other kinds.
_HOST: Final = re.compile(r"[A-Za-z0-9*._-]+")


def identity_of(certificate: bytes) -> ClientIdentity:
    """
    Read a certificate, which was verified.

    Of one that can't be read, or not in full, only the fingerprint is known for sure, and the names are empty: no
    pattern of names matches it.

    @param certificate: in DER.
    """
    fingerprint = hashlib.sha256(certificate).hexdigest()
    if len(certificate) <= MOST_BYTES:
        try:
            read = x509.load_der_x509_certificate(certificate)
            cn, san, issuer = _common_name(read.subject), _alternative_names(read), read.issuer.rfc4514_string()
            return ClientIdentity(cn, san, _encodable(issuer)[:LONGEST_NAME], fingerprint)
        except Exception:  # noqa: S110  # a dozen kinds, by the part that is odd
            pass
    return ClientIdentity("", (), "", fingerprint)


def _common_name(subject: x509.Name) -> str:
    """Return the common name; empty if there is none, or if several contradict each other."""
    names = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    name = names[0].value if len(names) == 1 else ""
    return _encodable(name) if isinstance(name, str) and len(name) <= LONGEST_NAME else ""


def _alternative_names(certificate: x509.Certificate) -> tuple[str, ...]:
    """
    Return the alternative names of a certificate: hosts, addresses of mail, URIs and IP addresses, in its order. The
    text of one kind never looks like another's.
    """
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return ()
    names: list[str] = []
    for general in extension.value:
        if isinstance(general, x509.DNSName):
            name = general.value if _HOST.fullmatch(general.value) else ""
        elif isinstance(general, x509.RFC822Name):
            name = general.value if "@" in general.value else ""
        elif isinstance(general, x509.UniformResourceIdentifier):
            name = general.value if ":" in general.value else ""
        else:
            name = str(general.value) if isinstance(general, x509.IPAddress) else ""
        if name and len(name) <= LONGEST_NAME:
            names.append(_encodable(name))
            if len(names) == MOST_NAMES:
                break
    return tuple(names)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
