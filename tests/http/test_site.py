"""
Tests for L{webhookrx.http.site}: what all connections share, and how it is changed under way.
"""

from __future__ import annotations

from twisted.internet.interfaces import IPushProducer
from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.static import Data
from zope.interface.verify import verifyObject

from tests.http.test_resources import Tree, get
from tests.http.wire import Wire, post
from webhookrx.http.resources import RootResource
from webhookrx.settings import Limits


class UseTests(SynchronousTestCase):
    """Another root and other limits, with connections open."""

    def setUp(self) -> None:
        """Have a site, and the root of another."""
        self.wire = Wire({"/old": {"name": "old"}})
        self.other = Wire({"/new": {"name": "new"}}, consumer=self.wire.consumer)

    def test_root(self) -> None:
        """An open connection stays, and its next request goes to the new root."""
        sender = self.wire.connect()
        sender.send(post(b"1", b"/old") + post(b"2", b"/new"))
        self.wire.settle()
        self.wire.site.use(self.other.root, Limits())
        sender.send(post(b"3", b"/old") + post(b"4", b"/new"))
        for _ in range(2):
            self.wire.settle()
            self.other.settle()

        self.assertEqual([200, 404, 404, 200], sender.statuses())
        self.assertEqual(["old", "new"], [message["SOURCE"] for message in self.wire.messages])
        self.assertIsNone(sender.transport.end)

    def test_request_under_way(self) -> None:
        """A request whose head the old root has judged ends there."""
        sender = self.wire.connect()
        request = post(b"hello", b"/old")
        sender.send(request[:-2])
        self.wire.site.use(self.other.root, Limits())
        sender.send(request[-2:])
        self.wire.settle()

        self.assertEqual([200], sender.statuses())
        self.assertEqual(["hello"], [message["MESSAGE"] for message in self.wire.messages])

    def test_stock_root(self) -> None:
        """From our root to one of C{twisted.web}'s own and back."""
        ours = self.wire.root
        sender = self.wire.connect()
        self.wire.site.use(Tree(b"data", Data(b"hello", "text/plain")), Limits())
        sender.send(get(b"/data"))
        self.wire.site.use(ours, Limits())
        sender.send(get(b"/data"))

        self.assertEqual([200, 404], sender.statuses())

    def test_limits(self) -> None:
        """The next request on an open connection has the new limits."""
        sender = self.wire.connect()
        self.wire.site.use(self.wire.root, Limits(body=2))
        sender.send(post(b"123", b"/old"))

        self.assertEqual([413], sender.statuses())

    def test_connections(self) -> None:
        """With a lower limit those with requests under way stay, and no other comes in until enough have gone."""
        connections = self.wire.connections
        first, second = (self.wire.connect(peer=f"192.0.2.{number}") for number in range(2))
        for sender in (first, second):
            sender.send(post(b"hello", b"/old")[:-1])
        connections.use(Limits(connections=1))
        self.assertEqual((2, 1), (connections.total, connections.most))
        self.assertEqual([503], self.wire.connect(peer="192.0.2.3").statuses())
        first.send(b"o")
        self.wire.settle()
        self.assertEqual([200], first.statuses())
        first.leave()
        second.leave()
        self.wire.advance(3)
        self.assertEqual([], self.wire.connect(peer="192.0.2.3").statuses())

    def test_connections_per_peer(self) -> None:
        """The limit by peer changes likewise."""
        self.wire.connect()
        self.wire.connections.use(Limits(connections_per_peer=1))
        self.assertEqual([503], self.wire.connect().statuses())
        self.assertEqual([], self.wire.connect(peer="192.0.2.3").statuses())


