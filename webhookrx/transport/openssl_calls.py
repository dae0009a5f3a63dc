"""
The two calls of OpenSSL that each request needs, without what pyOpenSSL does around them: for each it makes room anew,
and asks OpenSSL for an error where there is none.

The private names of pyOpenSSL are used here and in L{webhookrx.transport.key_exchange_groups} alone. What a
failure means is left to pyOpenSSL. Where one of the names is gone, its own methods serve.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from OpenSSL import SSL, _util

#: The most that a record holds (RFC 8446 §5.1). With room for all of it, nothing is left where no poll would see it.
RECORD = 16 * 1024

Receive: TypeAlias = Callable[[SSL.Connection], bytes]
Send: TypeAlias = Callable[[SSL.Connection, bytes], int]


def find_calls() -> tuple[Receive, Send]:
    """
    Return what reads a record at most, and what writes one at most and returns how much that was.

    They raise as C{SSL.Connection.recv} and C{SSL.Connection.send} do. What could not be sent is to be sent again, with
    or without more behind it.
    """
    try:
        read, write = _util.lib.SSL_read, _util.lib.SSL_write
        room = _util.ffi.new("char[]", RECORD)
        seen = _util.ffi.buffer(room)
        fail = SSL.Connection._raise_ssl_error
        SSL.Connection(SSL.Context(SSL.TLS_METHOD))._ssl  # noqa: B018 - looks whether it is there
    except AttributeError:
        return lambda tls: tls.recv(RECORD), SSL.Connection.send

    def receive(tls: SSL.Connection) -> bytes:
        size = read(tls._ssl, room, RECORD)
        if size <= 0:
            fail(tls, tls._ssl, size)
            return b""
        data: bytes = seen[:size]
        return data

    def send(tls: SSL.Connection, data: bytes) -> int:
        size = len(data)
        if size > RECORD:
            return tls.send(data)
        sent: int = write(tls._ssl, data, size)
        if sent <= 0:
            fail(tls, tls._ssl, sent)
            return 0
        return sent

    return receive, send


receive, send = find_calls()
