"""
What the kernel knows of a TCP connection (tcp(7), C{TCP_INFO}): how long data is unread, and whether the peer has left.
"""

from __future__ import annotations

import socket
import struct
import sys
from typing import NamedTuple

#: States of a connection whose peer sends no more, from C{net/tcp_states.h}: closed on its side or on both.
_ENDED = frozenset({7, 8, 9, 11})  # CLOSE, CLOSE_WAIT, LAST_ACK, CLOSING

#: C{tcpi_state}, and C{tcpi_last_data_recv} in milliseconds, of C{struct tcp_info} in C{linux/tcp.h}.
_INFO = struct.Struct("=B51xI")

#: C{tcpi_sacked}, which is the backlog of a listening socket.
_BACKLOG = struct.Struct("=28xI")

#: C{tcpi_unacked}, which is how many connections wait at a listening socket to be accepted.
_WAITING = struct.Struct("=24xI")

#: Other systems with this option lay its answer out differently.
_OPTION = getattr(socket, "TCP_INFO", None) if sys.platform == "linux" else None


class TCPInfo(NamedTuple):
    """
    @ivar age: seconds since data came last, so the least that unread data has waited.
    @ivar ended: the peer sends no more: it has left, or half-closed.
    """

    age: float
    ended: bool


def backlog_of(sock: socket.socket) -> int:
    """Return the backlog of a listening socket; C{SOMAXCONN} if it is unknown."""
    try:
        (most,) = _BACKLOG.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BACKLOG.size))
    except (OSError, AttributeError, struct.error):
        return socket.SOMAXCONN
    return int(most)


def waiting_at(sock: socket.socket) -> int | None:
    """Return how many connections wait to be accepted; None if it is no listening TCP socket, or this is no Linux."""
    if _OPTION is None:
        return None
    try:
        (waiting,) = _WAITING.unpack(sock.getsockopt(socket.IPPROTO_TCP, _OPTION, _WAITING.size))
    except (OSError, struct.error):
        return None
    return int(waiting)


def tcp_info(sock: socket.socket) -> TCPInfo | None:
    """Return what the kernel knows of a connection; None if it is no TCP, or this is no Linux."""
    if _OPTION is None:
        return None
    try:
        state, milliseconds = _INFO.unpack(sock.getsockopt(socket.IPPROTO_TCP, _OPTION, _INFO.size))
    except (OSError, struct.error):
        return None
    return TCPInfo(milliseconds / 1000, state in _ENDED)