class CountTests(SynchronousTestCase):
    """What metrics are made of."""

    def test_requests(self) -> None:
        """A request is under way from its first byte to its answer; connections count while they are open."""
        wire = Wire()
        wire.consumer.hold()
        idle, begun, waiting = (wire.connect() for _ in range(3))
        self.assertEqual((3, 0), (wire.site.connections, wire.site.requests))
        begun.send(post(b"x")[:9])
        waiting.send(post(b"x"))
        wire.settle()
        self.assertEqual((3, 2), (wire.site.connections, wire.site.requests))
        wire.consumer.acknowledge_all()
        begun.leave()
        self.assertEqual((2, 0), (wire.site.connections, wire.site.requests))
        idle.leave()
        self.assertEqual(1, wire.site.connections)


class DispatchTests(SynchronousTestCase):
    """Who judges."""

    def test_early(self) -> None:
        """A root that judges early is asked; another one is not."""
        self.assertIsInstance(Wire().site.resource, RootResource)
        wire = Wire(root=Tree(b"data", Data(b"hello", "text/plain")))
        self.assertEqual(200, wire.ask(get(b"/data")).status)


class PauseTests(SynchronousTestCase):
    """The chain has a site read on, or not."""

    def setUp(self) -> None:
        """Have a sender whose head is begun."""
        self.wire = Wire()
        self.site = self.wire.site
        self.sender = self.wire.connect()
        self.sender.send(b"POST ")
        self.wire.clock.advance(5)

    def test_interface(self) -> None:
        """It is a producer that can be paused."""
        verifyObject(IPushProducer, self.site)

    def test_deadlines(self) -> None:
        """Senders get the time back in which nothing was read from them, all of it and no more."""
        before = self.sender.protocol.deadline
        self.site.pauseProducing()
        self.assertEqual((before, False), (self.sender.protocol.deadline, self.sender.transport.reading))
        self.wire.clock.advance(1)
        self.site.pauseProducing()
        self.wire.clock.advance(0.5)
        self.site.resumeProducing()
        self.assertEqual((before + 1.5, True), (self.sender.protocol.deadline, self.sender.transport.reading))
        self.site.resumeProducing()
        self.assertEqual(before + 1.5, self.sender.protocol.deadline)

    def test_end(self) -> None:
        """To stop, or to finish, is to read on: everyone is to hear of it."""
        for end in (self.site.stopProducing, self.site.finish):
            self.site.pauseProducing()
            end()
            self.assertTrue(self.sender.transport.reading)


class EndTests(SynchronousTestCase):
    """The last requests, and a beginning after them."""

    def setUp(self) -> None:
        """Have a sender."""
        self.wire = Wire()
        self.site = self.wire.site
        self.sender = self.wire.connect()

    def ask(self) -> tuple[int, str | None, str | None]:
        """Send a request; return status and Connection of the answer, and how the connection has ended."""
        self.sender.send(post(b"x"))
        self.wire.settle()
        (response,) = self.sender.responses()
        return response.status, response.headers.get("connection"), self.sender.transport.end

    def test_finish(self) -> None:
        """A request is answered as ever, and its sender told that it was the last one here."""
        self.site.finish()
        self.assertEqual((200, "close", "closed"), self.ask())
        self.sender = self.wire.connect()
        self.assertEqual((200, "close", "closed"), self.ask())

    def test_stop(self) -> None:
        """Once the chain takes no more a request is refused."""
        self.site.stopProducing()
        self.assertEqual((503, "close", "half"), self.ask())

    def test_start_again(self) -> None:
        """One that is started again takes requests, and more than one."""
        for end in (self.site.finish, self.site.stopProducing):
            end()
            self.site.startFactory()
            self.assertEqual((200, None, None), self.ask())

    def test_quiet(self) -> None:
        """It writes no lines of Twisted's into the log."""
        with capturedLogs() as events:
            self.site.doStart()
            self.site.doStop()
        self.assertEqual([], list(events))


class SweepTests(SynchronousTestCase):
    """What is looked at now and then."""

    def test_date(self) -> None:
        """Answers have the date of the last look."""
        wire = Wire()
        for seconds, date in ((0, "12:00:00"), (2, "12:00:02")):
            wire.advance(seconds)
            self.assertEqual(f"Thu, 01 Jan 2026 {date} GMT", wire.ask(post(b"x")).headers["date"])
