"""
The link to the console: HTTPS to one host, which the console's own CA alone can prove, with the router's certificate.

No redirect is followed, no proxy is taken from the environment, no cookie is kept, and no answer is larger or later
than its bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, NoReturn

from OpenSSL import SSL, crypto
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.interfaces import (
    IHandshakeListener,
    IOpenSSLClientConnectionCreator,
    IProtocol,
    IProtocolFactory,
    IStreamClientEndpoint,
)
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.internet.ssl import (
    Certificate,
    CertificateOptions,
    PrivateCertificate,
    optionsForClientTLS,
    trustRootFromCertificates,
)
from twisted.python.failure import Failure
from twisted.web.client import URI, Agent, HTTPConnectionPool
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from webhookrx.client_bodies import BoundedBody, WholeBody
from webhookrx.config.console_place import ConsolePlace, console_place
from webhookrx.errors import WebhookrxError
from webhookrx.management.agent_body import MOST_REQUEST_BYTES, read_body
from webhookrx.management.agent_protocol import AgentProblem
from webhookrx.management.tap_protocol import MOST_ROUTER_TAPS
from webhookrx.version import installed_version

CONNECT_TIME: Final = 15.0
"""Seconds for the connection; and for the TLS of the first one."""

ANSWER_TIME: Final = 30.0
"""Seconds for an answer that nothing waits for at the console."""


_MOST_SHOWN: Final = 8
"""Certificates of a chain that are looked at."""


class LinkFailed(WebhookrxError):
    """The console could not be asked, or has answered what can't be read; the text is a sentence without an answer."""


class ConsoleAnswer(NamedTuple):
    """
    @ivar status: of the answer, such as 200.
    @ivar body: all of it.
    """

    status: int
    body: bytes

    @property
    def problem(self) -> AgentProblem:
        """What the console says is wrong; empty when it does not say it as a problem."""
        try:
            return read_body(self.body, AgentProblem)
        except ValueError:
            return AgentProblem()


class ConsoleLink:
    """
    Asks a console.

    @param authorities: the CA certificates that may have signed the console's, PEM; no other is trusted.
    @param certificate: the router's, PEM, with its C{key}; None before it is enrolled.
    @raise ValueError: a certificate or key is none, or the URL is not that of a console.
    """

    def __init__(
        self, reactor: Any, url: str, authorities: Sequence[str], certificate: str | None = None, key: str = ""
    ) -> None:
        self._place = console_place(url)
        self._reactor = reactor
        try:
            options = _options(self._place.host, authorities, certificate, key)
        except (crypto.Error, SSL.Error):
            raise ValueError("A certificate or key of the console's files can't be used.") from None
        # One connection waits in a sync while another brings reports, and each tap brings what it shows by its own.
        self._pool = HTTPConnectionPool(reactor, persistent=True)
        self._pool.maxPersistentPerHost = 2 + MOST_ROUTER_TAPS
        self._pool.cachedConnectionTimeout = 60
        self._pool.retryAutomatically = False
        self._agent = Agent.usingEndpointFactory(reactor, _ConsoleEndpoint(reactor, self._place, options), self._pool)

    async def ask(
        self,
        method: bytes,
        path: bytes,
        body: bytes = b"",
        *,
        most: int = MOST_REQUEST_BYTES,
        time: float = ANSWER_TIME,
    ) -> ConsoleAnswer:
        """
        Return an answer, whatever its status.

        @param path: with its query.
        @param most: bytes that the answer may have.
        @param time: seconds for all of it.
        @raise LinkFailed: there is no whole answer within these bounds.
        @raise CancelledError: this was cancelled.
        """
        asking = Deferred.fromCoroutine(self._ask(method, path, body, most))
        asking.addTimeout(time, self._reactor, _too_late)
        try:
            return await _as_cancelled(asking)
        except (LinkFailed, CancelledError):
            raise
        except Exception as error:
            raise LinkFailed(f"The console can't be reached: {_reason(error)}.") from None

    async def close(self) -> None:
        """Close the connections that wait for another request."""
        await self._pool.closeCachedConnections()

    async def _ask(self, method: bytes, path: bytes, body: bytes, most: int) -> ConsoleAnswer:
        host = f"[{self._place.host}]" if ":" in self._place.host else self._place.host
        headers = Headers({b"User-Agent": [f"webhookrx/{installed_version()}".encode()]})
        if body:
            headers.setRawHeaders(b"Content-Type", [b"application/json"])
        url = f"https://{host}:{self._place.port}".encode("ascii") + path
        producer = WholeBody(body) if body else None
        response: Any = await self._agent.request(method, url, headers, producer)
        answer = BoundedBody(
            most,
            LinkFailed("The answer of the console is larger than it may be."),
            LinkFailed("The answer of the console is not complete."),
            at_once=False,
        )
        response.deliverBody(answer)
        return ConsoleAnswer(response.code, await answer.whole)


