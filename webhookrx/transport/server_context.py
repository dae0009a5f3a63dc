"""
The OpenSSL context of an endpoint: versions, ciphers, key, chain and client-certificate policy.

Twisted's C{CertificateOptions} offers static RSA and CBC ciphers, and can't express the policy.
"""

from __future__ import annotations

from socket import socket

from OpenSSL import SSL
from OpenSSL.SSL import Connection
from twisted.protocols.tls import TLSMemoryBIOProtocol
from zope.interface import implementer

from webhookrx.config.pem import load_key_and_chain
from webhookrx.errors import ConfigError
from webhookrx.settings import TLS, FileContents
from webhookrx.transport.client_cert_policy import apply_client_cert_policy
from webhookrx.transport.openssl_calls import limit_groups
from webhookrx.wire_interfaces import ITLSCreator

# Forward secrecy and authenticated encryption only: Mozilla's "intermediate" profile without its finite fields. The
# order is ours, cheapest first, but a client that puts ChaCha20 first gets it: its processor has no AES.
_TLS12_CIPHERS = b"ECDHE+AESGCM+AES128:ECDHE+AESGCM:ECDHE+CHACHA20"
_TLS13_CIPHERS = b"TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

# SSL_OP_PRIORITIZE_CHACHA of OpenSSL's ssl.h, which pyOpenSSL does not name.
_PRIORITIZE_CHACHA = 1 << 21


def build_context(tls: TLS, known: FileContents | None = None) -> SSL.Context:
    """
    Build a context for TLS 1.2 and 1.3.

    There is no ALPN: a client that offers C{h2} gets HTTP/1.1. A context can't be changed once a connection has used
    it, so each reload builds another.

    @param known: the contents of the files when they were checked; others are read now.
    @raise ConfigError: a file is missing, unreadable or wrong; the text names it.
    """
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_options(SSL.OP_NO_COMPRESSION | SSL.OP_NO_RENEGOTIATION)
    # An idle connection frees its buffers of 16 KiB.
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)
    context.set_cipher_list(_TLS12_CIPHERS)
    context.set_tls13_ciphersuites(_TLS13_CIPHERS)
    context.set_options(SSL.OP_CIPHER_SERVER_PREFERENCE | _PRIORITIZE_CHACHA)
    limit_groups(context)
    _use_key_and_chain(context, tls, known)
    apply_client_cert_policy(context, tls, known)
    return context


def _use_key_and_chain(context: SSL.Context, tls: TLS, known: FileContents | None) -> None:
    key, chain = load_key_and_chain(tls, known)
    try:
        context.use_certificate(chain[0])
        for issuer in chain[1:]:
            context.add_extra_chain_cert(issuer)
        context.use_privatekey(key)
    except SSL.Error as error:
        # Such as an issuer's signature by SHA-1, which OpenSSL's security level refuses.
        raise ConfigError(f"The certificate in {tls.cert_file} can't be used: {error.args[0][-1][2]}.") from None


@implementer(ITLSCreator)
class ServerConnectionCreator:
    """
    Creates the server's end of TLS connections. Another set of files needs another creator; connections keep what they
    began with.

    @param known: the contents of the files when they were checked; others are read now.
    @ivar ends: when the first certificate of its chain expires, seconds since the epoch.
    @raise ConfigError: a file is missing, unreadable or wrong.
    """

    def __init__(self, tls: TLS, known: FileContents | None = None) -> None:
        self._context = build_context(tls, known)
        _, chain = load_key_and_chain(tls, known)
        self.ends = min(certificate.not_valid_after_utc.timestamp() for certificate in chain)

    def serverConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> Connection:
        return Connection(self._context, None)

    def connection_on(self, sock: socket) -> Connection:
        connection = Connection(self._context, sock)
        connection.set_accept_state()
        return connection
