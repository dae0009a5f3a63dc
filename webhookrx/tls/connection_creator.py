"""
Hands each new connection its TLS, and swaps certificates while the port stays open.
"""

from __future__ import annotations

from OpenSSL.SSL import Connection
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from twisted.protocols.tls import TLSMemoryBIOProtocol
from zope.interface import implementer

from webhookrx.config.settings import TLS
from webhookrx.tls.server_context import build_context


@implementer(IOpenSSLServerConnectionCreator)
class ServerConnectionCreator:
    """
    Creates the server's end of TLS connections.

    @ivar tls: the settings it was made from.

    @raise ConfigError: a file is missing, unreadable or wrong.
    """

    def __init__(self, tls: TLS) -> None:
        self.tls = tls
        self._context = build_context(tls)

    def reload(self) -> None:
        """
        Read all files again. New connections use what they hold now, open ones keep what they have.

        @raise ConfigError: a file is missing, unreadable or wrong; new connections go on with what was read before.
        """
        self._context = build_context(self.tls)

    def serverConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> Connection:
        return Connection(self._context, None)
