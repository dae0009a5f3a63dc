"""
Endpoints made of settings: the socket inside, then the PROXY header, then TLS.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import serverFromString, wrapServerTLS
from twisted.internet.interfaces import IListeningPort, IProtocolFactory, IStreamServerEndpoint
from zope.interface import implementer

from webhookrx.config.specs import split_spec
from webhookrx.errors import ConfigError
from webhookrx.settings import Listener
from webhookrx.transport.proxy_protocol import BadHeader, ProxyProtocolEndpoint
from webhookrx.transport.swappable_endpoint import SwappableEndpoint
from webhookrx.wire_interfaces import ITLSCreator


def build_endpoint(
    reactor: Any,
    listener: Listener,
    creator: ITLSCreator | None,
    bad_header: BadHeader = lambda peer: None,
    inner: IStreamServerEndpoint | None = None,
) -> IStreamServerEndpoint:
    """
    Build the endpoint of a listener; nothing is opened yet.

    The PROXY header comes outside TLS, since a proxy that passes TLS on can't write into it. Behind it the transport's
    C{getPeer} is the proxied address, but only once the header has come: not yet in C{connectionMade}.

    @param reactor: the one to listen with; for a string it must provide what that kind of endpoint needs.
    @param creator: makes the TLS connections; None exactly when C{listener.tls} is None.
    @param bad_header: called with the address of each peer that sends no valid PROXY header where one is due.
    @param inner: the innermost endpoint, when it exists already; see L{socket_endpoint}.

    @raise ConfigError: no endpoint can be made from C{listener.socket}, such as a socket that systemd did not pass.
    """
    if (listener.tls is None) != (creator is None):
        raise ValueError("a TLS listener needs a connection creator, and only a TLS listener")
    endpoint = socket_endpoint(reactor, listener) if inner is None else inner
    if listener.proxy_protocol:
        endpoint = ProxyProtocolEndpoint(endpoint, bad_header)
    if creator is None:
        return endpoint
    if isinstance(endpoint, SwappableEndpoint):
        return endpoint.with_tls(creator)
    return wrapServerTLS(creator, endpoint, reactor)


def socket_endpoint(reactor: Any, listener: Listener) -> IStreamServerEndpoint:
    """
    Build the socket of a listener alone; nothing is opened yet.

    @raise ConfigError: no endpoint can be made from C{listener.socket}.
    """
    try:
        endpoint: IStreamServerEndpoint = serverFromString(reactor, listener.socket)
    except Exception as error:
        # Endpoint parsers raise a dozen kinds of exceptions, plugins aside.
        if listener.socket.partition(":")[0].lower() == "systemd" and isinstance(error, LookupError):
            raise ConfigError(
                f"{listener.text!r} names a socket that systemd did not pass; it needs a socket unit, which sets "
                "LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES."
            ) from None
        raise ConfigError(f"{listener.text!r} is not an endpoint to listen on: {error}.") from error
    args, _ = split_spec(listener.socket)
    if args[0] == "unix" and len(args) > 1 and not args[1].startswith("@"):
        return UNIXSocketEndpoint(endpoint, args[1])
    return endpoint


def remove_abandoned(path: str) -> None:
    """
    Remove the UNIX socket of that name if a killed process has left it. A socket in use, or another file, stays.

    Twisted's own lock file holds a process number; after a restart of a container another process, or this one, may
    have that number, and the lock would hold for ever. A refused connection is proof.
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
        remove_abandoned(self._path)
        return self._inner.listen(protocolFactory)
