"""
Tests for resources on our protocol: L{webhookrx.http.resources}, and stock ones of C{twisted.web}.
"""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

from treq.testing import StubTreq
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET
from twisted.web.server import Site as StockSite
from twisted.web.static import Data, File
from zope.interface.verify import verifyClass, verifyObject

from tests.http.wire import AtOnce, Wire, post
from webhookrx.errors import NotStored
from webhookrx.http.interfaces import IEarlyResource, IExchange, IReceiver
from webhookrx.http.protocol import HTTPProtocol
from webhookrx.http.resources import DIRECT, WebhookResource
from webhookrx.http.stock_request import _StockExchange
from webhookrx.http.twisted_request import Request


class Form(Resource):
    """A stock form: it shows what it was sent."""

    def render_POST(self, request: Any) -> bytes:
        """Read the body, and the fields that were made of it."""
        return b"%s %s" % (request.content.read(), request.args[b"name"][0])


class Late(Resource):
    """Answers when told."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Any] = []
        self.outcomes: list[Failure | None] = []

    def render_GET(self, request: Any) -> int:
        """Keep the request."""
        self.requests.append(request)
        request.notifyFinish().addBoth(self.outcomes.append)
        return NOT_DONE_YET

    render_POST = render_GET


class Producer:
    """Produces nothing more."""

    def pauseProducing(self) -> None:
        """Not asked."""

    def resumeProducing(self) -> None:
        """Nothing to go on with."""

    def stopProducing(self) -> None:
        """Not asked."""


class Tree(Resource):
    """Has one child."""

    def __init__(self, name: bytes, child: Any) -> None:
        super().__init__()
        self.putChild(name, child)


class Broken(Resource):
    """Raises, before or after it has begun to write."""

    def __init__(self, begin: bool) -> None:
        super().__init__()
        self._begin = begin

    def render_GET(self, request: Any) -> int:
        """Raise."""
        if self._begin:
            request.write(b"x")
        raise RuntimeError("CANARY")


class HealthTests(SynchronousTestCase):
    """Load balancers ask at a path of a source."""

    def setUp(self) -> None:
        self.ready = True
        sources = {"/in": {"auth_tokens": (b"token",)}, "/healthz": {"name": "other"}}
        self.wire = Wire(sources, health={b"/healthz"}, ready=lambda: self.ready)

    def ask(self, method: bytes, headers: bytes = b"", body: bytes = b"") -> tuple[int, bytes]:
        """Ask with this method; return status and body."""
        answer = self.wire.ask(b"%s /healthz?a HTTP/1.1\r\nHost: a\r\n%s\r\n%s" % (method, headers, body))
        return answer.status, answer.body

    def test_answers(self) -> None:
        """It is answered without a token, leaves no message and no line in the log, and says nothing of why."""
        for method in (b"GET", b"HEAD", b"OPTIONS"):
            for self.ready, status, body in (
                (True, 200, b'{"status":"ready"}'),
                (False, 503, b'{"status":"not_ready"}'),
            ):
                self.assertEqual((status, b"" if method == b"HEAD" else body), self.ask(method))
        self.assertEqual(([], [], []), (self.wire.messages, self.wire.traffic.reasons, self.wire.traffic.answers))

    def test_body(self) -> None:
        """A body that comes with the question is thrown away, and the connection goes on."""
        sender = self.wire.connect()
        sender.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" + post(b"x", b"/healthz"))
        self.wire.settle()
        self.assertEqual([200, 200], sender.statuses())
        self.assertEqual(["x"], [message["MESSAGE"] for message in self.wire.messages])

    def test_old_senders(self) -> None:
        """HTTP/1.0 without any header is answered, as it is by what load balancers ask."""
        self.assertEqual(200, self.wire.ask(b"OPTIONS /healthz HTTP/1.0\r\n\r\n").status)

    def test_messages(self) -> None:
        """What is posted there is a message, and other methods are refused, as ever."""
        self.assertEqual(200, self.ask(b"POST", b"Content-Length: 2\r\n", b"hi")[0])
        self.assertEqual(405, self.ask(b"PUT", b"Content-Length: 0\r\n")[0])
        self.assertEqual(["hi"], [message["MESSAGE"] for message in self.wire.messages])

    def test_elsewhere(self) -> None:
        """Other paths are what they were, and so is this one where no source names it."""
        self.assertEqual(405, self.wire.ask(b"GET /in HTTP/1.1\r\nHost: a\r\n\r\n").status)
        self.assertEqual(404, Wire({"/in": {}}).ask(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").status)

    def test_while_it_drains(self) -> None:
        """Who asks at the end is told so, and goes."""
        self.ready = False
        sender = self.wire.connect()
        sender.send(b"GET /heal")
        self.wire.site.drain()
        sender.send(b"thz HTTP/1.1\r\nHost: a\r\n\r\n")
        (answer,) = sender.responses()
        self.assertEqual((503, "close", []), (answer.status, answer.headers["connection"], self.wire.traffic.reasons))

    def test_stock_site(self) -> None:
        """Under C{twisted.web}'s own site it is the same."""
        client = StubTreq(self.wire.root)
        for method, body in (("GET", b'{"status":"ready"}'), ("HEAD", b"")):
            response = self.successResultOf(client.request(method, "http://receiver/healthz"))
            self.assertEqual((200, body), (response.code, self.successResultOf(response.content())))


