"""
Hands each new connection its TLS.
"""

from __future__ import annotations

from OpenSSL.SSL import Connection
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from twisted.protocols.tls import TLSMemoryBIOProtocol
from zope.interface import implementer

from webhookrx.config.settings import TLS
from webhookrx.config.tls_files import load_key_and_chain
from webhookrx.tls.server_context import build_context


@implementer(IOpenSSLServerConnectionCreator)
class ServerConnectionCreator:
    """
    Creates the server's end of TLS connections, by the files as they are when it is made. Another set of files needs
    another creator; connections keep what they began with.

    @ivar ends: when the first of the certificates that it shows expires, seconds since the epoch.

    @raise ConfigError: a file is missing, unreadable or wrong.
    """

    def __init__(self, tls: TLS) -> None:
        self._context = build_context(tls)
        _, chain = load_key_and_chain(tls)
        self.ends = min(certificate.not_valid_after_utc.timestamp() for certificate in chain)

    def serverConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> Connection:
        return Connection(self._context, None)
