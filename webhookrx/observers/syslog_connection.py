"""
Connections of the syslog observer: streams over TCP, TLS and UNIX sockets, and datagrams. All calls block, up to a
L{Deadline}.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias

from webhookrx.errors import Rejected
from webhookrx.observers.sockets import Deadline, connect_socket, connect_to_host, shake_hands, unacknowledged

#: Puts the frame of a stream around one message.
Frame: TypeAlias = Callable[[bytes], bytes]
#: Reads the certificates and makes a context of them, or raises L{webhookrx.errors.ConfigError}.
MakeContext: TypeAlias = Callable[[], ssl.SSLContext]

SHORTEST_PROBATION: Final = 0.25
"""Seconds that a new stream must stay open before its first batch, and after it."""
WATCH: Final = 0.01
"""Seconds that it must stay open after each further batch."""

# Seconds between two checks for unacknowledged bytes.
_SHORTEST_LOOK: Final = 0.001
_LONGEST_LOOK: Final = 0.02

_READ_SIZE: Final = 16 * 1024
_MOST_READS: Final = 64
_CLOSED: Final = "the other end closed the connection"


class SyslogConnection(Protocol):
    """One open socket."""

    def check(self) -> None:
        """
        Check that the other end has not closed the connection, without waiting.

        @raise OSError: it has.
        """

    def send(self, messages: Sequence[bytes]) -> dict[int, Rejected]:
        """
        Send messages and wait until the other end has them, as far as this can be known.

        @return: by the index of a message, why it can never be sent.
        @raise OSError: any of them may be lost; also C{TimeoutError}.
        """

    def close(self) -> None:
        """Close the socket."""


def octet_counted(message: bytes) -> bytes:
    """Put the length in front: RFC 6587 section 3.4.1, RFC 5425 section 4.3."""
    return b"%d %s" % (len(message), message)


def line(message: bytes) -> bytes:
    """End a message that holds no line feed with one: RFC 6587 section 3.4.2."""
    return message + b"\n"


class StreamConnection:
    """
    A stream. Bytes from the other end are dropped; syslog has no answers.

    @param stream: connected and not blocking; over TLS, after the handshake.
    """

    def __init__(self, stream: socket.socket, deadline: Deadline, frame: Frame) -> None:
        self._socket = stream
        self._deadline = deadline
        self._frame = frame
        self._is_proven = False

    def check(self) -> None:
        """
        @raise OSError: the other end has closed or reset the connection.
        """
        try:
            # A server that never stops sending must not keep us here.
            for _ in range(_MOST_READS):
                if not self._socket.recv(_READ_SIZE):
                    raise ConnectionResetError(errno.ECONNRESET, _CLOSED)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        # Nor may unread bytes hide that it is gone.
        poller = select.poll()
        poller.register(self._socket, select.POLLRDHUP)
        if poller.poll(0):
            raise ConnectionResetError(errno.ECONNRESET, _CLOSED)

    def probation(self, seconds: float) -> None:
        """
        Wait whether the other end closes at once. A TLS 1.3 server judges the certificate of a client after the client
        has finished its handshake (RFC 8446 section 4.4.2.4); others accept everybody, and check the address then.

        @raise OSError: it closes.
        """
        end = self._deadline.now() + seconds
        while (left := end - self._deadline.now()) > 0:
            if self._deadline.wait(self._socket, select.POLLIN, at_most=left):
                self.check()

    def send(self, messages: Sequence[bytes]) -> dict[int, Rejected]:
        """
        Send all, wait until the other end has acknowledged everything in our kernel, and then for a moment more, see
        L{_outlive}.
        """
        unsent = memoryview(b"".join(map(self._frame, messages)))
        while unsent:
            try:
                unsent = unsent[self._socket.send(unsent) :]
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._deadline.wait(self._socket, select.POLLOUT)
            except ssl.SSLWantReadError:
                self._deadline.wait(self._socket, select.POLLIN)
        self._wait_until_acknowledged()
        if self._socket.family != socket.AF_UNIX:
            self._outlive()
        return {}

    def _wait_until_acknowledged(self) -> None:
        look = _SHORTEST_LOOK
        while unacknowledged(self._socket):
            # No event tells of acknowledgements, so the kernel is polled; the end of the connection wakes us at once.
            if self._deadline.wait(self._socket, select.POLLIN, at_most=look):
                self.check()
            look = min(2 * look, _LONGEST_LOOK)
        # A reset empties the buffer too.
        self.check()

    def _outlive(self) -> None:
        """
        Wait whether the other end closes now. With TCP its kernel acknowledges bytes that no program has read, and
        drops them when the program closes. No time is long enough for all cases; this one finds servers that close
        because of the bytes they got. Their close arrives right after the acknowledgement, however long the way is.

        @raise OSError: it closes.
        """
        seconds = WATCH if self._is_proven else SHORTEST_PROBATION
        if self._deadline.left() > seconds:
            self.probation(seconds)
        self._is_proven = True

    def close(self) -> None:
        """Close in order; over TLS with C{close_notify} (RFC 5425 section 4.4)."""
        try:
            if isinstance(self._socket, ssl.SSLSocket):
                self._socket.unwrap()
            self._socket.shutdown(socket.SHUT_WR)
        except (OSError, ValueError):
            pass  # It is gone already, or does not answer at once.
        self._socket.close()


class Daemon:
    """
    The process that listens on a UNIX socket of datagrams.

    When it ends, the kernel drops unread datagrams, and reports them to the sender as read. So they count as read only
    if the same process still listens afterwards.

    @param path: the socket.
    @raise OSError: the socket is missing.
    """

    def __init__(self, path: str, deadline: Deadline) -> None:
        self._path = path
        self._deadline = deadline
        self._identity = self._identify()

    def check(self) -> None:
        """
        @raise OSError: it has ended; another one may listen.
        """
        probe, _ = connect_socket(socket.AF_UNIX, socket.SOCK_DGRAM, self._path, self._deadline)
        probe.close()
        if self._identify() != self._identity:
            raise ConnectionResetError(errno.ECONNRESET, "its socket was replaced")

    def _identify(self) -> tuple[int, int, int]:
        status = os.stat(self._path)
        # The inode number of a removed file may be used again at once.
        return status.st_dev, status.st_ino, status.st_ctime_ns


class DatagramConnection:
    """
    Datagrams, one a message: RFC 5426, or a UNIX socket.

    @param datagrams: connected and not blocking.
    @param daemon: the listener, of a UNIX socket.
    """

    def __init__(self, datagrams: socket.socket, deadline: Deadline, daemon: Daemon | None = None) -> None:
        self._socket = datagrams
        self._deadline = deadline
        self._daemon = daemon

    def check(self) -> None:
        """
        @raise OSError: the network has returned an error for an earlier datagram.
        """
        if problem := self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(problem, os.strerror(problem))

    def send(self, messages: Sequence[bytes]) -> dict[int, Rejected]:
        """Send each; on a UNIX socket, wait until they are read. Over UDP this can't be known."""
        refused: dict[int, Rejected] = {}
        for place, message in enumerate(messages):
            try:
                self._send_one(message)
            except OSError as error:
                if error.errno != errno.EMSGSIZE:
                    raise
                refused[place] = Rejected(f"{len(message)} bytes are too long for a datagram")
        if self._daemon is not None:
            self._wait_until_read()
            self._daemon.check()
        self.check()
        return refused

    def _wait_until_read(self) -> None:
        look = _SHORTEST_LOOK
        while unacknowledged(self._socket):
            if self._deadline.wait(self._socket, 0, at_most=look):
                self.check()
            look = min(2 * look, _LONGEST_LOOK)

    def _send_one(self, message: bytes) -> None:
        while True:
            try:
                self._socket.send(message)
            except BlockingIOError:
                self._deadline.wait(self._socket, select.POLLOUT)
            else:
                return

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def connect_tcp(host: str, port: int, deadline: Deadline, frame: Frame) -> StreamConnection:
    """
    Connect to the first address of a host that answers.

    @raise OSError: no address answers, or the host has none.
    """
    stream, took = connect_to_host(host, port, socket.SOCK_STREAM, deadline)
    return _on_probation(StreamConnection(stream, deadline, frame), took)


