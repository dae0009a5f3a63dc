"""
Tests for L{webhookrx.transport.listener_service}.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from twisted.application.service import IService, MultiService
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort, IProtocolFactory, IReadDescriptor, IStreamServerEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactor
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from webhookrx.errors import WebhookrxError
from webhookrx.transport.listener_service import CannotListen, ListenerService
from webhookrx.transport.swappable_endpoint import SwappableEndpoint


@implementer(IStreamServerEndpoint)
class _Endpoint:
    """An endpoint whose outcome the test chooses."""

    def __init__(self, outcome: Callable[[], Deferred[IListeningPort]]) -> None:
        self._outcome = outcome

    def listen(self, protocolFactory: IProtocolFactory) -> Deferred[IListeningPort]:
        return self._outcome()


@implementer(IListeningPort)
class _Port:
    """
    A port that says when it is closed.

    @ivar closed: what C{stopListening} returns.
    """

    def __init__(self, closed: Deferred[None] | None) -> None:
        self.closed = closed
        self.stops = 0

    def startListening(self) -> None:
        raise NotImplementedError("endpoints give ports that listen already")

    def stopListening(self) -> Deferred[None] | None:
        self.stops += 1
        return self.closed

    def getHost(self) -> str:
        return "the address"


@implementer(IReadDescriptor)
class _ReadablePort(_Port):
    """
    A port with connections waiting, for which bytes in a pipe stand.

    @ivar reads: how many were taken in.
    """

    def __init__(self, waiting: int) -> None:
        super().__init__(None)
        self.reads = 0
        self._reader, self._writer = os.pipe()
        os.write(self._writer, b"x" * waiting)

    def fileno(self) -> int:
        return self._reader

    def doRead(self) -> None:
        self.reads += len(os.read(self._reader, 1))

    def connectionLost(self, reason: Failure) -> None:
        """Nothing is lost."""

    def logPrefix(self) -> str:
        return "port"

    def clean_up(self) -> None:
        os.close(self._reader)
        os.close(self._writer)


class LifeTests(SynchronousTestCase):
    """
    From start to stop.
    """

    def setUp(self) -> None:
        self.reactor = MemoryReactor()
        self.factory = Factory()
        endpoint = TCP4ServerEndpoint(self.reactor, 80, interface="127.0.0.1")
        self.service = ListenerService(endpoint, self.factory, "tcp:80")

    def test_interface(self) -> None:
        """It is a service."""
        self.assertTrue(verifyObject(IService, self.service))

    def test_nothing_is_open_before_the_start(self) -> None:
        """Making the service opens no port, and there is no address yet."""
        self.assertEqual([], self.reactor.tcpServers)
        self.assertIsNone(self.service.address)

    def test_twistd(self) -> None:
        """With a privileged start the port is open before privileges are dropped, and is not opened twice."""
        self.service.privilegedStartService()
        self.assertEqual([(80, self.factory, 50, "127.0.0.1")], self.reactor.tcpServers)

        self.service.startService()

        self.assertEqual(1, len(self.reactor.tcpServers))
        self.assertTrue(self.service.running)

    def test_twist(self) -> None:
        """Without a privileged start the port is opened by the start."""
        parent = MultiService()
        self.service.setServiceParent(parent)

        parent.startService()

        self.assertEqual(1, len(self.reactor.tcpServers))
        assert isinstance(self.service.address, IPv4Address)
        self.assertEqual(80, self.service.address.port)

    def test_stop(self) -> None:
        """Stopping closes the port once, and is done when the port is closed."""
        for closed in (Deferred[None](), None):
            port = _Port(closed)
            service = ListenerService(_Endpoint(lambda port=port: succeed(port)), self.factory, "x")
            service.startService()
            self.assertEqual("the address", service.address)

            stopped = service.stopService()

            if closed is not None:
                self.assertNoResult(stopped)
                closed.callback(None)
            self.successResultOf(stopped)
            self.successResultOf(service.stopService())
            self.assertEqual((1, None, False), (port.stops, service.address, bool(service.running)))

    def test_stop_with_connections_waiting(self) -> None:
        """Connections that the kernel holds are taken in before the port is closed."""
        port = _ReadablePort(3)
        self.addCleanup(port.clean_up)
        service = ListenerService(_Endpoint(lambda: succeed(port)), self.factory, "x")
        service.startService()
        service.stopService()
        self.assertEqual((3, 1), (port.reads, port.stops))

    def test_stop_with_connections_that_cannot_be_taken(self) -> None:
        """Where they can't be taken in, as when there is no descriptor left, the port is closed in the end."""
        port = _ReadablePort(1)
        self.addCleanup(port.clean_up)
        self.patch(os, "read", lambda fd, size: b"")
        service = ListenerService(_Endpoint(lambda: succeed(port)), self.factory, "x")
        service.startService()
        service.stopService()
        self.assertEqual(1, port.stops)

    def test_use(self) -> None:
        """An open port gets another factory; one that is not open, when it is opened."""
        endpoint = SwappableEndpoint(TCP4ServerEndpoint(self.reactor, 80, interface="127.0.0.1"))
        service = ListenerService(endpoint, self.factory, "tcp:80")
        first, second = Factory.forProtocol(Protocol), Factory.forProtocol(Protocol)
        service.use(endpoint, first)
        self.assertEqual([], self.reactor.tcpServers)
        service.startService()
        ((_, behind, _, _),) = self.reactor.tcpServers
        behind.doStart()
        for factory in (first, second):
            service.use(endpoint, factory)
            self.assertIs(factory, behind.buildProtocol(None).factory)
        self.assertEqual(1, len(self.reactor.tcpServers))

    def test_stop_before_the_start(self) -> None:
        """A service that never listened has nothing to stop."""
        self.successResultOf(self.service.stopService())


class FailureTests(SynchronousTestCase):
    """
    Ports that can't be opened.
    """

    def test_reasons(self) -> None:
        """The line gives the system's reason and the endpoint as the user wrote it."""
        for error, reason in (
            (CannotListenError("", 80, OSError(98, "Address already in use")), "Address already in use"),
            (CannotListenError(None, "/run/x", "Cannot acquire lock"), "Cannot acquire lock"),
            (OSError(9, "Bad file descriptor"), "Bad file descriptor"),
            (OverflowError("port must be 0-65535."), "port must be 0-65535"),
            (KeyError(), "KeyError"),
        ):
            service = ListenerService(_Endpoint(lambda error=error: fail(error)), Factory(), "tcp:80")
            for start in (service.privilegedStartService, service.startService):
                refusal = self.assertRaises(CannotListen, start)
                self.assertEqual(f"{reason}: can't listen on tcp:80", str(refusal))

    def test_ends_the_process(self) -> None:
        """The error is one of ours, and leaving it alone ends the interpreter with its text and status 1."""
        refusal = CannotListen("Permission denied", "tcp:80")
        self.assertIsInstance(refusal, WebhookrxError)
        self.assertIsInstance(refusal, SystemExit)
        self.assertEqual("Permission denied: can't listen on tcp:80", refusal.code)

    def test_slow_endpoint(self) -> None:
        """An endpoint that does not open at once is given up, since its failure would go unnoticed."""
        cancelled: list[object] = []
        service = ListenerService(_Endpoint(lambda: Deferred(cancelled.append)), Factory(), "slow:80")

        refusal = self.assertRaises(CannotListen, service.startService)

        self.assertEqual("This endpoint does not open at once: can't listen on slow:80", str(refusal))
        self.assertEqual(1, len(cancelled))
