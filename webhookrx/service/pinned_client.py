"""
Fetches what a pinned URL has: over TLS, from an address outside of this network, and from nowhere that it points to.

The URL may come out of a request of anybody. So it must match a pattern as a whole; the addresses of its host are
looked at after they are resolved, and one of those is connected to, so that no second answer of the DNS can change it;
no redirect is followed, no proxy is taken from the environment, and no cookie is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Any, Final, TypeVar

from twisted.internet.defer import Deferred, fail
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint, wrapClientTLS
from twisted.internet.interfaces import IHostResolution, IResolutionReceiver, IStreamClientEndpoint
from twisted.python.failure import Failure
from twisted.web.client import URI, Agent, HTTPConnectionPool
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from webhookrx.client_bodies import BoundedBody
from webhookrx.errors import WebhookrxError
from webhookrx.observers.client_tls import ClientTLS, make_creator
from webhookrx.senders.signatures.pinned_urls import pinned_host
from webhookrx.version import installed_version

if TYPE_CHECKING:
    from twisted.internet.interfaces import IProtocol, IProtocolFactory

TIME: Final = 10.0
"""Seconds for all of it."""

LARGEST: Final = 256 * 1024
"""Bytes of an answer. Key sets and certificates have a few thousand."""

MOST_RECEIVED: Final = 1024 * 1024
"""Bytes of an answer with its head and all that is around its body."""

PORT: Final = 443
MAX_ADDRESSES: Final = 16
"""Addresses of a host that are looked at; one with more is refused."""

#: For protocols of the IETF; which of them are global, versions of Python see in different ways.
_PROTOCOLS: Final = IPv4Network("192.0.0.0/24")

#: Where the last 32 bits are an IPv4 address that is translated to (RFC 6052), or relayed to (RFC 3056).
TRANSLATED: Final = IPv6Network("64:ff9b::/96")
_RELAYED: Final = IPv6Network("2002::/16")

T = TypeVar("T")

#: Returns what connects to an address and speaks TLS with a host.
EndpointFor = Callable[[str, str], IStreamClientEndpoint]


class NotFetched(WebhookrxError):
    """What a URL has could not be fetched; the text is one sentence that holds nothing of an answer."""


def is_outside(address: str) -> bool:
    """Tell whether an address is one of the internet: not of this machine, a private network, or none at all."""
    try:
        parsed: IPv4Address | IPv6Address | None = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):
        if parsed in _RELAYED:
            return False
        if parsed in TRANSLATED:
            parsed = IPv4Address(int(parsed) & 0xFFFF_FFFF)
        elif parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
    assert parsed is not None, "it was parsed"
    return parsed.is_global and not parsed.is_multicast and parsed not in _PROTOCOLS


class PinnedClient:
    """
    Fetches.

    @param endpoint_for: see L{EndpointFor}; by default, port 443 of the address with TLS verified for the host.
    """

    def __init__(self, reactor: Any, endpoint_for: EndpointFor | None = None) -> None:
        self._reactor = reactor
        self._endpoint_for = endpoint_for or self._tls_endpoint

    def get(self, url: str) -> Deferred[bytes]:
        """
        Return what a URL has, once that is there. It fails with L{NotFetched} for a URL that is not pinned, an address
        inside, any status but 200, an answer that is too large, or too late.
        """
        found = pinned_host(url)
        if found is None:
            return fail(NotFetched("Nothing is ever fetched from this URL."))
        host, path = found
        fetching = self._addresses(host).addCallback(self._ask, host, path)
        fetching.addTimeout(TIME, self._reactor, _too_late)
        return fetching.addErrback(_told, host)

    def _addresses(self, host: str) -> Deferred[list[str]]:
        resolving = Resolution()
        self._reactor.nameResolver.resolveHostName(resolving, host, PORT)
        return resolving.known

    def _ask(self, addresses: Sequence[str], host: str, path: str) -> Deferred[bytes]:
        if not addresses:
            raise NotFetched(f"{host} has no address.")
        if len(addresses) > MAX_ADDRESSES or not all(map(is_outside, addresses)):
            raise NotFetched(f"{host} has an address that is not one of the internet.")
        pool = HTTPConnectionPool(self._reactor, persistent=False)
        endpoint = OneEndpoint(self._endpoint_for(host, addresses[0]))
        agent = Agent.usingEndpointFactory(self._reactor, endpoint, pool)
        headers = Headers({b"User-Agent": [f"webhookrx/{installed_version()}".encode()], b"Accept": [b"*/*"]})
        asking: Deferred[Any] = agent.request(b"GET", f"https://{host}{path}".encode("ascii"), headers)
        return asking.addCallback(self._answered, host).addBoth(endpoint.close)

    def _answered(self, response: Any, host: str) -> Deferred[bytes]:
        if response.code != 200:
            # A redirect is none of these either: where it leads is another host's word.
            raise NotFetched(f"{host} has answered with status {response.code}.")
        body = BoundedBody(
            LARGEST,
            NotFetched(f"The answer is larger than {LARGEST} bytes."),
            NotFetched("The answer is not complete."),
        )
        response.deliverBody(body)
        return body.whole

    def _tls_endpoint(self, host: str, address: str) -> IStreamClientEndpoint:
        kind = TCP6ClientEndpoint if ":" in address else TCP4ClientEndpoint
        endpoint = kind(self._reactor, address, PORT, timeout=TIME)
        return wrapClientTLS(make_creator(host, ClientTLS()), endpoint)


@implementer(IAgentEndpointFactory, IStreamClientEndpoint)
class OneEndpoint:
    """Connects an agent by one endpoint, whatever the URL; what comes from there has an end."""

    def __init__(self, endpoint: IStreamClientEndpoint) -> None:
        self._endpoint = endpoint
        self._connected: Any = None

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        """Return this endpoint."""
        return self

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """Connect."""
        # Two lines in the log for each connection are too many.
        protocolFactory.noisy = False  # type: ignore[attr-defined]
        return self._endpoint.connect(protocolFactory).addCallback(self._keep)

    def close(self, result: T) -> T:
        """Close the connection, if there is one, whatever the other end does; and return C{result}."""
        if self._connected is not None and self._connected.transport is not None:
            self._connected.transport.abortConnection()
        return result

    def _keep(self, connected: IProtocol) -> IProtocol:
        self._connected = connected
        left, receive = MOST_RECEIVED, connected.dataReceived

        def receive_some(data: bytes) -> None:
            # C{twisted.web} keeps the head of an answer whatever it has, and however long it is.
            nonlocal left
            left -= len(data)
            if left >= 0:
                receive(data)
            else:
                self.close(None)

        connected.dataReceived = receive_some  # type: ignore[method-assign]
        return connected


@implementer(IResolutionReceiver)
class Resolution:
    """
    The addresses of a host, as they are found.

    @ivar known: fires with all of them.
    """

    def __init__(self) -> None:
        self.known: Deferred[list[str]] = Deferred(self._cancel)
        self._found: list[str] = []
        self._resolution: IHostResolution | None = None

    def resolutionBegan(self, resolutionInProgress: IHostResolution) -> None:
        """See L{IResolutionReceiver}."""
        self._resolution = resolutionInProgress

    def addressResolved(self, address: Any) -> None:
        """See L{IResolutionReceiver}."""
        self._found.append(address.host)

    def resolutionComplete(self) -> None:
        """See L{IResolutionReceiver}."""
        if not self.known.called:
            self.known.callback(self._found)

    def _cancel(self, known: Deferred[list[str]]) -> None:
        if self._resolution is not None:
            self._resolution.cancel()


def _too_late(value: Any, seconds: float) -> Any:
    raise NotFetched(f"There was no whole answer within {seconds:g} seconds.")


def _told(failure: Failure, host: str) -> Failure:
    """Return the failure as a L{NotFetched}, whose text holds nothing that another machine has said."""
    if failure.check(NotFetched):
        return failure
    reasons: Sequence[Failure] = getattr(failure.value, "reasons", None) or [failure]
    kind = getattr(reasons[0].type, "__name__", "an error")
    return Failure(NotFetched(f"{host} can't be reached ({kind})."))
