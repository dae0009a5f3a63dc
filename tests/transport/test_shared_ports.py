"""
Tests for L{webhookrx.transport.shared_ports}: with sockets, but without a reactor that would look at them.
"""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from typing import Any

from twisted.internet import tcp
from twisted.internet.abstract import FileDescriptor
from twisted.internet.address import IPv4Address, UNIXAddress
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort, ILoggingContext, IProtocolFactory, IStreamServerEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from webhookrx.errors import ConfigError
from webhookrx.settings import Listener
from webhookrx.transport.listener_service import CannotListen
from webhookrx.transport.shared_ports import MOST_ACCEPTED, BoundPorts, SharedPorts


class _Reactor:
    """
    Notes what it should look at.
    """

    def __init__(self) -> None:
        self.readers: list[Any] = []

    def addReader(self, reader: Any) -> None:
        self.readers.append(reader)

    def removeReader(self, reader: Any) -> None:
        if reader in self.readers:
            self.readers.remove(reader)

    def removeWriter(self, writer: Any) -> None:
        """Nothing is written here."""


class _Factory(Factory):
    """Records connections."""

    noisy = False
    started = 0

    def __init__(self) -> None:
        self.peers: list[object] = []
        self.protocols: list[Protocol] = []

    def startFactory(self) -> None:
        self.started += 1

    def stopFactory(self) -> None:
        self.started -= 1

    def buildProtocol(self, addr: object) -> Any:
        self.peers.append(addr)
        self.protocols.append(Protocol())
        return self.protocols[-1]


class SharedPortsCase(SynchronousTestCase):
    """
    Sockets that somebody else has opened.
    """

    def setUp(self) -> None:
        self.reactor = _Reactor()
        self.factory = _Factory()
        self.sockets = SharedPorts(self.reactor)
        self.addCleanup(self.sockets.close)

    def tcp(self) -> socket.socket:
        """Open a TCP socket as the parent does."""
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)
        return listening

    def unix(self) -> tuple[socket.socket, str]:
        """Open a UNIX socket as the parent does; return its name, too."""
        directory = tempfile.mkdtemp(prefix="webhookrx-")
        path = os.path.join(directory, "in")
        self.addCleanup(os.rmdir, directory)
        self.addCleanup(os.unlink, path)
        listening = socket.socket(socket.AF_UNIX)
        self.addCleanup(listening.close)
        listening.bind(path)
        os.chmod(path, 0o600)
        listening.listen(64)
        return listening, path

    def listen(self, listening: socket.socket) -> Any:
        """Inherit a socket and listen on it; return the port."""
        listener = Listener("8181", "tcp:8181")
        self.sockets.add(listener.socket, os.dup(listening.fileno()))
        endpoint = self.sockets.endpoint(listener)
        self.assertTrue(verifyObject(IStreamServerEndpoint, endpoint))
        port: Any = self.successResultOf(endpoint.listen(self.factory))
        self.assertTrue(verifyObject(IListeningPort, port))
        self.assertEqual(([port], 1), (self.reactor.readers, self.factory.started))
        return port

    def connect(self, listening: socket.socket, count: int) -> None:
        """Connect so often."""
        for _ in range(count):
            client = socket.socket(listening.family)
            self.addCleanup(client.close)
            client.connect(listening.getsockname())

    def lose(self, port: Any) -> None:
        """Close a port, as the reactor does some time after it was told to."""
        port.stopReading()
        port.connectionLost(Failure(ValueError("closed")))

    def drop(self) -> None:
        """Close the connections."""
        for protocol in self.factory.protocols:
            protocol.transport.connectionLost(Failure(ValueError("gone")))  # type: ignore[union-attr]


