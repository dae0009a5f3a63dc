"""
A listening socket that lets in few while there is too much to do with those who are in already.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

from webhookrx.transport.overload import OLD, Overload
from webhookrx.transport.tcp_info import backlog_of, tcp_info

#: Connections that may wait to be let in while few are. Who finds no room tries again by itself (RFC 6298).
BACKLOG = 64
#: Connections whose senders have left that are closed at once, before it is the turn of others.
CLOSED = 16


class AcceptGate:
    """
    Stands in for a listening socket.

    A connection costs more than a request, and who waits for long to be let in may have left by then. So while the
    queue of what is unread stands, as many are let in as L{Overload} says, few may wait for it, and those that have
    left are closed at once. This goes on until nobody waits any more.
    """

    def __init__(self, sock: socket.socket, overload: Overload) -> None:
        self._socket = sock
        self._overload = overload
        self._backlog = 0  # how many may wait else; 0 while they may

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def accept(self) -> tuple[socket.socket, Any]:
        """
        See L{socket.socket.accept}.

        @raise BlockingIOError: nobody may come in now.
        """
        stands = self._overload.stands
        if stands and not self._backlog:
            self._backlog = backlog_of(self._socket)
            self._socket.listen(min(BACKLOG, self._backlog))
        if not self._backlog:
            return self._socket.accept()
        return self._accept_few(stands)

    def _accept_few(self, stands: bool) -> tuple[socket.socket, Any]:
        overload = self._overload
        for _ in range(CLOSED):
            if stands and overload.new < 1:
                break
            try:
                accepted = self._socket.accept()
            except BlockingIOError:
                if not stands:
                    self._socket.listen(self._backlog)
                    self._backlog = 0
                raise
            info = tcp_info(accepted[0])
            if info is None or not info.ended or info.age <= OLD:
                overload.new -= 1
                return accepted
            accepted[0].close()
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
