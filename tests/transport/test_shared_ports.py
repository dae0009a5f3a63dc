"""
Tests for L{webhookrx.transport.shared_ports}: with sockets, but without a reactor that would look at them.
"""

from __future__ import annotations

import os
from typing import Any

from twisted.internet.abstract import FileDescriptor
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort, ILoggingContext, IProtocolFactory, IStreamServerEndpoint
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from tests.transport.test_worker_port import SharedPortsCase
from webhookrx.errors import ConfigError
from webhookrx.settings import Listener
from webhookrx.transport.fair_share import ENDPOINTS, CounterPage, WorkerRow
from webhookrx.transport.listener_service import CannotListen
from webhookrx.transport.shared_ports import BoundPorts


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
        self.sockets.add("tcp:1", unused, 5)
        self.sockets.close()
        self.assertRaises(OSError, os.fstat, unused)
        os.fstat(port.fileno())
        self.lose(port)

    def test_no_socket(self) -> None:
        """What is no socket is an error."""
        descriptor = os.open(os.devnull, os.O_RDONLY)
        self.addCleanup(os.close, descriptor)
        self.assertRaises(OSError, self.sockets.add, "tcp:1", descriptor, 5)

    def test_shares(self) -> None:
        """Ports of sockets that come with a row of counters share by it; not those for which it has no place."""
        page = CounterPage()
        self.addCleanup(page.close)
        row, other = (WorkerRow(page.descriptor, number, 2) for number in (0, 1))
        self.sockets.share_by(row)
        for number, shares in ((ENDPOINTS - 1, True), (ENDPOINTS, False)):
            self.reactor.readers.clear()
            port = self.listen(self.tcp(), number)
            self.assertIs(shares, port.share is not None)
            self.lose(port)
        self.sockets.tick()
        self.assertEqual(1, other.ticks[0])


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
