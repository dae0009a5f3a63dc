"""
What a connection asks of its transport and of the kernel: the peer, whom its certificate names, and how many bytes wait
in the socket's queues.
"""

from __future__ import annotations

import fcntl
import sys
import termios

from OpenSSL import SSL, crypto
from twisted.internet.interfaces import ISSLTransport, ITransport

from webhookrx.intake.client_address import normal_ip
from webhookrx.intake.head import Peer
from webhookrx.intake.provenance import ClientIdentity


def peer_of(transport: ITransport, client: ClientIdentity | None = None) -> Peer:
    """
    Return the other end. A PROXY header tells it, with the first data; its text is the proxy's, so it is checked.

    @param client: see L{client_of}.
    """
    address = transport.getPeer()
    host = getattr(address, "host", None)
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    ip = (normal_ip(host) if host else None) or "127.0.0.1"
    return Peer(ip, getattr(address, "port", None), ISSLTransport.providedBy(transport), client)


def client_of(transport: ITransport) -> ClientIdentity | None:
    """
    Return whom the client certificate of a connection names; None if it has none, or if nothing has verified it.

    @param transport: its TLS handshake is complete.
    """
    if not ISSLTransport.providedBy(transport):
        return None
    certificate = transport.getPeerCertificate()
    # Both kinds of transports with TLS have it; under VERIFY_NONE a certificate proves nothing.
    if certificate is None or not transport.getHandle().get_verify_mode() & SSL.VERIFY_PEER:  # type: ignore[attr-defined]
        return None
    # Few receivers ask for certificates; the others need not load what reads them.
    from webhookrx.intake.client_certificates import identity_of

    return identity_of(crypto.dump_certificate(crypto.FILETYPE_ASN1, certificate))  # type: ignore[arg-type]


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
