"""
What a connection asks of its transport and of the kernel: the peer, and how many bytes wait in the socket's queues.
"""

from __future__ import annotations

import fcntl
import sys
import termios

from twisted.internet.interfaces import ISSLTransport, ITransport

from webhookrx.intake.client_address import normal_ip
from webhookrx.intake.head import Peer


def peer_of(transport: ITransport) -> Peer:
    """Return the other end. A PROXY header tells it, with the first data; its text is the proxy's, so it is checked."""
    address = transport.getPeer()
    host = getattr(address, "host", None)
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    ip = (normal_ip(host) if host else None) or "127.0.0.1"
    return Peer(ip, getattr(address, "port", None), ISSLTransport.providedBy(transport))


def descriptor_of(transport: ITransport) -> int | None:
    """Return the descriptor of its socket, below TLS; None if it has none."""
    try:
        descriptor: int = transport.fileno()  # type: ignore[attr-defined]
    except AttributeError:
        return None
    return descriptor


def unread_bytes(transport: ITransport) -> int:
    """Return how many bytes have come and are still in the kernel."""
    return _in_kernel(transport, termios.FIONREAD)


def untaken_bytes(transport: ITransport) -> int:
    """
    Return how many bytes of our answers are still in the kernel. Small ones find room there whether the sender takes
    them or not; nothing else tells of one that takes none.
    """
    return _in_kernel(transport, termios.TIOCOUTQ)


def _in_kernel(transport: ITransport, queue: int) -> int:
    descriptor = descriptor_of(transport)
    if descriptor is None:
        return 0
    try:
        waiting = fcntl.ioctl(descriptor, queue, bytes(4))
    except (OSError, ValueError):
        return 0  # not every descriptor has such a queue
    return int.from_bytes(waiting, sys.byteorder)
