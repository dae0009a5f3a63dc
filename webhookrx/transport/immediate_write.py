"""
Server connections that send at once, rather than on the next turn of the reactor.

Twisted's own put every answer into a buffer, ask the reactor to be told when the socket takes bytes, which it does
already, send on the next turn, and ask the reactor not to be told any more: two system calls and a turn for nothing.

They are the C{transport} of a port, which is where L{twisted.internet.tcp.Port} looks for what to make of a socket that
it has accepted; so they serve any endpoint whose port is one of Twisted's, on any reactor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from twisted.internet import tcp, unix
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST


class ImmediateWriteServer(tcp.Server):
    """
    A TCP connection. What the socket does not take at once goes the way of Twisted.
    """

    # Something is to happen once the socket takes bytes: to send what waits, to end. What is written comes after it.
    _writing = False

    def write(self, data: bytes) -> None:
        """See L{twisted.internet.interfaces.ITransport.write}."""
        # A pull producer is asked for more when the buffer is empty again, so what it writes has to go there.
        if (
            data
            and not self._writing
            and self.connected
            and (self.producer is None or self.streamingProducer)
            and not self.TLS
        ):
            sent = self._send_now(data)
            if sent == len(data):
                return
            data = data[sent:]
        super().write(data)

    def writeSequence(self, iovec: Iterable[bytes]) -> None:
        """See L{twisted.internet.interfaces.ITransport.writeSequence}."""
        self.write(b"".join(iovec))

    def _send_now(self, data: bytes) -> int:
        """Send what can be sent, and return how much that was. That a connection is lost is found out later."""
        try:
            return self.socket.send(data)
        except OSError:
            return 0

    def writeSomeData(self, data: bytes) -> Any:
        """See L{twisted.internet.abstract.FileDescriptor.writeSomeData}."""
        return super().writeSomeData(data) if data else 0

    def startWriting(self) -> None:
        """See L{twisted.internet.abstract.FileDescriptor.startWriting}."""
        self._writing = True
        super().startWriting()

    def stopWriting(self) -> None:
        """See L{twisted.internet.abstract.FileDescriptor.stopWriting}: Twisted's buffer is empty."""
        self._writing = False
        super().stopWriting()

    def abortConnection(self) -> None:
        """See L{twisted.internet.interfaces.ITCPTransport.abortConnection}."""
        super().abortConnection()
        self._writing = True  # nothing is sent any more, above all not past what was left behind

    def doRead(self) -> Any:
        """See L{twisted.internet.interfaces.IReadDescriptor.doRead}."""
        try:
            data = self.socket.recv(self.bufferSize)
        except BlockingIOError:
            return None
        except OSError:
            return CONNECTION_LOST
        if not data:
            return CONNECTION_DONE
        self.protocol.dataReceived(data)
        return None


class ImmediateWriteUNIXServer(ImmediateWriteServer, unix.Server):
    """A connection by a UNIX socket. It takes no file descriptors: the kernel closes those that come."""
