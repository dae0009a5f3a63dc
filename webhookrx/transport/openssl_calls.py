"""
The private names of pyOpenSSL: fast reading and writing of records, and the choice of key exchange groups.

pyOpenSSL's own C{recv} and C{send} allocate a buffer for each call, and ask OpenSSL for an error where there is none.
It has no method for key exchange groups. What a failure means is left to pyOpenSSL. Where one of the names is gone, its
public methods and OpenSSL's own groups serve.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from OpenSSL import SSL

_util: Any
try:
    from OpenSSL import _util
except ImportError:
    _util = None

#: The most that a record holds (RFC 8446 §5.1). With room for all of it, nothing is left where no poll would see it.
RECORD = 16 * 1024

Receive: TypeAlias = Callable[[SSL.Connection], bytes]
Send: TypeAlias = Callable[[SSL.Connection, bytes], int]


def find_calls() -> tuple[Receive, Send]:
    """
    Return a function that reads one record at most, and one that writes one at most and returns the number of bytes.

    They raise as C{SSL.Connection.recv} and C{SSL.Connection.send} do. Send what was not sent again, with or without
    more behind it.
    """
    try:
        read, write = _util.lib.SSL_read, _util.lib.SSL_write
        room = _util.ffi.new("char[]", RECORD)
        seen = _util.ffi.buffer(room)
        fail = SSL.Connection._raise_ssl_error
        SSL.Connection(SSL.Context(SSL.TLS_METHOD))._ssl  # noqa: B018 - checks that it exists
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

# Those of Mozilla's "intermediate" profile, and before them its post-quantum hybrid, which OpenSSL has from 3.5 on.
_CLASSIC = b"X25519:P-256:P-384"
_LISTS = (b"X25519MLKEM768:" + _CLASSIC, _CLASSIC)


def limit_groups(context: SSL.Context) -> None:
    """
    Leave out the other groups that OpenSSL offers: large finite fields and curves, which cost the server much more
    time than the client that asks for them.

    Without the private names OpenSSL's own groups stay, which are safe as well.
    """
    lib = getattr(_util, "lib", None)
    set_groups = getattr(lib, "SSL_CTX_set1_curves_list", None)
    handle = getattr(context, "_context", None)
    if lib is None or set_groups is None or handle is None:
        return
    for groups in _LISTS:
        if set_groups(handle, groups):
            return
        # An error left in OpenSSL's queue would pass for the reason of a later failure.
        lib.ERR_clear_error()
