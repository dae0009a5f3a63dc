"""
Tests for L{webhookrx.transport.nested_epoll}: with real sockets, and a reactor that takes one step at a time.
"""

from __future__ import annotations

import itertools
import select
import socket
import struct
from typing import Any
from unittest import mock

from twisted.internet.interfaces import IReadDescriptor
from twisted.internet.main import CONNECTION_LOST
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.transport.stepped import Recorder, World, drain
from webhookrx.pipeline.queue_limit import StandingQueue
from webhookrx.transport import nested_epoll, overload
from webhookrx.transport.immediate_write import ImmediateWriteServer
from webhookrx.transport.nested_epoll import NestedEpoll
from webhookrx.transport.overload import Overload
from webhookrx.transport.tcp_info import TCPInfo


class NestedEpollCase(SynchronousTestCase):
    """
    Connections of a poll.
    """

    def setUp(self) -> None:
        self.world = World()
        self.addCleanup(self.world.close)
        self.reactor, self.poll = self.world.reactor, self.world.poll

    def connect(self, *, tcp: bool = False) -> tuple[Any, Recorder, socket.socket]:
        """Return a transport, its protocol and the peer's socket."""
        ours, theirs = self.world.pair(tcp=tcp)
        return *self.world.serve(ImmediateWriteServer, ours), theirs


class LifeTests(NestedEpollCase):
    """
    When it is open, and whom it serves.
    """

    def test_interface(self) -> None:
        """To the reactor it is one descriptor; to transports it is also what else a reactor is."""
        self.assertTrue(verifyObject(IReadDescriptor, self.poll))
        self.poll.callLater(0, lambda: None)
        self.assertEqual(1, len(self.reactor.getDelayedCalls()))
        self.assertEqual("webhookrx", self.poll.logPrefix())

    def test_serves(self) -> None:
        """It needs a reactor that watches descriptors, and an operating system with epoll."""
        self.assertTrue(NestedEpoll.serves(self.reactor))
        self.assertFalse(NestedEpoll.serves(Clock()))
        with mock.patch.object(nested_epoll, "select", object()):
            self.assertFalse(NestedEpoll.serves(self.reactor))

    def test_opened_when_needed(self) -> None:
        """It is open from the first connection to the last, and can be again."""
        for _ in range(2):
            self.assertEqual(([], -1), (self.reactor.readers, self.poll.fileno()))
            transport, _, _ = self.connect()
            self.assertEqual([self.poll], self.reactor.readers)
            self.assertGreaterEqual(self.poll.fileno(), 0)
            transport.abortConnection()
            self.reactor.advance(0)
        self.poll.doRead()
        self.assertEqual([], self.reactor.readers)

    def test_held(self) -> None:
        """While a port is open it stays open with no connection, if it has been."""
        self.poll.hold()
        transport, _, _ = self.connect()
        transport.abortConnection()
        self.reactor.advance(0)
        self.assertEqual([self.poll], self.reactor.readers)
        self.poll.let_go()
        self.assertEqual([], self.reactor.readers)

    def test_port_closes_first(self) -> None:
        """Connections outlive their port."""
        self.poll.hold()
        _, recorder, peer = self.connect()
        self.poll.let_go()
        peer.send(b"x")
        self.reactor.settle()
        self.assertEqual(b"x", recorder.received)

    def test_reactor_ends(self) -> None:
        """With the reactor all connections end, whatever one of them makes of it; and it may begin anew."""
        self.poll.hold()
        ends = [self.connect() for _ in range(3)]
        ends[0][1].on_end = self._fail
        self.poll.connectionLost(Failure(CONNECTION_LOST))
        self.assertEqual([["ConnectionLost"]] * 3, [recorder.events for _, recorder, _ in ends])
        self.assertEqual(-1, self.poll.fileno())
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
        self.poll.connectionLost(Failure(CONNECTION_LOST))
        self.reactor.readers.clear()
        _, recorder, peer = self.connect()
        peer.send(b"again")
        self.reactor.settle()
        self.assertEqual(b"again", recorder.received)

    def _fail(self) -> None:
        raise ZeroDivisionError


