"""
A server for what is posted to it, in threads of its own, that behaves as badly as a test asks.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: Seconds after which a connection on which nothing comes is closed, so that no thread stays.
_IDLE = 30.0


@dataclass
class Reply:
    """
    What is answered.

    @ivar close: close the connection after the answer, without a word of it in the answer.
    @ivar reset: no answer but a reset, once the body is read.
    @ivar silent: no answer until the server is stopped.
    """

    status: int = 200
    fields: dict[str, str] = field(default_factory=dict)
    body: bytes = b"ok"
    close: bool = False
    reset: bool = False
    silent: bool = False


@dataclass(frozen=True)
class Posted:
    """A request that came in whole."""

    path: str
    fields: dict[str, str]
    body: bytes


class PostServer:
    """
    Listens on a port of 127.0.0.1 as soon as it is made.

    @param context: TLS, if any.
    @param port: the port; 0 for any.
    @ivar replies: what is answered to the next requests; after that C{reply} decides.
    @ivar largest: bytes of a body; one that is larger is answered 413 before it is read, and the connection closed.
    @ivar posted: all requests, with those that were not answered 2xx.
    @ivar stored: those that were.
    @ivar connections: how many there were.
    """

    def __init__(self, context: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.replies: list[Reply] = []
        self.reply: Callable[[bytes], Reply] = lambda body: Reply()
        self.largest: int | None = None
        self.posted: list[Posted] = []
        self.stored: list[Posted] = []
        self.connections = 0
        self._stopped = threading.Event()
        self._server = _Server(("127.0.0.1", port), self, context)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop listening, and close every connection."""
        self._stopped.set()
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join()

    def lines(self) -> list[bytes]:
        """Return the lines of all that is stored."""
        return [line for posted in self.stored for line in posted.body.splitlines()]

    def decide(self, posted: Posted) -> Reply:
        """Return what is answered when nothing else was told."""
        return self.reply(posted.body)

    def answer(self, request: _Request) -> None:
        """Read a request and answer it, or don't."""
        length = int(request.headers["Content-Length"])
        fields = {name.lower(): value for name, value in request.headers.items()}
        if self.largest is not None and length > self.largest:
            request.send_error(413)
            request.close_connection = True
            return
        body = request.rfile.read(length)
        posted = Posted(request.path, fields, body)
        reply = self.replies.pop(0) if self.replies else self.decide(posted)
        self.posted.append(posted)
        if reply.silent:
            self._stopped.wait(_IDLE)
        if reply.reset or reply.silent:
            request.close_connection = True
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        if 200 <= reply.status < 300:
            self.stored.append(posted)
        request.send_response(reply.status)
        for name, value in {"Content-Length": str(len(reply.body)), **reply.fields}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(reply.body)
        request.wfile.flush()
        request.close_connection = reply.close


class RudeServer:
    """
    Listens on a port of 127.0.0.1 as soon as it is made, and does with each connection what it is told.

    @param behave: is called in a thread with each connection; whatever becomes of that, the connection is over.
    @param context: TLS, if any.
    @ivar begun: how many connections there were.
    @ivar ended: how many of them are over.
    """

    def __init__(self, behave: Callable[[socket.socket], object], context: ssl.SSLContext | None = None) -> None:
        self.begun = self.ended = 0
        self._behave = behave
        self._context = context
        self._listener = socket.socket()
        # The connections inherit it: little that is sent to them stays unread in the kernel.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        """Stop listening."""
        # A close alone does not wake the thread.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.begun += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(_IDLE)
        try:
            with self._context.wrap_socket(connection, server_side=True) if self._context else connection as open_one:
                self._behave(open_one)
        except OSError:
            pass
        self.ended += 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], owner: PostServer, context: ssl.SSLContext | None) -> None:
        super().__init__(address, _Request)
        self.owner = owner
        self._context = context
        self._connections: set[socket.socket] = set()

    def finish_request(self, request: object, client_address: object) -> None:
        """Serve a connection, in its thread."""
        assert isinstance(request, socket.socket)
        self.owner.connections += 1
        request.settimeout(_IDLE)
        try:
            connection = self._context.wrap_socket(request, server_side=True) if self._context else request
        except OSError:
            return
        self._connections.add(connection)
        try:
            _Request(connection, client_address, self)
        except OSError:
            pass
        finally:
            self._connections.discard(connection)
            connection.close()

    def close_connections(self) -> None:
        """Close what is open."""
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: bad connections are what this is for."""


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body of an answer go out together.
    wbufsize = -1
    server: _Server

    def do_POST(self) -> None:
        """Answer it."""
        self.server.owner.answer(self)

    do_PUT = do_POST

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
