"""
Tests for L{webhookrx.listening.door}.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IListeningPort, IProtocolFactory, IStreamServerEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from webhookrx.listening.door import Door


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


class DoorTests(SynchronousTestCase):
    """
    One socket, several factories after one another.
    """

    def setUp(self) -> None:
        self.socket = Socket()
        self.door = Door(self.socket)
        self.events: list[str] = []
        self.one, self.two = Named("one", self.events), Named("two", self.events)

    def next_connection(self) -> str:
        """The name of the factory that gets it."""
        return self.socket.ports[-1].factory.buildProtocol(None).factory.name

    def test_interface(self) -> None:
        """It is an endpoint."""
        self.assertTrue(verifyObject(IStreamServerEndpoint, self.door))

    def test_change(self) -> None:
        """To listen again is to take the place of who listened before, on the same port."""
        port = self.successResultOf(self.door.listen(self.one))
        self.assertEqual("one", self.next_connection())
        self.assertIs(port, self.successResultOf(self.door.listen(self.two)))
        self.assertEqual("two", self.next_connection())
        self.assertEqual((1, ["start one", "start two", "stop one"]), (len(self.socket.ports), self.events))
        port.stopListening()
        self.assertEqual("stop two", self.events[-1])

    def test_same_factory(self) -> None:
        """A factory that takes its own place is not stopped in between."""
        port = self.successResultOf(self.door.listen(self.one))
        self.door.listen(self.one)
        self.assertEqual(["start one"], self.events)
        port.stopListening()
        self.assertEqual(["start one", "stop one"], self.events)

    def test_closed(self) -> None:
        """Once its port is closed, to listen is to open another."""
        first = self.successResultOf(self.door.listen(self.one))
        first.stopListening()
        self.assertIsNot(first, self.successResultOf(self.door.listen(self.two)))
        self.assertEqual((2, "two"), (len(self.socket.ports), self.next_connection()))

    def test_failure(self) -> None:
        """A socket that can't be opened is the endpoint's failure, and may be opened later."""
        self.socket.fails = True
        self.failureResultOf(self.door.listen(self.one), CannotListenError)
        self.socket.fails = False
        self.successResultOf(self.door.listen(self.two))
        self.assertEqual("two", self.next_connection())
