"""
TLS of observers that connect to another machine: its options, its files, and the check of the server's name.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL
from OpenSSL.crypto import X509
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.ssl import Certificate, CertificateOptions, platformTrust, trustRootFromCertificates
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.config.files import read_file
from webhookrx.config.pem import PrivateKey, load_key_and_chain, load_trust
from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.settings import TLS

if TYPE_CHECKING:
    from twisted.protocols.tls import TLSMemoryBIOProtocol


TLS_OPTIONS: Final = ("ca_file", "cert_file", "key_file")
"""Options of an observer, all of them files."""
TLS_SECRETS: Final = ("key_file",)
"""Those that only their owner should be able to read."""


@dataclass(frozen=True, slots=True)
class ClientTLS:
    """
    The files of a client, by absolute paths.

    @ivar ca_file: the trusted authorities; None for the system's store.
    @ivar cert_file: the client's certificate and its chain; goes with C{key_file}.
    """

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None

    def check(self) -> tuple[PrivateKey, list[x509.Certificate]] | None:
        """
        Read the files.

        @return: key and chain of the client, if it has any.
        @raise ConfigError: a file is missing, unreadable or wrong; the text names option and file.
        """
        try:
            load_trust(TLS("", "", ca_file=self.ca_file))
        except ConfigError as error:
            raise ConfigError(f"ca_file: {error.problem}") from None
        if self.cert_file is None or self.key_file is None:
            return None
        try:
            return load_key_and_chain(TLS(self.key_file, self.cert_file))
        except ConfigError as error:
            raise ConfigError(f"cert_file, key_file: {error.problem}") from None


def read_client_tls(options: SpecOptions) -> ClientTLS:
    """
    Read L{TLS_OPTIONS}, but not the files.

    @raise ConfigError: one of them is empty, or lacks its partner.
    """
    files = {key: options.given[key] for key in TLS_OPTIONS if key in options}
    for key, path in files.items():
        if not path:
            raise options.misfit(key, "a file", "the name of one in PEM format")
    if ("cert_file" in files) != ("key_file" in files):
        raise options.problem("cert_file= and key_file= go together")
    return ClientTLS(**files)


def read_tls_if(options: SpecOptions, *, is_used: bool, goes_with: str) -> ClientTLS | None:
    """
    Read L{TLS_OPTIONS} of a connection that may go without TLS, but not the files.

    @param goes_with: what makes it use TLS, for errors, such as C{"an https:// URL"}.
    @return: None without TLS.
    @raise ConfigError: as L{read_client_tls}, or one of them is there though it changes nothing.
    """
    if is_used:
        return read_client_tls(options)
    for key in TLS_OPTIONS:
        if key in options:
            raise options.problem(f"{key}= goes with {goes_with}")
    return None


def make_creator(host: str, tls: ClientTLS) -> IOpenSSLClientConnectionCreator:
    """
    Read the files, and return what makes TLS for connections of Twisted to a host: 1.2 or 1.3, with certificate and
    host name verified.

    @raise ConfigError: as L{ClientTLS.check}.
    """
    own = tls.check()
    shown: dict[str, Any] = {}
    if own is not None:
        key, (certificate, *issuers) = own
        _try_out(tls, key, [certificate, *issuers])
        shown = {"privateKey": key, "certificate": certificate, "extraCertChain": issuers}
    # Twisted's oldest version is TLS 1.2.
    options = CertificateOptions(trustRoot=_trust(tls.ca_file), **shown)
    return _Creator(host, options.getContext())


def make_context(tls: ClientTLS) -> ssl.SSLContext:
    """
    Read the files, and return the same for sockets of the standard library, which get the host name one by one.

    @raise ConfigError: as L{ClientTLS.check}.
    """
    tls.check()
    try:
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=tls.ca_file)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # As in is_for.
        context.hostname_checks_common_name = False
        if tls.cert_file is not None:
            # Without a pass phrase OpenSSL would ask the terminal for one.
            context.load_cert_chain(tls.cert_file, tls.key_file, password=lambda: "")
    except OSError as error:
        raise ConfigError(f"the files of {', '.join(TLS_OPTIONS)} can't be used: {error}") from error
    return context


def make_context_if(tls: ClientTLS | None, options: SpecOptions) -> ssl.SSLContext | None:
    """
    Return L{make_context} of the files, or None without TLS.

    @raise ConfigError: as L{make_context}; the text names the observer, too.
    """
    if tls is None:
        return None
    try:
        return make_context(tls)
    except ConfigError as error:
        raise options.problem(error.problem) from None


class WrongHost(Exception):
    """The certificate of a server is for another host. The text says so in one line."""


@implementer(IOpenSSLClientConnectionCreator)
class _Creator:
    """
    Makes the TLS of connections. C{optionsForClientTLS} would accept a certificate that names no host, or whose names
    it can't read.

    @param host: a host name in ASCII, or an address.
    """

    def __init__(self, host: str, context: SSL.Context) -> None:
        self._host = host
        self._context = context

    def clientConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        """Make one that verifies certificate and host."""
        connection = SSL.Connection(self._context, None)
        if not _is_address(self._host):
            # RFC 6066, section 3: names only.
            connection.set_tlsext_host_name(self._host.encode("ascii"))
        # OpenSSL keeps the callback for as long as the connection, which the protocol keeps.
        protocol = ref(tlsProtocol)

        def verify(connection: SSL.Connection, certificate: X509, problem: int, depth: int, is_valid: int) -> bool:
            if not is_valid or depth > 0:
                return bool(is_valid)
            try:
                if is_for(certificate.to_cryptography(), self._host):
                    return True
            except Exception:  # noqa: S110
                # No error in a certificate may let it through.
                pass
            owner = protocol()
            if owner is not None:
                owner.failVerification(Failure(WrongHost(f"the certificate is not for {self._host}")))
            return False

        connection.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, verify)
        return connection


def is_for(certificate: x509.Certificate, host: str) -> bool:
    """
    Tell whether a certificate is for a host (RFC 9525, section 6). Its common name does not count, and C{*} stands for
    the whole first label only, with two more labels behind it.

    @param host: a host name in ASCII, or an address.
    @raise Exception: the certificate has no names, or can't be read.
    """
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    if _is_address(host):
        return ip_address(host) in names.get_values_for_type(x509.IPAddress)
    wanted = host.lower()
    domain = wanted.partition(".")[2]
    patterns = {wanted, f"*.{domain}"} if "." in domain else {wanted}
    return not patterns.isdisjoint(name.lower() for name in names.get_values_for_type(x509.DNSName))


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def ssl_reason(error: SSL.Error) -> str:
    """Return the texts of an error of OpenSSL, without its codes."""
    entries = error.args[0] if error.args and isinstance(error.args[0], (list, tuple)) else ()
    reasons = [str(entry[-1]) for entry in entries if isinstance(entry, tuple) and entry and entry[-1]]
    return ", ".join(reasons) or "the other end closed the connection"


def _trust(ca_file: str | None) -> Any:
    if ca_file is None:
        return platformTrust()
    content, _ = read_file(ca_file)
    return trustRootFromCertificates(
        Certificate.loadPEM(each.public_bytes(Encoding.PEM)) for each in x509.load_pem_x509_certificates(content)
    )


def _try_out(tls: ClientTLS, key: PrivateKey, chain: list[x509.Certificate]) -> None:
    """Use the files as Twisted does for the first connection, which is too late to report an error."""
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    try:
        context.use_certificate(chain[0])
        for issuer in chain[1:]:
            context.add_extra_chain_cert(issuer)
        context.use_privatekey(key)
    except SSL.Error as error:
        raise ConfigError(f"cert_file: {tls.cert_file!r} can't be used: {ssl_reason(error)}.") from None