def get(path: bytes, version: bytes = b"1.1", headers: bytes = b"") -> bytes:
    """Return a GET request."""
    return b"GET %s HTTP/%s\r\nHost: a\r\n%s\r\n" % (path, version, headers)


class StockResourceTests(SynchronousTestCase):
    """Resources of C{twisted.web} hung below the root."""

    def setUp(self) -> None:
        """Hang some resources into the tree."""
        self.wire = Wire({"/in.*": {}})
        self.late = Late()
        root = self.wire.root
        root.putChild(b"data", Data(b"hello", "text/plain"))
        root.putChild(b"form", Form())
        root.putChild(b"late", self.late)
        root.putChild(b"broken", Broken(begin=False))
        root.putChild(b"torn", Broken(begin=True))

    def test_interface(self) -> None:
        """The root judges early."""
        verifyObject(IEarlyResource, self.wire.root)

    def test_static(self) -> None:
        """Static data is served, to GET, to HEAD, and in the middle of a pipeline."""
        sender = self.wire.connect()
        sender.send(post(b"x", b"/in") + get(b"/data?x") + get(b"/data") + post(target=b"/out"))
        self.wire.settle()
        responses = sender.responses()
        self.assertEqual([200, 200, 200, 404], [response.status for response in responses])
        self.assertEqual((b"hello", "text/plain"), (responses[1].body, responses[1].headers["content-type"]))
        self.assertEqual("webhookrx", responses[1].headers["server"])

    def test_head(self) -> None:
        """HEAD has the head alone."""
        sender = self.wire.connect()
        sender.send(get(b"/data").replace(b"GET", b"HEAD"))
        head, _, body = sender.transport.written.partition(b"\r\n\r\n")
        self.assertIn(b"Content-Length: 5", head)
        self.assertEqual(b"", body)

    def test_forms(self) -> None:
        """A form reads its body, urlencoded or multipart, and its fields."""
        body = b"name=value&x=y"
        response = self.wire.ask(post(body, b"/form", b"Content-Type: application/x-www-form-urlencoded\r\n"))
        self.assertEqual((200, body + b" value"), (response.status, response.body))
        body = b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\nmulti\r\n--b--\r\n'
        response = self.wire.ask(post(body, b"/form", b"Content-Type: multipart/form-data; boundary=b\r\n"))
        self.assertEqual((200, body + b" multi"), (response.status, response.body))

    def test_small_forms(self) -> None:
        """One byte is a form, and none is a form without fields."""
        headers = b"Content-Type: application/x-www-form-urlencoded\r\n"
        sender = self.wire.connect()
        sender.send(post(b"=", b"/late", headers))
        self.assertEqual({b"": [b""]}, self.late.requests[0].args)
        sender = self.wire.connect()
        sender.send(post(b"", b"/late", b"Content-Type: multipart/form-data; boundary=b\r\n"))
        self.assertEqual(({}, []), (self.late.requests[1].args, sender.responses()))

    def test_broken_form(self) -> None:
        """A form that can't be read is a 400, and the end."""
        sender = self.wire.connect()
        sender.send(post(b"junk", b"/form", b"Content-Type: multipart/form-data; boundary=\r\n"))
        (response,) = sender.responses()
        self.assertEqual(
            (400, "close", "closed"), (response.status, response.headers["connection"], sender.transport.end)
        )

    def test_methods(self) -> None:
        """A stock resource refuses methods in its own way."""
        response = self.wire.ask(post(b"", b"/data"))
        self.assertEqual((405, {"GET", "HEAD"}), (response.status, set(response.headers["allow"].split(", "))))

    def test_late(self) -> None:
        """An answer may come later and in parts; what is pipelined waits for it."""
        sender = self.wire.connect()
        sender.send(get(b"/late") + get(b"/data"))
        self.assertEqual([], sender.responses())
        (request,) = self.late.requests
        request.write(b"one ")
        request.write(b"two")
        request.finish()
        late, data = sender.responses()
        self.assertEqual(
            (200, "chunked", b"4\r\none \r\n3\r\ntwo\r\n"), (late.status, late.headers["transfer-encoding"], late.body)
        )
        self.assertEqual(b"hello", data.body)
        self.assertEqual([None], self.late.outcomes)

    def test_late_http_1_0(self) -> None:
        """HTTP/1.0 knows no chunks: an answer without a length ends with the connection."""
        sender = self.wire.connect()
        sender.send(get(b"/late", b"1.0", b"Connection: keep-alive\r\n"))
        (request,) = self.late.requests
        request.write(b"one")
        request.finish()
        self.assertTrue(sender.transport.written.endswith(b"Connection: close\r\n\r\none"))
        self.assertEqual("closed", sender.transport.end)
        sender = self.wire.connect()
        sender.send(get(b"/data", b"1.0", b"Connection: keep-alive\r\n"))
        (response,) = sender.responses()
        self.assertEqual(("keep-alive", None), (response.headers["connection"], sender.transport.end))

    def test_sender_leaves(self) -> None:
        """A resource hears of a sender that has gone."""
        sender = self.wire.connect()
        sender.send(get(b"/late"))
        sender.leave()
        (outcome,) = self.late.outcomes
        self.assertIsInstance(outcome, Failure)

    def test_sender_leaves_later(self) -> None:
        """A request that was answered does not hear of the end of its connection."""
        sender = self.wire.connect()
        sender.send(get(b"/late"))
        (request,) = self.late.requests
        request.finish()
        with mock.patch.object(request, "connectionLost") as lost:
            sender.leave()
        self.assertEqual(0, lost.call_count)

    def test_sender_ends(self) -> None:
        """A resource that has not answered hears of a sender that sends no more."""
        sender = self.wire.connect()
        sender.send(get(b"/late"))
        sender.end()
        self.assertEqual(("aborted", 1), (sender.transport.end, len(self.late.outcomes)))

    def test_never_answered(self) -> None:
        """A resource that never answers does not hold its connection for ever, one that goes on does."""
        sender = self.wire.connect()
        sender.send(get(b"/late"))
        self.wire.advance(29)
        self.late.requests[0].write(b"going on")
        self.wire.advance(29)
        self.assertIsNone(sender.transport.end)
        self.wire.advance(1.5)
        self.assertEqual("aborted", sender.transport.end)

    def test_broken(self) -> None:
        """A resource that raises is a 500 without a traceback; when it has begun to answer, the connection is cut."""
        sender = self.wire.connect()
        sender.send(get(b"/broken") + get(b"/data"))
        response, following = sender.responses()
        self.assertEqual((500, "internal_error"), (response.status, json.loads(response.body)["reason"]))
        self.assertEqual("application/json", response.headers["content-type"])
        self.assertNotIn(b"CANARY", response.body)
        self.assertEqual(200, following.status)
        sender = self.wire.connect()
        sender.send(get(b"/torn"))
        self.assertEqual("aborted", sender.transport.end)
        self.assertEqual(["A resource raised."] * 2, self.wire.traffic.failures)

    def test_file(self) -> None:
        """A file goes out at the sender's pace, whole or in part."""
        path = self.mktemp()
        with open(path, "wb") as stream:
            stream.write(b"0123456789" * 100_000)
        self.wire.root.putChild(b"file", File(path))
        response = self.wire.ask(get(b"/file"))
        self.assertEqual((200, 1_000_000), (response.status, len(response.body)))
        response = self.wire.ask(get(b"/file", headers=b"Range: bytes=1-3\r\n"))
        self.assertEqual((206, b"123"), (response.status, response.body))

    def test_session_and_cookies(self) -> None:
        """Cookies and peers are there for who needs them."""
        sender = self.wire.connect()
        sender.send(get(b"/late", headers=b"Cookie: a=b\r\n"))
        (request,) = self.late.requests
        self.assertEqual(b"b", request.getCookie(b"a"))
        self.assertEqual("192.0.2.7", request.getClientAddress().host)
        self.assertEqual((8181, False), (request.getHost().port, request.isSecure()))
        request.loseConnection()
        self.assertEqual("aborted", sender.transport.end)

    def test_body_limit(self) -> None:
        """The limit of bodies holds for every resource."""
        from webhookrx.settings import Limits

        wire = Wire(limits=Limits(body=3))
        wire.root.putChild(b"form", Form())
        self.assertEqual(413, wire.ask(post(b"four", b"/form")).status)
        chunked = b"POST /form HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n"
        self.assertEqual(413, wire.ask(chunked).status)
        self.assertEqual([("body_too_large", "192.0.2.7", b"POST", b"/form")] * 2, wire.traffic.refusals)

    def test_producer_after_much(self) -> None:
        """A resource that has written much before it registers a producer does not stop its connection for good."""
        sender = self.wire.connect()
        sender.send(get(b"/late"))
        (request,) = self.late.requests
        sender.transport.stop_taking()
        request.setHeader(b"Content-Length", b"100001")
        request.write(b"x" * 100_000)
        request.registerProducer(Producer(), True)
        sender.transport.take()
        request.write(b"x")
        request.unregisterProducer()
        request.finish()
        sender.send(get(b"/data"))
        self.assertEqual([200, 200], sender.statuses())

    def test_taken_in_parts(self) -> None:
        """Each time that the sender has taken what was written, there is as much time for the rest of the answer."""
        sender = self.wire.connect()
        sender.send(get(b"/late"))
        (request,) = self.late.requests
        request.setHeader(b"Content-Length", b"100001")
        sender.transport.stop_taking()
        request.write(b"x" * 100_000)
        self.wire.advance(20)
        sender.transport.take()
        self.wire.advance(20)
        self.assertIsNone(sender.transport.end)
        request.write(b"x")
        request.finish()
        self.assertEqual([200], sender.statuses())

    def test_no_request(self) -> None:
        """Should not even a request come of it, its connection is cut and the failure told; others are served."""
        sender = self.wire.connect()
        with mock.patch.object(Request, "from_parts", side_effect=ValueError):
            sender.send(get(b"/data"))
        self.assertEqual(("aborted", b""), (sender.transport.end, sender.transport.written))
        self.assertEqual(["A request could not be judged."], self.wire.traffic.failures)
        self.assertEqual(200, self.wire.ask(get(b"/data")).status)

    def test_after_a_producer(self) -> None:
        """Once a resource's producer is done the sender's pace is ours to mind, and the time for an answer begins."""
        sender = self.wire.connect()
        sender.send(get(b"/late"))
        (request,) = self.late.requests
        request.setHeader(b"Content-Length", b"100001")
        request.registerProducer(Producer(), True)
        self.wire.advance(29)
        request.unregisterProducer()
        self.wire.advance(29)
        self.assertIsNone(sender.transport.end)
        sender.transport.stop_taking()
        request.write(b"x" * 100_000)
        self.assertFalse(sender.transport.reading)
        sender.transport.take()
        self.assertTrue(sender.transport.reading)

    def test_nothing_of_ours(self) -> None:
        """A path that only the resources below our root know, under a site that asks us for it, is not ours."""
        ours = Wire({"/in": {}})
        ours.root.putChild(b"data", Data(b"", "text/plain"))
        request = ours.root.getChild(b"data", None)
        client = StubTreq(Tree(b"data", request))
        self.assertEqual(404, self.successResultOf(client.get("http://receiver/data")).code)

    def test_stock_root(self) -> None:
        """A site needs no root of ours."""
        root = Resource()
        root.putChild(b"data", Data(b"hello", "text/plain"))
        wire = Wire(root=root)
        self.assertEqual(b"hello", wire.ask(get(b"/data")).body)
        self.assertEqual(404, wire.ask(get(b"/other")).status)

    def test_ours_deeper_in_a_tree(self) -> None:
        """Our root resource works below a stock one; the whole path is matched."""
        ours = Wire({"/hooks/in": {}})
        root = Resource()
        root.putChild(b"hooks", ours.root)
        wire = Wire(root=root)
        sender = wire.connect()
        sender.send(post(b"x", b"/hooks/in") + post(b"y", b"/hooks/out") + get(b"/hooks/in"))
        ours.settle()
        self.assertEqual([200, 404, 405], sender.statuses())
        self.assertEqual(["x"], [values["MESSAGE"] for values in ours.messages])


