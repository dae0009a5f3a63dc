"""
Tests for L{webhookrx.transport.worker_port}: with sockets, but without a reactor that would look at them.
"""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from typing import Any

from twisted.internet import tcp
from twisted.internet.address import IPv4Address, UNIXAddress
from twisted.internet.interfaces import IListeningPort, IStreamServerEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from webhookrx.settings import Listener
from webhookrx.transport.fair_share import PATIENCE, CounterPage, Share, WorkerRow
from webhookrx.transport.listener_service import ListenerService
from webhookrx.transport.shared_ports import SharedPorts
from webhookrx.transport.swappable_endpoint import SwappableEndpoint
from webhookrx.transport.worker_port import LOOK, MOST_ACCEPTED, SOME, SharedPort


class _Reactor(Clock):
    """
    Notes what it should look at.
    """

    def __init__(self) -> None:
        super().__init__()
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
        self.clients: list[socket.socket] = []
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

    def listen(self, listening: socket.socket, number: int = 0) -> Any:
        """Inherit a socket, which has that number, and listen on it; return the port."""
        listener = Listener("8181", "tcp:8181")
        self.sockets.add(listener.socket, os.dup(listening.fileno()), number)
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
            self.clients.append(client)

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


class SharingTests(SharedPortsCase):
    """
    A port of the first of two workers; the test is the second.
    """

    def setUp(self) -> None:
        super().setUp()
        page = CounterPage()
        self.addCleanup(page.close)
        row, other = (WorkerRow(page.descriptor, number, 2) for number in (0, 1))
        self.sockets.share_by(row)
        share = other.share(4)
        assert share is not None
        self.other: Share = share

    def open(self, listening: socket.socket) -> Any:
        """Listen as the service does, so that connections are counted."""
        self.sockets.add("tcp:8181", os.dup(listening.fileno()), 4)
        endpoint = SwappableEndpoint(self.sockets.endpoint(Listener("8181", "tcp:8181")))
        port: Any = self.successResultOf(endpoint.listen(self.factory))
        self.addCleanup(self.lose, port)
        self.addCleanup(self.drop)
        return port

    def have(self, count: int) -> None:
        """Have the other worker accept as many connections."""
        self.other.join()
        for _ in range(count):
            self.other.began()

    def rest(self, count: int) -> tuple[socket.socket, Any]:
        """
        Have so many connections come to a port, which accepts half of them and leaves the others to the other worker.

        @return: the listening socket, and the port.
        """
        listening = self.tcp()
        port = self.open(listening)
        self.have(0)
        self.connect(listening, count)
        port.doRead()
        port.doRead()
        return listening, port

    @property
    def accepted(self) -> int:
        return len(self.factory.peers)

    @property
    def watched(self) -> list[Any]:
        """The ports that are watched."""
        return [each for each in self.reactor.readers if isinstance(each, SharedPort)]

    @property
    def waits(self) -> bool:
        """Whether a time is set to look at connections that were left to the other worker."""
        return bool(self.reactor.getDelayedCalls())

    def test_alone(self) -> None:
        """While no other worker accepts, it accepts whatever waits, at most so many in one turn."""
        listening = self.tcp()
        port = self.open(listening)
        self.connect(listening, MOST_ACCEPTED + 3)
        port.doRead()
        self.assertEqual(MOST_ACCEPTED, self.accepted)
        port.doRead()
        self.assertEqual((MOST_ACCEPTED + 3, False), (self.accepted, self.waits))
        self.assertEqual([MOST_ACCEPTED + 3], self.other.others())

    def test_half(self) -> None:
        """It accepts its share at once, and stops watching for the rest until it has a share in what waits."""
        listening = self.tcp()
        port = self.open(listening)
        self.have(0)
        self.connect(listening, 8)
        port.doRead()
        self.assertEqual((4, [port]), (self.accepted, self.watched))
        port.doRead()
        self.assertEqual((4, []), (self.accepted, self.watched))
        self.reactor.advance(LOOK)
        self.assertEqual([], self.watched)
        self.have(2)
        self.reactor.advance(LOOK)
        self.assertEqual(([port], False), (self.watched, self.waits))
        port.doRead()
        self.assertEqual(5, self.accepted)

    def test_taken_by_others(self) -> None:
        """It watches again, and sets no more times, once nothing waits."""
        listening, port = self.rest(2)
        self.assertEqual((1, True), (self.accepted, self.waits))
        listening.accept()[0].close()
        self.reactor.advance(LOOK)
        self.assertEqual(([port], False), (self.watched, self.waits))
        port.doRead()
        self.assertEqual((1, [port], False), (self.accepted, self.watched, self.waits))

    def test_fewer(self) -> None:
        """When it has fewer connections than before, it watches again at once if it has a share in the next one."""
        listening = self.tcp()
        port = self.open(listening)
        self.have(1)
        self.connect(listening, 5)
        for _ in range(2):
            port.doRead()
        self.assertEqual((3, []), (self.accepted, self.watched))
        gone = self.factory.protocols[:2]
        gone[0].transport.connectionLost(Failure(ValueError("gone")))  # type: ignore[union-attr]
        self.assertEqual(([], [2]), (self.watched, self.other.others()))
        gone[1].transport.connectionLost(Failure(ValueError("gone")))  # type: ignore[union-attr]
        self.assertEqual(([port], False), (self.watched, self.waits))

    def test_ended_in_error(self) -> None:
        """A connection whose protocol fails at its end is counted no more."""
        listening = self.tcp()
        port = self.open(listening)
        self.connect(listening, 1)
        port.doRead()

        def fail(reason: Failure) -> None:
            raise ValueError("at its end")

        (protocol,) = self.factory.protocols
        self.patch(protocol, "connectionLost", fail)
        lost = self.assertRaises(ValueError, protocol.transport.connectionLost, Failure(ValueError("gone")))  # type: ignore[union-attr]
        self.assertEqual(("at its end", [0]), (str(lost), self.other.others()))

    def test_patience(self) -> None:
        """A worker that accepts nothing holds nobody up for long, and the next connections not at all."""
        listening, port = self.rest(2)
        for _ in range(PATIENCE - 1):
            self.reactor.advance(LOOK)
        self.assertEqual([], self.watched)
        self.reactor.advance(LOOK)
        self.assertEqual([port], self.watched)
        port.doRead()
        self.assertEqual(2, self.accepted)
        self.connect(listening, 5)
        port.doRead()
        self.assertEqual((7, False), (self.accepted, self.waits))

    def test_clock_set_back(self) -> None:
        """If timers come an hour late, two ticks are enough."""
        _, port = self.rest(2)
        self.reactor.rightNow -= 3600
        self.sockets.tick()
        self.assertEqual(1, len(self.reactor.getDelayedCalls()))
        self.assertEqual([], self.watched)
        self.sockets.tick()
        self.assertEqual(([port], False), (self.watched, self.waits))

    def test_overload(self) -> None:
        """While a gate holds connections back, it accepts what that lets in, and others don't wait for it."""
        listening = self.tcp()
        port = self.open(listening)
        self.have(0)
        self.connect(listening, 4)
        port.socket = gate = _Gate(port.socket)
        port.doRead()
        self.assertEqual((4, []), (self.accepted, self.other.others()))
        self.connect(listening, 1)
        gate.holds_back = False
        port.doRead()
        self.assertEqual((4, [4], True), (self.accepted, self.other.others(), self.waits))
        gate.holds_back = True
        self.reactor.advance(LOOK)
        self.assertEqual(([port], False), (self.watched, self.waits))
        port.socket = gate.socket

    def test_not_watched(self) -> None:
        """A port that somebody has stopped is not waited for, accepts all when it is told to, and comes back."""
        _, port = self.rest(4)
        self.assertEqual((2, [2], True), (self.accepted, self.other.others(), self.waits))
        port.stopReading()
        self.assertEqual(([], False), (self.other.others(), self.waits))
        port.doRead()
        self.assertEqual((4, []), (self.accepted, self.other.others()))
        port.startReading()
        self.assertEqual([4], self.other.others())

    def test_last_connections(self) -> None:
        """A service that ends accepts all that waits, whatever its share, with as many turns as that takes."""
        listening = self.tcp()
        self.sockets.add("tcp:8181", os.dup(listening.fileno()), 4)
        endpoint = SwappableEndpoint(self.sockets.endpoint(Listener("8181", "tcp:8181")))
        service = ListenerService(endpoint, self.factory, "8181")
        service.startService()
        self.addCleanup(self.drop)
        self.have(0)
        self.connect(listening, 2 * MOST_ACCEPTED + 1)
        stopped = service.stopService()
        self.assertEqual((2 * MOST_ACCEPTED + 1, []), (self.accepted, self.other.others()))
        self.reactor.advance(0)
        self.successResultOf(stopped)

    def test_closed(self) -> None:
        """Connections that stay when a port has closed are counted no more: another endpoint may have its place."""
        listening = self.tcp()
        port = self.open(listening)
        self.connect(listening, 2)
        port.doRead()
        port.stopReading()
        again = self.open(self.tcp())
        self.drop()
        self.assertEqual([0], self.other.others())
        self.assertIsNot(port.share, again.share)

    def test_unix_socket(self) -> None:
        """At a UNIX socket, where nobody knows how many wait, it accepts a few at a time, and none if none wait."""
        listening, _ = self.unix()
        port = self.open(listening)
        self.have(0)
        port.doRead()
        self.assertEqual((0, False), (self.accepted, self.waits))
        self.connect(listening, 20)
        taken = []
        for _ in range(3):
            port.doRead()
            taken.append(self.accepted)
        self.assertEqual([SOME // 2, SOME - 1, SOME - 1], taken)
        self.assertTrue(self.waits)
        self.have(20)
        self.reactor.advance(LOOK)
        port.doRead()
        self.assertEqual((SOME - 1 + 20 + SOME) // 2, self.accepted)


class _Gate:
    """What L{webhookrx.transport.accept.AcceptGate} is under overload."""

    holds_back = True

    def __init__(self, listening: Any) -> None:
        self.socket = listening

    def __getattr__(self, name: str) -> Any:
        return getattr(self.socket, name)