async def shown_chain(reactor: Any, url: str) -> tuple[bytes, ...]:
    """
    Return the certificates that a console shows, DER. It is asked for nothing, and nothing of this is trusted.

    @raise LinkFailed: it can't be reached, or does not speak TLS.
    @raise ValueError: see L{console_place}.
    """
    place = console_place(url)
    endpoint = HostnameEndpoint(reactor, place.host.encode("ascii"), place.port, timeout=CONNECT_TIME)
    reader = _ChainReader(reactor)
    factory = Factory.forProtocol(lambda: reader)
    factory.noisy = False
    try:
        await wrapClientTLS(_TrustingNobody(place.host), endpoint).connect(factory)
        return await reader.known.addTimeout(CONNECT_TIME, reactor, _too_late)
    except LinkFailed:
        raise
    except Exception as error:
        raise LinkFailed(f"The console can't be reached: {_reason(error)}.") from None


def _options(host: str, authorities: Sequence[str], certificate: str | None, key: str) -> Any:
    own = None if certificate is None else PrivateCertificate.loadPEM(f"{key}\n{certificate}".encode())
    trust = trustRootFromCertificates([Certificate.loadPEM(each.encode()) for each in authorities])
    return optionsForClientTLS(host, trustRoot=trust, clientCertificate=own)


def _too_late(value: object, seconds: float) -> NoReturn:
    """Replace whatever a cancelled question ends with."""
    raise LinkFailed(f"The console has not answered within {seconds:g} seconds.")


def _as_cancelled(asking: Deferred[ConsoleAnswer]) -> Deferred[ConsoleAnswer]:
    """Return the same, but for this: cancelled, it fails as that. A question ends as if it were the console's fault."""
    has_ended = False

    def cancel(_: object) -> None:
        nonlocal has_ended
        has_ended = True
        asking.cancel()

    answer: Deferred[ConsoleAnswer] = Deferred(cancel)
    asking.addBoth(lambda result: None if has_ended else answer.callback(result))
    return answer


def _reason(error: Exception) -> str:
    """Return why a connection has failed, with nothing that the other end has said."""
    reasons: Sequence[Failure] = getattr(error, "reasons", None) or ()
    found = reasons[0].value if reasons and isinstance(reasons[0], Failure) else error
    if isinstance(found, SSL.Error):
        words = [str(each[-1]) for each in (found.args[0] if found.args else ()) if each]
        return f"TLS: {words[0]}" if words else "TLS failed"
    if isinstance(found, OSError) and found.strerror:
        return found.strerror
    return type(found).__name__


@implementer(IAgentEndpointFactory, IStreamClientEndpoint)
class _ConsoleEndpoint:
    """
    The way to one console, whatever is asked of it: a URL of any other host is a mistake of ours.

    @param options: verify the console.
    """

    def __init__(self, reactor: Any, place: ConsolePlace, options: IOpenSSLClientConnectionCreator) -> None:
        self._place = place
        endpoint = HostnameEndpoint(reactor, place.host.encode("ascii"), place.port, timeout=CONNECT_TIME)
        self._endpoint = wrapClientTLS(options, endpoint)

    def endpointForURI(self, uri: URI) -> _ConsoleEndpoint:
        """Return this endpoint."""
        assert (uri.scheme, uri.host.decode("ascii").strip("[]"), uri.port) == (b"https", *self._place)
        return self

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """Connect."""
        # Two lines in the log for each connection are too many.
        protocolFactory.noisy = False  # type: ignore[attr-defined]
        connecting: Deferred[IProtocol] = self._endpoint.connect(protocolFactory)
        return connecting


@implementer(IOpenSSLClientConnectionCreator)
class _TrustingNobody:
    """TLS with anybody: to look at a chain, and for nothing else."""

    def __init__(self, host: str) -> None:
        self._host = host

    def clientConnectionForTLS(self, tlsProtocol: Any) -> SSL.Connection:
        """Return the TLS of one connection."""
        connection = SSL.Connection(CertificateOptions(verify=False).getContext(), None)
        if ":" not in self._host and not self._host.replace(".", "").isdigit():
            connection.set_tlsext_host_name(self._host.encode("ascii"))
        return connection


@implementer(IHandshakeListener)
class _ChainReader(Protocol):
    """
    Takes the chain of the other end, says nothing, and ends the connection.

    @ivar known: fires with the chain when the connection has ended, or fails. Cancelled, it ends the connection.
    """

    def __init__(self, reactor: Any) -> None:
        self.known: Deferred[tuple[bytes, ...]] = Deferred(lambda _: self._end())
        self._reactor = reactor
        self._chain: tuple[bytes, ...] = ()

    def handshakeCompleted(self) -> None:
        """Take the chain."""
        shown = self.transport.getHandle().get_peer_cert_chain() or ()  # type: ignore[union-attr]
        self._chain = tuple(crypto.dump_certificate(crypto.FILETYPE_ASN1, each) for each in shown[:_MOST_SHOWN])
        # Not at once: the TLS below is still at work on what came.
        self._reactor.callLater(0, self._end)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Take the end."""
        if self.known.called:
            return
        if self._chain:
            self.known.callback(self._chain)
        else:
            self.known.errback(reason)

    def _end(self) -> None:
        if self.transport is not None:
            self.transport.abortConnection()  # type: ignore[attr-defined]
