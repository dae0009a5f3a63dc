"""
What the kernel knows of a TCP connection (tcp(7), C{TCP_INFO}): how long what it has is unread, and who has left.
"""

from __future__ import annotations

import socket
import struct
import sys
from typing import NamedTuple

#: States of a connection whose peer sends no more, C{enum} in C{net/tcp_states.h}: closed on its side or on both.
_ENDED = frozenset({7, 8, 9, 11})  # CLOSE, CLOSE_WAIT, LAST_ACK, CLOSING

#: C{tcpi_state}, and C{tcpi_last_data_recv} in milliseconds, of C{struct tcp_info} in C{linux/tcp.h}.
_INFO = struct.Struct("=B51xI")

#: C{tcpi_sacked}: of a socket that listens, how many may wait to be accepted.
_BACKLOG = struct.Struct("=28xI")

#: Other systems that have the option lay its answer out differently.
_OPTION = getattr(socket, "TCP_INFO", None) if sys.platform == "linux" else None


class TCPInfo(NamedTuple):
    """
    @ivar age: seconds since data came last; while some is unread, as long at least as the newest of it waits.
    @ivar ended: the peer sends no more: it has left, or closed its half.
    """

    age: float
    ended: bool


def backlog_of(sock: socket.socket) -> int:
    """Return how many may wait to be accepted from a listening socket; the usual most where that is unknown."""
    try:
        (most,) = _BACKLOG.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BACKLOG.size))
    except (OSError, AttributeError, struct.error):
        return socket.SOMAXCONN
    return int(most)


def tcp_info(sock: socket.socket) -> TCPInfo | None:
    """Return what is known of a connection; None where that can't be had: no TCP, or no Linux."""
    if _OPTION is None:
        return None
    try:
        state, milliseconds = _INFO.unpack(sock.getsockopt(socket.IPPROTO_TCP, _OPTION, _INFO.size))
    except (OSError, struct.error):
        return None
    return TCPInfo(milliseconds / 1000, state in _ENDED)
