"""
Server connections that speak TLS on their socket.

Twisted's TLS copies each byte through two buffers in memory and several Python calls; here OpenSSL reads and writes the
socket itself. What a protocol sees is the same, but for one thing more: a sender that has sent its C{close_notify}, and
still waits for its answer, is known to have ended only its own side (RFC 8446 §6.1).
"""

from __future__ import annotations

from socket import socket
from typing import TYPE_CHECKING, Any

from OpenSSL import SSL
from twisted.internet import unix
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IHandshakeListener, ISSLTransport
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.listening.eager_tcp import EagerServer

if TYPE_CHECKING:
    from OpenSSL.crypto import X509

#: The most that a record holds (RFC 8446 §5.1). With room for all of it, nothing is left where no poll would see it.
RECORD = 16 * 1024
#: Full records that are read from one connection before others have their turn.
_RECORDS = 4


@implementer(ISSLTransport)
class TLSServer(EagerServer):
    """
    A TCP connection with TLS.

    @param tls: on its socket, in accept state; the other arguments are those of L{twisted.internet.tcp.Server}.
    """

    _shaken = False  # the handshake is complete

    def __init__(self, tls: SSL.Connection, sock: socket, *args: Any) -> None:
        super().__init__(sock, *args)
        self._tls = tls

    # -- ISSLTransport -------------------------------------------------------------------------------------------

    def getHandle(self) -> SSL.Connection:  # type: ignore[override]  # as with Twisted's own TLS
        """Return the connection as pyOpenSSL has it."""
        return self._tls

    def getPeerCertificate(self) -> X509 | None:
        """See L{ISSLTransport.getPeerCertificate}."""
        return self._tls.get_peer_certificate()

    # -- the handshake -------------------------------------------------------------------------------------------

    def _shake(self) -> BaseException | None:
        """Go on with the handshake; return why it has failed, if it has."""
        try:
            self._tls.do_handshake()
        except SSL.WantReadError:
            if not self.disconnecting:
                self.reactor.removeWriter(self)  # what is queued waits until there are keys for it
            return None
        except SSL.WantWriteError:
            self.startWriting()
            return None
        except SSL.Error as error:
            return error
        self._shaken = True
        if self._queued or self.disconnecting:
            self.startWriting()
        listener = IHandshakeListener(self.protocol, None)
        if listener is not None:
            listener.handshakeCompleted()
        return None

    # -- reading -------------------------------------------------------------------------------------------------

    def doRead(self) -> Any:
        """See L{twisted.internet.interfaces.IReadDescriptor.doRead}."""
        if not self._shaken:
            why = self._shake()
            if why is not None or not self._shaken:
                return why
        for _ in range(_RECORDS):
            try:
                data = self._tls.recv(RECORD)
            except SSL.WantReadError:
                return None
            except SSL.ZeroReturnError:
                return CONNECTION_DONE
            except SSL.SysCallError:
                return CONNECTION_LOST
            except SSL.Error as error:
                return error
            self.protocol.dataReceived(data)
            if len(data) < RECORD:
                return None
        return None

    # -- writing -------------------------------------------------------------------------------------------------

    def _send_now(self, data: bytes) -> int:
        if not self._shaken:
            return 0
        sent = self.writeSomeData(data)
        return sent if isinstance(sent, int) else 0

    def writeSomeData(self, data: bytes) -> Any:
        """See L{twisted.internet.abstract.FileDescriptor.writeSomeData}."""
        if not data:
            return 0
        try:
            return self._tls.send(data[: self.SEND_LIMIT])
        except (SSL.WantWriteError, SSL.WantReadError):
            return 0
        except SSL.Error:
            return CONNECTION_LOST

    def doWrite(self) -> Any:
        """See L{twisted.internet.interfaces.IWriteDescriptor.doWrite}."""
        if not self._shaken:
            why = self._shake()
            if why is not None or not (self._shaken or self.disconnecting):
                return why
        return super().doWrite()

    # -- the end -------------------------------------------------------------------------------------------------

    def connectionLost(self, reason: Failure) -> None:
        """See L{twisted.internet.abstract.FileDescriptor.connectionLost}."""
        if self._shaken and reason.check(ConnectionDone):
            # Who gets no close_notify can't tell the end from one that somebody else has made (RFC 8446 §6.1).
            try:
                self._tls.shutdown()
            except SSL.Error:
                pass  # its buffer is full, or it is gone
        super().connectionLost(reason)


class TLSUNIXServer(TLSServer, unix.Server):
    """A connection by a UNIX socket, with TLS."""