class PortTests(SharedPortsCase):
    """
    Ports on such sockets.
    """

    def test_few_at_once(self) -> None:
        """However many wait, one turn accepts a few; with none left nothing fails."""
        for listening in (self.tcp(), self.unix()[0]):
            self.reactor.readers.clear()
            self.factory = _Factory()
            port = self.listen(listening)
            self.connect(listening, 2 * MOST_ACCEPTED + 1)
            taken = []
            for _ in range(4):
                port.doRead()
                taken.append(len(self.factory.peers))
            most = MOST_ACCEPTED
            self.assertEqual([most, 2 * most, 2 * most + 1, 2 * most + 1], taken)
            self.drop()
            self.lose(port)

    def test_blocking(self) -> None:
        """A blocking socket is made non-blocking."""
        listening = self.tcp()
        listening.setblocking(True)
        port = self.listen(listening)
        port.doRead()
        self.assertEqual([], self.factory.peers)
        self.lose(port)

    def test_addresses(self) -> None:
        """They know their address and that of their peers."""
        listening = self.tcp()
        port = self.listen(listening)
        self.assertEqual(IPv4Address("TCP", *listening.getsockname()), port.getHost())
        self.connect(listening, 1)
        port.doRead()
        (peer,) = self.factory.peers
        self.assertIsInstance(peer, IPv4Address)
        self.assertIn(str(listening.getsockname()[1]), str(self.factory.protocols[0].transport))
        self.drop()
        self.lose(port)

    def test_ipv6(self) -> None:
        """A socket of IPv6 is one."""
        try:
            listening = socket.create_server(("::1", 0), family=socket.AF_INET6)
        except OSError as error:
            self.skipTest(f"no such socket here: {error}")
        self.addCleanup(listening.close)
        port = self.listen(listening)
        self.connect(listening, 1)
        port.doRead()
        self.assertEqual("::1", getattr(self.factory.peers[0], "host", None))
        self.assertEqual("::1", port.getHost().host)
        self.drop()
        self.lose(port)

    def test_end(self) -> None:
        """A closed port leaves the socket to other processes."""
        listening = self.tcp()
        port = self.listen(listening)
        self.lose(port)
        self.assertEqual(0, self.factory.started)
        self.connect(listening, 1)
        client, _ = listening.accept()
        client.close()

    def test_no_reserved_file(self) -> None:
        """A Twisted that keeps no file for when there are no more descriptors changes nothing else."""
        self.patch(tcp, "_reservedFD", None)
        listening = self.tcp()
        port = self.listen(listening)
        self.connect(listening, 1)
        port.doRead()
        self.assertEqual(1, len(self.factory.peers))
        self.drop()
        self.lose(port)

    def test_unix_socket(self) -> None:
        """That of a UNIX socket leaves its mode as it is, and its name, too, when it is closed."""
        listening, path = self.unix()
        port = self.listen(listening)
        self.assertEqual(UNIXAddress(path), port.getHost())
        self.lose(port)
        status = os.stat(path)
        self.assertEqual((True, 0o600), (stat.S_ISSOCK(status.st_mode), stat.S_IMODE(status.st_mode)))
        self.connect(listening, 1)


class SocketsTests(SharedPortsCase):
    """
    Sockets that wait to be listened on.
    """

    def test_none(self) -> None:
        """An endpoint without a socket is an error that names it."""
        error = self.assertRaises(ConfigError, self.sockets.endpoint, Listener("9 3/4", "tcp:9"))
        self.assertIn("9 3/4", str(error))

    def test_unused(self) -> None:
        """Sockets without a port are closed; the others are not."""
        port = self.listen(self.tcp())
        unused = os.dup(self.tcp().fileno())
        self.sockets.add("tcp:1", unused)
        self.sockets.close()
        self.assertRaises(OSError, os.fstat, unused)
        os.fstat(port.fileno())
        self.lose(port)

    def test_no_socket(self) -> None:
        """What is no socket is an error."""
        descriptor = os.open(os.devnull, os.O_RDONLY)
        self.addCleanup(os.close, descriptor)
        self.assertRaises(OSError, self.sockets.add, "tcp:1", descriptor)


@implementer(IListeningPort)
class FakePort(FileDescriptor):
    """
    A port that is none.

    @ivar does: what it was told, in order.
    """

    def __init__(self, number: int, does: list[str]) -> None:
        super().__init__(reactor=self)
        self.number = number
        self.does = does

    def fileno(self) -> int:
        return self.number

    def getHost(self) -> IPv4Address:
        return IPv4Address("TCP", "127.0.0.1", self.number)

    def stopReading(self) -> None:
        self.does.append(f"{self.number} stops reading")

    def doRead(self) -> None:
        self.does.append(f"{self.number} accepts")

    def startListening(self) -> None:
        raise NotImplementedError("endpoints give ports that listen already")

    def stopListening(self) -> Deferred[None]:
        self.does.append(f"{self.number} closes")
        return succeed(None)