class TurnEndTests(NestedEpollCase):
    """
    What waits for the end of a turn.
    """

    def test_after_all(self) -> None:
        """It is done once everything that was ready has been read, and before the reactor goes on."""
        seen: list[list[bytes]] = []
        ends = [self.connect() for _ in range(3)]

        def note() -> None:
            seen.append([recorder.received for _, recorder, _ in ends])

        for _, recorder, peer in ends:
            recorder.on_data = lambda data: self.world.turn_end.add(note)
            peer.send(b"x")
        self.poll.doRead()
        self.assertEqual([[b"x"] * 3] * 3, seen)

    def test_failed_turn(self) -> None:
        """A turn that fails has an end, too."""
        done: list[bool] = []
        _, recorder, peer = self.connect()
        recorder.on_data = lambda data: self.world.turn_end.add(lambda: done.append(True))
        peer.send(b"x")
        with mock.patch.object(self.poll, "_serve", side_effect=ZeroDivisionError):
            self.assertRaises(ZeroDivisionError, self.poll.doRead)
        self.assertFalse(self.world.turn_end.add(lambda: None))
        self.poll.doRead()
        self.assertEqual([True], done)

    def test_nothing_watched(self) -> None:
        """A turn of nothing takes nothing."""
        self.poll.doRead()
        self.assertFalse(self.world.turn_end.add(lambda: None))


class WatchingTests(NestedEpollCase):
    """
    What is watched, and what for.
    """

    def test_watched_once(self) -> None:
        """Adding twice is adding once, and removing what was not added does nothing."""
        transport, recorder, peer = self.connect()
        transport.startReading()
        transport.stopWriting()
        transport.startWriting()
        transport.startWriting()
        transport.stopReading()
        transport.stopReading()
        peer.send(b"x")
        self.reactor.settle()
        self.assertEqual(b"", recorder.received)
        transport.startReading()
        self.reactor.settle()
        self.assertEqual(b"x", recorder.received)

    def test_paused(self) -> None:
        """Of a connection that is not read from nothing is lost, also when its peer has gone; and it makes no work."""
        transport, recorder, peer = self.connect()
        transport.pauseProducing()
        peer.send(b"last words")
        peer.close()
        self.assertEqual(0, self.reactor.ready())
        transport.resumeProducing()
        self.reactor.settle()
        self.assertEqual((b"last words", ["read lost"]), (recorder.received, recorder.events))

    def test_reset_while_only_written_to(self) -> None:
        """A reset reaches a connection that is not read from but has something to say."""
        transport, recorder, peer = self.connect(tcp=True)
        transport.pauseProducing()
        while not transport._tempDataLen:
            transport.write(bytes(1 << 20))
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        self.reactor.settle(wait=True)
        self.assertEqual(["ConnectionLost"], recorder.events)

    def test_reset(self) -> None:
        """A reset is no end by agreement."""
        _, recorder, peer = self.connect(tcp=True)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        self.reactor.settle(wait=True)
        self.assertEqual(["ConnectionLost"], recorder.events)

    def test_hung_up(self) -> None:
        """What can neither be read nor written, and is gone, ends."""
        _, recorder, _ = self.connect()
        epoll = mock.Mock()
        epoll.poll.return_value = [(fd, select.EPOLLHUP) for fd in self.poll._descriptors]
        with mock.patch.object(self.poll, "_epoll", epoll):
            self.poll.doRead()
        self.assertEqual(["ConnectionLost"], recorder.events)

    def test_read_and_write(self) -> None:
        """Both are done in one turn, but for what the first of them has called off."""
        for calls_off in (False, True):
            transport, recorder, peer = self.connect()
            if calls_off:
                recorder.on_data = lambda _, transport=transport: transport.stopWriting()
            written: list[str] = []
            transport.doWrite = lambda written=written: written.append("wrote")
            transport.startWriting()
            peer.send(b"x")
            self.reactor.step()
            self.assertEqual((b"x", [] if calls_off else ["wrote"]), (recorder.received, written))
            transport.stopWriting()

    def test_end_within_the_list(self) -> None:
        """One that another has ended in the same turn is not called any more."""
        ends = [self.connect() for _ in range(2)]
        for (_, recorder, peer), (other, _, _) in zip(ends, reversed(ends), strict=True):
            recorder.on_data = lambda _, other=other: other.connectionLost(Failure(CONNECTION_LOST))
            peer.send(b"x")
        self.reactor.settle()
        self.assertEqual([b"", b"x"], sorted(recorder.received for _, recorder, _ in ends))
        self.assertEqual([[], ["ConnectionLost"]], sorted(recorder.events for _, recorder, _ in ends))

    def test_many(self) -> None:
        """More than fit into one turn have theirs in the next."""
        self.patch(nested_epoll, "MOST_EVENTS", 2)
        ends = [self.connect() for _ in range(5)]
        for _, _, peer in ends:
            peer.send(b"x")
        self.reactor.step()
        self.assertEqual(2, sum(bool(recorder.received) for _, recorder, _ in ends))
        self.reactor.settle()
        self.assertEqual(5, sum(bool(recorder.received) for _, recorder, _ in ends))

    def test_long(self) -> None:
        """A turn that takes too long ends. Its other events come first in the next, whatever has come since."""
        now = itertools.count(0.0, nested_epoll.LONGEST_TURN)
        self.poll._clock = lambda: next(now)
        ends = [self.connect() for _ in range(5)]
        for _, _, peer in ends:
            peer.send(b"x")
        served = []
        for _ in ends:
            before = [recorder.received for _, recorder, _ in ends]
            self.reactor.step()
            changed = [place for place, (_, recorder, _) in enumerate(ends) if recorder.received != before[place]]
            for place in changed:
                ends[place][2].send(b"x")
            served += changed
            if len(served) >= len(ends):
                break
        self.assertEqual(list(range(5)), sorted(served[:5]))

    def test_left_then_closed(self) -> None:
        """One that is closed before its turn comes is left out."""
        now = itertools.count(0.0, nested_epoll.LONGEST_TURN)
        self.poll._clock = lambda: next(now)
        ends = [self.connect() for _ in range(4)]
        for _, _, peer in ends:
            peer.send(b"x")
        self.reactor.step()
        for transport, recorder, _ in ends:
            if not recorder.received:
                transport.abortConnection()
        for _ in range(10):
            self.reactor.step()
        self.assertLess(sum(bool(recorder.received) for _, recorder, _ in ends), 4)


