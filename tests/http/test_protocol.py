"""
Tests for L{webhookrx.http.protocol}: what a sender sees on the wire, and what becomes of its messages.
"""

from __future__ import annotations

import json
import socket
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.address import IPv4Address
from twisted.internet.interfaces import IHalfCloseableProtocol, IHandshakeListener, IPushProducer
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from tests.http.wire import Sender, Wire, post
from tests.pieces import pieces, pieces_of
from webhookrx.errors import NotStored
from webhookrx.http.answers import FAILED, RETRY_AFTER
from webhookrx.http.body import DISCARDED_BODY, DiscardedBody
from webhookrx.http.interfaces import Policy
from webhookrx.http.states import HANDSHAKE
from webhookrx.settings import Limits
from webhookrx.testing import RecordingConsumer
from webhookrx.wire_interfaces import IOverload


def refused(reason: str) -> dict[str, str]:
    """Return the part of a refusal that programs read."""
    return {"status": "refused", "reason": reason}


@implementer(IOverload)
class Overloaded:
    """
    There is too much to do.

    @ivar unread: descriptors of connections that nobody reads from.
    """

    refusing = True
    behind = False

    def __init__(self, *unread: int) -> None:
        self.unread = unread

    def has_unread(self, fd: int) -> bool:
        return fd in self.unread


class OverloadTests(SynchronousTestCase):
    """More is sent than can be read."""

    def setUp(self) -> None:
        self.overload = Overloaded(7)
        self.wire = Wire(overload=self.overload)

    def connect(self, descriptor: int) -> Sender:
        """Open a connection with that descriptor."""
        sender = self.wire.connect()
        sender.transport.fileno = lambda: descriptor  # type: ignore[attr-defined]
        return sender

    def test_refused(self) -> None:
        """A request is refused with 503 and C{Retry-After}, before anybody judges it; the connection stays."""
        sender = self.wire.connect()
        sender.send(post(b"hello", headers=b"Authorization: nonsense\r\n"))
        (response,) = sender.responses()
        self.assertEqual((503, str(RETRY_AFTER)), (response.status, response.headers["retry-after"]))
        self.assertLessEqual(refused("overloaded").items(), json.loads(response.body).items())
        self.assertEqual(([], [("", "overloaded")]), (self.wire.messages, self.wire.traffic.refused_by))
        self.overload.refusing = False
        sender.send(post(b"again"))
        self.wire.settle()
        self.assertEqual(([200], None), (sender.statuses(), sender.transport.end))

    def test_pipelined(self) -> None:
        """So are all that were read with it, each of them."""
        sender = self.wire.connect()
        sender.send(post(b"one") + post(b"two"))
        self.assertEqual([503, 503], sender.statuses())

    def test_begun(self) -> None:
        """A body that has begun is read to its end, and its message made."""
        self.overload.refusing = False
        sender = self.wire.connect()
        sender.send(post(b"hello")[:-2])
        self.overload.refusing = True
        sender.send(b"lo")
        self.wire.settle()
        self.assertEqual(([200], ["hello"]), (sender.statuses(), [each["MESSAGE"] for each in self.wire.messages]))

    def test_late(self) -> None:
        """Whose request nobody has read does not come too late, and has its time once it is read; others do."""
        waiting, idle = self.connect(7), self.connect(8)
        self.wire.advance(25)
        self.assertEqual((None, "closed"), (waiting.transport.end, idle.transport.end))
        self.overload.unread = ()
        self.wire.advance(4)
        self.assertIsNone(waiting.transport.end)
        self.wire.advance(6)
        self.assertEqual("closed", waiting.transport.end)

    def test_unread_in_the_kernel(self) -> None:
        """While more is to be read than can be, no request is late that has come as far as the kernel."""
        self.overload.unread = ()
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        for behind, unread, end in ((True, b"x", None), (False, b"x", "closed"), (True, b"", "closed")):
            self.overload.behind = behind
            sender = self.connect(ours.fileno())
            theirs.send(unread)
            self.wire.advance(25)
            self.assertEqual(end, sender.transport.end)
            ours.recv(len(unread))


