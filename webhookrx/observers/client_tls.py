"""
TLS of an observer that connects to another machine: whom it trusts, and what it shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificates
from OpenSSL import SSL
from twisted.internet.ssl import Certificate, optionsForClientTLS, platformTrust, trustRootFromCertificates
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

from webhookrx.config.files import read_file
from webhookrx.config.settings import TLS
from webhookrx.config.tls_files import check_trust, load_key_and_chain
from webhookrx.errors import ConfigError

if TYPE_CHECKING:
    from twisted.internet._sslverify import IOpenSSLTrustRoot
    from twisted.internet.interfaces import IOpenSSLClientConnectionCreator


@dataclass(frozen=True, slots=True)
class ClientTLS:
    """
    The files of a client; paths are absolute.

    @ivar ca_file: who is trusted; None stands for the system's store.
    @ivar cert_file: the certificate to show and its chain; goes with C{key_file}.
    """

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


def make_creator(host: str, tls: ClientTLS) -> IOpenSSLClientConnectionCreator:
    """
    Read the files as they are now, and return what gives connections to a host their TLS: 1.2 or 1.3, with the
    certificate verified, its host name too.

    @raise ConfigError: a file is missing, unreadable or wrong; the text names option and file.
    """
    shown = {} if tls.cert_file is None or tls.key_file is None else _own_certificate(tls.cert_file, tls.key_file)
    # CertificateOptions begins at TLS 1.2.
    return optionsForClientTLS(host, _trust(tls.ca_file), extraCertificateOptions=shown)


@implementer(IPolicyForHTTPS)
class OneHostPolicy:
    """
    Gives every connection the same TLS: there is one host.
    """

    def __init__(self, creator: IOpenSSLClientConnectionCreator) -> None:
        self._creator = creator

    def creatorForNetloc(self, hostname: bytes, port: int) -> IOpenSSLClientConnectionCreator:
        """Return it."""
        return self._creator


def ssl_reason(error: SSL.Error) -> str:
    """Return what OpenSSL says, without its codes."""
    entries = error.args[0] if error.args and isinstance(error.args[0], (list, tuple)) else ()
    reasons = [str(entry[-1]) for entry in entries if isinstance(entry, tuple) and entry and entry[-1]]
    return ", ".join(reasons) or "the other end closed the connection"


def _trust(ca_file: str | None) -> IOpenSSLTrustRoot:
    trust: IOpenSSLTrustRoot
    if ca_file is None:
        trust = platformTrust()
        return trust
    try:
        check_trust(TLS("", "", ca_file=ca_file))
    except ConfigError as error:
        raise ConfigError(f"ca_file: {error.problem}") from None
    content, _ = read_file(ca_file)
    trust = trustRootFromCertificates(
        Certificate.loadPEM(each.public_bytes(Encoding.PEM)) for each in load_pem_x509_certificates(content)
    )
    return trust


def _own_certificate(cert_file: str, key_file: str) -> dict[str, Any]:
    try:
        key, chain = load_key_and_chain(TLS(key_file, cert_file))
    except ConfigError as error:
        raise ConfigError(f"cert_file, key_file: {error.problem}") from None
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    try:
        # Twisted would do this with the first connection, where nobody is left to read the error.
        context.use_certificate(chain[0])
        for issuer in chain[1:]:
            context.add_extra_chain_cert(issuer)
        context.use_privatekey(key)
    except SSL.Error as error:
        raise ConfigError(f"cert_file: {cert_file!r} can't be used: {ssl_reason(error)}.") from None
    return {"privateKey": key, "certificate": chain[0], "extraCertChain": chain[1:]}