class EndTests(NestedEpollCase):
    """
    How connections end, and that they do so each for itself.
    """

    def test_half_closed(self) -> None:
        """A peer that sends no more can still be answered; one turn tells it, and no further turn is made of it."""
        transport, recorder, peer = self.connect()
        peer.send(b"q")
        peer.shutdown(socket.SHUT_WR)
        self.reactor.settle()
        transport.write(b"answer")
        transport.loseConnection()
        self.reactor.settle()
        self.assertEqual((b"q", ["read lost", "ConnectionDone"]), (recorder.received, recorder.events))
        self.assertEqual(b"answer", drain(peer))

    def test_exceptions(self) -> None:
        """What fails in one connection ends that one, is logged, and reaches no other."""
        for where in ("on_data", "readConnectionLost"):
            _, bad, bad_peer = self.connect()
            _, good, good_peer = self.connect()
            setattr(bad, where, self._fail)
            bad_peer.send(b"x")
            bad_peer.shutdown(socket.SHUT_WR)
            good_peer.send(b"x")
            self.reactor.settle()
            good_peer.send(b"y")
            self.reactor.settle()
            self.assertEqual(b"xy", good.received, where)
            self.assertEqual([self.poll], self.reactor.readers, where)
            self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)), where)

    def test_failing_end(self) -> None:
        """An exception from the end of a connection that the poll itself ends stays here, too."""
        _, bad, bad_peer = self.connect(tcp=True)
        _, good, good_peer = self.connect()
        bad.on_end = self._fail
        bad_peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        bad_peer.close()
        self.reactor.settle(wait=True)
        good_peer.send(b"x")
        self.reactor.settle()
        self.assertEqual(b"x", good.received)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_failing_producer(self) -> None:
        """A producer that can't be stopped leaves nothing behind that would be taken for a later connection's."""
        transport, _, peer = self.connect()
        producer = mock.Mock()
        producer.stopProducing.side_effect = ZeroDivisionError
        transport.registerProducer(producer, True)
        transport.protocol = mock.Mock(spec=["dataReceived", "connectionLost"])
        peer.close()
        self.reactor.settle()
        self.assertEqual(({}, {}), (self.poll._descriptors, self.poll._events))
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_abort_then_exception(self) -> None:
        """A connection that is aborted, and then fails, ends once."""
        transport, recorder, peer = self.connect()

        def abort_and_fail(data: bytes) -> None:
            transport.abortConnection()
            raise ZeroDivisionError

        recorder.on_data = abort_and_fail
        peer.send(b"x")
        self.reactor.settle()
        self.assertEqual(["ZeroDivisionError"], recorder.events)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_no_double_end(self) -> None:
        """One that has ended itself, and says why to the poll as well, is not ended again."""
        transport, recorder, peer = self.connect()

        def end_itself(data: bytes) -> None:
            transport.connectionLost(Failure(CONNECTION_LOST))
            raise ZeroDivisionError

        recorder.on_data = end_itself
        peer.send(b"x")
        self.reactor.settle()
        self.assertEqual(["ConnectionLost"], recorder.events)
        self.flushLoggedErrors(ZeroDivisionError)

    def _fail(self, *_: object) -> None:
        raise ZeroDivisionError


