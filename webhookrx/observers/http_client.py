"""
One request at a time to one server, by treq: from a thread that may wait, through the reactor, and back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import Condition
from typing import TYPE_CHECKING, Protocol, cast

from OpenSSL import SSL
from treq.client import HTTPClient
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectError, ConnectionClosed
from twisted.python.failure import Failure
from twisted.web.client import (
    Agent,
    BrowserLikePolicyForHTTPS,
    HTTPConnectionPool,
    RequestTransmissionFailed,
    ResponseFailed,
    ResponseNeverReceived,
)
from twisted.web.http_headers import Headers

from webhookrx.observers.client_tls import OneHostPolicy, WrongHost, ssl_reason
from webhookrx.observers.http_answers import Answer, Verdict
from webhookrx.observers.http_connection import BadAnswer, ConnectionFactory
from webhookrx.observers.http_exchange import AnswerBody, BareAnswers, WholeBody

if TYPE_CHECKING:
    from treq.response import _Response
    from twisted.internet.interfaces import IOpenSSLClientConnectionCreator, IReactorTime
    from twisted.web.iweb import IAgent

    from webhookrx.observers.http_headers import Header

HURRIED = 3.0
"""Seconds that a request may still take once the receiver stops."""

#: A connection that the server has closed in the meantime shows itself in one of these.
_BROKEN = (RequestTransmissionFailed, ResponseNeverReceived, ResponseFailed, ConnectionClosed)

#: What else can be wrong with a connection; any other error lies in what came over it.
_CAUSES = (SSL.Error, WrongHost, BadAnswer, ConnectionClosed, ConnectError, OSError, CancelledError)


class NoAnswer(Exception):
    """No whole answer came; whether the server has the messages is unknown. The text says why, in one line."""


class Reactor(Protocol):
    """What is asked of a reactor here; an C{IReactorFromThreads}."""

    def callFromThread(self, callable: Callable[..., object], *args: object) -> object:
        """Call it in the reactor thread."""


class Client:
    """
    Posts bodies to a URL, over a connection that stays open between them.

    L{post} is called in one thread at a time, never the reactor's.

    @param reactor: makes requests in its thread.
    @param agent: makes requests.
    @param pool: the connections of the agent.
    @param method: C{POST} or C{PUT}.
    @param url: where to.
    @param headers: go with every request.
    @param timeout: seconds for connecting and the whole answer, together.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(
        self,
        reactor: Reactor,
        agent: IAgent,
        pool: HTTPConnectionPool,
        method: str,
        url: str,
        headers: Sequence[Header],
        timeout: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._treq = HTTPClient(BareAnswers(agent))
        self._reactor = reactor
        self._pool = pool
        self._method = method
        self._url = url
        self._headers = tuple(headers)
        self._timeout = timeout
        self._clock = clock
        self._connection_kept = False
        self._waits = Condition()
        self._wait: _Wait | None = None
        self._is_hurried = False

    def post(self, content: bytes, headers: Sequence[Header] = ()) -> Answer:
        """
        Send a body and wait for the answer, never longer than the timeout: Twisted's timers follow the wall clock,
        which somebody may set, and a reactor that has stopped calls nobody.

        @raise NoAnswer: there is none.
        """
        with self._waits:
            timeout = min(self._timeout, HURRIED) if self._is_hurried else self._timeout
            wait = self._wait = _Wait(self._waits, self._clock, timeout)
        self._reactor.callFromThread(self._begin, wait, content, headers)
        outcome = wait.outcome()
        if outcome is None:
            self._reactor.callFromThread(wait.abandon)
            outcome = wait.head
            if outcome is None:
                raise NoAnswer(f"no answer within {wait.seconds:.3g} s")
            if outcome.verdict is Verdict.STORED:
                raise NoAnswer(f"{outcome.describe()}, but the answer has not ended within {wait.seconds:.3g} s")
        if isinstance(outcome, Failure):
            raise NoAnswer(describe(outcome.value))
        return outcome

    def hurry(self) -> None:
        """Let a request that runs, and each that is still to come, take L{HURRIED} seconds at most."""
        with self._waits:
            self._is_hurried = True
            if self._wait is not None:
                self._wait.shorten(HURRIED)

    def close(self) -> None:
        """Close the connection that is kept, if any. In any thread."""
        self._reactor.callFromThread(self._pool.closeCachedConnections)

    def _begin(self, wait: _Wait, content: bytes, headers: Sequence[Header]) -> None:
        wait.request = Deferred.fromCoroutine(self._exchange(wait, content, headers))
        wait.request.addBoth(wait.bring)

    async def _exchange(self, wait: _Wait, content: bytes, headers: Sequence[Header]) -> Answer:
        kept, self._connection_kept = self._connection_kept, False
        try:
            response = await self._request(content, headers)
        except _BROKEN:
            if not kept:
                raise
            # Servers close idle connections, at any moment: it says nothing about how they are.
            response = await self._request(content, headers)
        wait.head = head = _head_of(response)
        body = AnswerBody()
        try:
            response.deliverBody(body)
            await body.done
        except Exception:
            # Cancelled, or anything else.
            body.end()
            if head.verdict is Verdict.STORED:
                # What ended before its answer, may have ended before it stored the messages.
                raise NoAnswer(f"{head.describe()}, but the answer is cut off") from None
            # A refusal often is: a server that doesn't read the rest of a request resets the connection.
            return head
        self._connection_kept = True
        return replace(head, body=bytes(body.kept))

    def _request(self, content: bytes, headers: Sequence[Header]) -> Deferred[_Response]:
        fields = Headers()
        for name, value in (*self._headers, *headers):
            fields.addRawHeader(name, value)
        return self._treq.request(
            self._method, self._url, headers=fields, data=WholeBody(content), allow_redirects=False, unbuffered=True
        )


class _Wait:
    """
    A thread that waits for what the reactor thread brings.

    @ivar request: set in the reactor thread once there is one.
    @ivar head: an answer whose body has not ended; set in the reactor thread.
    @ivar seconds: how long it waits at most.
    """

    def __init__(self, condition: Condition, clock: Callable[[], float], seconds: float) -> None:
        self.request: Deferred[Answer] | None = None
        self.head: Answer | None = None
        self.seconds = seconds
        self._condition = condition
        self._clock = clock
        self._began_at = clock()
        self._outcome: Answer | Failure | None = None

    def outcome(self) -> Answer | Failure | None:
        """Wait for it; None when the time is over."""
        with self._condition:
            while self._outcome is None:
                left = self._began_at + self.seconds - self._clock()
                if left <= 0:
                    break
                self._condition.wait(left)
            return self._outcome

    def bring(self, outcome: Answer | Failure) -> None:
        """Wake the thread. What comes too late is not looked at any more."""
        with self._condition:
            self._outcome = outcome
            self._condition.notify_all()

    def shorten(self, seconds: float) -> None:
        """Wait no longer than so many seconds from now. The condition is held."""
        self.seconds = min(self.seconds, self._clock() - self._began_at + seconds)
        self._condition.notify_all()

    def abandon(self) -> None:
        """End the request, and its connection; it has begun by then."""
        assert self.request is not None
        self.request.cancel()


def _head_of(response: _Response) -> Answer:
    """Return what the head says. Nothing in it that is malformed makes a failure of an answer."""
    answer = Answer(response.code)
    retry_after = response.headers.getRawHeaders(b"Retry-After")
    if answer.verdict is not Verdict.LATER or not retry_after:
        return answer
    return replace(answer, retry_after=retry_after[0].decode("latin-1"))


def describe(error: BaseException | None) -> str:
    """Say in one line why there is no answer. What the other end has sent is not in it."""
    reasons = getattr(error, "reasons", None)
    if reasons:
        cause = reasons[0].value
        return describe(cause) if isinstance(cause, _CAUSES) else "what it answers is not HTTP"
    if isinstance(error, SSL.Error):
        return f"TLS: {ssl_reason(error)}"
    if isinstance(error, WrongHost):
        return f"TLS: {error}"
    if isinstance(error, (BadAnswer, NoAnswer)):
        return str(error)
    if isinstance(error, ConnectionClosed):
        return "the connection was closed without an answer"
    if isinstance(error, (ConnectError, OSError)):
        return str(error).rstrip(".") or type(error).__name__
    return f"the request failed: {type(error).__name__}"


def make_client(
    reactor: Reactor,
    creator: IOpenSSLClientConnectionCreator | None,
    method: str,
    url: str,
    headers: Sequence[Header],
    timeout: float,
) -> Client:
    """
    Make a client on sockets.

    @param creator: gives a connection its TLS; needed for C{https}.
    """
    pool = HTTPConnectionPool(reactor)
    pool.maxPersistentPerHost = 1
    pool._factory = cast("type[ConnectionFactory]", partial(ConnectionFactory, cast("IReactorTime", reactor)))
    policy = BrowserLikePolicyForHTTPS() if creator is None else OneHostPolicy(creator)
    agent = Agent(reactor, policy, connectTimeout=timeout, pool=pool)
    return Client(reactor, agent, pool, method, url, headers, timeout)
