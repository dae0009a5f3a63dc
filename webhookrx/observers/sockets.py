"""
Sockets that never block, and waiting for them with a L{Patience}.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
import struct
import termios
from fcntl import ioctl
from typing import Any, Final

from webhookrx.observers.patience import Patience

# A connection that a firewall has forgotten is noticed while nothing is sent, and not by the next message.
_STREAM_OPTIONS: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)


def shake_hands(secured: ssl.SSLSocket, patience: Patience) -> None:
    """
    Do the TLS handshake on a socket that does not block.

    @raise OSError: it failed, C{ssl.SSLError} and C{TimeoutError} among it.
    """
    while True:
        try:
            secured.do_handshake()
        except ssl.SSLWantReadError:
            patience.wait(secured, select.POLLIN)
        except ssl.SSLWantWriteError:
            patience.wait(secured, select.POLLOUT)
        else:
            return


def connect_to_host(host: str, port: int, kind: socket.SocketKind, patience: Patience) -> tuple[socket.socket, float]:
    """
    Connect to the first address of a host that answers. Looking the name up may take as long as the system lets it.

    @return: the socket, and how many seconds that address took.
    @raise OSError: none answers, or there is none; the text says it of each.
    """
    addresses = socket.getaddrinfo(host, port, type=kind)
    problems = []
    for number, (family, _, _, _, address) in enumerate(addresses):
        # One that never answers must leave time for the others.
        share = patience.left() / (len(addresses) - number)
        try:
            return connect_socket(family, kind, address, patience, share)
        except OSError as error:
            problems.append(f"{address[0]}: {describe(error)}")
    raise ConnectionError("; ".join(problems))


def connect_socket(
    family: int, kind: socket.SocketKind, address: Any, patience: Patience, at_most: float | None = None
) -> tuple[socket.socket, float]:
    """
    Connect to one address.

    @param at_most: seconds; None for all that the patience has.
    @return: the socket, and how many seconds it took.
    @raise OSError: that failed.
    """
    made = socket.socket(family, kind)
    try:
        made.setblocking(False)
        began = patience.now()
        try:
            made.connect(address)
        except BlockingIOError as error:
            if error.errno != errno.EINPROGRESS:
                raise
            if not patience.wait(made, select.POLLOUT, at_most=patience.left() if at_most is None else at_most):
                raise TimeoutError("it did not answer in time") from None
            if problem := made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(problem, os.strerror(problem)) from None
        if kind == socket.SOCK_STREAM and family != socket.AF_UNIX:
            for option in _STREAM_OPTIONS:
                made.setsockopt(*option)
        return made, patience.now() - began
    except BaseException:
        made.close()
        raise


def describe(error: OSError) -> str:
    """Say what went wrong, on one line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate was not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return f"TLS: {error.reason.replace('_', ' ').lower()}"
    return " ".join((error.strerror or str(error) or type(error).__name__).split())


def unacknowledged(connected: socket.socket) -> int:
    """
    Return how many bytes the kernel still holds for the other end (C{SIOCOUTQ}, tcp(7), unix(7)): of TCP, what its
    kernel has not acknowledged; of a UNIX socket, what it has not read, and some overhead.
    """
    answer = ioctl(connected, termios.TIOCOUTQ, bytes(struct.calcsize("i")))
    count: int = struct.unpack("i", answer)[0]
    return count