@implementer(IStreamServerEndpoint)
class FakeEndpoint:
    """
    Listens on a port of that number, and fails for 13.
    """

    def __init__(self, number: int, does: list[str]) -> None:
        self._number = number
        self._does = does
        self.factory: Any = None

    def listen(self, protocolFactory: IProtocolFactory) -> Deferred[Any]:
        self.factory = protocolFactory
        if self._number == 13:
            return fail(CannotListenError("", 13, OSError(98, "Address already in use")))
        protocolFactory.doStart()
        self._does.append(f"{self._number} opens")
        return succeed(FakePort(self._number, self._does))


def listeners(*numbers: int) -> list[Listener]:
    """Return listeners for ports of these numbers."""
    return [Listener(str(number), f"tcp:{number}") for number in numbers]


class BoundPortsTests(SynchronousTestCase):
    """
    Ports that nothing is accepted on.
    """

    def setUp(self) -> None:
        self.does: list[str] = []
        self.endpoints: list[FakeEndpoint] = []
        self.ports = BoundPorts(self._open_socket)

    def _open_socket(self, listener: Listener) -> FakeEndpoint:
        self.endpoints.append(FakeEndpoint(int(listener.text), self.does))
        return self.endpoints[-1]

    def change(self, *numbers: int) -> None:
        """Change to these, wholly."""
        change = self.ports.plan(listeners(*numbers))
        change.open()
        self.ports.commit(change)

    def test_held(self) -> None:
        """They are open, but accept nothing, not even what waits when they close."""
        self.change(80, 81)
        self.assertEqual(["80 opens", "80 stops reading", "81 opens", "81 stops reading"], self.does)
        self.assertEqual({"tcp:80": 80, "tcp:81": 81}, self.ports.descriptors)
        self.assertEqual(IPv4Address("TCP", "127.0.0.1", 80), self.ports.addresses["tcp:80"])
        for closed in self.ports.close():
            self.successResultOf(closed)
        self.assertEqual(["80 closes", "81 closes"], self.does[4:])
        self.assertEqual({"tcp:80": None, "tcp:81": None}, self.ports.addresses)

    def test_nobody(self) -> None:
        """A connection that the reactor accepts all the same gets no protocol."""
        self.change(80)
        factory = self.endpoints[0].factory
        self.assertTrue(verifyObject(IProtocolFactory, factory))
        self.assertTrue(verifyObject(ILoggingContext, factory))
        self.assertIsNone(factory.buildProtocol(IPv4Address("TCP", "127.0.0.1", 1)))
        self.assertEqual("webhookrx", factory.logPrefix())
        factory.doStop()

    def test_changed(self) -> None:
        """What is added opens before what is removed closes; what stays is left alone."""
        self.change(80, 81)
        change = self.ports.plan(listeners(81, 82))
        self.does.clear()
        change.open()
        self.assertEqual({"tcp:81": 81, "tcp:82": 82}, change.descriptors)
        self.assertEqual({"tcp:80": 80, "tcp:81": 81}, self.ports.descriptors)
        self.ports.commit(change)
        self.assertEqual(["82 opens", "82 stops reading", "80 closes"], self.does)
        self.assertEqual({"tcp:81": 81, "tcp:82": 82}, self.ports.descriptors)

    def test_abandoned(self) -> None:
        """If one can't be opened, none is, and the old ports stay."""
        self.change(80)
        change = self.ports.plan(listeners(80, 82, 13))
        self.does.clear()
        error = self.assertRaises(CannotListen, change.open)
        self.assertEqual("Address already in use: can't listen on 13", str(error))
        self.assertEqual(["82 opens", "82 stops reading", "82 closes"], self.does)
        self.assertEqual({"tcp:80": 80}, self.ports.descriptors)