class StockSiteTests(SynchronousTestCase):
    """Our root resource under a C{Site} of C{twisted.web}'s own."""

    def ask(self, wire: Wire, data: bytes, peer: Any) -> bytes:
        """Send a request over a connection from that address; return the answer."""
        site = StockSite(wire.root, reactor=Clock())
        transport = StringTransport(peerAddress=peer)
        protocol = site.buildProtocol(peer)
        protocol.makeConnection(transport)
        protocol.dataReceived(data)
        wire.settle()
        return transport.value()

    def test_peer(self) -> None:
        """A message has its sender's address; that of a UNIX socket is this host's."""
        for peer, values in (
            (IPv4Address("TCP", "192.0.2.7", 4711), ("192.0.2.7", 4711)),
            (IPv6Address("TCP", "2001:db8::7", 4711), ("2001:db8::7", 4711)),
            (UNIXAddress(None), ("127.0.0.1", None)),
        ):
            wire = Wire({"/in": {}})
            self.assertTrue(self.ask(wire, post(b"x"), peer).startswith(b"HTTP/1.1 200 OK\r\n"))
            (message,) = wire.messages
            self.assertEqual(values, (message["SOURCEIP"], message.get("SOURCEPORT")))

    def test_exchange(self) -> None:
        """Requests of both kinds of sites are exchanges, and a source takes both."""
        verifyClass(IExchange, _StockExchange)
        verifyClass(IExchange, HTTPProtocol)
        verifyClass(IReceiver, WebhookResource)

    def test_post(self) -> None:
        """A message comes of a request, with its query and headers."""
        wire = Wire({"/in/(?P<HOST>.*)": {"include_request_headers": True}})
        client = StubTreq(wire.root)
        answer = client.post("http://receiver/in/h1?a=1", data=b"hello", headers={b"X-A": [b"1", b"2"]})
        client.flush()
        wire.settle()
        client.flush()
        response = self.successResultOf(answer)
        self.assertEqual(200, response.code)
        self.assertEqual(b'{"status":"received"}', self.successResultOf(response.content()))
        self.assertEqual(
            (21, [b"application/json"]), (response.length, response.headers.getRawHeaders(b"content-type"))
        )
        self.assertEqual(["default"], [source for source, _ in wire.traffic.answers])
        (values,) = wire.messages
        self.assertEqual(("hello", "h1", "1"), (values["MESSAGE"], values["HOST"], values["webhook.query.a"]))
        self.assertEqual(["1", "2"], values["webhook.headers"]["X-A"])

    def test_not_stored(self) -> None:
        """A message that is not safe is a 503 here, too."""
        wire = Wire()
        wire.consumer.failure = NotStored("disk full")
        answer = self.ask(wire, post(b"x"), IPv4Address("TCP", "192.0.2.7", 4711))
        self.assertTrue(answer.startswith(b"HTTP/1.1 503 "), answer)
        self.assertEqual((["not_stored"], []), (wire.traffic.reasons, wire.traffic.answers))

    def test_large(self) -> None:
        """A large body is judged in time slices, as long as its sender is there."""
        slices = AtOnce()
        wire = Wire(slices=slices)
        waiting: list[tuple[Any, ...]] = []
        slices.run = lambda *work: waiting.append(work)  # type: ignore[method-assign, assignment]
        self.ask(wire, post(b"x" * (DIRECT + 1)), IPv4Address("TCP", "192.0.2.7", 4711))
        ((*_, is_wanted),) = waiting
        self.assertTrue(is_wanted())

    def test_refusal(self) -> None:
        """A refusal has its status and headers."""
        wire = Wire({"/in": {}})
        client = StubTreq(wire.root)
        response = self.successResultOf(client.get("http://receiver/in"))
        self.assertEqual((405, [b"POST"]), (response.code, response.headers.getRawHeaders(b"allow")))
        self.assertEqual(["method_not_allowed"], wire.traffic.reasons)

    def test_sender_leaves(self) -> None:
        """An acknowledgement after the sender has gone is of no consequence."""
        wire = Wire()
        wire.consumer.hold()
        client = StubTreq(wire.root)
        answer = client.post("http://receiver/in", data=b"x", reactor=Clock())
        answer.addErrback(lambda _: None)
        client.flush()
        answer.cancel()
        client.flush()
        wire.consumer.acknowledge_all()
        self.assertEqual(1, len(wire.messages))
        self.assertEqual([], wire.traffic.answers)
