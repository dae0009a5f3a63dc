"""Servers that take syslog on real sockets, and do so badly when told."""

from __future__ import annotations

import os
import select
import socket
import ssl
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread


def wait_until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Wait until something is so; an assertion fails when it does not come to that."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.005)


def octet_counted(data: bytes) -> list[bytes]:
    """Take the whole frames of RFC 6587 section 3.4.1 apart; the last one may be torn."""
    frames = []
    position = 0
    while (blank := data.find(b" ", position)) >= 0:
        digits = data[position:blank]
        assert digits.isdigit() and not digits.startswith(b"0"), digits
        end = blank + 1 + int(digits)
        if end > len(data):
            break
        frames.append(data[blank + 1 : end])
        position = end
    return frames


def text_of(message: bytes) -> str:
    """Return MSG of a message without structured data, its byte order mark left out."""
    return message.split(b" ", 7)[7].decode().removeprefix("\ufeff")


def shut(listener: socket.socket) -> None:
    """Close a listening socket that a thread accepts from; closing alone would not wake it."""
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()


class StreamServer:
    """
    Takes streams on 127.0.0.1 or a UNIX socket, each in a thread, and keeps what they carry.

    @ivar received: what came, a buffer for each connection.
    @ivar endings: how each connection that is over ended: C{b""} in order, else the error.
    @ivar connections: the sockets, open or closed.
    @ivar take: bytes to read of each connection before it is reset; None for no limit.
    @ivar linger: seconds between the last byte that is read and the reset.
    @ivar delay: seconds to wait before each step of a TLS handshake.
    @ivar reading: cleared, nothing is read.
    """

    def __init__(self, path: str | None = None, context: ssl.SSLContext | None = None, take: int | None = None) -> None:
        self.received: list[bytearray] = []
        self.endings: list[object] = []
        self.take = take
        self.linger = self.delay = 0.0
        self.reading = Event()
        self.reading.set()
        self.port = 0
        self._path = path
        self._context = context
        self.connections: list[socket.socket] = []
        self._threads: list[Thread] = []
        self.start()

    def start(self) -> None:
        """Listen, on the port of the last time."""
        if self._path is not None:
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            with suppress(FileNotFoundError):
                os.unlink(self._path)
            self._listener.bind(self._path)
            self._listener.listen(8)
        else:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            self.port = self._listener.getsockname()[1]
        self._run(self._accept, self._listener)

    def stop(self) -> None:
        """Stop listening and close every connection."""
        shut(self._listener)
        self.drop()
        self.reading.set()
        for thread in self._threads:
            thread.join(20)

    def drop(self) -> None:
        """Close every connection."""
        for connection in self.connections:
            with suppress(OSError):
                # That of SSLSocket would take the TLS away under the thread that reads.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def data(self) -> bytes:
        """Return all that came, connection by connection."""
        return b"".join(self.received)

    def frames(self) -> list[bytes]:
        """Return all octet-counted frames that came whole."""
        return [frame for received in self.received for frame in octet_counted(bytes(received))]

    def _run(self, target: Callable[[socket.socket], None], argument: socket.socket) -> None:
        thread = Thread(target=target, args=(argument,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            self._run(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        received = bytearray()
        self.received.append(received)
        try:
            if self._context is not None:
                connection = self._secure(connection, self._context)
            while self.take is None or len(received) < self.take:
                self.reading.wait()
                data = connection.recv(65536)
                if not data:
                    self.endings.append(data)
                    return
                received += data
            time.sleep(self.linger)
            # Without this, what was not read makes the kernel send a reset, too, but only if there is some.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError as error:
            self.endings.append(error)
        finally:
            connection.close()

    def _secure(self, plain: socket.socket, context: ssl.SSLContext) -> ssl.SSLSocket:
        plain.setblocking(False)
        secured = context.wrap_socket(
            plain, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=False
        )
        self.connections[self.connections.index(plain)] = secured
        while True:
            try:
                secured.do_handshake()
            except ssl.SSLWantReadError:
                select.select([secured], [], [], 20)
                time.sleep(self.delay)
            else:
                secured.setblocking(True)
                return secured
