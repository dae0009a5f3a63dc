"""
The HTTP client of a thread that may block: treq, with bounds on what a server can send and on how long it can take.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, wait
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from OpenSSL import SSL
from treq import collect
from treq.client import HTTPClient
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.error import ConnectError, ConnectionClosed
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.protocols.policies import WrappingFactory
from twisted.web.client import (
    URI,
    Agent,
    HTTPConnectionPool,
    RequestTransmissionFailed,
    ResponseFailed,
    ResponseNeverReceived,
)
from twisted.web.http_headers import Headers

from webhookrx.client_bodies import WholeBody
from webhookrx.observers.client_tls import WrongHost, ssl_reason
from webhookrx.observers.http_stores.agent import BareAgent, BoundedEndpoint
from webhookrx.observers.http_stores.connection import BoundedConnection
from webhookrx.observers.http_stores.exchange import Extent, HTTPAnswer, NoAnswer
from webhookrx.observers.http_stores.store import KEPT
from webhookrx.observers.retrying import STOP_TIME

if TYPE_CHECKING:
    from twisted.internet.interfaces import (
        IOpenSSLClientConnectionCreator,
        IProtocol,
    )
    from twisted.python.failure import Failure
    from twisted.web.iweb import IResponse

    from webhookrx.observers.http_stores.exchange import Header, StoreRequest

BODY_LIMIT = 65536
"""
Bytes of the body of an answer after which its connection is aborted, unless more is kept: a new one costs less than the
rest.
"""

#: How a connection fails that the server has closed in the meantime.
_BROKEN = (RequestTransmissionFailed, ResponseNeverReceived, ResponseFailed, ConnectionClosed)

#: Other failures of a connection; any further error is one of the bytes that came over it.
_CAUSES = (SSL.Error, WrongHost, ConnectionClosed, ConnectError, OSError, CancelledError)


class _PendingAnswer:
    """
    One request, shared by the thread that waits for it and the reactor's thread, which sets all attributes.

    @ivar answer: the outcome; fails with L{NoAnswer}.
    @ivar head: an answer whose body has not ended.
    @ivar is_cancelled: nobody waits for it any more.
    """

    def __init__(self) -> None:
        self.answer: Future[HTTPAnswer] = Future()
        self.head: HTTPAnswer | None = None
        self.request: Deferred[HTTPAnswer] | None = None
        self.is_cancelled = False

    def cancel(self) -> None:
        """Cancel the request, and abort its connection."""
        self.is_cancelled = True
        if self.request is not None:
            self.request.cancel()


class Client:
    """
    Posts bodies to a URL, one at a time, over a connection that stays open between them.

    @param reactor: runs in another thread than L{post}.
    @param endpoint: connects to the server.
    @param method: C{POST} or C{PUT}.
    @param headers: header fields of every request.
    @param timeout: seconds for connecting and the whole answer, together.
    @param keep: bytes of the body of an answer that are kept.
    @param answer_fields: names of header fields of answers that are kept, in lower case.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(
        self,
        reactor: Any,
        endpoint: IStreamClientEndpoint,
        method: str,
        url: str,
        headers: Sequence[Header],
        timeout: float,
        keep: int = KEPT,
        answer_fields: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reactor = reactor
        self._connection: BoundedConnection | None = None
        self._pool = HTTPConnectionPool(reactor)
        self._pool.maxPersistentPerHost = 1
        self._pool.retryAutomatically = False
        agent = Agent.usingEndpointFactory(reactor, BoundedEndpoint(endpoint, self._make_connection), self._pool)
        self._treq = HTTPClient(BareAgent(agent, [name.encode() for name in answer_fields]))
        self._method = method
        self._url = url
        parts = urlsplit(url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._headers = tuple(headers)
        self._timeout = timeout
        self._keep = keep
        self._answer_fields = tuple(answer_fields)
        self._clock = clock
        self._stopping: Future[None] = Future()

    def post(self, request: StoreRequest, at_most: float | None = None) -> HTTPAnswer:
        """
        Make a request and wait for the answer, never longer than the timeout. C{blockingCallFromThread} has none, and
        the timers of the reactor follow the wall clock, which can be set; a reactor that has stopped runs no timers at
        all.

        @param at_most: seconds for it, if these are fewer.
        @raise NoAnswer: no whole answer came in time.
        """
        pending = _PendingAnswer()
        self._reactor.callFromThread(self._begin, pending, request)
        seconds = self._wait(pending, self._timeout if at_most is None else min(at_most, self._timeout))
        if pending.answer.done():
            return pending.answer.result()
        self._reactor.callFromThread(pending.cancel)
        head = pending.head
        if head is None:
            raise NoAnswer(f"no answer within {seconds:.3g} s")
        if head.is_success:
            raise NoAnswer(f"{head.describe()}, but the answer has not ended within {seconds:.3g} s")
        return replace(head, extent=Extent.BROKEN)

    def stop_now(self) -> None:
        """Let this request and all later ones take L{STOP_TIME} at most. Callable from any thread."""
        with suppress(InvalidStateError):
            self._stopping.set_result(None)

    def close(self) -> None:
        """Close the idle connection, if any. Callable from any thread."""
        self._reactor.callFromThread(self._pool.closeCachedConnections)

    def _wait(self, pending: _PendingAnswer, timeout: float) -> float:
        """Wait for an answer, and return how many seconds it had."""
        began = self._clock()
        either: tuple[Future[Any], ...] = (pending.answer, self._stopping)
        wait(either, timeout, FIRST_COMPLETED)
        if pending.answer.done() or not self._stopping.done():
            return timeout
        passed = self._clock() - began
        seconds = min(timeout, passed + STOP_TIME)
        wait((pending.answer,), seconds - passed)
        return seconds

    def _begin(self, pending: _PendingAnswer, request: StoreRequest) -> None:
        def failed(failure: Failure) -> None:
            problem = None
            if self._connection is not None:
                problem = self._connection.problem
                self._connection.abort()
            pending.answer.set_exception(NoAnswer(problem or describe(failure.value)))

        pending.request = Deferred.fromCoroutine(self._exchange(pending, request))
        pending.request.addCallbacks(pending.answer.set_result, failed)

    async def _exchange(self, pending: _PendingAnswer, request: StoreRequest) -> HTTPAnswer:
        self._connection = None
        try:
            response = await self._request(request)
        except _BROKEN:
            used = self._connection
            if pending.is_cancelled or used is None or used.problem is not None or used.requests == 1:
                raise
            # Servers close idle connections at any moment, which says nothing about their state.
            response = await self._request(request)
        connection = self._connection
        assert connection is not None
        head = replace(connection.accept_head(response), fields=self._fields_of(response))
        pending.head = head
        kept, size, limit = bytearray(), 0, max(BODY_LIMIT, self._keep)

        def take(data: bytes) -> None:
            nonlocal size
            size += len(data)
            kept.extend(data[: self._keep - len(kept)])
            if size > limit:
                connection.abort()

        try:
            await collect(response, take)
            is_whole = not connection.was_cut
        except Exception:
            # Cancelled, cut off, or another failure.
            connection.abort()
            is_whole = False
        if is_whole or size > limit:
            connection.finish()
            extent = Extent.LONG if size > self._keep else Extent.WHOLE
            return replace(head, beginning=bytes(kept), extent=extent)
        if head.is_success:
            # A server whose answer breaks off may have failed before it stored the messages.
            raise NoAnswer(f"{head.describe()}, but the answer is cut off")
        # A refusal often breaks off: a server that doesn't read the rest of a request resets the connection.
        return replace(head, extent=Extent.BROKEN)

    def _fields_of(self, response: IResponse) -> dict[str, str]:
        """Return the header fields that are kept; of several with one name the first."""
        found = ((name, response.headers.getRawHeaders(name.encode())) for name in self._answer_fields)
        return {name: values[0].decode("latin-1") for name, values in found if values}

    def _make_connection(self, factory: WrappingFactory[Any], wrapped: IProtocol) -> BoundedConnection:
        def write_request(connection: BoundedConnection) -> None:
            self._connection = connection

        return BoundedConnection(self._reactor, write_request, factory, wrapped)

    def _request(self, request: StoreRequest) -> Deferred[Any]:
        fields = Headers()
        for name, value in (*self._headers, *request.headers):
            fields.addRawHeader(name, value)
        url = self._origin + request.path if request.path else self._url
        body = WholeBody(request.content)
        asked: Deferred[Any] = self._treq.request(
            self._method, url, headers=fields, data=body, allow_redirects=False, unbuffered=True
        )
        return asked


def make_client(
    reactor: Any,
    creator: IOpenSSLClientConnectionCreator | None,
    method: str,
    url: str,
    headers: Sequence[Header],
    timeout: float,
    keep: int = KEPT,
    answer_fields: Sequence[str] = (),
) -> Client:
    """
    Make a client on sockets.

    @param creator: makes the TLS of a connection, for an C{https} URL; else None.
    """
    uri = URI.fromBytes(url.encode("ascii"))
    endpoint: IStreamClientEndpoint = HostnameEndpoint(reactor, uri.host.decode("ascii"), uri.port, timeout=timeout)
    if creator is not None:
        endpoint = wrapClientTLS(creator, endpoint)
    return Client(reactor, endpoint, method, url, headers, timeout, keep, answer_fields)


def describe(error: BaseException | None) -> str:
    """Return the reason of a failed request in one line, without anything that the server sent."""
    reasons = getattr(error, "reasons", None)
    if reasons:
        cause = reasons[0].value
        return describe(cause) if isinstance(cause, _CAUSES) else "what it answers is not HTTP"
    if isinstance(error, SSL.Error):
        return f"TLS: {ssl_reason(error)}"
    if isinstance(error, WrongHost):
        return f"TLS: {error}"
    if isinstance(error, NoAnswer):
        return str(error)
    if isinstance(error, ConnectionClosed):
        return "the connection was closed without an answer"
    if isinstance(error, (ConnectError, OSError)):
        return str(error).rstrip(".") or type(error).__name__
    return f"the request failed: {type(error).__name__}"
