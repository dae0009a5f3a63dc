"""The client of the http observer, with an agent that is played and with a real one in memory."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from threading import Condition
from typing import TYPE_CHECKING, Any, cast

from OpenSSL import SSL
from treq.testing import RequestTraversalAgent
from twisted.internet.defer import Deferred, fail
from twisted.internet.error import ConnectionDone, ConnectionLost, ConnectionRefusedError, DNSLookupError
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import RequestTransmissionFailed, ResponseFailed, ResponseNeverReceived
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET
from zope.interface import implementer

from webhookrx.observers.client_tls import ClientTLS, WrongHost, make_creator
from webhookrx.observers.http_answers import Answer
from webhookrx.observers.http_client import HURRIED, Client, NoAnswer, describe, make_client
from webhookrx.observers.http_connection import BadAnswer
from webhookrx.observers.http_exchange import AnswerBody

if TYPE_CHECKING:
    from twisted.web.client import HTTPConnectionPool
    from twisted.web.iweb import IRequest

URL = "http://127.0.0.1:8080/in?x=1"


class OneThread:
    """
    A reactor whose thread is that of the caller.

    @ivar is_stopped: it calls nobody.
    """

    is_stopped = False

    def callFromThread(self, callable: Callable[..., object], *args: object) -> None:
        """Call it."""
        if not self.is_stopped:
            callable(*args)


class Pool:
    """
    @ivar closed: how often its connections were closed.
    """

    closed = 0

    def closeCachedConnections(self) -> None:
        """Count it."""
        self.closed += 1


class Hasty:
    """A monotonic clock on which each look takes longer than the one before it was."""

    def __init__(self, *moments: float) -> None:
        self.moments = list(moments)

    def __call__(self) -> float:
        """Return the next moment, and the last one for ever."""
        return self.moments.pop(0) if len(self.moments) > 1 else self.moments[0]


class Inbox(Resource):
    """
    Answers as told, and remembers the requests.
    """

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[tuple[bytes, bytes, bytes, Headers]] = []
        self.status = 200
        self.fields: dict[bytes, bytes] = {}
        self.body = b"fine"
        self.is_slow = False

    def render(self, request: IRequest) -> Any:
        """Take a request."""
        assert request.content is not None
        self.requests.append((request.method, request.uri, request.content.read(), request.requestHeaders))
        request.setResponseCode(self.status)
        for name, value in self.fields.items():
            request.setHeader(name, value)
        if self.is_slow:
            request.write(self.body)
            return NOT_DONE_YET
        return self.body


@implementer(IAgent)
class FailingAgent:
    """
    Fails for so many requests, and gives the rest to another agent.

    @ivar failures: what is wrong with the next requests: None is nothing.
    @ivar pending: requests that are neither answered nor failed.
    @ivar cancelled: how many of these were given up.
    """

    def __init__(self, agent: IAgent) -> None:
        self._agent = agent
        self.failures: list[Exception | None] = []
        self.is_silent = False
        self.cancelled = 0

    def request(self, method: bytes, uri: bytes, headers: Any = None, bodyProducer: Any = None) -> Deferred[Any]:
        """Make a request, or don't."""
        if self.is_silent:
            return Deferred(self._cancel)
        failure = self.failures.pop(0) if self.failures else None
        return fail(failure) if failure else self._agent.request(method, uri, headers, bodyProducer)

    def _cancel(self, request: Deferred[Any]) -> None:
        self.cancelled += 1


class _ClientTests(SynchronousTestCase):
    def setUp(self) -> None:
        """Make a client of a resource."""
        self.inbox = Inbox()
        self.reactor, self.pool = OneThread(), Pool()
        self.agent = FailingAgent(RequestTraversalAgent(self.inbox))
        self.client = self.make(Hasty(0.0))

    def make(self, clock: Callable[[], float]) -> Client:
        """Make a client on a clock."""
        pool = cast("HTTPConnectionPool", self.pool)
        return Client(self.reactor, self.agent, pool, "PUT", URL, [(b"X-Key", b"1"), (b"X-Key", b"2")], 10.0, clock)


