"""
Tests for L{webhookrx.transport.accept}, with real ports of Twisted's and a socket that is made up.
"""

from __future__ import annotations

import errno
import socket
from types import SimpleNamespace
from typing import Any
from unittest import mock

from twisted.internet import tcp, unix
from twisted.internet.defer import succeed
from twisted.internet.protocol import Factory, Protocol
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.transport import accept
from webhookrx.transport.accept import BACKLOG, CLOSED, MOST_ACCEPTED, AcceptFailures, AcceptGate
from webhookrx.transport.overload import OLD, Overload
from webhookrx.transport.swappable_endpoint import SwappableEndpoint
from webhookrx.transport.tcp_info import TCPInfo


class _Client:
    """A socket that was accepted."""

    closed = False

    def close(self) -> None:
        self.closed = True


class _Listening:
    """A listening socket: what C{accept} does next."""

    def __init__(self) -> None:
        self.plan: list[Any] = []

    def accept(self) -> tuple[Any, Any]:
        if not self.plan:
            raise BlockingIOError(errno.EAGAIN, "")
        step = self.plan.pop(0)
        if isinstance(step, int):
            raise OSError(step, "")
        return step


class _Reactor:
    """Knows which port it watches."""

    def __init__(self) -> None:
        self.watched: list[Any] = []

    def addReader(self, reader: Any) -> None:
        self.watched.append(reader)

    def removeReader(self, reader: Any) -> None:
        if reader in self.watched:
            self.watched.remove(reader)


