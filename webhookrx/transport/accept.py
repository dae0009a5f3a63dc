"""
How connections are accepted: few of them under overload, and with pauses while the process may open no more files.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from twisted.internet import tcp
from twisted.logger import ILogObserver, LogEvent, Logger
from zope.interface import implementer

from webhookrx.transport.overload import OLD, Overload
from webhookrx.transport.tcp_info import backlog_of, tcp_info

#: Connections that a port accepts in one turn, a few more when as many always wait. Twisted would raise this without
#: bound, and closes the sockets of refused connections only after the turn.
MOST_ACCEPTED = 32


class AcceptFailures:
    """
    Handles connections that can't be accepted for want of file descriptors or memory.

    Twisted's ports log several lines for each, and try again on each turn of the reactor: megabytes of log and a whole
    processor within seconds. Here each is one call, and the port rests until L{try_again}. To see them, this
    replaces the private C{_logger} of a port; where Twisted has none, its ports do as they always did.

    @param refused: called with the address of each connection that was closed at once for want of a file descriptor.
    @param failed: called with the name of the error for each connection that still waits in the kernel.
    """

    def __init__(self, refused: Callable[[str], object], failed: Callable[[str], object]) -> None:
        self._refused = refused
        self._failed = failed
        self._resting: list[tcp.Port] = []

    def watch(self, port: tcp.Port) -> None:
        """Handle the failures of an open port."""
        logger = getattr(port, "_logger", None)
        if logger is not None:
            port._logger = Logger(logger.namespace, observer=_AcceptObserver(partial(self._accept_failed, port)))
        port.numberAccepts = MOST_ACCEPTED

    def accepted(self, port: tcp.Port) -> None:
        port.numberAccepts = min(port.numberAccepts, MOST_ACCEPTED)

    def try_again(self) -> None:
        """Have ports that rest accept again; called about twice a second."""
        resting, self._resting = self._resting, []
        for port in resting:
            if port.connected and not port.disconnecting:
                port.startReading()

    def _accept_failed(self, port: tcp.Port, event: LogEvent) -> None:
        if "acceptError" in event:
            self._failed(event["acceptError"])
            self._resting.append(port)
            port.stopReading()
        elif "address" in event:
            # That of a UNIX socket is empty.
            address: Any = event["address"]
            self._refused(address[0] if isinstance(address, tuple) else "unix")


@implementer(ILogObserver)
class _AcceptObserver:
    """Takes the log events of a port."""

    def __init__(self, report: Callable[[LogEvent], None]) -> None:
        self._report = report

    def __call__(self, event: LogEvent) -> None:
        self._report(event)


#: The backlog under overload. A client that finds no room in it tries again by itself (RFC 6298).
BACKLOG = 64
#: Connections of clients that have left that are closed in one turn.
CLOSED = 16


class AcceptGate:
    """
    Stands in for a listening socket, and accepts few connections under overload.

    A connection costs more than a request, and a client that waits long to be accepted may have left by then. So while
    the queue of unread requests stands, the gate accepts as many connections as L{Overload} allows, shortens the
    backlog, and closes connections whose clients have left. It opens again once the backlog is empty.
    """

    def __init__(self, sock: socket.socket, overload: Overload) -> None:
        self._socket = sock
        self._overload = overload
        self._backlog = 0  # the usual one while it is shortened, else 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    @property
    def holds_back(self) -> bool:
        """Whether it accepts few connections, and leaves the others to wait."""
        return self._overload.stands or self._backlog > 0

    def accept(self) -> tuple[socket.socket, Any]:
        """
        See L{socket.socket.accept}.

        @raise BlockingIOError: no connection may be accepted now.
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
