"""
Tests for L{webhookrx.transport.swappable_endpoint}.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from typing import Any
from unittest import mock

from twisted.internet import tcp, unix
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IListeningPort, IProtocolFactory, IStreamServerEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from tests.system.certificates import Authority, server_settings, write_ca_file
from tests.transport.in_memory import client_context
from tests.transport.stepped import Recorder, TLSClient, World, drain
from webhookrx.transport.immediate_write import ImmediateWriteServer, ImmediateWriteUNIXServer
from webhookrx.transport.native_tls import TLSServer, TLSUNIXServer
from webhookrx.transport.overload import Overload
from webhookrx.transport.server_context import ServerConnectionCreator
from webhookrx.transport.swappable_endpoint import SwappableEndpoint


@implementer(IListeningPort)
class OpenPort:
    """A port that starts and stops its factory as real ones do."""

    def __init__(self, factory: IProtocolFactory) -> None:
        self.factory = factory

    def startListening(self) -> None:
        self.factory.doStart()

    def stopListening(self) -> None:
        self.factory.doStop()

    def getHost(self) -> str:
        return "the address"


@implementer(IStreamServerEndpoint)
class Socket:
    """
    An endpoint that opens L{OpenPort}s.

    @ivar ports: all that were opened.
    @ivar fails: open none.
    """

    def __init__(self) -> None:
        self.ports: list[OpenPort] = []
        self.fails = False

    def listen(self, protocolFactory: IProtocolFactory) -> Deferred[IListeningPort]:
        if self.fails:
            return fail(CannotListenError(None, 1, OSError(98, "Address already in use")))
        port = OpenPort(protocolFactory)
        port.startListening()
        self.ports.append(port)
        return succeed(port)


class Named(Factory):
    """Makes protocols that know its name, and notes when it is started and stopped."""

    noisy = False

    def __init__(self, name: str, events: list[str]) -> None:
        self.name = name
        self._events = events

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        protocol = Protocol()
        protocol.factory = self
        return protocol

    def startFactory(self) -> None:
        self._events.append(f"start {self.name}")

    def stopFactory(self) -> None:
        self._events.append(f"stop {self.name}")


class SwappableEndpointTests(SynchronousTestCase):
    """
    One socket, several factories after one another.
    """

    def setUp(self) -> None:
        self.socket = Socket()
        self.endpoint = SwappableEndpoint(self.socket)
        self.events: list[str] = []
        self.one, self.two = Named("one", self.events), Named("two", self.events)

    def next_connection(self) -> str:
        """The name of the factory that gets it."""
        return self.socket.ports[-1].factory.buildProtocol(None).factory.name

    def test_interface(self) -> None:
        """It is an endpoint."""
        self.assertTrue(verifyObject(IStreamServerEndpoint, self.endpoint))

    def test_change(self) -> None:
        """Listening again replaces the factory, on the same port."""
        port = self.successResultOf(self.endpoint.listen(self.one))
        self.assertEqual("one", self.next_connection())
        self.assertIs(port, self.successResultOf(self.endpoint.listen(self.two)))
        self.assertEqual("two", self.next_connection())
        self.assertEqual((1, ["start one", "start two", "stop one"]), (len(self.socket.ports), self.events))
        port.stopListening()
        self.assertEqual("stop two", self.events[-1])

    def test_same_factory(self) -> None:
        """A factory that takes its own place is not stopped in between."""
        port = self.successResultOf(self.endpoint.listen(self.one))
        self.endpoint.listen(self.one)
        self.assertEqual(["start one"], self.events)
        port.stopListening()
        self.assertEqual(["start one", "stop one"], self.events)

    def test_closed(self) -> None:
        """Once its port is closed, to listen is to open another."""
        first = self.successResultOf(self.endpoint.listen(self.one))
        first.stopListening()
        self.assertIsNot(first, self.successResultOf(self.endpoint.listen(self.two)))
        self.assertEqual((2, "two"), (len(self.socket.ports), self.next_connection()))

    def test_failure(self) -> None:
        """A socket that can't be opened is the endpoint's failure, and may be opened later."""
        self.socket.fails = True
        self.failureResultOf(self.endpoint.listen(self.one), CannotListenError)
        self.socket.fails = False
        self.successResultOf(self.endpoint.listen(self.two))
        self.assertEqual("two", self.next_connection())


class DeafPort(tcp.Port):
    """A port that makes its transports as it likes."""

    @property
    def transport(self) -> Any:
        return tcp.Server

    @transport.setter
    def transport(self, wanted: object) -> None:
        """As if nobody had said anything."""


@implementer(IStreamServerEndpoint)
class Listening:
    """An endpoint that opens ports of one kind."""

    def __init__(self, kind: type[tcp.Port], reactor: Any, name: object) -> None:
        self._kind, self._reactor, self._name = kind, reactor, name

    def listen(self, protocolFactory: IProtocolFactory) -> Deferred[IListeningPort]:
        port: Any = self._kind(self._name, protocolFactory, reactor=self._reactor)  # type: ignore[arg-type]
        port.startListening()
        return succeed(port)


class Recorders(Factory):
    """Makes recorders, and keeps them; makes none while C{full}."""

    noisy = False

    def __init__(self) -> None:
        self.made: list[Recorder] = []
        self.full = False

    def buildProtocol(self, addr: IAddress | None) -> Recorder | None:  # type: ignore[override]
        if self.full:
            return None
        self.made.append(Recorder())
        self.made[-1].on_data = lambda _, made=self.made[-1]: made.transport.write(b"answer")
        return self.made[-1]


class TransportTests(SynchronousTestCase):
    """
    Which transports connections get.
    """

    def setUp(self) -> None:
        self.world = World()
        self.addCleanup(self.world.close)
        self.directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, self.directory)
        root = Authority("Root")
        self.creator = ServerConnectionCreator(server_settings(self.directory, root.issue("server")))
        self.context = client_context(write_ca_file(self.directory, "ca", root))
        self.factory = Recorders()

    def open(self, kind: type[tcp.Port], *, nested_epoll: bool = True) -> SwappableEndpoint:
        """Return a swappable endpoint on a port of that kind."""
        name = os.path.join(self.directory, "socket") if issubclass(kind, unix.Port) else 0
        self.endpoint = SwappableEndpoint(
            Listening(kind, self.world.reactor, name), self.world.poll if nested_epoll else None
        )
        return self.endpoint

    def enter(self, endpoint: IStreamServerEndpoint) -> socket.socket:
        """Listen, and connect; return the client's socket."""
        self.port: Any = self.successResultOf(endpoint.listen(self.factory))
        self.addCleanup(self.port.stopListening)
        client = socket.socket(self.port.addressFamily)
        self.world.sockets.append(client)
        client.connect(self.port.socket.getsockname())
        client.setblocking(False)
        self.port.doRead()
        return client

    def test_plain(self) -> None:
        """Those of Twisted's own ports are ours, watched by the poll where there is one."""
        for kind, transport in ((tcp.Port, ImmediateWriteServer), (unix.Port, ImmediateWriteUNIXServer)):
            for nested_epoll in (True, False):
                self.enter(self.open(kind, nested_epoll=nested_epoll))
                made: Any = self.factory.made[-1].transport
                self.assertIs(transport, type(made))
                self.assertIs(self.world.poll if nested_epoll else self.world.reactor, made.reactor)
                made.abortConnection()
                self.port.stopListening()
                self.world.reactor.advance(0)

    def test_accept_gate(self) -> None:
        """While more is sent than can be read, few come in by a port of TCP that a poll watches, and all by others."""
        rule = mock.Mock(stands=True)
        for kind, has_overload, gated in ((tcp.Port, True, True), (tcp.Port, False, False), (unix.Port, True, False)):
            self.world.poll.overload = Overload(rule, lambda: None) if has_overload else None
            before = len(self.factory.made)
            self.enter(self.open(kind))
            self.assertEqual(0 if gated else 1, len(self.factory.made) - before, (kind, has_overload))
            rule.stands = False
            self.port.doRead()
            self.assertEqual(1, len(self.factory.made) - before, (kind, has_overload))
            rule.stands = True
            self.factory.made[-1].transport.abortConnection()
            self.port.stopListening()
            self.world.reactor.advance(0)

    def test_tls(self) -> None:
        """With TLS they have it on the socket."""
        for kind, transport in ((tcp.Port, TLSServer), (unix.Port, TLSUNIXServer)):
            client = TLSClient(self.context, self.enter(self.open(kind).with_tls(self.creator)))
            self.assertIs(transport, type(self.factory.made[-1].transport))
            self.talk(client)

    def test_deaf_port(self) -> None:
        """On a port that makes its transports itself there is TLS all the same, and not a byte of plain text."""
        client = TLSClient(self.context, self.enter(self.open(DeafPort).with_tls(self.creator)))
        self.assertIsInstance(self.factory.made[-1].transport, TLSMemoryBIOProtocol)
        self.talk(client)
        client.socket.close()
        self.finish(lambda: "ConnectionLost" in self.factory.made[-1].events)

    def test_deaf_port_and_plain_text(self) -> None:
        """Who speaks plain text to such a port is not understood."""
        client = self.enter(self.open(DeafPort).with_tls(self.creator))
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        self.finish(lambda: self.factory.made[-1].reason is not None)
        self.assertEqual(b"", self.factory.made[-1].received)
        self.assertNotIn(b"answer", drain(client))

    def test_other_port(self) -> None:
        """So it is with a port that is not Twisted's."""
        endpoint = SwappableEndpoint(Socket())
        port: Any = self.successResultOf(endpoint.with_tls(self.creator).listen(self.factory))
        protocol = port.factory.buildProtocol(None)
        ours, theirs = self.world.pair()
        transport = tcp.Server(ours, protocol, ("peer", 1), None, 1, self.world.reactor)  # type: ignore[arg-type]
        protocol.connectionMade()
        protocol.makeConnection(transport)
        self.assertIsInstance(self.factory.made[-1].transport, TLSMemoryBIOProtocol)
        theirs.close()

    def test_no_protocol(self) -> None:
        """A factory that wants no connection gets none."""
        self.factory.full = True
        client = self.enter(self.open(tcp.Port).with_tls(self.creator))
        client.setblocking(True)
        client.settimeout(20)
        self.assertEqual(b"", client.recv(1))

    def test_changed(self) -> None:
        """An endpoint changes between plain text and TLS; open connections stay as they are."""
        endpoint = self.open(tcp.Port)
        self.enter(endpoint)
        first: Any = self.factory.made[-1].transport
        secure = self.enter(endpoint.with_tls(self.creator))
        self.talk(TLSClient(self.context, secure))
        self.enter(endpoint)
        self.assertEqual(
            [ImmediateWriteServer, TLSServer, ImmediateWriteServer],
            [type(each.transport) for each in self.factory.made],
        )
        self.assertTrue(first.connected)

    def test_poll_is_held(self) -> None:
        """The poll stays open while a port is, and is closed after it."""
        self.enter(self.open(tcp.Port))
        made: Any = self.factory.made[-1].transport
        made.abortConnection()
        self.world.reactor.advance(0)
        self.assertIn(self.world.poll, self.world.reactor.readers)
        self.port.stopListening()
        self.world.reactor.settle()
        self.assertNotIn(self.world.poll, self.world.reactor.readers)

    def talk(self, client: TLSClient) -> None:
        """Ask and be answered, in time."""
        asked = False
        for _ in range(100):
            client.turn()
            if client.tls.version() and not asked and "handshake" in self.factory.made[-1].events:
                asked = True
                client.send(b"question")
            self._step()
            if client.received:
                break
        self.assertEqual((b"question", b"answer"), (self.factory.made[-1].received, client.received))

    def finish(self, done: Any) -> None:
        """Go on until something has happened."""
        for _ in range(100):
            if done():
                return
            self._step()
        self.fail("it has not happened")

    def _step(self) -> None:
        reactor = self.world.reactor
        reactor.ready(wait=not reactor.getDelayedCalls() and not reactor.writers, most=50)
        reactor.step()
