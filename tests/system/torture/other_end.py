"""
What stands behind a network observer: an HTTP server that can go away.
"""

from __future__ import annotations

import contextlib
import socket
import threading

from tests.system.servers.process import free_port
from tests.system.torture.subject import TOKEN_IN_BYTES

_OK = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"


class OtherEnd:
    """
    Takes every POST while it is open.

    @ivar port: where it is, open or not.
    @ivar order: the tokens of all messages that it has said yes to, or was about to when it was closed.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self.order: list[str] = []
        self._listening: socket.socket | None = None
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()

    def open(self) -> None:
        """Be there."""
        self._listening = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def close(self) -> None:
        """Be away, in the middle of whatever is under way."""
        if self._listening is not None:
            # A thread that waits in accept() is not woken by close().
            self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
            self._listening = None
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with self._lock:
                    self._connections.add(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as stream:
            while stream.readline():
                length = 0
                while (line := stream.readline()) not in (b"\r\n", b""):
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                body = stream.read(length)
                if len(body) < length:
                    break
                with self._lock:
                    self.order += [token.decode() for token in TOKEN_IN_BYTES.findall(body)]
                connection.sendall(_OK)
        with self._lock:
            self._connections.discard(connection)
