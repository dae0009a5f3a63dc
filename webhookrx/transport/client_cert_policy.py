"""
What is asked of a client's certificate: the two rows of the specification's table (section 5.2).

B{optional-untrusted} (C{peer_verify} off): every client gets TLS. No certificate is asked for. One that is asked for
and then ignored can still break the handshake: a key that does not fit, a kind that OpenSSL refuses, a text that does
not parse. It makes browsers open a dialogue, and costs every handshake a signature. Without the question a client with
a bad certificate can't fail.

B{required-trusted} (C{peer_verify} on): a client without a certificate gets no connection, nor does one whose
certificate leads to no trusted CA, is out of its time, or is not meant for clients.
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


def apply_client_cert_policy(context: SSL.Context, tls: TLS, known: FileContents | None = None) -> None:
    """
    Set up the verification of client certificates.

    @param known: see L{load_trust}.
    @raise ConfigError: a trust option is missing, or names something that can't be used; the text names it.
    """
    # Tickets carry their own state; a cache in memory would only grow with the number of clients.
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_session_id(_SESSION_ID_CONTEXT)
    if not tls.peer_verify:
        context.set_verify(SSL.VERIFY_NONE)
        return
    # A resumed session skips verification: a removed CA or a certificate that has expired would go on working.
    context.set_options(SSL.OP_NO_TICKET)
    context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, _verify)
    _load_trust(context, tls, known)


def _verify(connection: SSL.Connection, certificate: X509, code: int, depth: int, ok: int) -> bool:
    """
    Add nothing to OpenSSL's decision, but give its reason a way to the log. An exception in this callback fails the
    verification, and pyOpenSSL raises it again from C{do_handshake}; so no table by connection is needed.
    """
    if not ok:
        raise ClientCertificateRefused(code)
    return True


def _load_trust(context: SSL.Context, tls: TLS, known: FileContents | None) -> None:
    if tls.ca_file is None and tls.ca_dir is None and not tls.system_store:
        raise ConfigError(
            "Client certificates can't be verified without a CA file, a CA directory or the system store."
        )
    trust = load_trust(tls, known)
    store = cast(X509Store, context.get_cert_store())
    # Not by their paths: OpenSSL would look into a directory when a client comes, whatever is there by then.
    for certificate in (*trust.from_file, *trust.from_directory):
        store.add_cert(X509.from_cryptography(certificate))
    # Clients choose a certificate by these names. Where more is trusted than this file an incomplete list would
    # keep good clients out, and no list means any CA (RFC 8446, section 4.2.4).
    if tls.ca_dir is None and not tls.system_store:
        for certificate in trust.from_file:
            context.add_client_ca(certificate)
    if tls.system_store:
        context.set_default_verify_paths()
    # A CA that was named as trusted is trusted, also when it is an intermediate one whose root is not at hand.
    store.set_flags(X509StoreFlags.PARTIAL_CHAIN)