class PostTests(_ClientTests):
    """A request and its answer."""

    def test_request(self) -> None:
        """The server gets method, target, body and fields, those of the client and those of the request."""
        self.client.post(b"body", [(b"Idempotency-Key", b'"k"')])

        (method, uri, body, headers), *more = self.inbox.requests
        self.assertEqual((b"PUT", b"/in?x=1", b"body", []), (method, uri, body, more))
        self.assertEqual([b"1", b"2"], headers.getRawHeaders(b"x-key"))
        self.assertEqual([b'"k"'], headers.getRawHeaders(b"idempotency-key"))
        self.assertEqual([b"4"], headers.getRawHeaders(b"content-length"))

    def test_answer(self) -> None:
        """The answer has status, the beginning of the body, and Retry-After if it is there."""
        self.assertEqual(Answer(200, None, b"fine"), self.client.post(b""))

        self.inbox.status, self.inbox.body, self.inbox.fields = 503, b"b" * 5000, {b"Retry-After": b"7"}
        self.assertEqual(Answer(503, "7", b"b" * 4096), self.client.post(b""))

    def test_as_sent(self) -> None:
        """An answer that is packed stays so: a few bytes of it could become any number. None is asked for."""
        packed = gzip.compress(b"a" * 1_000_000)
        self.inbox.body, self.inbox.fields = packed, {b"Content-Encoding": b"gzip"}

        self.assertEqual(Answer(200, None, packed[:4096]), self.client.post(b""))
        self.assertEqual([b"identity"], self.inbox.requests[0][3].getRawHeaders(b"accept-encoding"))

    def test_malformed_retry_after(self) -> None:
        """A Retry-After of any bytes makes no failure of an answer; with messages that are safe it says nothing."""
        self.inbox.fields = {b"Retry-After": b"\xff\xfe"}
        self.assertEqual(Answer(200, None, b"fine"), self.client.post(b""))

        self.inbox.status = 503
        self.assertEqual(Answer(503, "\xff\xfe", b"fine"), self.client.post(b""))

    def test_malformed_fields(self) -> None:
        """Nor does any other field."""
        self.inbox.fields = dict.fromkeys(
            (b"Set-Cookie", b"Content-Type", b"Content-Encoding", b"Location"), b"\xff;=\xfe"
        )

        self.assertEqual(Answer(200, None, b"fine"), self.client.post(b""))

    def test_failure_after_the_head(self) -> None:
        """What goes wrong in the body of an answer makes none of one that has the messages, and leaves others be."""
        ended: list[AnswerBody] = []

        def fail(body: AnswerBody, data: bytes) -> None:
            raise MemoryError

        self.patch(AnswerBody, "makeConnection", fail)
        self.patch(AnswerBody, "end", lambda body: ended.append(body))

        error = self.assertRaises(NoAnswer, self.client.post, b"")
        self.assertEqual("it answers 200 OK, but the answer is cut off", str(error))
        for status in (413, 503):
            self.inbox.status = status
            self.assertEqual(Answer(status), self.client.post(b""))
        self.assertEqual(3, len(ended))

    def test_cut(self) -> None:
        """So it is with a body that is cut off; Retry-After counts then, too."""

        def cut(body: AnswerBody, reason: Failure) -> None:
            body.done.errback(Failure(ResponseFailed([Failure(ConnectionLost())])))

        self.patch(AnswerBody, "connectionLost", cut)

        error = self.assertRaises(NoAnswer, self.client.post, b"")
        self.assertEqual("it answers 200 OK, but the answer is cut off", str(error))
        self.inbox.fields = {b"Retry-After": b"7"}
        for status in (413, 503):
            self.inbox.status = status
            self.assertEqual((status, b""), (self.client.post(b"").status, self.client.post(b"").body))
        self.assertEqual("7", self.client.post(b"").retry_after)

    def test_redirection(self) -> None:
        """A redirection is an answer: nobody follows it."""
        self.inbox.status, self.inbox.fields = 307, {b"Location": b"http://127.0.0.1/other"}

        self.assertEqual(307, self.client.post(b"").status)
        self.assertEqual(1, len(self.inbox.requests))

    def test_cookies(self) -> None:
        """What a server sets as a cookie it does not see again."""
        self.inbox.fields = {b"Set-Cookie": b"a=1"}
        self.client.post(b"")
        self.client.post(b"")

        self.assertEqual([None, None], [each[3].getRawHeaders(b"cookie") for each in self.inbox.requests])

    def test_close(self) -> None:
        """Its close closes the connection."""
        self.client.close()

        self.assertEqual(1, self.pool.closed)


class BrokenTests(_ClientTests):
    """Connections that break."""

    def broken(self) -> list[Exception | None]:
        """Return each way in which that shows."""
        lost = [Failure(ConnectionLost())]
        return [RequestTransmissionFailed(lost), ResponseNeverReceived(lost), ResponseFailed(lost), ConnectionDone()]

    def test_stale(self) -> None:
        """A connection that was kept and is closed by now costs nothing but a second request at once."""
        for broken in self.broken():
            with self.subTest(broken):
                self.client.post(b"first")
                self.agent.failures = [broken]

                self.assertEqual(200, self.client.post(b"second").status)

    def test_fresh(self) -> None:
        """A new connection that breaks is a failure, and so is the second in a row."""
        for failures in ([], [None]):
            for broken in self.broken():
                with self.subTest(f"{failures} {broken}"):
                    self.setUp()
                    if failures:
                        self.client.post(b"first")
                    self.agent.failures = [broken] * (len(failures) + 1)

                    self.assertRaises(NoAnswer, self.client.post, b"second")
                    self.assertEqual([], self.agent.failures)

    def test_other_failures(self) -> None:
        """What has nothing to do with an old connection is a failure at once."""
        self.client.post(b"first")
        self.agent.failures = [ConnectionRefusedError()]

        self.assertRaises(NoAnswer, self.client.post, b"second")


