"""
The client-certificate policy: the two rows of the specification's table (section 5.2), and that of a console's port.

B{optional-untrusted} (C{peer_verify} off): every client gets TLS, and no certificate is requested. A certificate that
is requested and ignored can still break the handshake: a key that does not fit, a kind that OpenSSL refuses, a text
that does not parse. It makes browsers open a dialogue, and costs every handshake a signature.

B{required-trusted} (C{peer_verify} on): a client needs a certificate that leads to a trusted CA, is valid now, and is
meant for clients.

B{optional-known} (C{asks_clients}), which no option sets: a client may come without a certificate. With one, it must
lead to a trusted CA and be meant for clients; its dates are left to the resources, since they renew one that has ended,
and know each certificate that counts by its fingerprint.
"""

from __future__ import annotations

from typing import cast

from OpenSSL import SSL
from OpenSSL.crypto import X509, X509Store, X509StoreFlags

from webhookrx.config.pem import load_trust
from webhookrx.errors import ConfigError
from webhookrx.settings import TLS, FileContents
from webhookrx.transport.handshake import ClientCertificateRefused

_SESSION_ID_CONTEXT = b"webhookrx"
_DATES = (SSL.X509VerificationCodes.ERR_CERT_HAS_EXPIRED, SSL.X509VerificationCodes.ERR_CERT_NOT_YET_VALID)


def apply_client_cert_policy(context: SSL.Context, tls: TLS, known: FileContents | None = None) -> None:
    """
    Set up the verification of client certificates.

    @param known: see L{load_trust}.
    @raise ConfigError: a trust option is missing, or names something that can't be used; the text names it.
    """
    # Tickets carry their own state; a cache would only grow with the number of clients.
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_session_id(_SESSION_ID_CONTEXT)
    if not (tls.peer_verify or tls.asks_clients):
        context.set_verify(SSL.VERIFY_NONE)
        return
    # A resumed session skips verification: a removed CA or an expired certificate would still work.
    context.set_options(SSL.OP_NO_TICKET)
    if tls.peer_verify:
        context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, _verify)
    else:
        context.set_verify(SSL.VERIFY_PEER, _verify_but_dates)
    _load_trust(context, tls, known)


def _verify(connection: SSL.Connection, certificate: X509, code: int, depth: int, ok: int) -> bool:
    """
    Keep OpenSSL's decision, and pass its reason on for the log. An exception in this callback fails the verification,
    and pyOpenSSL raises it again from C{do_handshake}; so no table by connection is needed.
    """
    if not ok:
        raise ClientCertificateRefused(code)
    return True


def _verify_but_dates(connection: SSL.Connection, certificate: X509, code: int, depth: int, ok: int) -> bool:
    """Keep OpenSSL's decision, but for the dates of the client's own certificate. They come after its signature."""
    return (depth == 0 and code in _DATES) or _verify(connection, certificate, code, depth, ok)


def _load_trust(context: SSL.Context, tls: TLS, known: FileContents | None) -> None:
    if tls.ca_file is None and tls.ca_dir is None and not tls.system_store:
        raise ConfigError(
            "Client certificates can't be verified without a CA file, a CA directory or the system store."
        )
    trust = load_trust(tls, known)
    store = cast(X509Store, context.get_cert_store())
    # Not by their paths: OpenSSL would read a directory when a client comes, whatever is in it by then.
    for certificate in (*trust.from_file, *trust.from_directory):
        store.add_cert(X509.from_cryptography(certificate))
    # Clients choose a certificate by these names. If more than this file is trusted, an incomplete list would keep good
    # clients out; no list means any CA (RFC 8446, section 4.2.4).
    if tls.ca_dir is None and not tls.system_store:
        for certificate in trust.from_file:
            context.add_client_ca(certificate)
    if tls.system_store:
        context.set_default_verify_paths()
    # A CA that was named as trusted is trusted, also an intermediate one without its root.
    store.set_flags(X509StoreFlags.PARTIAL_CHAIN)
