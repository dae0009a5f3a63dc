"""
Server connections whose TLS reads and writes the socket itself.

Twisted's TLS copies each byte through two buffers in memory and several Python calls. A protocol sees no difference but
one: a sender that has sent C{close_notify} and waits for its answer counts as half-closed (RFC 8446 §6.1).
"""

from __future__ import annotations

from contextlib import suppress
from socket import socket
from typing import TYPE_CHECKING, Any

from OpenSSL import SSL
from twisted.internet import unix
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IHandshakeListener, ISSLTransport
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.transport.immediate_write import ImmediateWriteServer
from webhookrx.transport.openssl_calls import RECORD, receive, send

if TYPE_CHECKING:
    from OpenSSL.crypto import X509

#: OpenSSL's names for the beginning of a plain request, and the answer to one.
_PLAIN_REQUESTS = ("http request", "https proxy request")
_NOT_PLAIN = b'{"status":"refused","reason":"bad_request","detail":"A plain HTTP request came to an HTTPS port."}'
_PLAIN_ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\nServer: webhookrx\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(_NOT_PLAIN), _NOT_PLAIN)
)

#: Full records that are read from one connection in one turn.
_RECORDS = 4


@implementer(ISSLTransport)
class TLSServer(ImmediateWriteServer):
    """
    A TCP connection with TLS.

    OpenSSL may have to write before it reads on, and to read before it writes on: in the handshake, and when the peer
    changes its keys (RFC 8446 §4.6.3). A direction that can't go on is not watched then, or the poll would never wait.

    @param tls: on its socket, in accept state; the other arguments are those of L{twisted.internet.tcp.Server}.
    """

    _shaken = False  # the handshake is complete
    _reading = True  # the protocol wants data
    _read_waits = False  # OpenSSL has to write first
    _write_waits = False  # OpenSSL has to read first
    _notified = False  # close_notify is sent, as far as possible

    def __init__(self, tls: SSL.Connection, sock: socket, *args: Any) -> None:
        super().__init__(sock, *args)
        self._tls = tls

    # -- ISSLTransport -------------------------------------------------------------------------------------------

    def getHandle(self) -> SSL.Connection:  # type: ignore[override]  # as with Twisted's own TLS
        return self._tls

    def getPeerCertificate(self) -> X509 | None:
        return self._tls.get_peer_certificate()

    # -- the handshake -------------------------------------------------------------------------------------------

    def _shake(self) -> BaseException | None:
        """Continue the handshake; return why it has failed, if it has."""
        try:
            self._tls.do_handshake()
        except SSL.WantReadError:
            self.reactor.removeWriter(self)  # queued data waits for the keys
            return None
        except SSL.WantWriteError:
            self._write_first()
            return None
        except SSL.Error as error:
            self._throw_away()
            if _is_plain_request(error):
                with suppress(OSError):  # the socket must take so little at once
                    self.socket.send(_PLAIN_ANSWER)
            return error
        self._shaken = True
        if self.disconnecting:
            self.stopReading()
        if self._writing:
            self.reactor.addWriter(self)
        listener = IHandshakeListener(self.protocol, None)
        if listener is not None:
            listener.handshakeCompleted()
        return None

    def _throw_away(self) -> None:
        """Read and drop pending data: closing a socket with unread data resets it, and the peer misses the alert."""
        with suppress(OSError):  # there is none
            self.socket.recv(self.bufferSize)

    # -- reading -------------------------------------------------------------------------------------------------

    def doRead(self) -> Any:
        if not self._shaken:
            return self._shake()
        if self._write_waits:
            self._write_waits = False
            self.reactor.addWriter(self)
        for _ in range(_RECORDS):
            try:
                data = receive(self._tls)
            except SSL.WantReadError:
                return None
            except SSL.WantWriteError:
                return self._write_first()
            except SSL.ZeroReturnError:
                return CONNECTION_DONE
            except SSL.SysCallError:
                return CONNECTION_LOST
            except SSL.Error as error:
                return error
            self.protocol.dataReceived(data)
            if len(data) < RECORD or not self._reading:
                return None
        return None

    def _write_first(self) -> None:
        """Let OpenSSL write before it reads on."""
        self._read_waits = True
        self.reactor.removeReader(self)
        self.startWriting()

    def startReading(self) -> None:
        self._reading = True
        super().startReading()

    def stopReading(self) -> None:
        self._reading = False
        super().stopReading()

    # -- writing -------------------------------------------------------------------------------------------------

    def _send_now(self, data: bytes) -> int:
        if not self._shaken:
            return 0
        try:
            return send(self._tls, data)
        except SSL.Error:
            return 0

    def writeSomeData(self, data: bytes) -> Any:
        if not data:
            return 0
        try:
            return self._tls.send(data)  # a record at most, as it may be a view
        except SSL.WantWriteError:
            return 0
        except SSL.WantReadError:
            self._write_waits = True
            self.reactor.removeWriter(self)
            return 0
        except SSL.Error:
            return CONNECTION_LOST

    def doWrite(self) -> Any:
        if self._read_waits:
            self._read_waits = False
            if self._reading:
                self.reactor.addReader(self)
        return super().doWrite() if self._shaken else self._shake()

    # -- the end -------------------------------------------------------------------------------------------------

    def loseConnection(self) -> None:
        if self._shaken:
            super().loseConnection()
        elif self._writing:
            self.disconnecting = True  # queued data needs the handshake, and the handshake needs to read
        else:
            self.abortConnection()  # as Twisted's own TLS does

    def _postLoseConnection(self) -> Any:
        if self._notify():
            return CONNECTION_DONE
        self.startWriting()
        return None

    def _closeWriteConnection(self) -> None:
        if self._notify():
            super()._closeWriteConnection()
        else:
            self.startWriting()

    def _notify(self) -> bool:
        """
        Send C{close_notify}: without it the peer can't tell the end from a truncation attack (RFC 8446 §6.1).

        @return: False when the socket does not take it now.
        """
        if not self._notified:
            try:
                self._tls.shutdown()
            except SSL.WantWriteError:
                return False
            except SSL.Error:
                pass  # the peer is gone, or is changing its keys
            self._notified = True
        return True

    def connectionLost(self, reason: Failure) -> None:
        if self._shaken and self.connected and reason.check(ConnectionDone):
            self._notify()
        super().connectionLost(reason)


def _is_plain_request(error: SSL.Error) -> bool:
    """Return whether OpenSSL has recognised HTTP; the error of a broken connection has other arguments."""
    reasons = () if isinstance(error, SSL.SysCallError) or not error.args else error.args[0]
    return any(reason in _PLAIN_REQUESTS for _, _, reason in reasons)


class TLSUNIXServer(TLSServer, unix.Server):
    """A connection by a UNIX socket, with TLS."""
