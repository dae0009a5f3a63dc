"""
Tests for L{webhookrx.transport.immediate_write}: with real sockets, and a reactor that takes one step at a time.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from typing import Any

from twisted.internet import tcp, unix
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IReadWriteDescriptor, ITCPTransport
from twisted.internet.protocol import Factory, Protocol
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.system.certificates import self_signed, server_settings
from tests.transport.stepped import Producer, Recorder, World, drain
from webhookrx.transport.immediate_write import ImmediateWriteServer, ImmediateWriteUNIXServer
from webhookrx.transport.server_context import ServerConnectionCreator

MUCH = bytes(range(256)) * 16384


class EagerCase(SynchronousTestCase):
    """
    One connection.
    """

    def setUp(self) -> None:
        self.world = World()
        self.addCleanup(self.world.close)

    def connect(self, **how: bool) -> tuple[Any, Recorder, socket.socket]:
        """Return a transport, its protocol and the peer's socket."""
        ours, theirs = self.world.pair(**how)
        return *self.world.serve(ImmediateWriteServer, ours), theirs

    def take(self, peer: socket.socket, transport: Any) -> bytes:
        """Let all of it get to the peer."""
        taken = b""
        while piece := drain(peer):
            taken += piece
            self.world.reactor.step()
        return taken


class WriteTests(EagerCase):
    """
    What is sent, when, and in which order.
    """

    def test_interfaces(self) -> None:
        """It is a transport as Twisted has them."""
        transport, _, _ = self.connect(tcp=True)
        for interface in (ITCPTransport, IReadWriteDescriptor):
            self.assertTrue(verifyObject(interface, transport))

    def test_at_once(self) -> None:
        """What the socket takes is sent at once, and the reactor hears nothing of it."""
        transport, _, peer = self.connect()
        transport.write(b"one ")
        transport.writeSequence([b"two", b" ", b"three"])
        self.assertEqual((b"one two three", 0), (drain(peer), self.world.reactor.ready()))

    def test_nothing(self) -> None:
        """To write nothing changes nothing."""
        transport, _, peer = self.connect()
        transport.write(b"")
        transport.writeSequence([])
        transport.write(b"x")
        self.assertEqual(b"x", drain(peer))

    def test_not_bytes(self) -> None:
        """Writing text raises at once."""
        transport, _, _ = self.connect()
        for text in ("text", ""):
            self.assertRaises(TypeError, transport.write, text)

    def test_order(self) -> None:
        """What comes after something that waits waits behind it, and what comes after that is sent at once again."""
        transport, _, peer = self.connect(small=True)
        transport.write(MUCH)
        transport.write(b"behind")
        self.assertEqual(MUCH + b"behind", self.take(peer, transport))
        transport.write(b"at once")
        self.assertEqual(b"at once", drain(peer))

    def test_written_while_taken(self) -> None:
        """A protocol that writes when its answer has been taken keeps the order, too."""
        transport, _, peer = self.connect(small=True)
        producer = Producer()
        producer.resumeProducing = lambda: transport.write(b"more")  # type: ignore[method-assign]
        transport.registerProducer(producer, True)
        transport.write(MUCH)
        self.assertEqual(MUCH + b"more", self.take(peer, transport))

    def test_gone(self) -> None:
        """Nothing is sent after the end, nor is that a mistake; that the peer is gone is found out by the reactor."""
        transport, recorder, peer = self.connect()
        peer.close()
        transport.write(b"x")
        self.assertEqual([], recorder.events)
        self.world.reactor.settle()
        self.assertEqual(["read lost", "ConnectionLost"], recorder.events)
        transport.write(b"x")
        self.assertEqual([], self.world.reactor.readers)


class ProducerTests(EagerCase):
    """
    Producers of either kind.
    """

    def test_push(self) -> None:
        """A push producer is paused when much waits, and goes on when it has been taken."""
        transport, _, peer = self.connect(small=True)
        producer = Producer()
        transport.registerProducer(producer, True)
        transport.write(b"little")
        self.assertEqual([], producer.events)
        transport.write(MUCH)
        self.assertEqual(["pause"], producer.events)
        self.take(peer, transport)
        self.assertEqual(["pause", "resume"], producer.events)
        transport.unregisterProducer()

    def test_pull(self) -> None:
        """A pull producer is asked for one piece after another."""
        transport, _, peer = self.connect()
        pieces = [b"a", b"b", b"c"]

        class Pull(Producer):
            def resumeProducing(self) -> None:
                if pieces:
                    transport.write(pieces.pop(0))
                else:
                    transport.unregisterProducer()

        transport.registerProducer(Pull(), False)
        self.world.reactor.settle()
        self.assertEqual(b"abc", drain(peer))

    def test_stopped(self) -> None:
        """A producer hears of the end."""
        transport, _, _ = self.connect(tcp=True)
        producer = Producer()
        transport.registerProducer(producer, True)
        transport.abortConnection()
        self.world.reactor.settle()
        self.assertEqual(["stop"], producer.events)


