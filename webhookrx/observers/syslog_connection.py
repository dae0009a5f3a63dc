"""
Connections that carry syslog: streams over TCP, TLS and UNIX sockets, and datagrams. Everything blocks, for as long as
a L{Deadline} lasts.
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
"""Seconds that a new stream must live before anything goes out on it, and after its first batch."""
WATCH: Final = 0.01
"""Seconds that it must live after each further one."""

# Between two looks at what is not acknowledged yet, seconds.
_SHORTEST_LOOK: Final = 0.001
_LONGEST_LOOK: Final = 0.02

_READ_SIZE: Final = 16 * 1024
_MOST_READS: Final = 64
_CLOSED: Final = "the other end closed the connection"


class SyslogConnection(Protocol):
    """One open socket."""

    def check(self) -> None:
        """
        Look whether the other end is still there, without waiting.

        @raise OSError: it is not.
        """

    def send(self, messages: Sequence[bytes]) -> dict[int, Rejected]:
        """
        Send messages and wait until the other end, as far as it can be known, has them.

        @return: place to why this message can never be sent; empty when all were.
        @raise OSError: no word on any of them; C{TimeoutError} among it.
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
    A stream. What the other end says is read and thrown away; syslog has no answers.

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
            # One that never stops talking must not keep us here.
            for _ in range(_MOST_READS):
                if not self._socket.recv(_READ_SIZE):
                    raise ConnectionResetError(errno.ECONNRESET, _CLOSED)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        # Nor may all that it said hide that it is gone.
        poller = select.poll()
        poller.register(self._socket, select.POLLRDHUP)
        if poller.poll(0):
            raise ConnectionResetError(errno.ECONNRESET, _CLOSED)

    def probation(self, seconds: float) -> None:
        """
        Wait whether the other end closes at once. A TLS 1.3 server judges the client's certificate after the client
        is done with its handshake (RFC 8446 section 4.4.2.4); others accept anybody, and look at the address then.

        @raise OSError: it does.
        """
        end = self._deadline.now() + seconds
        while (left := end - self._deadline.now()) > 0:
            if self._deadline.wait(self._socket, select.POLLIN, at_most=left):
                self.check()

    def send(self, messages: Sequence[bytes]) -> dict[int, Rejected]:
        """
        Send all, and wait until nothing is left in our kernel that the other end has not acknowledged; then for a
        moment more, see L{_outlive}.
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
            # No event tells of it, so it is asked for now and then; an end of the connection wakes us at once.
            if self._deadline.wait(self._socket, select.POLLIN, at_most=look):
                self.check()
            look = min(2 * look, _LONGEST_LOOK)
        # A reset empties the buffer too.
        self.check()

    def _outlive(self) -> None:
        """
        Wait whether the other end closes now. Over TCP its kernel acknowledges what nobody has read, and throws it away
        if it is closed then. No time is long enough for all cases; this is for those who close because of what they
        got. It travels as fast as the acknowledgement, so a long way needs no more.

        @raise OSError: it does.
        """
        seconds = WATCH if self._is_proven else SHORTEST_PROBATION
        if self._deadline.left() > seconds:
            self.probation(seconds)
        self._is_proven = True

    def close(self) -> None:
        """Say that this is the end (over TLS, RFC 5425 section 4.4), and close."""
        try:
            if isinstance(self._socket, ssl.SSLSocket):
                self._socket.unwrap()
            self._socket.shutdown(socket.SHUT_WR)
        except (OSError, ValueError):
            pass  # It is gone already, or has no time to answer.
        self._socket.close()


class Daemon:
    """
    Who listens on a UNIX socket of datagrams.

    When it ends, the kernel throws away what it has not read, and to whoever sent that it looks as if it had been read.
    So it counts as read by a daemon that is there after it.

    @param path: the socket.
    @raise OSError: there is none.
    """

    def __init__(self, path: str, deadline: Deadline) -> None:
        self._path = path
        self._deadline = deadline
        self._identity = self._identify()

    def check(self) -> None:
        """
        @raise OSError: it is not there any more; another may be.
        """
        probe, _ = connect_socket(socket.AF_UNIX, socket.SOCK_DGRAM, self._path, self._deadline)
        probe.close()
        if self._identify() != self._identity:
            raise ConnectionResetError(errno.ECONNRESET, "its socket was replaced")

    def _identify(self) -> tuple[int, int, int]:
        status = os.stat(self._path)
        # A number of a file that was removed may be given to the next one at once.
        return status.st_dev, status.st_ino, status.st_ctime_ns


class DatagramConnection:
    """
    Datagrams, one a message: RFC 5426, or a UNIX socket.

    @param datagrams: connected and not blocking.
    @param daemon: who reads from the UNIX socket that it is connected to.
    """

    def __init__(self, datagrams: socket.socket, deadline: Deadline, daemon: Daemon | None = None) -> None:
        self._socket = datagrams
        self._deadline = deadline
        self._daemon = daemon

    def check(self) -> None:
        """
        @raise OSError: the network has sent back what was sent before.
        """
        if problem := self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(problem, os.strerror(problem))

    def send(self, messages: Sequence[bytes]) -> dict[int, Rejected]:
        """Send each; on a UNIX socket, wait until the other end has read them. Over UDP nothing can be known."""
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

    @raise OSError: none does, or the host has no address.
    """
    stream, took = connect_to_host(host, port, socket.SOCK_STREAM, deadline)
    return _on_probation(StreamConnection(stream, deadline, frame), took)


def connect_tls(
    host: str, port: int, deadline: Deadline, make_context: MakeContext, server_name: str
) -> StreamConnection:
    """
    The same over TLS.

    @param server_name: what the certificate must be for; sent as SNI.
    @raise OSError: the handshake failed, too.
    @raise webhookrx.errors.ConfigError: C{make_context} can't make one.
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
    Choose the first address of a host to send to; nothing is sent yet.

    @raise OSError: the host has no address, or none that can be reached.
    """
    datagrams, _ = connect_to_host(host, port, socket.SOCK_DGRAM, deadline)
    return DatagramConnection(datagrams, deadline)


def connect_unix(path: str, deadline: Deadline) -> SyslogConnection:
    """
    Connect to a UNIX socket, of datagrams or a stream: what it is, is known only by trying.

    @raise OSError: nobody listens there.
    """
    # Looked at first: one that is replaced in between is found to be another later.
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
