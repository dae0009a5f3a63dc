"""A connection of the http observer, on a transport that is played and over TLS in memory."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IHandshakeListener, IPullProducer
from twisted.internet.protocol import Factory
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.logger import LogEvent, globalLogPublisher
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web._newclient import Request
from twisted.web.client import ResponseFailed
from twisted.web.http_headers import Headers
from twisted.web.iweb import IResponse
from zope.interface.verify import verifyObject

from tests.system.certificates import Authority, write_ca_file
from webhookrx.observers import http_connection
from webhookrx.observers.client_tls import ClientTLS, make_creator
from webhookrx.observers.http_connection import FAREWELL, HEAD, BadAnswer, Connection, ConnectionFactory
from webhookrx.observers.http_exchange import READ, AnswerBody, WholeBody

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Wire(StringTransport):
    """
    A transport whose bytes leave it when the test says so.

    @ivar aborted: the connection was ended without waiting for anything.
    @ivar in_flight: bytes that have left it, and that the other end has not acknowledged.
    """

    aborted = False
    in_flight = 0

    def getHandle(self) -> Wire:
        """Return its socket."""
        return self

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Ask a producer for its first bytes, as a real one does."""
        super().registerProducer(producer, streaming)
        if not streaming:
            producer.resumeProducing()

    def drain(self) -> bytes:
        """Let everything leave, and return it."""
        written = self.value()
        self.clear()
        if written and self.producer is not None:
            self.producer.resumeProducing()
        return written

    def abortConnection(self) -> None:
        """Take note."""
        self.aborted = True

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Do nothing: there is nothing to delay."""


def make_request(body: bytes = b"hello") -> Request:
    """Make a request whose connection may be used again."""
    headers = Headers({b"Host": [b"h"]})
    request: Request = Request._construct(b"POST", b"/in", headers, WholeBody(body), persistent=True)
    return request


class _ConnectionTests(SynchronousTestCase):
    def setUp(self) -> None:
        """Make a connection on a wire."""
        self.patch(http_connection, "unacknowledged", lambda wire: wire.in_flight)
        self.kept: list[object] = []
        self.clock, self.wire = Clock(), Wire()
        self.factory = ConnectionFactory(self.clock, self.kept.append, "metadata")
        self.connection = self.factory.buildProtocol(None)
        self.connection.makeConnection(self.wire)

    def ask(self, *, drain: bool = True) -> Deferred[IResponse]:
        """Make a request, which has left unless said otherwise."""
        asked = self.connection.request(make_request())
        if drain:
            self.wire.drain()
        return asked

    def problem(self, asked: Deferred[IResponse]) -> str:
        """Return why there is no answer."""
        error = self.failureResultOf(asked).value
        if isinstance(error, ResponseFailed):
            error = error.reasons[0].value
        assert isinstance(error, BadAnswer)
        return str(error)


class ExchangeTests(_ConnectionTests):
    """Requests and answers."""

    def test_kept(self) -> None:
        """After an answer to a request that has left it is used again, and again."""
        for _ in range(3):
            asked = self.ask()
            self.connection.dataReceived(OK)
            body = AnswerBody()
            self.successResultOf(asked).deliverBody(body)

            self.assertEqual(b"ok", bytes(body.kept))
        self.assertEqual(([self.connection] * 3, False), (self.kept, self.wire.aborted))
        self.assertIsNone(self.wire.producer)

    def test_early(self) -> None:
        """Who says that it has the messages before they have left is not believed."""
        for answer in (OK, b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 299 x\r\nConnection: close\r\n\r\n"):
            with self.subTest(answer):
                self.setUp()
                asked = self.ask(drain=False)

                self.connection.dataReceived(answer)

                self.assertEqual("it answered before it had the request", self.problem(asked))
                self.assertEqual((True, []), (self.wire.aborted, self.kept))

    def test_in_flight(self) -> None:
        """Nor is who says so before it has acknowledged all of them."""
        asked = self.ask()
        self.wire.in_flight = 1

        self.connection.dataReceived(OK)

        self.assertEqual("it answered before it had the request", self.problem(asked))
        self.assertEqual((True, []), (self.wire.aborted, self.kept))

    def test_refusal_in_flight(self) -> None:
        """A refusal may come by then."""
        asked = self.ask()
        self.wire.in_flight = 1

        self.connection.dataReceived(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

        self.assertEqual(413, self.successResultOf(asked).code)

    def test_early_refusal(self) -> None:
        """A refusal may come before the rest of what is too large; the connection is not used again."""
        asked = self.ask(drain=False)

        self.connection.dataReceived(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

        self.assertEqual(413, self.successResultOf(asked).code)
        self.assertEqual((True, []), (self.wire.aborted, self.kept))

    def test_half_sent(self) -> None:
        """The request before, which has left, says nothing about the next."""
        self.ask()
        self.connection.dataReceived(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        asked = self.ask(drain=False)

        self.connection.dataReceived(OK)

        self.assertEqual("it answered before it had the request", self.problem(asked))

    def test_unasked(self) -> None:
        """An answer that nobody asked for ends a connection: it must not be taken for that to the next request."""
        self.connection.dataReceived(OK)

        self.assertTrue(self.wire.aborted)

    def test_more_than_announced(self) -> None:
        """An answer that is longer than it says is one, and the connection is not used again: it is out of step."""
        for answer in (
            OK,
            b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ):
            with self.subTest(answer):
                self.setUp()
                asked = self.ask()
                self.connection.dataReceived(answer + b"HTTP/1.1 200")
                body = AnswerBody()
                self.successResultOf(asked).deliverBody(body)

                self.assertIsNone(self.successResultOf(body.done))
                self.assertEqual((True, []), (self.wire.disconnecting, self.kept))

    def test_status(self) -> None:
        """A status has three digits."""
        for status in (b"-200", b"0", b"99", b"1000", b"9" * 4000):
            with self.subTest(status):
                self.setUp()
                asked = self.ask()

                self.connection.dataReceived(b"HTTP/1.1 %b x\r\nContent-Length: 0\r\n\r\n" % status)

                self.assertEqual("what it answers is not HTTP", self.problem(asked))
                self.assertTrue(self.wire.aborted)

    def test_not_kept(self) -> None:
        """A connection whose answer is none is not used again, though that comes to its end in order."""
        asked = self.ask()

        self.connection.dataReceived(b"HTTP/1.1 1000 x\r\nContent-Length: 2\r\n\r\nok")

        self.assertEqual(("what it answers is not HTTP", []), (self.problem(asked), self.kept))

    def test_quiet(self) -> None:
        """Connections come and go without a word in the log."""
        self.assertFalse(self.factory.noisy)


class HeadTests(_ConnectionTests):
    """What comes before the body of an answer."""

    def test_endless(self) -> None:
        """A head that does not end is cut off, however it goes on."""
        for begin, more in [
            (b"HTTP/1.1 200 OK\r\n", b"X: " + b"y" * 15_000 + b"\r\n"),
            (b"HTTP/1.1 200 OK\r\n", b"X:\r\n" * 1000),
            (b"HTTP/1.1 200 OK\r\nX: a\r\n", b" " + b"y" * 15_000 + b"\r\n"),
            (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
        ]:
            with self.subTest(more[:30]):
                self.setUp()
                asked = self.ask()
                self.connection.dataReceived(begin)
                sent = 0
                while not self.wire.aborted and sent < 10 * HEAD:
                    self.connection.dataReceived(more)
                    sent += len(more)

                self.assertEqual("the head of its answer is longer than 64 KiB", self.problem(asked))
                self.assertLessEqual(sent, HEAD + len(more))

    def test_long_line(self) -> None:
        """So is a line that does not."""
        asked = self.ask()

        self.connection.dataReceived(b"HTTP/1.1 200 " + b"x" * 20_000)

        self.assertTrue(self.wire.aborted)
        self.connection.connectionLost(Failure(ConnectionAborted()))
        self.failureResultOf(asked)

    def test_interim(self) -> None:
        """Answers of 1xx are left aside, without a word in the log."""
        events: list[LogEvent] = []
        globalLogPublisher.addObserver(events.append)
        self.addCleanup(globalLogPublisher.removeObserver, events.append)
        asked = self.ask()

        self.connection.dataReceived(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK)

        self.assertEqual((200, []), (self.successResultOf(asked).code, events))

    def test_each_its_own(self) -> None:
        """What the heads of many answers have together does not matter."""
        for _ in range(8):
            asked = self.ask()
            self.connection.dataReceived(b"HTTP/1.1 204 No Content\r\nX: " + b"y" * 15_000)
            self.connection.dataReceived(b"\r\n\r\n")

            self.assertEqual(204, self.successResultOf(asked).code)

    def test_body(self) -> None:
        """Neither does a body."""
        asked = self.ask()
        self.connection.dataReceived(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        self.connection.dataReceived(b"x" * 500_000)
        self.connection.dataReceived(b"x" * 500_000)

        self.assertEqual(200, self.successResultOf(asked).code)
        self.assertFalse(self.wire.aborted)


class BodyTests(_ConnectionTests):
    """Where the body of an answer ends."""

    LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    OPEN = b"HTTP/1.1 200 OK\r\n\r\n"
    ENDS = (ConnectionDone(), ConnectionLost(), ConnectionAborted())

    def answered(self, answer: bytes, end: Exception | None = None) -> Deferred[None]:
        """Take an answer, and lose the connection after it."""
        self.setUp()
        asked = self.ask()
        self.connection.dataReceived(answer)
        body = AnswerBody()
        self.successResultOf(asked).deliverBody(body)
        if end is not None:
            self.connection.connectionLost(Failure(end))
        return body.done

    def test_whole(self) -> None:
        """It is whole by its length, by its last chunk, and at once where there is none by the status."""
        for answer in (
            self.LENGTH + b"x" * 100,
            b"HTTP/1.0 200 OK\r\nContent-Length: 1, 1\r\n\r\nx",
            self.CHUNKED + b"3\r\nabc\r\n0\r\n\r\n",
            self.CHUNKED + b"3;a=b\r\nabc\r\n0\r\nTrailer: x\r\n\r\n",
            self.CHUNKED + b"0\r\n\r\n",
            b"HTTP/1.1 204 No Content\r\nContent-Length: 100\r\n\r\n",
            b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        ):
            with self.subTest(answer):
                self.assertIsNone(self.successResultOf(self.answered(answer)))

    def test_cut(self) -> None:
        """It is not when the connection ends before that, in whatever order."""
        for end in self.ENDS:
            for answer in (
                self.LENGTH,
                self.LENGTH + b"abc",
                self.LENGTH + b"x" * 99,
                self.CHUNKED,
                self.CHUNKED + b"3\r\nab",
                self.CHUNKED + b"3\r\nabc\r\n",
                self.CHUNKED + b"3\r\nabc\r\n0\r\n",
                self.CHUNKED + b"3\r\nabc\r\n0\r\nTrailer: x\r\n",
            ):
                with self.subTest(f"{answer} {end}"):
                    self.failureResultOf(self.answered(answer, end), ResponseFailed)

    def test_malformed(self) -> None:
        """Nor when what comes is none of its chunks."""
        for more in (b"x\r\n", b"-1\r\n", b"3\r\nabcdef", b"3" * 2000, b"0\r\n" + b"x" * 70_000):
            with self.subTest(more):
                done = self.answered(self.CHUNKED + b"1\r\n.\r\n")
                self.connection.dataReceived(more)

                self.failureResultOf(done, ResponseFailed)
                self.assertTrue(self.wire.aborted)

    def test_until_the_end(self) -> None:
        """One without a length ends with the connection, if that ends in order."""
        done = self.answered(self.OPEN + b"abc")
        self.assertNoResult(done)

        self.connection.connectionLost(Failure(ConnectionDone()))

        self.assertIsNone(self.successResultOf(done))

    def test_until_a_reset(self) -> None:
        """It is cut by any other end."""
        for end in self.ENDS[1:]:
            for answer in (self.OPEN, self.OPEN + b"abc", b"HTTP/1.0 200 OK\r\n\r\nabc"):
                with self.subTest(f"{answer} {end}"):
                    self.failureResultOf(self.answered(answer, end), ResponseFailed)

    def test_nobody_reads(self) -> None:
        """So it is when what takes the body fails."""

        class Full(AnswerBody):
            def dataReceived(self, data: bytes) -> None:
                """Fail."""
                raise MemoryError

        asked = self.ask()
        self.connection.dataReceived(self.OPEN)
        body = Full()
        self.successResultOf(asked).deliverBody(body)

        self.connection.dataReceived(b"abc")

        self.failureResultOf(body.done, ResponseFailed)

    def test_long_enough(self) -> None:
        """One that is longer than what is read of it counts as whole, and its connection ends."""
        for head in (self.OPEN, b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"):
            with self.subTest(head):
                done = self.answered(head)
                self.connection.dataReceived(b"x" * READ)
                self.assertNoResult(done)

                self.connection.dataReceived(b"x")

                self.assertIsNone(self.successResultOf(done))
                self.assertTrue(self.wire.aborted)
                self.connection.connectionLost(Failure(ConnectionAborted()))


class EndTests(_ConnectionTests):
    """How a connection ends."""

    def test_in_the_middle(self) -> None:
        """In the middle of an exchange it is aborted, whoever wants it to end."""

        def cancel(asked: Deferred[IResponse]) -> None:
            asked.addErrback(lambda failure: None)
            asked.cancel()

        def read_too_much(asked: Deferred[IResponse]) -> None:
            self.connection.dataReceived(b"HTTP/1.1 503 x\r\nContent-Length: 1000000\r\n\r\n")
            self.successResultOf(asked).deliverBody(AnswerBody())
            for _ in range(5):
                self.connection.dataReceived(b"x" * 16_000)

        def stop_reading(asked: Deferred[IResponse]) -> None:
            self.connection.dataReceived(b"HTTP/1.1 503 x\r\nContent-Length: 1000000\r\n\r\n")
            body = AnswerBody()
            self.successResultOf(asked).deliverBody(body)
            body.done.addErrback(lambda failure: None)
            body.done.cancel()

        def not_http(asked: Deferred[IResponse]) -> None:
            self.connection.dataReceived(b"220 mail.example.com ESMTP\r\n")
            self.failureResultOf(asked)

        ends: list[Callable[[Deferred[IResponse]], None]] = [cancel, read_too_much, stop_reading, not_http]
        for end in ends:
            for drain in (True, False):
                with self.subTest(f"{end.__name__} {drain}"):
                    self.setUp()

                    end(self.ask(drain=drain))

                    self.assertEqual((True, []), (self.wire.aborted, self.kept))

    def test_farewell(self) -> None:
        """When all is said it is closed in peace."""
        self.ask()
        self.connection.dataReceived(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        self.assertEqual((True, False), (self.wire.disconnecting, self.wire.aborted))
        self.connection.connectionLost(Failure(ConnectionDone()))
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_no_farewell(self) -> None:
        """Who does not agree to that is not waited for for long."""
        self.connection.transport.loseConnection()
        self.connection.transport.loseConnection()
        self.clock.advance(FAREWELL - 0.1)
        self.assertEqual((True, False), (self.wire.disconnecting, self.wire.aborted))

        self.clock.advance(0.1)

        self.assertTrue(self.wire.aborted)
        self.connection.connectionLost(Failure(ConnectionAborted()))
        self.assertEqual("CONNECTION_LOST", self.connection.state)

    def test_lost_before_it_has_left(self) -> None:
        """A connection that is lost while a request is written leaves nothing behind."""
        asked = self.ask(drain=False)
        assert self.wire.producer is not None

        self.assertTrue(verifyObject(IPullProducer, self.wire.producer))
        self.wire.producer.stopProducing()
        self.connection.connectionLost(Failure(ConnectionAborted()))

        self.failureResultOf(asked)


class TLSTests(SynchronousTestCase):
    """Over TLS a request leaves once the handshake is over."""

    def setUp(self) -> None:
        """Make a client and a server that have not met."""
        self.patch(http_connection, "unacknowledged", lambda wire: wire.in_flight)
        directory = os.path.abspath(self.mktemp())
        os.mkdir(directory)
        authority = Authority("authority")
        creator = make_creator("localhost", ClientTLS(write_ca_file(directory, "ca", authority)))
        key_file, cert_file = authority.issue("server").write(directory, "server")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert_file, key_file)
        self.clock, self.wire = Clock(), Wire()
        self.connection = Connection(lambda connection: None, self.clock)
        factory = TLSMemoryBIOFactory(creator, True, Factory.forProtocol(lambda: self.connection), self.clock)
        self.tls = factory.buildProtocol(None)
        self.tls.makeConnection(self.wire)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.asked = self.connection.request(make_request())
        self.clock.advance(0)

    def shake_hands(self) -> bytes:
        """Let the handshake come to its end, and return what the client has written by then, on the wire."""
        self.incoming.write(self.wire.drain())
        self.assertRaises(ssl.SSLWantReadError, self.server.do_handshake)
        self.tls.dataReceived(self.outgoing.read())
        return self.wire.value()

    def answer(self, answer: bytes) -> None:
        """Have the server take the request and answer it."""
        self.shake_hands()
        self.incoming.write(self.wire.drain())
        self.server.do_handshake()
        self.assertIn(b"hello", self.server.read(1000))
        self.server.write(answer)
        self.tls.dataReceived(self.outgoing.read())

    def test_sent(self) -> None:
        """An answer to a request that has left is one."""
        self.assertTrue(verifyObject(IHandshakeListener, self.connection))

        self.answer(OK)

        self.assertEqual(200, self.successResultOf(self.asked).code)

    def test_in_flight(self) -> None:
        """One that comes before it is acknowledged is none."""
        self.wire.in_flight = 1

        self.answer(OK)

        self.failureResultOf(self.asked, BadAnswer)

    def open_body(self) -> Deferred[None]:
        """Begin an answer without a length."""
        self.answer(b"HTTP/1.1 200 OK\r\n\r\nabc")
        body = AnswerBody()
        self.successResultOf(self.asked).deliverBody(body)
        self.assertNoResult(body.done)
        return body.done

    def test_close_notify(self) -> None:
        """A body without a length ends with close_notify, however the connection below it ends."""
        for end in (ConnectionDone(), ConnectionLost()):
            with self.subTest(end):
                self.setUp()
                done = self.open_body()
                self.assertRaises(ssl.SSLWantReadError, self.server.unwrap)
                self.tls.dataReceived(self.outgoing.read())
                self.assertTrue(self.wire.disconnecting)

                self.tls.connectionLost(Failure(end))

                self.assertIsNone(self.successResultOf(done))

    def test_no_close_notify(self) -> None:
        """Without it the body is cut, even if the connection below ends in order: anybody on the way can do that."""
        for end in (ConnectionDone(), ConnectionLost()):
            with self.subTest(end):
                self.setUp()
                done = self.open_body()

                self.tls.connectionLost(Failure(end))

                self.failureResultOf(done, ResponseFailed)

    def test_alert(self) -> None:
        """So it is by an alert, and by what is not TLS."""
        noise = b"\x17\x03\x03\x00\x20" + bytes(32)
        done = self.open_body()
        self.incoming.write(noise)
        self.assertRaises(ssl.SSLError, self.server.read, 1)
        self.tls.dataReceived(self.outgoing.read())
        self.tls.connectionLost(Failure(ConnectionDone()))
        self.failureResultOf(done, ResponseFailed)

        self.setUp()
        done = self.open_body()
        self.tls.dataReceived(noise)
        self.tls.connectionLost(Failure(ConnectionDone()))
        self.failureResultOf(done, ResponseFailed)

    def test_early(self) -> None:
        """One that comes before is none."""
        self.incoming.write(self.shake_hands())
        self.server.do_handshake()

        self.server.write(OK)
        self.tls.dataReceived(self.outgoing.read())

        self.failureResultOf(self.asked, BadAnswer)
        self.assertTrue(self.wire.aborted)
