"""The client of the http observer, on transports in memory."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from OpenSSL import SSL
from twisted.internet.error import ConnectionDone, ConnectionLost, ConnectionRefusedError, DNSLookupError
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import RequestTransmissionFailed, ResponseFailed, ResponseNeverReceived

from tests.observers.http_stores.wire import OK, WireCase
from webhookrx.observers.client_tls import ClientTLS, WrongHost, make_creator
from webhookrx.observers.http_stores import client as client_module
from webhookrx.observers.http_stores.client import STOP_TIME, _PendingAnswer, describe, make_client
from webhookrx.observers.http_stores.exchange import Extent, HTTPAnswer, NoAnswer, StoreRequest


class PostTests(WireCase):
    """A request and its answer."""

    def sent(self) -> tuple[bytes, list[bytes], bytes]:
        """Return the request line of the last request, its header fields in lower case, and its body."""
        head, _, body = self.wire.drain().partition(b"\r\n\r\n")
        line, *fields = head.split(b"\r\n")
        return line, [field.lower() for field in fields], body

    def answered(self, status: int, body: bytes = b"fine", **fields: bytes) -> HTTPAnswer | str:
        """Make a request, and return what becomes of an answer."""
        pending = self.ask()
        lines = [b"HTTP/1.1 %d x" % status, b"Content-Length: %d" % len(body)]
        lines += [name.replace("_", "-").encode() + b": " + value for name, value in fields.items()]
        self.receive(b"\r\n".join([*lines, b"", body]))
        return self.outcome(pending)

    def test_request(self) -> None:
        """The server gets method, target, body and fields, those of the client and those of the request."""
        self.ask([(b"Idempotency-Key", b'"k"')], drain=False)

        line, fields, body = self.sent()
        self.assertEqual((b"PUT /in?x=1 HTTP/1.1", b"hello"), (line, body))
        for field in (b"x-key: 1", b"x-key: 2", b'idempotency-key: "k"', b"content-length: 5", b"host: h"):
            self.assertIn(field, fields)

    def test_path(self) -> None:
        """A request may go elsewhere on the same server."""
        self.client._begin(_PendingAnswer(), StoreRequest(b"{}", path="/ack?channel=1"))

        self.assertEqual(b"PUT /ack?channel=1 HTTP/1.1", self.sent()[0])

    def test_fields(self) -> None:
        """Of the fields of an answer only those are kept that are asked for; of several the first."""
        self.client = self.make_client(lambda: 0.0, answer_fields=("x-code", "x-other"))
        answer = self.answered(500, X_Code=b"27", x_code=b"28", X_More=b"1")

        assert isinstance(answer, HTTPAnswer)
        self.assertEqual({"x-code": "27"}, answer.fields)

    def test_malformed_field(self) -> None:
        """Whatever bytes it has."""
        self.client = self.make_client(lambda: 0.0, answer_fields=("x-code",))
        answer = self.answered(500, X_Code=b"\xff\xfe")

        assert isinstance(answer, HTTPAnswer)
        self.assertEqual({"x-code": "\xff\xfe"}, answer.fields)

    def test_kept(self) -> None:
        """As much of an answer is kept as is asked for, also more than is read of others; the rest cuts it."""
        self.client = self.make_client(lambda: 0.0, keep=100_000)

        self.assertEqual(HTTPAnswer(200, None, b"b" * 100_000), self.answered(200, b"b" * 100_000))
        self.assertFalse(self.wire.aborted)
        self.assertEqual(HTTPAnswer(200, None, b"b" * 100_000, Extent.LONG), self.answered(200, b"b" * 100_001))
        self.clock.advance(0)
        self.assertTrue(self.wire.aborted)

    def test_answer(self) -> None:
        """The answer has status, the beginning of the body, and Retry-After if it is there."""
        self.assertEqual(HTTPAnswer(200, None, b"fine"), self.answered(200))
        self.assertEqual(
            HTTPAnswer(503, "7", b"b" * 4096, Extent.LONG), self.answered(503, b"b" * 5000, Retry_After=b"7")
        )

    def test_as_sent(self) -> None:
        """An answer that is packed stays so: a few bytes of it could become any number. None is asked for."""
        packed = gzip.compress(b"a" * 1_000_000)

        self.assertEqual(HTTPAnswer(200, None, packed[:4096]), self.answered(200, packed, Content_Encoding=b"gzip"))
        self.ask(drain=False)
        self.assertIn(b"accept-encoding: identity", self.sent()[1])

    def test_malformed_retry_after(self) -> None:
        """A Retry-After of any bytes makes no failure of an answer; with messages that are safe it says nothing."""
        self.assertEqual(HTTPAnswer(200, None, b"fine"), self.answered(200, Retry_After=b"\xff\xfe"))
        self.assertEqual(HTTPAnswer(503, "\xff\xfe", b"fine"), self.answered(503, Retry_After=b"\xff\xfe"))

    def test_malformed_fields(self) -> None:
        """Nor does any other field."""
        fields = dict.fromkeys(("Set_Cookie", "Content_Type", "Content_Encoding", "Location"), b"\xff;=\xfe")

        self.assertEqual(HTTPAnswer(200, None, b"fine"), self.answered(200, **fields))

    def test_failure_after_the_head(self) -> None:
        """An error in the body makes a 2xx fail; other answers count by their head."""

        def fail(response: object, take: Callable[[bytes], None]) -> None:
            raise MemoryError

        self.patch(client_module, "collect", fail)

        self.assertEqual("it answers 200 OK, but the answer is cut off", self.answered(200))
        self.assertTrue(self.wire.aborted)
        for status in (413, 503):
            self.assertEqual(HTTPAnswer(status, extent=Extent.BROKEN), self.answered(status))

    def test_cut(self) -> None:
        """So it is with a body that is cut off; Retry-After counts, too."""
        for status, outcome in (
            (200, "it answers 200 OK, but the answer is cut off"),
            (413, HTTPAnswer(413, "7", extent=Extent.BROKEN)),
            (503, HTTPAnswer(503, "7", extent=Extent.BROKEN)),
        ):
            with self.subTest(status):
                pending = self.ask()
                self.receive(b"HTTP/1.1 %d x\r\nRetry-After: 7\r\nContent-Length: 9\r\n\r\nabc" % status)
                self.lose(ConnectionLost())

                self.assertEqual(outcome, self.outcome(pending))

    def test_redirection(self) -> None:
        """A redirection is an answer, and is not followed."""
        self.assertEqual(HTTPAnswer(307, None, b"fine"), self.answered(307, Location=b"http://h/other"))

        self.assertEqual(b"", self.wire.value())

    def test_cookies(self) -> None:
        """Cookies of a server are not sent back."""
        self.answered(200, Set_Cookie=b"a=1")
        self.ask(drain=False)

        self.assertFalse([field for field in self.sent()[1] if field.startswith(b"cookie")])

    def test_close(self) -> None:
        """Its close closes the connection."""
        self.answered(200)

        self.client.close()

        self.assertTrue(self.wire.disconnecting)


class BrokenTests(WireCase):
    """Connections that break."""

    BROKEN = (ConnectionLost(), ConnectionDone())

    def use(self) -> None:
        """Make a connection that was used."""
        pending = self.ask()
        self.receive(OK)
        self.assertEqual(HTTPAnswer(200, None, b"ok"), self.outcome(pending))

    def test_stale(self) -> None:
        """A connection that was kept and is closed by now costs nothing but a second request at once."""
        for part in (b"", b"HTTP/1.1 2"):
            for broken in self.BROKEN:
                with self.subTest(f"{part} {broken}"):
                    self.setUp()
                    self.use()
                    pending = self.ask()
                    if part:
                        self.receive(part)
                    self.lose(broken)
                    self.assertIn(b"hello", self.wire.drain())
                    self.receive(OK)

                    self.assertEqual(HTTPAnswer(200, None, b"ok"), self.outcome(pending))
                    self.assertEqual(2, len(self.endpoint.wires))

    def test_cancelled(self) -> None:
        """A request that is cancelled on a kept connection is not sent again."""
        for part in (b"", b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\n\r\n"):
            with self.subTest(part):
                self.setUp()
                self.use()
                pending = self.ask()
                if part:
                    self.receive(part)

                pending.cancel()

                self.assertIsInstance(self.outcome(pending), str)
                self.assertEqual((1, True), (len(self.endpoint.wires), self.wire.aborted))

    def test_closed_before(self) -> None:
        """One that is known to be closed is not used."""
        self.use()
        self.lose(ConnectionDone())
        pending = self.ask()
        self.receive(OK)

        self.assertEqual((HTTPAnswer(200, None, b"ok"), 2), (self.outcome(pending), len(self.endpoint.wires)))

    def test_fresh(self) -> None:
        """A new connection that breaks is a failure, and so is the second in a row."""
        for used in (False, True):
            for broken in self.BROKEN:
                with self.subTest(f"{used} {broken}"):
                    self.setUp()
                    if used:
                        self.use()
                    pending = self.ask()
                    for _ in range(1 + used):
                        self.lose(broken)

                    self.assertEqual("the connection was closed without an answer", self.outcome(pending))
                    self.assertEqual(1 + used, len(self.endpoint.wires))

    def test_other_failures(self) -> None:
        """A failure that has nothing to do with an old connection is reported at once."""
        self.use()
        self.lose(ConnectionDone())
        self.endpoint.failures = [ConnectionRefusedError()]

        self.assertEqual("Connection was refused by other side", self.outcome(self.ask()))

    def test_of_the_one_before(self) -> None:
        """The problem of one answer is not reported for the next request."""
        pending = self.ask()
        self.receive(b"HTTP/1.1 99 x\r\n\r\n")
        self.assertEqual("what it answers is not HTTP", self.outcome(pending))
        self.endpoint.failures = [ConnectionRefusedError()]

        self.assertEqual("Connection was refused by other side", self.outcome(self.ask()))


class Moments:
    """A monotonic clock on which each look is at the next of some moments."""

    def __init__(self, *moments: float) -> None:
        self.moments = list(moments)

    def __call__(self) -> float:
        """Return the next moment, and the last one for ever."""
        return self.moments.pop(0) if len(self.moments) > 1 else self.moments[0]


class TimeTests(WireCase):
    """No wait is endless."""

    def setUp(self) -> None:
        """Let waiting take no time; what happens meanwhile is up to a test."""
        super().setUp()
        self.waits: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None
        self.patch(client_module, "wait", self.wait)

    def wait(self, futures: tuple[Future[Any], ...], timeout: float, return_when: str = "") -> None:
        """Take note."""
        if not any(future.done() for future in futures):
            self.waits.append(timeout)
            self.meanwhile()

    def problem(self) -> str:
        """Post, and return why there is no answer."""
        return str(self.assertRaises(NoAnswer, self.client.post, StoreRequest(b"")))

    def test_answer(self) -> None:
        """An answer in time is one."""

        def answer() -> None:
            self.wire.drain()
            self.receive(OK)

        self.meanwhile = answer

        self.assertEqual((HTTPAnswer(200, None, b"ok"), [10.0]), (self.client.post(StoreRequest(b"")), self.waits))

    def test_no_answer(self) -> None:
        """After its time a request is cancelled, and its connection aborted."""
        self.assertEqual(("no answer within 10 s", [10.0]), (self.problem(), self.waits))
        self.assertTrue(self.wire.aborted)

    def test_reactor_stopped(self) -> None:
        """So it is with a reactor that has stopped."""
        self.clock.is_stopped = True

        self.assertEqual("no answer within 10 s", self.problem())

    def begin_answer(self, status: int) -> Callable[[], None]:
        """Make the beginning of an answer."""

        def answer() -> None:
            self.wire.drain()
            self.receive(b"HTTP/1.1 %d x\r\nContent-Length: 100\r\n\r\nabc" % status)

        return answer

    def test_no_end(self) -> None:
        """A 2xx whose body does not end does not count."""
        self.meanwhile = self.begin_answer(202)

        self.assertEqual("it answers 202 Accepted, but the answer has not ended within 10 s", self.problem())

    def test_head_counts(self) -> None:
        """Any other answer counts by its head."""
        for status in (413, 503):
            self.meanwhile = self.begin_answer(status)

            self.assertEqual(HTTPAnswer(status, extent=Extent.BROKEN), self.client.post(StoreRequest(b"")))
            self.clock.advance(0)

    def test_stopped(self) -> None:
        """After a stop a request has little time, unless it has less anyway."""
        for _ in range(2):
            self.client.stop_now()

        self.assertEqual(("no answer within 3 s", [STOP_TIME]), (self.problem(), self.waits))

    def test_at_most(self) -> None:
        """A request may get less time than others, and never more."""
        for seconds, expected in ((1.5, 1.5), (20.0, 10.0)):
            self.setUp()
            error = self.assertRaises(NoAnswer, self.client.post, StoreRequest(b""), seconds)

            self.assertEqual((f"no answer within {expected:.3g} s", [expected]), (str(error), self.waits))

    def test_stop_shortens(self) -> None:
        """A request that runs already has as little left."""
        for passed, left, seconds in ((1.0, 3.0, 4), (9.0, 1.0, 10)):
            self.setUp()
            self.client = self.make_client(Moments(0.0, passed))
            self.meanwhile = self.client.stop_now

            self.assertEqual((f"no answer within {seconds} s", [10.0, left]), (self.problem(), self.waits))

    def test_real_wait(self) -> None:
        """An answer that has come, or the end of the time after a stop, is not waited for."""
        self.patch(client_module, "wait", wait)
        pending = self.ask()
        self.receive(OK)
        self.assertEqual(10.0, self.client._wait(pending, 10.0))
        client = self.make_client(Moments(0.0, 10.0))
        client.stop_now()

        self.assertEqual(10.0, client._wait(_PendingAnswer(), 10.0))


class DescribeTests(SynchronousTestCase):
    """The reason of a failed request, in one line."""

    def test_texts(self) -> None:
        """Causes are in words; bytes of a server are never quoted."""
        for error, text in [
            (ResponseNeverReceived([Failure(ConnectionDone())]), "the connection was closed without an answer"),
            (RequestTransmissionFailed([Failure(ConnectionLost())]), "the connection was closed without an answer"),
            (ResponseNeverReceived([Failure(SSL.Error([("a", "", "bad thing")]))]), "TLS: bad thing"),
            (WrongHost("the certificate is not for h"), "TLS: the certificate is not for h"),
            (NoAnswer("too long"), "too long"),
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
        self.patch(client_module, "wait", lambda *how: None)
        for url, creator in [
            ("http://127.0.0.1:8080/", None),
            ("https://127.0.0.1:8443/", make_creator("127.0.0.1", ClientTLS())),
        ]:
            with self.subTest(url):
                reactor = MemoryReactorClock()
                reactor.callFromThread = lambda callable, *args: callable(*args)
                client = make_client(reactor, creator, "POST", url, (), 1.0)

                self.assertRaises(NoAnswer, client.post, StoreRequest(b""))
                client.close()

                self.assertEqual([("127.0.0.1", int(url[-5:-1]))], [each[:2] for each in reactor.tcpClients])
