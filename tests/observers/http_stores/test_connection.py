"""Connections of the http observer, on transports in memory and over TLS in memory."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from typing import Any

from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IHandshakeListener, IPullProducer
from twisted.logger import LogEvent, globalLogPublisher
from twisted.python.failure import Failure
from zope.interface.verify import verifyObject

from tests.observers.http_stores.wire import OK, WireCase
from tests.system.certificates import Authority, write_ca_file
from webhookrx.observers.client_tls import ClientTLS, make_creator
from webhookrx.observers.http_stores.client import BODY_LIMIT, _PendingAnswer
from webhookrx.observers.http_stores.connection import FAREWELL, HEAD_LIMIT
from webhookrx.observers.http_stores.exchange import Extent, HTTPAnswer

CUT = "it answers 200 OK, but the answer is cut off"
EARLY = "it answered before it had the request"
EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class ExchangeTests(WireCase):
    """Requests and answers."""

    def test_kept(self) -> None:
        """After an answer to a request that has left, the connection is used again, and again."""
        for _ in range(3):
            pending = self.ask()
            self.receive(OK)

            self.assertEqual(HTTPAnswer(200, None, b"ok"), self.outcome(pending))
        self.assertEqual((1, False), (len(self.endpoint.wires), self.wire.aborted))
        self.assertIsNone(self.wire.producer)

    def test_early(self) -> None:
        """A server that claims to have the messages before they have left is not believed."""
        for answer in (OK, b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 299 x\r\nConnection: close\r\n\r\n"):
            with self.subTest(answer):
                self.setUp()
                pending = self.ask(drain=False)

                self.receive(answer)

                self.assertEqual((EARLY, True), (self.outcome(pending), self.wire.aborted))
                self.assertFalse(self.is_kept())

    def test_in_flight(self) -> None:
        """Nor is one that claims so before it has acknowledged all of them."""
        pending = self.ask()
        self.wire.in_flight = 1

        self.receive(OK)

        self.assertEqual((EARLY, True), (self.outcome(pending), self.wire.aborted))
        self.assertFalse(self.is_kept())

    def test_refusal_in_flight(self) -> None:
        """A refusal may come by then."""
        pending = self.ask()
        self.wire.in_flight = 1

        self.receive(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

        self.assertEqual(HTTPAnswer(413), self.outcome(pending))

    def test_early_refusal(self) -> None:
        """A refusal may come before the rest of what is too large; the connection is not used again."""
        pending = self.ask(drain=False)

        self.receive(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

        self.assertEqual((HTTPAnswer(413), True), (self.outcome(pending), self.wire.aborted))
        self.assertFalse(self.is_kept())

    def test_half_sent(self) -> None:
        """The request before, which has left, says nothing about the next."""
        self.ask()
        self.receive(EMPTY)
        pending = self.ask(drain=False)

        self.receive(OK)

        self.assertEqual((EARLY, 1), (self.outcome(pending), len(self.endpoint.wires)))

    def test_unasked(self) -> None:
        """An answer without a request ends a connection: it must not be taken for that to the next request."""
        self.ask()
        self.receive(EMPTY)

        self.receive(OK)

        self.assertTrue(self.wire.aborted)
        self.assertFalse(self.is_kept())

    def test_before_the_first(self) -> None:
        """So does one that comes before the first request."""
        connection = self.client._make_connection(None, None)  # type: ignore[arg-type]
        aborted: list[None] = []
        self.patch(connection, "abort", lambda: aborted.append(None))

        connection.dataReceived(OK)

        self.assertEqual([None], aborted)

    def test_more_than_announced(self) -> None:
        """An answer that is longer than it says is one, and the connection is not used again: it is out of step."""
        for answer, body in (
            (OK, b"ok"),
            (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", b""),
            (EMPTY, b""),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", b"ok"),
        ):
            for more in (b"H", b"HTTP/1.1 200"):
                with self.subTest(answer + more):
                    self.setUp()
                    pending = self.ask()

                    self.receive(answer + more)

                    outcome = self.outcome(pending)
                    assert isinstance(outcome, HTTPAnswer)
                    self.assertEqual((body, True), (outcome.body, self.wire.aborted))
                    self.assertFalse(self.is_kept())

    def test_status(self) -> None:
        """A status has three digits."""
        for status in (b"-200", b"0", b"99", b"1000", b"9" * 4000):
            with self.subTest(status):
                self.setUp()
                pending = self.ask()

                self.receive(b"HTTP/1.1 %b x\r\nContent-Length: 0\r\n\r\n" % status)

                self.assertEqual(("what it answers is not HTTP", True), (self.outcome(pending), self.wire.aborted))
                self.assertFalse(self.is_kept())

    def test_quiet(self) -> None:
        """Connections come and go without a word in the log."""
        self.ask()

        self.assertFalse(self.wire.connection.factory.noisy)
        self.assertFalse(self.wire.connection.factory.wrappedFactory.noisy)


class Hiding:
    """A connection of twisted.web without an attribute."""

    def __init__(self, connection: Any, hidden: str) -> None:
        self._connection = connection
        self._hidden = hidden

    def __getattr__(self, name: str) -> Any:
        if name == self._hidden:
            raise AttributeError(name)
        return getattr(self._connection, name)


class PrivateNameTests(WireCase):
    """Without the private names of Twisted."""

    def without(self, name: str) -> _PendingAnswer:
        """Make a request whose connection lacks an attribute."""
        pending = self.ask()
        self.wire.connection.wrappedProtocol = Hiding(self.wire.connection.wrappedProtocol, name)
        return pending

    def test_state(self) -> None:
        """Without the state of a connection, answers count, nothing is read behind them, and it ends by an abort."""
        pending = self.without("state")
        self.receive(OK)
        self.assertEqual(HTTPAnswer(200, None, b"ok"), self.outcome(pending))
        pending = self.ask()
        self.receive(OK + b"HTTP/1.1 200")
        self.assertEqual((HTTPAnswer(200, None, b"ok"), True), (self.outcome(pending), self.wire.aborted))

        self.setUp()
        self.without("state")
        self.receive(EMPTY)
        self.wire.connection.loseConnection()
        self.assertTrue(self.wire.aborted)

    def test_parser(self) -> None:
        """Without its parser, each 1xx is a line in the log."""
        events: list[LogEvent] = []
        globalLogPublisher.addObserver(events.append)
        self.addCleanup(globalLogPublisher.removeObserver, events.append)
        pending = self.without("_parser")

        self.receive(b"HTTP/1.1 100 Continue\r\n\r\n" + OK)

        self.assertEqual((HTTPAnswer(200, None, b"ok"), 1), (self.outcome(pending), len(events)))


class HeadTests(WireCase):
    """The head of an answer."""

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
                pending = self.ask()
                if begin:
                    self.receive(begin)
                sent = 0
                while not self.wire.aborted and sent < 10 * HEAD_LIMIT:
                    self.receive(more)
                    sent += len(more)

                self.assertEqual("the head of its answer is longer than 64 KiB", self.outcome(pending))
                self.assertLessEqual(sent, HEAD_LIMIT + len(more))

    def test_endless_on_a_used_connection(self) -> None:
        """On a connection that was used before, the request is not sent again for that."""
        self.ask()
        self.receive(EMPTY)
        pending = self.ask()

        self.receive(b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000)

        self.assertEqual("the head of its answer is longer than 64 KiB", self.outcome(pending))
        self.assertEqual(1, len(self.endpoint.wires))

    def test_long_line(self) -> None:
        """So is a line that does not."""
        pending = self.ask()

        self.receive(b"HTTP/1.1 200 " + b"x" * 20_000)

        self.assertTrue(self.wire.aborted)
        self.assertIsInstance(self.outcome(pending), str)

    def test_interim(self) -> None:
        """Answers of 1xx are left aside, without a word in the log."""
        events: list[LogEvent] = []
        globalLogPublisher.addObserver(events.append)
        self.addCleanup(globalLogPublisher.removeObserver, events.append)
        pending = self.ask()

        self.receive(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK)

        self.assertEqual((HTTPAnswer(200, None, b"ok"), []), (self.outcome(pending), events))

    def test_each_its_own(self) -> None:
        """The heads of many answers on one connection are not added up."""
        for _ in range(8):
            pending = self.ask()
            self.receive(b"HTTP/1.1 204 No Content\r\nX: " + b"y" * 15_000)
            self.receive(b"\r\n\r\n")

            self.assertEqual(HTTPAnswer(204), self.outcome(pending))

    def test_body(self) -> None:
        """A body does not count as a part of the head."""
        pending = self.ask()
        self.receive(b"HTTP/1.1 503 x\r\nContent-Length: 60000\r\n\r\n")
        for _ in range(2):
            self.receive(b"x" * 30_000)

        self.assertEqual(HTTPAnswer(503, None, b"x" * 4096, Extent.LONG), self.outcome(pending))
        self.assertFalse(self.wire.aborted)

    def test_byte_by_byte(self) -> None:
        """An answer may come in any pieces."""
        pending = self.ask()
        for byte in OK:
            self.receive(bytes((byte,)))

        self.assertEqual(HTTPAnswer(200, None, b"ok"), self.outcome(pending))
        self.assertTrue(self.is_kept())


class BodyTests(WireCase):
    """Where the body of an answer ends."""

    LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    OPEN = b"HTTP/1.1 200 OK\r\n\r\n"
    ENDS = (ConnectionDone(), ConnectionLost(), ConnectionAborted())

    def answered(self, answer: bytes, end: Exception | None = None) -> _PendingAnswer:
        """Take an answer, and lose the connection after it."""
        self.setUp()
        pending = self.ask()
        self.receive(answer)
        if end is not None:
            self.lose(end)
        return pending

    def test_whole(self) -> None:
        """It is whole by its length, by its last chunk, and by a status without a body."""
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
            for end in (None, *self.ENDS):
                with self.subTest(f"{answer} {end}"):
                    self.assertIsInstance(self.outcome(self.answered(answer, end)), HTTPAnswer)

    def test_cut(self) -> None:
        """It is cut off when the connection ends before that, in order or not."""
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
                    self.assertEqual(CUT, self.outcome(self.answered(answer, end)))

    def test_malformed(self) -> None:
        """It is cut off by bytes that are no chunk."""
        for more in (b"x\r\n", b"-1\r\n", b"3\r\nabcdef", b"3" * 2000, b"0\r\n" + b"x" * 70_000):
            with self.subTest(more):
                pending = self.answered(self.CHUNKED + b"1\r\n.\r\n")
                self.receive(more)

                self.assertEqual((CUT, True), (self.outcome(pending), self.wire.aborted))

    def test_until_the_end(self) -> None:
        """One without a length ends with the connection, if that ends in order."""
        pending = self.answered(self.OPEN + b"abc")
        self.assertFalse(pending.answer.done())

        self.lose(ConnectionDone())

        self.assertEqual(HTTPAnswer(200, None, b"abc"), self.outcome(pending))

    def test_until_a_reset(self) -> None:
        """It is cut by any other end."""
        for end in self.ENDS[1:]:
            for answer in (self.OPEN, self.OPEN + b"abc", b"HTTP/1.0 200 OK\r\n\r\nabc"):
                with self.subTest(f"{answer} {end}"):
                    self.assertEqual(CUT, self.outcome(self.answered(answer, end)))

    def test_long_enough(self) -> None:
        """One that is longer than what is read of it counts as whole, and its connection ends."""
        for head in (self.OPEN, b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"):
            with self.subTest(head):
                pending = self.answered(head)
                self.receive(b"x" * BODY_LIMIT)
                self.assertFalse(pending.answer.done())

                self.receive(b"x")

                self.assertEqual(HTTPAnswer(200, None, b"x" * 4096, Extent.LONG), self.outcome(pending))
                self.assertTrue(self.wire.aborted)


class EndTests(WireCase):
    """How a connection ends."""

    def test_in_the_middle(self) -> None:
        """In the middle of an exchange it is aborted, whatever ends it."""

        def cancel(pending: _PendingAnswer) -> None:
            pending.cancel()

        def read_too_much(pending: _PendingAnswer) -> None:
            self.receive(b"HTTP/1.1 503 x\r\nContent-Length: 1000000\r\n\r\n")
            for _ in range(5):
                self.receive(b"x" * 16_000)

        def stop_reading(pending: _PendingAnswer) -> None:
            self.receive(b"HTTP/1.1 503 x\r\nContent-Length: 1000000\r\n\r\n")
            pending.cancel()

        def not_http(pending: _PendingAnswer) -> None:
            self.receive(b"220 mail.example.com ESMTP\r\n")

        ends: list[Callable[[_PendingAnswer], None]] = [cancel, read_too_much, stop_reading, not_http]
        for end in ends:
            for drain in (True, False):
                with self.subTest(f"{end.__name__} {drain}"):
                    self.setUp()

                    end(self.ask(drain=drain))

                    self.assertTrue(self.wire.aborted)
                    self.assertFalse(self.is_kept())

    def test_farewell(self) -> None:
        """After a whole exchange it is closed in order."""
        self.ask()
        self.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        self.assertEqual((True, False), (self.wire.disconnecting, self.wire.aborted))
        self.lose(ConnectionDone())
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_no_farewell(self) -> None:
        """A server that does not agree to that is not waited for for long."""
        self.ask()
        self.receive(EMPTY)
        for _ in range(2):
            self.wire.connection.loseConnection()
        self.clock.advance(FAREWELL - 0.1)
        self.assertEqual((True, False), (self.wire.disconnecting, self.wire.aborted))

        self.clock.advance(0.1)

        self.assertTrue(self.wire.aborted)

    def test_lost_before_it_has_left(self) -> None:
        """A connection that is lost while a request is written leaves nothing behind."""
        pending = self.ask(drain=False)
        assert self.wire.producer is not None

        self.assertTrue(verifyObject(IPullProducer, self.wire.producer))
        self.wire.producer.stopProducing()
        self.lose(ConnectionAborted())

        self.assertEqual("the connection was closed without an answer", self.outcome(pending))


class TLSTests(WireCase):
    """Over TLS a request leaves once the handshake is over."""

    url = "https://localhost/in"

    def setUp(self) -> None:
        """Make a client and a server that have not met."""
        super().setUp()
        directory = os.path.abspath(self.mktemp())
        os.mkdir(directory)
        authority = Authority("authority")
        self.endpoint.creator = make_creator("localhost", ClientTLS(write_ca_file(directory, "ca", authority)))
        key_file, cert_file = authority.issue("server").write(directory, "server")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert_file, key_file)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.pending = self.ask(drain=False)
        self.clock.advance(0)

    def shake_hands(self) -> bytes:
        """Let the handshake come to its end, and return what the client has written by then, on the wire."""
        self.incoming.write(self.wire.drain())
        self.assertRaises(ssl.SSLWantReadError, self.server.do_handshake)
        self.receive(self.outgoing.read())
        return self.wire.value()

    def answer(self, answer: bytes) -> None:
        """Have the server take the request and answer it."""
        self.shake_hands()
        self.incoming.write(self.wire.drain())
        self.server.do_handshake()
        self.assertIn(b"hello", self.server.read(1000))
        self.server.write(answer)
        self.receive(self.outgoing.read())

    def test_sent(self) -> None:
        """An answer to a request that has left is one, on a used connection, too."""
        self.assertTrue(verifyObject(IHandshakeListener, self.wire.connection.wrappedProtocol))

        self.answer(OK)

        self.assertEqual(HTTPAnswer(200, None, b"ok"), self.outcome(self.pending))
        pending = self.ask(drain=False)
        self.clock.advance(0)
        self.incoming.write(self.wire.drain())
        self.assertIn(b"hello", self.server.read(1000))
        self.server.write(OK)
        self.receive(self.outgoing.read())
        self.assertEqual(HTTPAnswer(200, None, b"ok"), self.outcome(pending))

    def test_in_flight(self) -> None:
        """An answer before the request is acknowledged does not count."""
        self.wire.in_flight = 1

        self.answer(OK)

        self.assertEqual(EARLY, self.outcome(self.pending))

    def open_body(self) -> _PendingAnswer:
        """Begin an answer without a length."""
        self.answer(b"HTTP/1.1 200 OK\r\n\r\nabc")
        self.assertFalse(self.pending.answer.done())
        return self.pending

    def test_close_notify(self) -> None:
        """A body without a length ends with close_notify, however the connection below it ends."""
        for end in (ConnectionDone(), ConnectionLost()):
            with self.subTest(end):
                self.setUp()
                pending = self.open_body()
                self.assertRaises(ssl.SSLWantReadError, self.server.unwrap)
                self.receive(self.outgoing.read())
                self.assertTrue(self.wire.disconnecting)

                self.lose(end)

                self.assertEqual(HTTPAnswer(200, None, b"abc"), self.outcome(pending))

    def test_no_close_notify(self) -> None:
        """Without it the body is cut, even if the connection below ends in order: anybody on the way can do that."""
        for end in (ConnectionDone(), ConnectionLost()):
            with self.subTest(end):
                self.setUp()
                pending = self.open_body()

                self.lose(end)

                self.assertEqual(CUT, self.outcome(pending))

    def test_alert(self) -> None:
        """So it is by an alert, and by what is not TLS."""
        noise = b"\x17\x03\x03\x00\x20" + bytes(32)
        pending = self.open_body()
        self.incoming.write(noise)
        self.assertRaises(ssl.SSLError, self.server.read, 1)
        self.receive(self.outgoing.read())
        self.lose(ConnectionDone())
        self.assertEqual(CUT, self.outcome(pending))

        self.setUp()
        pending = self.open_body()
        self.receive(noise)
        self.wire.connection.connectionLost(Failure(ConnectionDone()))
        self.assertEqual(CUT, self.outcome(pending))

    def test_early(self) -> None:
        """An answer before the request has left does not count."""
        self.incoming.write(self.shake_hands())
        self.server.do_handshake()

        self.server.write(OK)
        self.receive(self.outgoing.read())

        self.assertEqual((EARLY, True), (self.outcome(self.pending), self.wire.aborted))
