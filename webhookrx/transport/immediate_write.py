"""
Server connections that write to their socket at once, not on the next turn of the reactor.

Twisted's own put every answer into a buffer, watch the socket for writing, which is ready already, write on the next
turn, and stop watching: two system calls and a turn for nothing.

They are the C{transport} of a port, by which L{twisted.internet.tcp.Port} makes the connection of an accepted socket;
so they serve any endpoint with a port of Twisted's, on any reactor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from twisted.internet import tcp, unix
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST
from twisted.python.failure import Failure


class ImmediateWriteServer(tcp.Server):
    """
    A TCP connection. Data that the socket does not take at once goes into Twisted's buffer.

    @ivar ended: called at its end, if set.
    """

    ended: Callable[[], object] | None = None

    # The socket is watched for writing, to send buffered data or to end. New data comes after that.
    _writing = False

    def write(self, data: bytes) -> None:
        # A pull producer is asked for more when the buffer is empty again, so its data has to go there.
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
        self.write(b"".join(iovec))

    def _send_now(self, data: bytes) -> int:
        """Send as much as possible, and return how much that was. A lost connection is noticed later."""
        try:
            return self.socket.send(data)
        except OSError:
            return 0

    def writeSomeData(self, data: bytes) -> Any:
        return super().writeSomeData(data) if data else 0

    def startWriting(self) -> None:
        self._writing = True
        super().startWriting()

    def stopWriting(self) -> None:
        self._writing = False
        super().stopWriting()

    def abortConnection(self) -> None:
        super().abortConnection()
        self._writing = True  # nothing more is sent past the rest of the buffer

    def connectionLost(self, reason: Failure) -> None:
        ended, self.ended = self.ended, None
        try:
            super().connectionLost(reason)
        finally:
            if ended is not None:
                ended()

    def doRead(self) -> Any:
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
    """A connection by a UNIX socket. It accepts no file descriptors: the kernel closes them."""