class TimeTests(_ClientTests):
    """Nobody waits for ever."""

    def test_no_answer(self) -> None:
        """After its time a request is given up, and its connection with it."""
        self.agent.is_silent = True

        error = self.assertRaises(NoAnswer, self.make(Hasty(0.0, 10.0)).post, b"")

        self.assertEqual(("no answer within 10 s", 1), (str(error), self.agent.cancelled))

    def test_reactor_stopped(self) -> None:
        """A reactor that calls nobody any more changes nothing about that."""
        self.reactor.is_stopped = True

        self.assertRaises(NoAnswer, self.make(Hasty(0.0, 10.0)).post, b"")

    def test_no_end(self) -> None:
        """An answer that has the messages, and whose body does not end, is none."""
        self.inbox.is_slow, self.inbox.status = True, 202

        error = self.assertRaises(NoAnswer, self.make(Hasty(0.0, 10.0)).post, b"")

        self.assertEqual("it answers 202 Accepted, but the answer has not ended within 10 s", str(error))

    def test_head_counts(self) -> None:
        """One that has not got them is one by then."""
        self.inbox.is_slow = True
        for status in (413, 503):
            self.inbox.status = status
            self.assertEqual(Answer(status), self.make(Hasty(0.0, 10.0)).post(b""))

    def test_hurried(self) -> None:
        """In a hurry a request has little time, unless it has less anyway."""
        self.agent.is_silent = True
        client = self.make(Hasty(0.0, HURRIED))
        client.hurry()

        error = self.assertRaises(NoAnswer, client.post, b"")

        self.assertEqual("no answer within 3 s", str(error))

    def test_hurry_shortens(self) -> None:
        """A request that runs already has as little left."""
        client = self.make(Hasty(0.0, 1.0, 1.0 + HURRIED))
        self.agent.is_silent = True
        # The moment at which the thread begins to wait, as seen from the reactor's.
        self.patch(self.reactor, "callFromThread", lambda callable, *args: client.hurry())

        error = self.assertRaises(NoAnswer, client.post, b"")

        self.assertEqual("no answer within 4 s", str(error))

    def test_waiting(self) -> None:
        """While there is time the thread sleeps, and an answer wakes it."""
        slept: list[float | None] = []
        resource, client = self.inbox, self.make(Hasty(0.0, 4.0))
        later: list[Callable[[], object]] = []
        self.patch(self.reactor, "callFromThread", lambda callable, *args: later.append(lambda: callable(*args)))

        def wait(condition: Condition, timeout: float | None = None) -> bool:
            slept.append(timeout)
            later.pop()()
            return True

        self.patch(Condition, "wait", wait)

        self.assertEqual(200, client.post(b"").status)
        self.assertEqual(([6.0], 1), (slept, len(resource.requests)))


class DescribeTests(SynchronousTestCase):
    """Why there is no answer, in a line."""

    def test_texts(self) -> None:
        """Causes are told in words; what a server wrote is not."""
        for error, text in [
            (ResponseNeverReceived([Failure(ConnectionDone())]), "the connection was closed without an answer"),
            (RequestTransmissionFailed([Failure(ConnectionLost())]), "the connection was closed without an answer"),
            (ResponseNeverReceived([Failure(SSL.Error([("a", "", "bad thing")]))]), "TLS: bad thing"),
            (WrongHost("the certificate is not for h"), "TLS: the certificate is not for h"),
            (ResponseFailed([Failure(BadAnswer("too long"))]), "too long"),
            (ConnectionRefusedError(), "Connection was refused by other side"),
            (DNSLookupError("no h"), "DNS lookup failed: no h"),
            (ResponseFailed([Failure(ValueError("s3cret \x1b"))]), "what it answers is not HTTP"),
            (TypeError("s3cret"), "the request failed: TypeError"),
        ]:
            with self.subTest(text):
                self.assertEqual(text, describe(error))


class MakeClientTests(SynchronousTestCase):
    """A client on a reactor."""

    def test_connects(self) -> None:
        """It connects to the host and port of its URL, over TLS too, and a request that has no answer can end."""
        for url, creator in [
            ("http://127.0.0.1:8080/", None),
            ("https://127.0.0.1:8443/", make_creator("127.0.0.1", ClientTLS())),
        ]:
            with self.subTest(url):
                reactor = MemoryReactorClock()
                reactor.callFromThread = lambda callable, *args: callable(*args)
                client = make_client(reactor, creator, "POST", url, (), 1.0)
                client._clock = Hasty(0.0, 10.0)

                self.assertRaises(NoAnswer, client.post, b"")
                client.close()

                self.assertEqual([("127.0.0.1", int(url[-5:-1]))], [each[:2] for each in reactor.tcpClients])