class AnswerTests(SynchronousTestCase):
    """One request on a connection of its own."""

    def test_accepted(self) -> None:
        """A message is answered exactly so, and only after its acknowledgement."""
        wire = Wire()
        wire.consumer.hold()
        sender = wire.connect()
        sender.send(post(b"hello"))
        wire.settle()
        before = sender.responses()
        wire.consumer.acknowledge_all()

        (response,) = sender.responses()
        self.assertEqual([], before)
        self.assertEqual((200, b'{"status":"received"}'), (response.status, response.body))
        self.assertEqual(
            {
                "server": "webhookrx",
                "date": "Thu, 01 Jan 2026 12:00:00 GMT",
                "content-type": "application/json",
                "x-content-type-options": "nosniff",
                "content-length": "21",
            },
            response.headers,
        )
        self.assertEqual(["hello"], [values["MESSAGE"] for values in wire.messages])
        self.assertEqual([("default", (), 0)], wire.traffic.acceptances)

    def test_transport_security(self) -> None:
        """By TLS, and only there, an answer asks to come by TLS again."""
        wire = Wire({"/in": {}})
        for request in (post(), post(headers=b"Connection: close\r\n"), post(target=b"/out"), b"nonsense\r\n\r\n"):
            self.assertIn("strict-transport-security", wire.ask(request, secure=True).headers)
            self.assertNotIn("strict-transport-security", wire.ask(request).headers)

    def test_refusals(self) -> None:
        """Each refusal has its status, reason and headers; no message comes of it."""
        patterns = {"/in/(?P<HOST>.*)": {}, "/secret": {"auth_tokens": (b"s3cr3t",)}}
        table = [
            (post(target=b"/"), 404, "no_matching_path", {}),
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 404, "no_matching_path", {}),
            (b"GET /in/a HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method_not_allowed", {"allow": "POST"}),
            (b"post /in/a HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method_not_allowed", {"allow": "POST"}),
            (b"OPTIONS /secret HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method_not_allowed", {"allow": "POST"}),
            (post(target=b"/secret"), 403, "bad_token", {}),
            (post(target=b"/in/%ff"), 400, "bad_encoding", {}),
            (post(target=b"/in/a?b=%ff"), 400, "bad_encoding", {}),
            (post(target=b"/in/a", headers=b"Content-Encoding: compress\r\n"), 415, "unsupported_encoding", {}),
            (post(b"x", b"/in/a", b"Content-Encoding: gzip\r\n"), 400, "bad_compression", {}),
            (post(target=b"/in/a", headers=b"Host: b\r\n"), 400, "bad_request", {"connection": "close"}),
            (post(target=b"/in/a", headers=b"Expect: x\r\n"), 417, "bad_expectation", {"connection": "close"}),
            (post(target=b"/", headers=b"Expect: x\r\n"), 404, "no_matching_path", {"connection": "close"}),
            (post(target=b"/secret", headers=b"Expect: x\r\n"), 403, "bad_token", {"connection": "close"}),
        ]
        for request, status, reason, headers in table:
            wire = Wire(patterns)
            response = wire.ask(request)
            body = json.loads(response.body)
            self.assertTrue(body.pop("detail").endswith("."))
            self.assertEqual((status, refused(reason), []), (response.status, body, wire.messages), request)
            self.assertEqual([reason], wire.traffic.reasons)
            self.assertLessEqual(headers.items(), response.headers.items(), request)
            self.assertEqual(
                ("webhookrx", "application/json"), (response.headers["server"], response.headers["content-type"])
            )

    def test_head(self) -> None:
        """The answer to HEAD has the length of its body and no body."""
        wire = Wire()
        sender = wire.connect()
        sender.send(b"HEAD /in HTTP/1.1\r\nHost: a\r\n\r\n")

        head, _, body = sender.transport.written.partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.1 405 "))
        self.assertRegex(head, rb"Content-Length: [1-9]")
        self.assertEqual(b"", body)

    def test_not_stored(self) -> None:
        """A message that could not be made safe is a 503 to come back from."""
        wire = Wire()
        wire.consumer.failure = NotStored("disk full")
        response = wire.ask(post(b"x"))

        self.assertEqual((503, str(RETRY_AFTER)), (response.status, response.headers["retry-after"]))
        self.assertEqual("not_stored", json.loads(response.body)["reason"])
        self.assertNotIn("connection", response.headers)

    def test_no_room(self) -> None:
        """Without room a body is refused before it is read; the queue says when to come back."""
        wire = Wire()
        wire.consumer.is_full = True
        for seconds in (7, 42):
            wire.consumer.seconds_to_room = seconds
            response = wire.ask(post(b"x"))

            self.assertEqual((503, b'{"status":"flow-controlled"}'), (response.status, response.body))
            self.assertEqual(str(seconds), response.headers["retry-after"])
        self.assertEqual((["no_room"] * 2, []), (wire.traffic.reasons, wire.messages))

    def test_no_room_at_last(self) -> None:
        """When room has run out between the head and the message, it is the same."""
        wire = Wire({"/in": {"name": "one"}})
        sender = wire.connect()
        request = post(b"hello")
        sender.send(request[:-1])
        wire.consumer.is_full = True
        sender.send(request[-1:])

        (response,) = sender.responses()
        self.assertEqual((503, "1"), (response.status, response.headers["retry-after"]))
        self.assertEqual(([("one", "no_room")], []), (wire.traffic.refused_by, wire.messages))

    def test_refused_unjudged(self) -> None:
        """Without room no message is made of a request, so that refusing many costs little."""
        wire = Wire({"/in": {"parse_json": True, "keep_unparsed": False}})
        wire.consumer.is_full = True

        self.assertEqual(503, wire.ask(post(b"not JSON at all")).status)

    def test_no_room_for_an_empty_message(self) -> None:
        """A message without a body needs room too."""
        wire = Wire()
        wire.consumer.is_full = True

        self.assertEqual(503, wire.ask(post()).status)

    def test_failure_of_ours(self) -> None:
        """An exception in the decision is a 500 without a word of it, and the last answer on its connection."""
        wire = Wire()
        wire.consumer.write = lambda *_: 1 / 0  # type: ignore[method-assign, assignment]
        sender = wire.connect()
        sender.send(post(b"x"))

        (response,) = sender.responses()
        self.assertEqual((500, "closed"), (response.status, sender.transport.end))
        self.assertNotIn(b"Error", response.body)
        self.assertEqual(["A request could not be judged."], wire.traffic.failures)
        self.assertEqual([("default", "internal_error")], wire.traffic.refused_by)

    def test_failure_in_the_head(self) -> None:
        """An exception while a head is judged is a 500 too, and the end of the connection."""
        wire = Wire()
        wire.site.policy = Policy(lambda head: 1 / 0, wire.limits, ())  # type: ignore[arg-type, return-value]
        response = wire.ask(post(b"x"))
        self.assertEqual((500, "close"), (response.status, response.headers["connection"]))
        self.assertEqual(["A request could not be read."], wire.traffic.failures)

    def test_failure_in_a_refused_body(self) -> None:
        """An exception while a refused body is read ends the connection: that request has its answer."""
        wire = Wire({"/in": {}})
        sender = wire.connect()
        sender.send(post(b"xy", b"/out")[:-1])
        with mock.patch.object(DiscardedBody, "feed", side_effect=ValueError):
            sender.send(b"y")
        self.assertEqual(([404], "aborted"), (sender.statuses(), sender.transport.end))
        self.assertEqual(["A request could not be read."], wire.traffic.failures)


