"""
A broker of librdkafka's mock behind TLS and a password: the mock speaks neither.

The proxy ends TLS, and answers the two requests of SASL itself (SaslHandshake and SaslAuthenticate, U{the protocol
guide<https://kafka.apache.org/protocol>}); of the versions that the broker announces it adds these two.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from contextlib import suppress

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
SASL_AUTHENTICATION_FAILED = 58


class SecureProxy:
    """
    Listens on a port of 127.0.0.1 with TLS.

    @param target: the port of a broker.
    @param context: the TLS of a server; None for none.
    @ivar password: what it takes with PLAIN; None when nobody has to show one.
    @ivar shown: the passwords that were shown.
    """

    def __init__(self, target: int, context: ssl.SSLContext | None, password: str | None = None) -> None:
        self.target = target
        self.password = password
        self.shown: list[str] = []
        self._context = context
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End every connection."""
        for each in list(self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """End everything."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, EOFError):
            if self._context is not None:
                client = self._context.wrap_socket(client, server_side=True)
            with client, socket.create_connection(("127.0.0.1", self.target)) as broker:
                self._sockets |= {client, broker}
                if self.password is None or self._authenticate(client, broker):
                    threading.Thread(target=_pass_on, args=(broker, client), daemon=True).start()
                    _pass_on(client, broker)

    def _authenticate(self, client: socket.socket, broker: socket.socket) -> bool:
        """Answer until a password was shown; tell whether it was right."""
        while True:
            frame = _frame(client)
            key, version, number = struct.unpack_from(">hhi", frame)
            if key == API_VERSIONS:
                broker.sendall(struct.pack(">i", len(frame)) + frame)
                _send(client, _with_sasl(_frame(broker), version))
            elif key == SASL_HANDSHAKE:
                _send(client, struct.pack(">ihih5s", number, 0, 1, 5, b"PLAIN"))
            else:
                assert key == SASL_AUTHENTICATE, key
                shown = frame.rpartition(b"\x00")[2].decode()
                self.shown.append(shown)
                words = f"{shown} is no password of mine".encode()
                is_right = shown == self.password
                error = 0 if is_right else SASL_AUTHENTICATION_FAILED
                answer = struct.pack(">ihh", number, error, len(words)) + words + struct.pack(">i", 0)
                _send(client, answer + (struct.pack(">q", 0) if version > 0 else b""))
                return is_right


def _with_sasl(answer: bytes, version: int) -> bytes:
    """Add both requests to the versions in an answer to ApiVersions."""
    if version < 3:
        (count,) = struct.unpack_from(">i", answer, 6)
        added = struct.pack(">hhhhhh", SASL_HANDSHAKE, 0, 1, SASL_AUTHENTICATE, 0, 1)
        return answer[:6] + struct.pack(">i", count + 2) + added + answer[10:]
    # A compact array: its length and one is a varint; each entry ends with a byte for no tagged fields.
    count, end = _varint(answer, 6)
    added = struct.pack(">hhhxhhhx", SASL_HANDSHAKE, 0, 1, SASL_AUTHENTICATE, 0, 1)
    return answer[:6] + _as_varint(count + 2) + added + answer[end:]


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[place] & 0x7F) << shift
        shift += 7
        place += 1
        if data[place - 1] < 0x80:
            return value, place


def _as_varint(value: int) -> bytes:
    text = bytearray()
    while value >= 0x80:
        text.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*text, value])


def _frame(sock: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _exactly(sock, 4))
    return _exactly(sock, size)


def _exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _send(sock: socket.socket, frame: bytes) -> None:
    sock.sendall(struct.pack(">i", len(frame)) + frame)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