def connect_tls(
    host: str, port: int, deadline: Deadline, make_context: MakeContext, server_name: str
) -> StreamConnection:
    """
    The same over TLS.

    @param server_name: the name in the certificate, sent as SNI.
    @raise OSError: as L{connect_tcp}, or the handshake failed.
    @raise webhookrx.errors.ConfigError: C{make_context} raises it.
    """
    context = make_context()
    stream, took = connect_to_host(host, port, socket.SOCK_STREAM, deadline)
    try:
        secured = context.wrap_socket(stream, server_hostname=server_name, do_handshake_on_connect=False)
    except BaseException:
        stream.close()
        raise
    began = deadline.now()
    try:
        shake_hands(secured, deadline)
    except BaseException:
        secured.close()
        raise
    took = max(took, deadline.now() - began)
    return _on_probation(StreamConnection(secured, deadline, octet_counted), took)


def connect_udp(host: str, port: int, deadline: Deadline) -> DatagramConnection:
    """
    Choose the first address of a host, without sending anything.

    @raise OSError: the host has no address that can be reached.
    """
    datagrams, _ = connect_to_host(host, port, socket.SOCK_DGRAM, deadline)
    return DatagramConnection(datagrams, deadline)


def connect_unix(path: str, deadline: Deadline) -> SyslogConnection:
    """
    Connect to a UNIX socket, of datagrams or a stream; which of the two is found by trying.

    @raise OSError: no process listens there.
    """
    # Made first, so that a daemon that is replaced meanwhile is noticed later.
    daemon = Daemon(path, deadline)
    try:
        datagrams, _ = connect_socket(socket.AF_UNIX, socket.SOCK_DGRAM, path, deadline)
        return DatagramConnection(datagrams, deadline, daemon)
    except OSError as error:
        if error.errno != errno.EPROTOTYPE:
            raise
    stream, _ = connect_socket(socket.AF_UNIX, socket.SOCK_STREAM, path, deadline)
    return StreamConnection(stream, deadline, line)


def _on_probation(connection: StreamConnection, round_trip: float) -> StreamConnection:
    try:
        connection.probation(max(SHORTEST_PROBATION, round_trip))
    except BaseException:
        connection.close()
        raise
    return connection