class AcceptFailuresTests(SynchronousTestCase):
    """
    A port that can't accept.
    """

    def setUp(self) -> None:
        self.refused: list[str] = []
        self.failed: list[str] = []
        self.made: list[Any] = []
        self.reactor = _Reactor()
        self.failures = AcceptFailures(self.refused.append, self.failed.append)
        self.port = self.make(tcp.Port)

    def make(self, kind: type[tcp.Port]) -> Any:
        """Return an open port."""
        port: Any = kind(0 if kind is tcp.Port else "x", Factory.forProtocol(Protocol), reactor=self.reactor)  # type: ignore[arg-type]
        port.socket = _Listening()
        port.fileno = lambda: 99
        port.connected = True
        port.transport = self.transport
        port.numberAccepts = 100
        port.startReading()
        self.failures.watch(port)
        return port

    def transport(self, sock: Any, protocol: Any, client: Any, port: Any, number: int, reactor: Any) -> Any:
        """Take in a connection."""
        self.failures.accepted(port)
        self.made.append(sock)
        return type("Transport", (), {"registerProducer": None})()

    def clients(self, count: int) -> list[Any]:
        """Return as many, to be accepted."""
        return [(_Client(), ("192.0.2.1", 4000 + number)) for number in range(count)]

    def test_waits(self) -> None:
        """Without a file descriptor or memory, the error is reported by its name, and the port rests."""
        self.patch(tcp, "_reservedFD", tcp._NullFileDescriptorReservation())
        for error in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
            self.port.numberAccepts = MOST_ACCEPTED
            self.port.socket.plan = [*self.clients(2), error, *self.clients(1)]
            self.port.doRead()
            self.assertEqual([errno.errorcode[error]], self.failed)
            self.assertEqual((2, []), (len(self.made), self.reactor.watched))
            self.failures.try_again()
            self.assertEqual([self.port], self.reactor.watched)
            self.port.doRead()
            self.assertEqual(3, len(self.made))
            self.failed.clear()
            self.made.clear()
        self.assertEqual([], self.refused)

    def test_closed(self) -> None:
        """With a file in reserve, waiting connections are accepted, closed and reported, and the port goes on."""
        for port, client in ((self.port, ("192.0.2.1", 4000)), (self.make(unix.Port), "")):
            reserve = tcp._FileDescriptorReservation(_Client)
            reserve.reserve()
            self.patch(tcp, "_reservedFD", reserve)
            sockets = [_Client(), _Client()]
            port.socket.plan = [errno.EMFILE, *((each, client) for each in sockets)]
            port.doRead()
            self.assertEqual([True, True], [each.closed for each in sockets])
            self.assertIn(port, self.reactor.watched)
        self.assertEqual(["192.0.2.1", "192.0.2.1", "unix", "unix"], self.refused)
        self.assertEqual(([], []), (self.made, self.failed))

    def test_no_logger(self) -> None:
        """A port without the private logger accepts all the same; its failures are not heard of."""
        port: Any = SimpleNamespace(numberAccepts=100)
        self.failures.watch(port)
        self.assertEqual(SimpleNamespace(numberAccepts=MOST_ACCEPTED), port)

    def test_swappable_endpoint(self) -> None:
        """A endpoint has it hear of its port, and of what that accepts."""
        opened: list[Any] = []

        class Inner:
            """Opens the port."""

            def listen(inner, factory: Any) -> Any:
                port: Any = tcp.Port(0, factory, reactor=self.reactor)
                port.socket, port.connected, port.fileno = _Listening(), True, lambda: 99
                port.numberAccepts = 100
                opened.append(port)
                return succeed(port)

        endpoint = SwappableEndpoint(Inner(), failures=self.failures)  # type: ignore[arg-type]
        self.successResultOf(endpoint.listen(Factory.forProtocol(Protocol)))
        (port,) = opened
        self.patch(tcp, "_reservedFD", tcp._NullFileDescriptorReservation())
        port.socket.plan = [errno.ENFILE]
        port.doRead()
        self.assertEqual(["ENFILE"], self.failed)
        port.numberAccepts = 1000
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        protocol = port.factory.buildProtocol(None)
        port.transport(ours, protocol, ("192.0.2.1", 4000), port, 1, self.reactor)
        self.assertEqual(MOST_ACCEPTED, port.numberAccepts)

    def test_closed_port(self) -> None:
        """A port that was closed while it rested is not opened again."""
        self.patch(tcp, "_reservedFD", tcp._NullFileDescriptorReservation())
        self.port.socket.plan = [errno.ENFILE]
        self.port.doRead()
        self.port.connected = False
        self.failures.try_again()
        other = self.make(tcp.Port)
        self.reactor.watched.clear()
        other.socket.plan = [errno.ENFILE]
        other.doRead()
        other.disconnecting = True
        self.failures.try_again()
        self.assertEqual([], self.reactor.watched)

    def test_some_at_a_time(self) -> None:
        """However many come, a bounded number is accepted in one turn."""
        self.port.socket.plan = self.clients(10_000)
        taken = 0
        for _ in range(20):
            self.port.doRead()
            self.assertLessEqual(len(self.made) - taken, MOST_ACCEPTED + 20)
            self.assertGreaterEqual(len(self.made) - taken, MOST_ACCEPTED)
            taken = len(self.made)


class Waiting:
    """A connection that waits to be let in."""

    def __init__(self, info: TCPInfo | None) -> None:
        self.info = info
        self.closed = False

    def close(self) -> None:
        self.closed = True


HERE = TCPInfo(9.0, False)
LEFT = TCPInfo(OLD + 0.1, True)
JUST_LEFT = TCPInfo(OLD - 0.1, True)


class Listening:
    """
    A listening socket.

    @ivar backlogs: what it was told.
    """

    def __init__(self) -> None:
        self.waiting: list[Waiting] = []
        self.backlogs: list[int] = []

    def accept(self) -> tuple[Any, str]:
        if not self.waiting:
            raise BlockingIOError(errno.EAGAIN, "nobody")
        return self.waiting.pop(0), "address"

    def listen(self, backlog: int) -> None:
        self.backlogs.append(backlog)

    def getsockname(self) -> str:
        return "name"