class ConnectionTests(SynchronousTestCase):
    """What becomes of a connection."""

    def test_interfaces(self) -> None:
        """It is a producer and hears of handshakes."""
        protocol = Wire().connect().protocol
        verifyObject(IPushProducer, protocol)
        verifyObject(IHandshakeListener, protocol)
        verifyObject(IHalfCloseableProtocol, protocol)

    def test_keep_alive(self) -> None:
        """A connection serves one request after the other; an HTTP/1.0 sender is told so when it asked."""
        for version, headers, said, end in (
            (b"1.1", b"", None, None),
            (b"1.1", b"Connection: close\r\n", "close", "closed"),
            (b"1.0", b"", "close", "closed"),
            (b"1.0", b"Connection: keep-alive\r\n", "keep-alive", None),
        ):
            wire = Wire()
            sender = wire.connect()
            sender.send(post(b"1", headers=headers, version=version))
            wire.settle()
            (response,) = sender.responses()
            self.assertEqual((200, said), (response.status, response.headers.get("connection")))
            self.assertEqual(end, sender.transport.end)
            if end is None:
                sender.send(post(b"2", headers=headers, version=version))
                wire.settle()
                self.assertEqual([200], sender.statuses())

    def test_pipelining(self) -> None:
        """Pipelined requests are answered in order, refusals among them."""
        wire = Wire({"/in": {}})
        wire.consumer.hold()
        sender = wire.connect()
        sender.send(
            post(b"1") + post(target=b"/out") + post(b"2") + b"GET /in HTTP/1.1\r\nHost: a\r\n\r\n" + post(b"3")
        )
        wire.settle()
        self.assertEqual(([], False), (sender.statuses(), sender.transport.reading))
        wire.consumer.acknowledge_all()
        wire.settle()
        wire.settle()

        self.assertEqual([200, 404, 200, 405, 200], sender.statuses())
        self.assertEqual(["1", "2", "3"], [values["MESSAGE"] for values in wire.messages])
        self.assertTrue(sender.transport.reading)

    def test_thousand_in_a_row(self) -> None:
        """Many requests in one read are served without growing the stack."""
        wire = Wire({"/in": {}})
        sender = wire.connect()
        sender.send(post(target=b"/out") * 1500 + post(b"x") * 1500)
        for _ in range(1500):
            wire.settle()

        self.assertEqual([404] * 1500 + [200] * 1500, sender.statuses())

    def test_byte_by_byte(self) -> None:
        """It makes no difference in which reads a request comes."""
        for request in (
            b"\r\n" + post(b"abc"),
            b"POST /in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\n",
        ):
            wire = Wire()
            sender = wire.connect()
            for piece in pieces_of(1, request * 2):
                sender.send(piece)
                wire.settle()
            self.assertEqual([200, 200], sender.statuses())
            self.assertEqual(["abc", "abc"], [values["MESSAGE"] for values in wire.messages])

    @given(st.lists(st.integers(0, 1200), max_size=12))
    def test_any_split(self, cuts: list[int]) -> None:
        """Wherever a stream is cut, the same answers and messages come of it."""
        stream = (
            post(b"one")
            + post(target=b"/out")
            + b"POST /in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n"
            + post(b"x" * 500)
            + b"GET /in HTTP/1.1\r\nHost: a\r\n\r\n"
            + post(b"last", headers=b"Connection: close\r\n")
        )
        wire = Wire({"/in": {}})
        sender = wire.connect()
        for piece in pieces(stream, cuts):
            sender.protocol.dataReceived(piece)
            wire.settle()
        for _ in range(8):
            wire.settle()
        self.assertEqual([200, 404, 200, 200, 405, 200], sender.statuses())
        self.assertEqual(["one", "\r\n\r\n", "x" * 500, "last"], [values["MESSAGE"] for values in wire.messages])

    def test_blank_lines(self) -> None:
        """Blank lines before a request are passed over (RFC 9112 §2.2), in however many reads; they are none."""
        wire = Wire()
        sender = wire.connect()
        sender.send(b"\r\n\r\n")
        sender.send(b"\r")
        sender.send(b"\n" + post(b"1") + b"\r\n\r\n" + post(b"2"))
        wire.settle()
        wire.settle()
        self.assertEqual([200, 200], sender.statuses())

    def test_blank_lines_behind_a_request(self) -> None:
        """Some senders end a request with one too many: it begins no other one, and holds up no drain."""
        for blank in (b"\r\n", b"\r\n\r"):
            wire = Wire(limits=Limits(header_time=10, idle_time=60))
            ending, idle = wire.connect(), wire.connect()
            for sender in (ending, idle):
                sender.send(post(b"x") + blank)
                wire.settle()
            ending.end()
            wire.advance(30)
            self.assertEqual(([200], [200]), (ending.statuses(), idle.statuses()))
            self.assertEqual(("closed", None), (ending.transport.end, idle.transport.end))
            done = wire.site.drain()
            wire.advance(2.5)
            self.successResultOf(done)

    def test_deadline_after_blocking(self) -> None:
        """Once a sender has taken its answers, the time for its next request begins, or for the rest of its head."""
        for data, seconds in ((b"", 60.0), (b"POST / HTTP/1.1\r\n", 10.0)):
            wire = Wire(limits=Limits(header_time=10, idle_time=60, answer_time=30))
            sender = wire.connect()
            sender.send(post(b"x"))
            wire.settle()
            if data:
                sender.send(data)
            wire.advance(1)
            sender.protocol.pauseProducing()
            self.assertEqual(30.0, round(sender.protocol.deadline - wire.clock.seconds(), 3))
            wire.advance(2)
            sender.protocol.resumeProducing()
            self.assertEqual((data, seconds), (data, round(sender.protocol.deadline - wire.clock.seconds(), 3)))

    def test_nothing_to_answer(self) -> None:
        """An answer without a request that waits for it is not sent."""
        wire = Wire()
        sender = wire.connect()
        for begun in (b"", post(b"xy")[:-1]):
            sender.send(begun)
            self.assertEqual((False, False), (sender.protocol.is_open(), sender.protocol.answer(FAILED)))
            sender.protocol.acknowledged(None)
            self.assertEqual(([], []), (sender.responses(), wire.traffic.answers))

    def test_sender_leaves(self) -> None:
        """A sender that leaves before its answer loses the answer, not the message, and holds nothing up."""
        wire = Wire()
        wire.consumer.hold()
        sender = wire.connect()
        sender.send(post(b"x"))
        sender.leave()
        wire.consumer.acknowledge_all()

        self.assertEqual((1, 0), (len(wire.messages), wire.connections.total))
        self.assertEqual([], sender.statuses())

    def test_sender_ends(self) -> None:
        """A sender may say that no more comes and wait for its answers; then the connection is closed."""
        wire = Wire({"/in": {}})
        wire.consumer.hold()
        sender = wire.connect()
        sender.send(post(b"1") + post(target=b"/out") + post(b"2"))
        sender.end()
        self.assertIsNone(sender.transport.end)
        wire.consumer.acknowledge_all()
        wire.settle()
        self.assertEqual(([200, 404, 200], "closed"), (sender.statuses(), sender.transport.end))
        self.assertEqual(["1", "2"], [values["MESSAGE"] for values in wire.messages])

    def test_sender_ends_twice(self) -> None:
        """One that has also asked for the end of the connection gets it once."""
        wire = Wire({"/in": {}})
        wire.consumer.hold()
        sender = wire.connect()
        sender.send(post(b"1") + post(target=b"/out", headers=b"Connection: close\r\n"))
        sender.end()
        wire.consumer.acknowledge_all()
        self.assertEqual(([200, 404], "closed"), (sender.statuses(), sender.transport.end))

    def test_sender_ends_too_early(self) -> None:
        """A request that its sender has not finished never will be; no message comes of it."""
        for begun in (
            post(b"abc")[:-1],
            post()[:-5],
            post(target=b"/out")[:-5],
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        ):
            wire = Wire()
            sender = wire.connect()
            sender.send(begun)
            sender.end()
            self.assertEqual([400], sender.statuses(), begun)
            wire.advance(2.5)
            self.assertEqual(("closed", []), (sender.transport.end, wire.messages))
            sender = wire.connect()
            sender.send(post(b"first") + begun)
            wire.settle()
            sender.end()
            self.assertEqual([200, 400], sender.statuses(), begun)
            self.assertEqual(["first"], [values["MESSAGE"] for values in wire.messages])

    def test_idle_sender_ends(self) -> None:
        """On a connection without a request under way it is the end."""
        wire = Wire({"/in": {}}, Limits(body=10))
        silent, served, discarding, lingering = (wire.connect() for _ in range(4))
        served.send(post(b"x"))
        wire.settle()
        discarding.send(post(b"x" * 9, b"/out")[:-1])
        lingering.send(post(b"x" * 11)[:-1])
        for sender in (silent, served, discarding, lingering):
            sender.end()
            self.assertEqual("closed", sender.transport.end)
            sender.end()

    def test_leaves_in_the_body(self) -> None:
        """Half a body is no message, and what was counted for it is given back."""
        for request in (
            post(b"abcdef")[:-3],
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ):
            wire = Wire()
            sender = wire.connect()
            sender.send(request)
            self.assertGreater(wire.consumer.budget.bytes, 0)
            sender.leave()
            self.assertEqual(([], 0), (wire.messages, wire.consumer.budget.bytes))

    def test_no_delay(self) -> None:
        """Answers don't wait for company (TCP_NODELAY), where there is TCP."""
        wire = Wire()
        self.assertTrue(wire.connect().transport.no_delay)
        self.assertFalse(wire.connect(peer=None).transport.no_delay)

    def test_peers(self) -> None:
        """The message has the peer; a UNIX socket's is this host."""
        wire = Wire()
        wire.ask(post(), peer="::ffff:192.0.2.7")
        wire.ask(post(), peer=None)
        wire.ask(post(), secure=True)

        self.assertEqual(
            [("192.0.2.7", 40000, "http"), ("127.0.0.1", None, "http"), ("192.0.2.7", 40000, "https")],
            [(values["SOURCEIP"], values.get("SOURCEPORT"), values["TRANSPORT"]) for values in wire.messages],
        )