class OverloadTests(SynchronousTestCase):
    """
    More is sent than can be read. Ages are as a test says, and so is who has left.
    """

    def setUp(self) -> None:
        self.now = 1000.0
        self.asked: list[int] = []
        self.ages: dict[int, float] = {}
        self.left: set[int] = set()
        self.dropped = 0
        self.rule = StandingQueue(0.5, 0.5, 0.0)
        self.overload = Overload(self.rule, self._count, lambda: self.now, lambda: 0.0)
        self.world = World(self.overload)
        self.addCleanup(self.world.close)
        self.poll = self.world.poll
        self.patch(nested_epoll, "tcp_info", self._info)
        self.patch(nested_epoll, "MOST_EVENTS", 2)
        self.patch(overload, "SERVED", 2)
        self.patch(overload, "OLD", 1.0)
        self.order: list[int] = []
        self.ends = []
        for number in range(6):
            ours, theirs = self.world.pair()
            transport, recorder = self.world.serve(ImmediateWriteServer, ours)
            recorder.on_data = lambda data, number=number: self.order.append(number)
            self.ages[transport.fileno()] = 0.9 - number / 10
            self.ends.append((transport, recorder, theirs))

    def _count(self) -> None:
        self.dropped += 1

    def _info(self, sock: socket.socket) -> TCPInfo | None:
        self.asked.append(sock.fileno())
        age = self.ages.get(sock.fileno())
        return None if age is None else TCPInfo(age, sock.fileno() in self.left)

    def fd(self, number: int) -> int:
        """Return the descriptor of a connection."""
        descriptor: int = self.ends[number][0].fileno()
        return descriptor

    def send(self, *numbers: int) -> None:
        """Have these senders send."""
        for number in numbers:
            self.ends[number][2].send(b"x")

    def overload_it(self) -> None:
        """Let the queue stand."""
        self.rule.stands = True

    def test_not_full(self) -> None:
        """A poll that is not full asks the kernel nothing."""
        self.send(0)
        self.world.reactor.settle()
        self.assertEqual(([0], []), (self.order, self.asked))

    def test_full(self) -> None:
        """Of a full one only the first is asked; what waits long for long stands."""
        self.ages = dict.fromkeys(self.ages, 0.9)
        for _ in range(2):
            self.send(0, 1, 2)
            self.assertFalse(self.overload.stands)
            self.world.reactor.step()
            self.assertEqual((1, 0.9), (len(self.asked), self.overload.age))
            self.now += 0.6
            self.asked.clear()
            self.send(3, 4, 5)
        self.world.reactor.step()
        self.assertTrue(self.overload.stands)

    def test_full_then_not(self) -> None:
        """A poll that is not full is the end of a queue that began to stand."""
        self.send(0, 1, 2)
        self.world.reactor.step()
        self.assertEqual(0.9, self.overload.age)
        self.world.reactor.settle()
        self.assertEqual(0.0, self.overload.age)

    def test_unix_sockets(self) -> None:
        """Connections without C{TCP_INFO} are served in the usual way."""
        self.ages.clear()
        for _ in range(5):
            self.send(0, 1, 2)
            self.now += 10
            self.world.reactor.settle()
        self.assertEqual((False, 15), (self.overload.stands, len(self.order)))
        self.overload_it()
        self.order.clear()
        self.send(*range(6))
        self.world.reactor.step()
        self.assertEqual(list(range(6)), sorted(self.order))

    def test_youngest_first(self) -> None:
        """The first wait for those that come later, and none has to send again to be served."""
        self.overload_it()
        self.send(*range(5))
        self.world.reactor.step()
        self.assertEqual([4, 3], self.order)
        self.send(5)
        self.world.reactor.step()
        self.assertEqual([4, 3, 5, 2], self.order)
        self.world.reactor.settle()
        self.assertEqual([4, 3, 5, 2, 1, 0], self.order)
        self.assertFalse(self.overload.stands)
        self.send(0)
        self.world.reactor.settle()
        self.assertEqual([4, 3, 5, 2, 1, 0, 0], self.order)

    def test_end(self) -> None:
        """When the queue stands no more, its connections are served in the usual way."""
        self.overload_it()
        self.ages = dict.fromkeys(self.ages, 0.1)
        self.send(*range(6))
        self.world.reactor.step()
        self.assertEqual((2, False, 0), (len(self.order), self.overload.stands, len(self.overload.queue)))
        self.world.reactor.settle()
        self.assertEqual(list(range(6)), sorted(self.order))
        self.assertIsNone(self.poll._alarm)

    def test_left(self) -> None:
        """Who has left, and is old, is dropped unread; what it was is gone with it."""
        self.overload_it()
        self.send(*range(4))
        self.ages = {self.fd(number): 2.0 for number in range(6)}
        self.left = {self.fd(0), self.fd(1)}
        self.world.reactor.settle()
        self.assertEqual((2, [3, 2]), (self.dropped, self.order))
        events = [recorder.events for _, recorder, _ in self.ends]
        self.assertEqual([["ConnectionLost"]] * 2 + [[]] * 4, events)
        self.assertFalse(self.overload.queue)

    def test_ended(self) -> None:
        """A connection that sends no more is served after those that may, though it came later; and it gets its end."""
        self.overload_it()
        self.left = {self.fd(1), self.fd(2)}
        self.send(0, 1, 2)
        for number in (1, 2):
            self.ends[number][2].shutdown(socket.SHUT_WR)
        self.world.reactor.step()
        self.assertEqual([0], self.order)
        self.world.reactor.settle()
        self.assertEqual([0, 2, 1], self.order)
        self.assertEqual([[], ["read lost"], ["read lost"]], [each.events for _, each, _ in self.ends[:3]])

    def test_pause(self) -> None:
        """While only such are left there are pauses; a new event, the end of a pause or a sweep ends them."""
        self.patch(overload, "DROPPED", 1)
        self.ages = {self.fd(number): 2.0 for number in range(6)}
        self.left = {self.fd(number) for number in range(5)}
        self.overload_it()
        self.send(*range(5))
        self.patch(overload, "SERVED", 0)
        self.world.reactor.step()
        self.patch(overload, "SERVED", 2)
        with mock.patch.object(self.overload, "_clock", itertools.count(1000).__next__):
            self.world.reactor.step()
            self.assertEqual((1, 0, 1), (self.dropped, self.world.reactor.ready(), len(self._timers())))
            self.send(5)
            self.world.reactor.step()
            self.assertEqual(
                ([5], 1, 0, 1), (self.order, self.dropped, self.world.reactor.ready(), len(self._timers()))
            )
            self.world.reactor.advance(60)
            self.assertEqual((1, []), (self.world.reactor.ready(), self._timers()))
            self.world.reactor.step()
            self.assertEqual((1, 0, 1), (self.dropped, self.world.reactor.ready(), len(self._timers())))
        self.poll.wake_up()
        self.assertEqual((1, []), (self.world.reactor.ready(), self._timers()))
        self.now = 2000.0
        self.world.reactor.settle()
        self.assertEqual((5, False, []), (self.dropped, self.overload.stands, self._timers()))

    def _timers(self) -> list[Any]:
        return self.world.reactor.getDelayedCalls()

    def test_writing(self) -> None:
        """Who waits to be read may be written to meanwhile, and is not read by that."""
        self.overload_it()
        self.send(*range(4))
        self.world.reactor.step()
        waiting = self.ends[0][0]
        written: list[str] = []
        waiting.doWrite = lambda: written.append("wrote")
        waiting.startWriting()
        self.patch(overload, "SERVED", 0)
        self.world.reactor.step()
        self.assertEqual((["wrote"], [3, 2]), (written, self.order))
        waiting.stopWriting()
        self.world.reactor.step()
        self.assertEqual((["wrote"], [3, 2]), (written, self.order))

    def test_paused(self) -> None:
        """Who is paused while it waits leaves the queue, is not read, and comes again when it is resumed."""
        self.overload_it()
        self.send(*range(4))
        self.world.reactor.step()
        self.assertTrue(self.overload.has_unread(self.fd(0)))
        self.ends[0][0].pauseProducing()
        self.assertFalse(self.overload.has_unread(self.fd(0)))
        self.world.reactor.settle()
        self.assertEqual([3, 2, 1], self.order)
        self.ends[0][0].resumeProducing()
        self.world.reactor.settle()
        self.assertEqual([3, 2, 1, 0], self.order)

    def test_aborted(self) -> None:
        """Who ends while it waits is not read, and what comes by its descriptor then is another's."""
        self.overload_it()
        self.send(*range(4))
        self.world.reactor.step()
        self.ends[0][0].connectionLost(Failure(CONNECTION_LOST))
        self.world.reactor.settle()
        self.assertEqual([3, 2, 1], self.order)

    def test_reset(self) -> None:
        """Whose connection is reset while it waits ends at once."""
        ours, theirs = self.world.pair(tcp=True)
        transport, recorder = self.world.serve(ImmediateWriteServer, ours)
        self.ages[transport.fileno()] = 0.95
        theirs.send(b"x")
        self.overload_it()
        self.world.reactor.ready(wait=True)
        self.patch(overload, "SERVED", 0)
        self.world.reactor.step()
        self.assertTrue(self.overload.has_unread(transport.fileno()))
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        theirs.close()
        self.world.reactor.step()
        self.assertEqual(["ConnectionLost"], recorder.events)

    def test_reactor_ends(self) -> None:
        """With the reactor, waiting connections end, too."""
        self.poll.hold()
        self.overload_it()
        self.send(*range(5))
        self.world.reactor.step()
        self.poll.connectionLost(Failure(CONNECTION_LOST))
        self.assertEqual([["ConnectionLost"]] * 6, [recorder.events for _, recorder, _ in self.ends])
        self.assertEqual((0, -1), (len(self.overload.queue), self.poll.fileno()))

    def test_last_connection_ends(self) -> None:
        """When the last connection ends while the queue stands, nothing stays open."""
        self.overload_it()
        for _, recorder, _ in self.ends:
            recorder.on_data = lambda data, recorder=recorder: recorder.transport.connectionLost(
                Failure(CONNECTION_LOST)
            )
        self.send(*range(6))
        self.world.reactor.settle()
        self.assertEqual((-1, [], None), (self.poll.fileno(), self.world.reactor.readers, self.poll._alarm))


class AssumptionTests(SynchronousTestCase):
    """
    What of Twisted is leaned on.
    """

    def test_closed_descriptor(self) -> None:
        """A transport whose connection is lost has -1 for its descriptor: this is how the poll tells."""
        world = World()
        self.addCleanup(world.close)
        transport, _ = world.serve(ImmediateWriteServer, world.pair()[0])
        transport.connectionLost(Failure(CONNECTION_LOST))
        self.assertEqual(-1, transport.fileno())
