"""
UNIX sockets that a killed process has left behind.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IListeningPort, IProtocolFactory, IStreamServerEndpoint
from zope.interface import implementer


def remove_abandoned(path: str) -> None:
    """
    Remove the socket of that name if nobody listens on it. One in use, and what is no socket, stays.

    Twisted's own lock file names the process that made it; after a restart of a container another one, or this one,
    may have that number, and the lock would hold for ever. A connection that is refused can't lie.
    """
    with suppress(OSError):
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)


@implementer(IStreamServerEndpoint)
class UNIXSocketEndpoint:
    """
    An endpoint on a named UNIX socket.

    @param inner: the endpoint itself, without a lock file.
    """

    def __init__(self, inner: IStreamServerEndpoint, path: str) -> None:
        self._inner = inner
        self._path = path

    def listen(self, protocolFactory: IProtocolFactory) -> Deferred[IListeningPort]:
        """See L{IStreamServerEndpoint.listen}."""
        remove_abandoned(self._path)
        return self._inner.listen(protocolFactory)
