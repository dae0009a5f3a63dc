"""A TCP proxy before a server, which cuts, stalls, and swallows answers after the server has got the request."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from threading import Event

_PIECE = 65536


class Proxy:
    """
    Listens on a port of 127.0.0.1 as soon as it is made, in threads of its own.

    @param target: the port of 127.0.0.1 that it connects to.
    @ivar port: the port that it listens on.
    @ivar accepted: how many connections there were.
    @ivar swallowed: bytes of answers that came and were not passed on.
    @ivar passed: bytes that were passed on to the server.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.accepted = self.swallowed = self.passed = 0
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._flows = Event()
        self._flows.set()
        self._refuses = False
        self._swallows = 0
        self._cut_after: int | None = None
        self._cuts = 0
        self._ended = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Reset every connection; new ones are taken."""
        with self._lock:
            self._cuts += 1
            pairs = list(self._pairs)
        for pair in pairs:
            self._close(*pair, reset=True)

    def refuse(self) -> None:
        """Reset every connection, and each new one at once, until L{mend}."""
        self._refuses = True
        self.cut()

    def stall(self) -> None:
        """Pass nothing on, in either direction, until L{mend}; connections stay open, and new ones are taken."""
        self._flows.clear()

    def swallow_answers(self, count: int = 1) -> None:
        """
        Keep back the next answers of the server: once the first bytes of one are there, the server has got the request,
        and the connection is reset.
        """
        self._swallows = count

    def cut_after(self, count: int) -> None:
        """Reset a connection once so many more bytes have gone to the server, in the middle of a request."""
        with self._lock:
            self._cut_after = count

    def mend(self) -> None:
        """Pass everything on again."""
        self._refuses = False
        self._swallows = 0
        self._cut_after = None
        self._flows.set()

    def stop(self) -> None:
        """Stop listening, and end every connection."""
        self._ended = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.mend()
        self.cut()

    def _accept(self) -> None:
        while not self._ended:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(client, self._cuts), daemon=True).start()

    def _serve(self, client: socket.socket, cuts: int) -> None:
        self._flows.wait()
        try:
            if self._refuses:
                raise ConnectionRefusedError
            server = socket.create_connection(("127.0.0.1", self.target), timeout=10)
            server.settimeout(None)
        except OSError:
            _reset(client)
            return
        for each in (client, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._pairs.add((client, server))
            is_cut = cuts != self._cuts
        if is_cut:
            self._close(client, server, reset=True)
        threading.Thread(target=self._answers, args=(client, server), daemon=True).start()
        self._requests(client, server)

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(_PIECE):
                self._flows.wait()
                if self._is_cut(len(data)):
                    server.sendall(data[: len(data) // 2])
                    self._close(client, server, reset=True)
                    return
                server.sendall(data)
                self.passed += len(data)
            server.shutdown(socket.SHUT_WR)
            return
        self._close(client, server, reset=True)

    def _is_cut(self, count: int) -> bool:
        with self._lock:
            if self._cut_after is None:
                return False
            self._cut_after -= count
            if self._cut_after > 0:
                return False
            self._cut_after = None
            return True

    def _answers(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(_PIECE):
                if self._is_swallowed(len(data)):
                    self._close(client, server, reset=True)
                    return
                self._flows.wait()
                client.sendall(data)
        self._close(client, server, reset=False)

    def _is_swallowed(self, count: int) -> bool:
        with self._lock:
            if not self._swallows:
                return False
            self._swallows -= 1
            self.swallowed += count
            return True

    def _close(self, client: socket.socket, server: socket.socket, *, reset: bool) -> None:
        with self._lock:
            self._pairs.discard((client, server))
        if reset:
            _reset(client)
        for each in (client, server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def _reset(client: socket.socket) -> None:
    """Close a connection so that the client notices at once, even if it only writes."""
    with suppress(OSError):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # A thread that reads or writes would keep the connection open past the close.
        client.shutdown(socket.SHUT_RDWR)
    client.close()