class EndTests(EagerCase):
    """
    The ways in which it ends.
    """

    def test_lose(self) -> None:
        """It ends when all is sent, not before, and not within the call."""
        transport, recorder, peer = self.connect(small=True)
        transport.write(MUCH)
        transport.loseConnection()
        transport.write(b"afterthought")
        self.assertEqual([], recorder.events)
        self.assertEqual(MUCH + b"afterthought", self.take(peer, transport))
        self.assertEqual((["ConnectionDone"], b""), (recorder.events, peer.recv(1)))

    def test_ended(self) -> None:
        """Who wants to know of its end is told once."""
        transport, _, _ = self.connect()
        ends: list[str] = []
        transport.ended = lambda: ends.append("ended")
        for _ in range(2):
            transport.connectionLost(Failure(ConnectionDone()))
        self.assertEqual(["ended"], ends)

    def test_lose_while_reading(self) -> None:
        """A protocol that ends its connection gets no more data."""
        transport, recorder, peer = self.connect()
        recorder.on_data = lambda _: transport.loseConnection()
        peer.send(b"one")
        self.world.reactor.step()
        peer.send(b"two")
        self.world.reactor.settle()
        self.assertEqual((b"one", ["ConnectionDone"]), (recorder.received, recorder.events))

    def test_abort(self) -> None:
        """After an abort nothing is sent: neither what waits nor, past it, what is written later."""
        transport, recorder, peer = self.connect(tcp=True, small=True)
        while not transport._tempDataLen:
            transport.write(MUCH)
        transport.abortConnection()
        drain(peer)
        transport.write(b"past it")
        self.world.reactor.step()
        self.assertEqual((["ConnectionAborted"], b""), (recorder.events, drain(peer)))

    def test_half_close(self) -> None:
        """To end writing sends what waits first, and reading goes on."""
        transport, recorder, peer = self.connect(small=True)
        transport.write(MUCH)
        transport.loseWriteConnection()
        self.assertEqual(MUCH, self.take(peer, transport))
        self.assertEqual((["write lost"], b""), (recorder.events, peer.recv(1)))
        transport.write(b"too late")
        peer.send(b"still heard")
        self.world.reactor.settle()
        self.assertEqual(b"still heard", recorder.received)
        transport.loseConnection()
        self.assertEqual(["write lost", "ConnectionDone"], recorder.events)

    def test_read_errors(self) -> None:
        """A socket with nothing to read is no error; any other failure is the end."""
        transport, _, _ = self.connect()
        self.assertIsNone(transport.doRead())
        transport.socket.close()
        self.assertEqual("ConnectionLost", type(transport.doRead()).__name__)


class UNIXTests(EagerCase):
    """
    What is particular about UNIX sockets.
    """

    def test_descriptors(self) -> None:
        """A descriptor goes with the byte that is written for it, as Twisted has it."""
        ours, theirs = self.world.pair()
        transport, recorder = self.world.serve(ImmediateWriteUNIXServer, ours)
        transport.sendFileDescriptor(theirs.fileno())
        transport.write(b"x")
        self.world.reactor.step()
        data, descriptors, _, _ = socket.recv_fds(theirs, 16, 1)
        self.addCleanup(socket.socket(fileno=descriptors[0]).close)
        self.assertEqual((b"x", 1, []), (data, len(descriptors), recorder.events))

    def test_peer(self) -> None:
        """It knows its peer by the name that the port has for it."""
        transport, _ = self.world.serve(ImmediateWriteUNIXServer, self.world.pair()[0])
        self.assertEqual(b"peer", transport.getPeer().name)


class StartTLSTests(EagerCase):
    """
    Twisted's own TLS, begun on a connection that is there.
    """

    def test_nothing_plain(self) -> None:
        """Once it has begun nothing is sent past it."""
        transport, _, peer = self.connect()
        directory = self.mktemp()
        os.mkdir(directory)
        transport.startTLS(ServerConnectionCreator(server_settings(directory, self_signed("server"))), True)
        self.assertIsInstance(transport.protocol, TLSMemoryBIOProtocol)
        transport.write(b"secret")
        self.world.reactor.settle()
        self.assertNotIn(b"secret", drain(peer))


class AssumptionTests(EagerCase):
    """
    What of Twisted is leaned on.
    """

    def test_ports_ask(self) -> None:
        """A port of Twisted's makes its transports by its attribute C{transport}."""
        directory = tempfile.mkdtemp(prefix="webhookrx-")  # a short name, as a UNIX socket needs
        self.addCleanup(shutil.rmtree, directory)
        for kind, arguments in ((tcp.Port, (0,)), (unix.Port, (os.path.join(directory, "socket"),))):
            self.assertTrue(callable(kind.transport), kind)
            asked: list[tuple[object, ...]] = []
            port: Any = kind(*arguments, Factory.forProtocol(Protocol), reactor=self.world.reactor)
            port.transport = lambda *given, asked=asked: asked.append(given)
            port.factory.protocol = lambda: _Unconnected()
            port.startListening()
            self.addCleanup(port.stopListening)
            with socket.socket(port.addressFamily) as client:
                client.connect(port.socket.getsockname())
                port.doRead()
            self.assertEqual(6, len(asked[0]), f"{kind} does not ask for its transports as it did")

    def test_attributes(self) -> None:
        """What is read of a transport is there before anything happens, and stays what it was."""
        transport, _, _ = self.connect()
        for name, value in (("producer", None), ("streamingProducer", False), ("TLS", False), ("connected", 1)):
            self.assertEqual(value, getattr(transport, name, "gone"), name)
        for name in ("startWriting", "stopWriting", "writeSomeData", "abortConnection", "_postLoseConnection"):
            self.assertTrue(callable(getattr(tcp.Server, name, None)), name)

    def test_empty_buffer(self) -> None:
        """Twisted stops writing exactly when its buffer is empty."""
        transport, _, peer = self.connect(small=True)
        transport.write(MUCH)
        while transport._writing:
            self.assertTrue(transport.dataBuffer or transport._tempDataLen)
            drain(peer)
            self.world.reactor.step()
        self.assertEqual((b"", 0), (transport.dataBuffer, transport._tempDataLen))


class _Unconnected(Protocol):
    def makeConnection(self, transport: object) -> None:
        """No transport was made."""
