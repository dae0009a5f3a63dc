"""
What a client puts between treq and C{twisted.web}: one endpoint for all URLs, and answers without most of their fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.protocols.policies import WrappingFactory
from twisted.web.client import URI
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IAgentEndpointFactory, IBodyProducer
from zope.interface import implementer

if TYPE_CHECKING:
    from twisted.internet.interfaces import IProtocol, IProtocolFactory
    from twisted.web.iweb import IResponse

    from webhookrx.observers.http_stores.connection import BoundedConnection


@implementer(IAgentEndpointFactory, IStreamClientEndpoint)
class BoundedEndpoint:
    """
    Connects an agent by one endpoint, whatever the URL, and puts a L{BoundedConnection} into each connection.
    """

    def __init__(self, endpoint: IStreamClientEndpoint, protocol: Callable[..., BoundedConnection]) -> None:
        self._endpoint = endpoint
        self._protocol = protocol

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        """Return this endpoint."""
        return self

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """Connect."""
        bounded: Any = WrappingFactory(protocolFactory)
        bounded.protocol = self._protocol
        # Two lines in the log for each connection are too many.
        bounded.noisy = protocolFactory.noisy = False  # type: ignore[attr-defined]
        connecting: Deferred[Any] = self._endpoint.connect(bounded)
        return connecting.addCallback(lambda connection: connection.wrappedProtocol)


@implementer(IAgent)
class BareAgent:
    """
    Removes all header fields of an answer but C{Retry-After} and those that a store looks at. With the rest, treq would
    unpack the body, of which 2 KB can become 2 GB; fail over a field that is not UTF-8; and send back cookies.
    """

    def __init__(self, agent: IAgent, kept: Sequence[bytes]) -> None:
        self._agent = agent
        self._kept = frozenset((b"retry-after", *kept))

    def request(
        self, method: bytes, uri: bytes, headers: Headers | None = None, bodyProducer: IBodyProducer | None = None
    ) -> Deferred[IResponse]:
        """Make a request for an answer that is not packed."""
        fields = Headers() if headers is None else headers.copy()
        fields.setRawHeaders(b"Accept-Encoding", [b"identity"])
        return self._agent.request(method, uri, fields, bodyProducer).addCallback(self._bare)

    def _bare(self, response: IResponse) -> IResponse:
        for name, _ in list(response.headers.getAllRawHeaders()):
            if name.lower() not in self._kept:
                response.headers.removeHeader(name)
        return response
