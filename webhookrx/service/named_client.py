"""
Asks a URL that the operator has named, or a server that they trust: over TLS verified for its host, within a time and a
size, and from nowhere that an answer points to. No proxy of the environment is used, and an address of the link, where
clouds have their metadata services, is never connected to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from twisted.internet.defer import Deferred, fail
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint, wrapClientTLS
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.python.failure import Failure
from twisted.web.client import Agent, HTTPConnectionPool
from twisted.web.http_headers import Headers

from webhookrx.client_bodies import BoundedBody, WholeBody
from webhookrx.errors import WebhookrxError
from webhookrx.observers.client_tls import ClientTLS, make_creator
from webhookrx.service.pinned_client import TRANSLATED, OneEndpoint, Resolution
from webhookrx.version import installed_version

TIME: Final = 10.0
"""Seconds for all of it."""

LARGEST: Final = 512 * 1024
"""Bytes of an answer."""

_METADATA: Final = frozenset(map(ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "192.0.0.192")))
"""Where clouds have metadata services at addresses that are none of the link: EC2, Google, Alibaba and Oracle."""

T = TypeVar("T")

#: Returns what connects to an address of a host; the last argument tells whether by TLS.
TargetEndpoint = Callable[[str, str, int, bool], IStreamClientEndpoint]


class NotAnswered(WebhookrxError):
    """There was no answer; the text is one sentence that holds nothing that another machine has said."""


class NamedAnswer(NamedTuple):
    """
    An answer, whatever its status; a redirect is one of them.
    """

    status: int
    body: bytes


class NamedClient:
    """
    Asks.

    @param reactor: it has times, names and connections.
    """

    def __init__(self, reactor: Any, endpoint_for: TargetEndpoint | None = None) -> None:
        self._reactor = reactor
        self._endpoint_for = endpoint_for or self._endpoint

    def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Deferred[NamedAnswer]:
        """
        Return the answer, once all of it is there; it fails with L{NotAnswered}.

        @param url: with C{https}; with C{http} only where that can't leave the machine.
        """
        return self._request(method, url, headers, body, _read, urlsplit(url).hostname or "")

    def tell(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Deferred[int]:
        """
        Return the status of the answer, of which nothing else is read; it fails with L{NotAnswered}, whose text has
        nothing of the URL.

        @param url: see L{ask}.
        """
        return self._request(method, url, headers, body, lambda answer: int(answer.code), "Its host")

    def _request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        read: Callable[[Any], T | Deferred[T]],
        called: str,
    ) -> Deferred[T]:
        """
        Ask, and return what C{read} makes of the answer.

        @param called: the host, in texts of errors.
        """
        parts = urlsplit(url)
        host, is_tls = parts.hostname or "", parts.scheme == "https"
        if not url.isascii() or not host or parts.scheme not in ("https", "http"):
            return fail(NotAnswered("It is not the URL of a server."))
        port = parts.port or (443 if is_tls else 80)
        resolving = Resolution()
        self._reactor.nameResolver.resolveHostName(resolving, host, port)

        def connect(addresses: Sequence[str]) -> Deferred[T]:
            if not addresses:
                raise NotAnswered(f"{called} has no address.")
            if any(map(is_forbidden, addresses)):
                raise NotAnswered(f"{called} has an address of the link.")
            endpoint = OneEndpoint(self._endpoint_for(host, addresses[0], port, is_tls))
            agent = Agent.usingEndpointFactory(self._reactor, endpoint, HTTPConnectionPool(self._reactor, False))
            fields = {"User-Agent": f"webhookrx/{installed_version()}", **headers}
            asking: Deferred[Any] = agent.request(
                method.encode("ascii"),
                url.encode("ascii"),
                Headers({name: [text] for name, text in fields.items()}),
                None if body is None else WholeBody(body),
            )
            return asking.addCallback(read).addBoth(endpoint.close)

        asked = resolving.known.addCallback(connect)
        asked.addTimeout(TIME, self._reactor, _too_late)
        return asked.addErrback(_told, called)

    def _endpoint(self, host: str, address: str, port: int, is_tls: bool) -> IStreamClientEndpoint:
        kind = TCP6ClientEndpoint if ":" in address else TCP4ClientEndpoint
        endpoint = kind(self._reactor, address, port, timeout=TIME)
        return wrapClientTLS(make_creator(host, ClientTLS()), endpoint) if is_tls else endpoint


def is_forbidden(address: str) -> bool:
    """Tell whether an address is one of the link, however it is written, or the metadata service of a cloud."""
    try:
        parsed: IPv4Address | IPv6Address | None = ip_address(address)
    except ValueError:
        return True  # what it is nobody knows
    if isinstance(parsed, IPv6Address):
        if parsed in TRANSLATED:
            parsed = IPv4Address(int(parsed) & 0xFFFF_FFFF)
        else:
            parsed = parsed.ipv4_mapped or parsed.sixtofour or parsed
    assert parsed is not None, "it was parsed"
    return parsed.is_link_local or parsed in _METADATA


def _read(response: Any) -> Deferred[NamedAnswer]:
    body = BoundedBody(
        LARGEST,
        NotAnswered(f"The answer is larger than {LARGEST} bytes."),
        NotAnswered("The answer is not complete."),
    )
    response.deliverBody(body)
    return body.whole.addCallback(lambda content: NamedAnswer(int(response.code), content))


def _too_late(value: Any, seconds: float) -> Any:
    raise NotAnswered(f"There was no whole answer within {seconds:g} seconds.")


def _told(failure: Failure, called: str) -> Failure:
    """Return the failure as a L{NotAnswered}."""
    if failure.check(NotAnswered):
        return failure
    reasons: Sequence[Failure] = getattr(failure.value, "reasons", None) or [failure]
    return Failure(NotAnswered(f"{called} can't be reached ({getattr(reasons[0].type, '__name__', 'an error')})."))