class AcceptGateTests(SynchronousTestCase):
    """Who is let in."""

    def setUp(self) -> None:
        self.patch(accept, "tcp_info", lambda waiting: waiting.info)
        self.patch(accept, "backlog_of", lambda sock: 4096)
        self.rule = mock.Mock(stands=False)
        self.overload = Overload(self.rule, lambda: None)
        self.socket = Listening()
        self.gate = AcceptGate(self.socket, self.overload)  # type: ignore[arg-type]

    def come(self, *infos: TCPInfo | None) -> list[Waiting]:
        """Have connections wait."""
        come = [Waiting(info) for info in infos]
        self.socket.waiting += come
        return come

    def let_in(self) -> list[Any]:
        """Return the connections that are accepted until no more may be."""
        came = []
        while True:
            try:
                came.append(self.gate.accept()[0])
            except OSError as error:
                self.assertIn(error.args[0], (errno.EAGAIN, errno.EWOULDBLOCK))  # as Twisted looks at it
                return came

    def test_no_overload(self) -> None:
        """Without overload all are accepted without a look; the other methods are those of the socket."""
        self.patch(accept, "tcp_info", lambda waiting: self.fail())
        come = self.come(HERE, LEFT, None)
        self.assertEqual((come, []), (self.let_in(), self.socket.backlogs))
        self.assertFalse(self.gate.holds_back)
        self.assertEqual("name", self.gate.getsockname())

    def test_few(self) -> None:
        """While the queue stands as many are let in as that says, and few may wait."""
        self.rule.stands = True
        come = self.come(HERE, HERE, None, HERE)
        self.assertEqual([], self.let_in())
        self.overload.new = 3
        self.assertEqual(come[:3], self.let_in())
        self.assertEqual([], self.let_in())
        self.assertEqual([BACKLOG], self.socket.backlogs)

    def test_left(self) -> None:
        """Those that have left long ago are closed instead, and do not count."""
        self.rule.stands = True
        self.overload.new = 2
        come = self.come(LEFT, JUST_LEFT, LEFT, LEFT, HERE, LEFT)
        self.assertEqual([come[1], come[4]], self.let_in())
        self.assertEqual([True, False, True, True, False, False], [each.closed for each in come])

    def test_many_left(self) -> None:
        """Others have their turn before all of them are."""
        self.rule.stands = True
        self.overload.new = 1
        come = self.come(*[LEFT] * (CLOSED + 1), HERE)
        self.assertEqual([], self.let_in())
        self.assertEqual(CLOSED, sum(each.closed for each in come))
        self.assertEqual(come[-1:], self.let_in())

    def test_afterwards(self) -> None:
        """Connections that have left are closed until none waits; then the backlog is as before."""
        self.rule.stands = True
        self.assertEqual([], self.let_in())
        self.rule.stands = False
        come = self.come(LEFT, HERE, HERE, LEFT)
        self.assertEqual(come[1:3], self.let_in())
        self.assertTrue(come[3].closed)
        self.assertEqual([BACKLOG, 4096], self.socket.backlogs)
        self.assertEqual(self.come(LEFT), self.let_in())

    def test_holds_back(self) -> None:
        """It holds connections back from the first that comes under overload until none waits after it."""
        self.rule.stands = True
        self.assertTrue(self.gate.holds_back)
        self.let_in()
        self.rule.stands = False
        self.assertTrue(self.gate.holds_back)
        self.let_in()
        self.assertFalse(self.gate.holds_back)

    def test_small_backlog(self) -> None:
        """It never lets more wait than else."""
        self.patch(accept, "backlog_of", lambda sock: 5)
        self.rule.stands = True
        self.let_in()
        self.assertEqual([5], self.socket.backlogs)

    def test_real_socket(self) -> None:
        """C{listen} can be called again on a listening socket, and no waiting connection is lost."""
        self.patch(accept, "tcp_info", lambda waiting: HERE)
        listening = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.addCleanup(listening.close)
        listening.setblocking(False)
        gate = AcceptGate(listening, self.overload)
        self.rule.stands = True
        self.overload.new = 1
        with socket.create_connection(listening.getsockname()):
            accepted, _ = gate.accept()
            accepted.close()
