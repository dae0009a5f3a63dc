"""
Put an endpoint together: the socket inside, then the PROXY header, then TLS.
"""

from __future__ import annotations

from typing import Any

from twisted.internet.endpoints import serverFromString, wrapServerTLS
from twisted.internet.interfaces import IStreamServerEndpoint

from webhookrx.config.spec_strings import split_spec
from webhookrx.errors import ConfigError
from webhookrx.interfaces import ITLSCreator
from webhookrx.settings import Listener
from webhookrx.transport.proxy_protocol import BadHeader, ProxyProtocolEndpoint
from webhookrx.transport.swappable_endpoint import Door
from webhookrx.transport.unix_socket import UNIXSocketEndpoint


def build_endpoint(
    reactor: Any,
    listener: Listener,
    creator: ITLSCreator | None,
    bad_header: BadHeader = lambda peer: None,
    socket: IStreamServerEndpoint | None = None,
) -> IStreamServerEndpoint:
    """
    Build the endpoint of a listener; nothing is opened yet.

    The PROXY header comes outside TLS, since a proxy that passes TLS on can't write into it. Behind it the transport's
    C{getPeer} is the proxied address, but only once the header has come: not yet in C{connectionMade}.

    @param reactor: the one to listen with; for a string it must provide what that kind of endpoint needs.
    @param creator: who makes the TLS connections; None exactly when C{listener.tls} is None.
    @param bad_header: told the address of who sent no good PROXY header where one is due.
    @param socket: what is inside of it all, when it is there already; see L{socket_endpoint}.

    @raise ConfigError: no endpoint can be made from C{listener.inner}, such as a socket that systemd did not pass.
    """
    if (listener.tls is None) != (creator is None):
        raise ValueError("a TLS listener needs a connection creator, and only a TLS listener")
    endpoint = socket_endpoint(reactor, listener) if socket is None else socket
    if listener.proxy_protocol:
        endpoint = ProxyProtocolEndpoint(endpoint, bad_header)
    if creator is None:
        return endpoint
    return endpoint.with_tls(creator) if isinstance(endpoint, Door) else wrapServerTLS(creator, endpoint, reactor)


def socket_endpoint(reactor: Any, listener: Listener) -> IStreamServerEndpoint:
    """
    Build the socket of a listener alone; nothing is opened yet.

    @raise ConfigError: no endpoint can be made from C{listener.inner}.
    """
    try:
        endpoint: IStreamServerEndpoint = serverFromString(reactor, listener.inner)
    except Exception as error:
        # Endpoint parsers raise whatever their first mistake happens to raise: a dozen kinds, plugins aside.
        if listener.inner.partition(":")[0].lower() == "systemd" and isinstance(error, LookupError):
            raise ConfigError(
                f"{listener.text!r} names a socket that systemd did not pass; it needs a socket unit, which sets "
                "LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES."
            ) from None
        raise ConfigError(f"{listener.text!r} is no endpoint to listen on: {error}.") from error
    args, _ = split_spec(listener.inner)
    if args[0] == "unix" and len(args) > 1 and not args[1].startswith("@"):
        return UNIXSocketEndpoint(endpoint, args[1])
    return endpoint
