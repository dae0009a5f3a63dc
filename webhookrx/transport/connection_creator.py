"""
Hands each new connection its TLS.
"""

from __future__ import annotations

from socket import socket

from OpenSSL.SSL import Connection
from twisted.protocols.tls import TLSMemoryBIOProtocol
from zope.interface import implementer

from webhookrx.config.tls_files import load_key_and_chain
from webhookrx.interfaces import ITLSCreator
from webhookrx.settings import TLS, FileContents
from webhookrx.transport.server_context import build_context


@implementer(ITLSCreator)
class ServerConnectionCreator:
    """
    Creates the server's end of TLS connections, by the files as they are when it is made. Another set of files needs
    another creator; connections keep what they began with.

    @param known: what was in the files when they were checked; those that are missing there are read.
    @ivar ends: when the first of the certificates that it shows expires, seconds since the epoch.

    @raise ConfigError: a file is missing, unreadable or wrong.
    """

    def __init__(self, tls: TLS, known: FileContents | None = None) -> None:
        self._context = build_context(tls, known)
        _, chain = load_key_and_chain(tls, known)
        self.ends = min(certificate.not_valid_after_utc.timestamp() for certificate in chain)

    def serverConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> Connection:
        return Connection(self._context, None)

    def connection_on(self, sock: socket) -> Connection:
        """See L{ITLSCreator.connection_on}."""
        connection = Connection(self._context, sock)
        connection.set_accept_state()
        return connection