class EarlyRefusalTests(SynchronousTestCase):
    """What is refused before its body has come."""

    def test_expectation(self) -> None:
        """The body is asked for only once path, method, token and length have passed."""
        wire = Wire({"/in": {"auth_tokens": (b"t",)}}, Limits(body=10))
        expects = b"Expect: 100-continue\r\n"
        token = b"Authorization: Bearer t\r\n"
        for request, status in (
            (post(b"x" * 9, b"/out", expects), 404),
            (post(b"x" * 9, b"/in", expects).replace(b"POST", b"PUT"), 405),
            (post(b"x" * 9, b"/in", expects), 403),
            (post(b"x" * 11, b"/in", expects + token), 413),
            (post(b"x" * 9, b"/in", expects + token + b"Content-Encoding: x\r\n"), 415),
        ):
            sender = wire.connect()
            sender.send(request[: request.index(b"\r\n\r\n") + 4])
            (response,) = sender.responses()
            self.assertEqual((status, "close"), (response.status, response.headers["connection"]))
        sender = wire.connect()
        request = post(b"x" * 9, b"/in", expects + token)
        sender.send(request[:-9])
        self.assertEqual(b"HTTP/1.1 100 Continue\r\n\r\n", sender.transport.written)
        sender.send(request[-9:])
        wire.settle()
        self.assertEqual([100, 200], sender.statuses())

    def test_expectation_without_room(self) -> None:
        """Without room nobody is asked for a body, whether its length is known or not."""
        chunked = b"POST /in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
        sized = post(b"x", headers=b"Expect: 100-continue\r\n")[:-1]
        for request in (sized, sized.replace(b"Length: 1", b"Length: 999999"), chunked):
            wire = Wire()
            wire.consumer.is_full = True
            response = wire.ask(request)
            self.assertEqual((503, "close", "1"), (
                response.status, response.headers["connection"], response.headers["retry-after"]
            ))  # fmt: skip

    def test_no_continue_when_the_body_is_there(self) -> None:
        """A sender that did not wait is not told to go on."""
        wire = Wire()
        expects = b"Expect: 100-continue\r\n"
        self.assertEqual(200, wire.ask(post(b"x", headers=expects)).status)
        chunked = b"POST /in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n%b\r\n" % expects
        for begun, rest in ((post(b"xy", headers=expects)[:-1], b"y"), (chunked + b"2\r\nx", b"y\r\n0\r\n\r\n")):
            sender = wire.connect()
            sender.send(begun)
            self.assertEqual(b"", sender.transport.written)
            sender.send(rest)
            wire.settle()
            self.assertEqual([200], sender.statuses())
        self.assertEqual(["x", "xy", "xy"], [values["MESSAGE"] for values in wire.messages])

    def test_small_refused_body(self) -> None:
        """A small body is read to its end and thrown away; the next request is served on the same connection."""
        wire = Wire({"/in": {}})
        sender = wire.connect()
        request = post(b"x" * DISCARDED_BODY, b"/out")
        sender.send(request[:1000])
        self.assertEqual([404], sender.statuses())
        sender.send(request[1000:] + post(b"y"))
        wire.settle()

        self.assertEqual(([200], None), (sender.statuses(), sender.transport.end))
        self.assertEqual(["y"], [values["MESSAGE"] for values in wire.messages])

    def test_large_refused_body(self) -> None:
        """A large body is read for a moment after the answer, so that the sender sees it, and then no more."""
        wire = Wire({"/in": {}}, Limits(body=100_000))
        for request, status in (
            (post(b"x" * 70_000, b"/out"), 404),
            (post(b"x" * 100_001), 413),
            (b"POST /out HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 404),
        ):
            sender = wire.connect()
            sender.send(request[:200])
            (response,) = sender.responses()
            self.assertEqual(
                (status, "close", "half"), (response.status, response.headers["connection"], sender.transport.end)
            )
            for _ in range(4):
                wire.advance(1)
                sender.send(b"x" * 10_000)
            self.assertEqual("half", sender.transport.end)
            wire.advance(2.5)
            self.assertEqual("closed", sender.transport.end)
        self.assertEqual(0, wire.consumer.budget.bytes)

    def test_linger_ends(self) -> None:
        """A sender that never stops is cut off after half a minute."""
        wire = Wire({"/in": {}})
        sender = wire.connect()
        sender.send(post(b"x" * 99_999, b"/out")[:200])
        for _ in range(29):
            wire.advance(1)
            sender.send(b"x")
        self.assertEqual("half", sender.transport.end)
        wire.advance(1.5)
        self.assertEqual("closed", sender.transport.end)

    def test_tls_lingers_open(self) -> None:
        """By TLS a connection can't be closed by half, so it stays until the moment is over."""
        wire = Wire({"/in": {}})
        sender = wire.connect(secure=True)
        sender.send(post(b"x" * 99_999, b"/out")[:200])
        self.assertEqual(([404], None), (sender.statuses(), sender.transport.end))
        wire.advance(2.5)
        self.assertEqual("closed", sender.transport.end)

    def test_body_grows_over_the_limit(self) -> None:
        """A chunked body is refused when it has grown too large; at the limit it passes."""
        wire = Wire(limits=Limits(body=10))
        start = b"POST /in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.assertEqual(200, wire.ask(start + b"a\r\n0123456789\r\n0\r\n\r\n").status)
        self.assertEqual(200, wire.ask(post(b"0123456789")).status)
        response = wire.ask(start + b"a\r\n0123456789\r\n1\r\nx\r\n")
        self.assertEqual((413, "close"), (response.status, response.headers["connection"]))
        self.assertEqual([("body_too_large", "192.0.2.7", b"POST", b"/in")], wire.traffic.refusals)
        self.assertEqual((2, 0), (len(wire.messages), wire.consumer.budget.bytes))

    def test_unpacks_over_the_limit(self) -> None:
        """The limit holds for what a body unpacks to."""
        import gzip

        wire = Wire(limits=Limits(body=100))
        gzipped = b"Content-Encoding: gzip\r\n"
        self.assertEqual(200, wire.ask(post(gzip.compress(b"x" * 100), headers=gzipped)).status)
        self.assertEqual(413, wire.ask(post(gzip.compress(b"x" * 101), headers=gzipped)).status)

    def test_malformed_chunk(self) -> None:
        """What is not well-formed in the body is a 400 as in the head, after the answers to what came before."""
        wire = Wire()
        sender = wire.connect()
        sender.send(post(b"1") + b"POST /in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
        wire.settle()
        self.assertEqual([200, 400], sender.statuses())

    def test_stalled_bodies(self) -> None:
        """Senders of large bodies that do not end keep out neither small bodies nor those that come in one read."""
        wire = Wire(consumer=RecordingConsumer(Clock(), max_bytes=2**20), limits=Limits(body=2**19))
        stalled = [wire.connect() for _ in range(2)]
        for each in stalled:
            each.send(post(b"x" * 2**18)[:-1])
        sender = wire.connect()
        sender.send(post(b"x" * 1000)[:-1])
        self.assertEqual([], sender.statuses())
        sender = wire.connect()
        sender.send(post(b"x" * 100_000)[:-1])
        self.assertEqual([503], sender.statuses())
        sender = wire.connect()
        sender.send(post(b"x" * 100_000))
        self.assertEqual(([], 1), (sender.statuses(), len(wire.messages)))

    def test_room_runs_out_in_the_body(self) -> None:
        """A chunked body that outgrows the queue is refused as it grows."""
        wire = Wire(consumer=RecordingConsumer(Clock(), max_bytes=8))
        response = wire.ask(
            b"POST /in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n1\r\nx\r\n"
        )
        self.assertEqual((503, "close"), (response.status, response.headers["connection"]))
        self.assertEqual(0, wire.consumer.budget.bytes)


class DeadlineTests(SynchronousTestCase):
    """Deadlines are absolute."""

    def test_slow_head(self) -> None:
        """A head must be there ten seconds after the connection, whatever drips in until then."""
        wire = Wire()
        sender = wire.connect()
        for byte in post(b"x")[:9]:
            sender.send(bytes([byte]))
            wire.advance(1)
        self.assertEqual([], sender.statuses())
        wire.advance(1)
        (response,) = sender.responses()
        self.assertEqual((408, "close"), (response.status, response.headers["connection"]))
        self.assertEqual(["timeout"], wire.traffic.reasons)

    def test_late_head(self) -> None:
        """The time of the first head is that of the connection: silence before its first byte is part of it."""
        for first in (b"P", b"\r\nP"):
            wire = Wire()
            sender = wire.connect()
            wire.advance(6)
            sender.send(first)
            wire.advance(3.5)
            self.assertEqual([], sender.statuses())
            wire.advance(0.5)
            self.assertEqual([408], sender.statuses())

    def test_silent_connection(self) -> None:
        """A connection on which nothing was ever said is closed without a word."""
        wire = Wire()
        sender = wire.connect()
        wire.advance(9.5)
        self.assertIsNone(sender.transport.end)
        wire.advance(0.5)
        self.assertEqual(("closed", [], []), (sender.transport.end, sender.statuses(), wire.traffic.reasons))

    def test_idle_connection(self) -> None:
        """Between requests a connection may be silent for longer; then a head has its own ten seconds."""
        wire = Wire()
        sender = wire.connect()
        sender.send(post())
        wire.advance(70)
        self.assertEqual(([200], None), (sender.statuses(), sender.transport.end))
        sender.send(b"POST ")
        wire.advance(9.5)
        sender.send(b"/in HTTP/1.1\r\nHost: a\r\n\r\n")
        wire.advance(74.5)
        self.assertEqual(([200], None), (sender.statuses(), sender.transport.end))
        wire.advance(1)
        self.assertEqual(([], "closed"), (sender.statuses(), sender.transport.end))

    def test_answer_in_the_kernel(self) -> None:
        """A small answer that the kernel holds, since its sender does not take it, is waited for half a minute only."""
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        for untaken, end in ((b"x", "aborted"), (b"", None)):
            wire = Wire()
            sender = wire.connect()
            sender.transport.fileno = ours.fileno  # type: ignore[attr-defined]
            sender.send(post())
            wire.settle()
            ours.send(untaken)
            wire.advance(30.5)
            self.assertEqual(end, sender.transport.end)
            theirs.recv(len(untaken))
        wire.advance(45)
        self.assertEqual("closed", sender.transport.end)

    def test_late_answer_in_the_kernel(self) -> None:
        """That time begins with the answer, however long it was waited for."""
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        wire = Wire()
        wire.consumer.hold()
        sender = wire.connect()
        sender.transport.fileno = ours.fileno  # type: ignore[attr-defined]
        sender.send(post())
        wire.advance(20)
        wire.consumer.acknowledge_all()
        ours.send(b"x")
        wire.advance(29)
        self.assertIsNone(sender.transport.end)
        wire.advance(1.5)
        self.assertEqual("aborted", sender.transport.end)

    def test_slow_second_head(self) -> None:
        """A head that does not come after a request that was served is the end, whatever that request was like."""
        for first in (post(b"x"), post(b"12345", b"/out"), b"GET /in HTTP/1.1\r\nHost: a\r\n\r\n"):
            wire = Wire({"/in": {}})
            sender = wire.connect()
            sender.send(first)
            wire.settle()
            sender.statuses()
            sender.send(b"P")
            wire.advance(10.5)
            self.assertEqual([408], sender.statuses())
            wire.advance(2.5)
            self.assertEqual("closed", sender.transport.end)

    def test_slow_body(self) -> None:
        """A body must be there a minute after its head."""
        for request in (
            post(b"x" * 100)[:-90],
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
        ):
            wire = Wire()
            sender = wire.connect()
            sender.send(request)
            for _ in range(58):
                wire.advance(1)
                sender.send(b"x" if request.startswith(b"POST /in") else b"1\r\nx\r\n")
            self.assertEqual([], sender.statuses())
            wire.advance(2.5)
            self.assertEqual([408], sender.statuses())
            self.assertEqual(([], 0), (wire.messages, wire.consumer.budget.bytes))

    def test_slow_discarded_body(self) -> None:
        """A refused body that does not come is not waited for longer than another; its answer is out already."""
        wire = Wire({"/in": {}})
        sender = wire.connect()
        sender.send(post(b"x" * 100, b"/out")[:-90])
        wire.advance(60.5)
        self.assertEqual(([404], "closed"), (sender.statuses(), sender.transport.end))

    def test_slow_observers(self) -> None:
        """After half a minute without an acknowledgement the answer is not a 200, and a late one changes nothing."""
        wire = Wire()
        wire.consumer.hold()
        sender = wire.connect()
        sender.send(post(b"x"))
        wire.advance(29.5)
        self.assertEqual([], sender.statuses())
        wire.advance(1)
        (response,) = sender.responses()
        self.assertEqual((503, "close"), (response.status, response.headers["connection"]))
        self.assertEqual("not_stored", json.loads(response.body)["reason"])
        wire.consumer.acknowledge_all(NotStored("late too"))
        self.assertEqual(([], ["not_stored"]), (sender.statuses(), wire.traffic.reasons))

    def test_slow_reader(self) -> None:
        """Who does not take its answers is no longer read from, and cut off after half a minute."""
        wire = Wire({"/in": {}})
        sender = wire.connect()
        sender.transport.stop_taking()
        while sender.transport.reading:
            sender.send(post(target=b"/out"))
        wire.advance(29)
        self.assertIsNone(sender.transport.end)
        wire.advance(1.5)
        self.assertEqual("aborted", sender.transport.end)

    def test_pipeline_waits_for_its_reader(self) -> None:
        """One read of many requests makes no more answers than the sender takes; the rest are answered when it does."""
        wire = Wire({"/in": {}})
        sender = wire.connect()
        sender.transport.stop_taking()
        sender.send(post(target=b"/out") * 2000)
        self.assertLess(len(sender.transport.written), 70_000)
        sender.end()
        sender.transport.take()
        self.assertEqual(([404] * 2000, "closed"), (sender.statuses(), sender.transport.end))

    def test_reader_comes_back(self) -> None:
        """Who takes its answers in time is served on."""
        wire = Wire({"/in": {}})
        sender = wire.connect()
        sender.transport.stop_taking()
        while sender.transport.reading:
            sender.send(post(target=b"/out"))
        wire.advance(20)
        sender.transport.take()
        wire.advance(20)
        sender.send(post(target=b"/in"))
        wire.settle()
        self.assertEqual(200, sender.statuses()[-1])

    def test_late_answer_not_taken(self) -> None:
        """The time for taking an answer begins when it is written, however long it was waited for."""
        wire = Wire()
        wire.consumer.hold()
        sender = wire.connect()
        sender.transport.stop_taking()
        sender.transport._high_water = 10
        sender.send(post())
        wire.advance(20)
        wire.consumer.acknowledge_all()
        wire.advance(29)
        self.assertIsNone(sender.transport.end)
        wire.advance(2)
        self.assertEqual("aborted", sender.transport.end)

    def test_last_answer_not_taken(self) -> None:
        """A connection whose last answer is not taken does not stay for ever."""
        wire = Wire()
        sender = wire.connect()
        sender.transport.stop_taking()
        sender.send(post(headers=b"Connection: close\r\n"))
        wire.advance(29)
        self.assertEqual("closed", sender.transport.end)
        wire.advance(2)
        self.assertEqual("aborted", sender.transport.end)

    def test_handshake(self) -> None:
        """A TLS handshake has the head's ten seconds; then the connection is cut and the failure told."""
        wire = Wire()
        sender = wire.connect(secure=True)
        sender.protocol._lifetime = HANDSHAKE
        wire.advance(10.5)
        self.assertEqual(("aborted", ["192.0.2.7"]), (sender.transport.end, wire.traffic.handshakes))

    def test_proxied_handshake(self) -> None:
        """Behind a proxy it is told with the address that the PROXY header gave."""
        wire = Wire(knows_peers_at_once=False)
        sender = wire.connect(peer="127.0.0.1", secure=True)
        sender.protocol._lifetime = HANDSHAKE
        sender.transport.peer = IPv4Address("TCP", "192.0.2.9", 5)
        sender.leave()
        self.assertEqual(["192.0.2.9"], wire.traffic.handshakes)

    def test_broken_connection(self) -> None:
        """A connection that can't be ended in order is cut, and the deadlines of the others hold."""
        wire = Wire()
        broken, other = wire.connect(), wire.connect()
        broken.protocol._idle_expired = lambda: 1 / 0  # type: ignore[method-assign, assignment, return-value]
        wire.advance(10.5)
        self.assertEqual(("aborted", "closed"), (broken.transport.end, other.transport.end))
        self.assertEqual(["A connection could not be ended."], wire.traffic.failures)


class CapTests(SynchronousTestCase):
    """Caps on connections."""

    def test_in_all(self) -> None:
        """One connection too many is told so and closed; when another has gone there is room again."""
        wire = Wire(limits=Limits(connections=2))
        first, second = (wire.connect(peer=f"192.0.2.{number}") for number in range(2))
        for sender in (first, second):
            sender.send(post(b"hello")[:-1])
        third = wire.connect(peer="192.0.2.3")
        (response,) = third.responses()
        self.assertEqual((503, "close"), (response.status, response.headers["connection"]))
        self.assertEqual("too_many_connections", json.loads(response.body)["reason"])
        wire.advance(2.5)
        self.assertEqual("closed", third.transport.end)
        first.leave()
        self.assertEqual(200, wire.ask(post()).status)
        self.assertIsNone(second.transport.end)

    def test_by_peer(self) -> None:
        """One sender can't take all connections; UNIX sockets are not counted by peer."""
        wire = Wire(limits=Limits(connections_per_peer=1))
        first = wire.connect()
        self.assertEqual([503], wire.connect().statuses())
        self.assertEqual([], wire.connect(peer="192.0.2.8").statuses())
        self.assertEqual([[], []], [wire.connect(peer=None).statuses() for _ in range(2)])
        wire.advance(2.5)
        first.leave()
        self.assertEqual(200, wire.ask(post()).status)

    def test_peer_costs_nobody_else(self) -> None:
        """However often one sender tries, it takes no more than its share."""
        wire = Wire(limits=Limits(connections=3, connections_per_peer=1))
        for _ in range(10):
            wire.connect()
        self.assertEqual(1, wire.connections.total)
        self.assertEqual([[], []], [wire.connect(peer=f"192.0.2.{number}").statuses() for number in (8, 9)])
        self.assertEqual(3, wire.connections.total)

    def test_by_proxied_peer(self) -> None:
        """Behind the PROXY protocol the peer is known and counted with the first data."""
        wire = Wire(limits=Limits(connections_per_peer=1), knows_peers_at_once=False)
        first, second = wire.connect(), wire.connect()
        self.assertEqual([], second.statuses())
        first.send(b"POST ")
        second.send(b"POST ")
        self.assertEqual(([], [503]), (first.statuses(), second.statuses()))

    def test_by_tls(self) -> None:
        """A connection too many is not worth a handshake; it is counted all the same."""
        wire = Wire(limits=Limits(connections=0))
        self.assertEqual("aborted", wire.connect(secure=True).transport.end)
        self.assertEqual(0, wire.connections.total)
        self.assertEqual([("", "too_many_connections")], wire.traffic.refused_by)


class PauseTests(SynchronousTestCase):
    """The chain pauses all senders when it is nearly full."""

    def test_pause(self) -> None:
        """Nobody is read from, new connections included; deadlines wait; then all goes on."""
        wire = Wire()
        old = wire.connect()
        wire.advance(9)
        wire.site.pauseProducing()
        new = wire.connect()
        self.assertEqual((False, False), (old.transport.reading, new.transport.reading))
        wire.advance(1.5)
        wire.site.resumeProducing()
        self.assertEqual((True, True), (old.transport.reading, new.transport.reading))
        wire.advance(0.5)
        old.send(post(b"x"))
        wire.settle()
        self.assertEqual([200], old.statuses())

    def test_pause_is_bounded(self) -> None:
        """After two seconds, or what the limits say, senders are read again, to be refused if need be."""
        for limits, seconds in ((Limits(), 2.0), (Limits(pause_time=0.5), 0.5), (Limits(pause_time=5), 5.0)):
            wire = Wire(limits=limits)
            sender = wire.connect()
            wire.site.pauseProducing()
            wire.advance(seconds - 0.5)
            self.assertFalse(sender.transport.reading)
            wire.advance(0.5)
            self.assertTrue(sender.transport.reading)

    def test_end_of_the_chain(self) -> None:
        """When the chain has stopped for good, who still asks is told to come back later."""
        wire = Wire()
        sender = wire.connect()
        wire.site.stopProducing()
        sender.send(post(b"x"))
        (response,) = sender.responses()
        self.assertEqual((503, "close"), (response.status, response.headers["connection"]))
        self.assertEqual("draining", json.loads(response.body)["reason"])


class DrainTests(SynchronousTestCase):
    """Stopping politely."""

    def test_drain(self) -> None:
        """Idle connections close at once, requests under way are answered and then their connections close."""
        wire = Wire()
        wire.consumer.hold()
        idle, waiting, sending = wire.connect(), wire.connect(), wire.connect()
        waiting.send(post(b"1"))
        sending.send(post(b"2")[:-1])
        done = wire.site.drain()
        self.assertEqual(("closed", None, None), (idle.transport.end, waiting.transport.end, sending.transport.end))
        self.assertNoResult(done)
        sending.send(b"2")
        wire.consumer.acknowledge_all()

        self.successResultOf(done)
        for sender in (waiting, sending):
            (response,) = sender.responses()
            self.assertEqual(
                (200, "close", "closed"), (response.status, response.headers["connection"], sender.transport.end)
            )

    def test_answers_are_taken(self) -> None:
        """A drain is over when the last answer has been taken, not when it was written."""
        wire = Wire()
        sender, other = wire.connect(), wire.connect()
        for each in (sender, other):
            each.transport.stop_taking()
            each.send(post(b"x"))
        done = wire.site.drain()
        wire.settle()
        other.transport.take()
        self.assertEqual(["closed"] * 2, [sender.transport.end, other.transport.end])
        self.assertNoResult(done)
        sender.transport.take()
        self.successResultOf(done)

    def test_rest_of_a_refused_request(self) -> None:
        """A drain waits for the body of a request that was refused before it, and for nothing after that."""
        wire = Wire({"/in": {}})
        sender = wire.connect()
        sender.send(post(b"12", b"/out")[:-1])
        self.assertEqual([404], sender.statuses())
        done = wire.site.drain()
        wire.advance(0.5)
        self.assertNoResult(done)
        sender.send(b"2")
        wire.advance(0.5)
        self.successResultOf(done)

    def test_nothing_to_drain(self) -> None:
        """Without connections a drain is over at once."""
        self.successResultOf(Wire().site.drain())

    def test_abort(self) -> None:
        """When patience is over, all connections are cut."""
        wire = Wire()
        wire.consumer.hold()
        sender = wire.connect()
        sender.send(post(b"1"))
        done = wire.site.drain()
        wire.site.abort()
        self.successResultOf(done)
        self.assertEqual("aborted", sender.transport.end)
