"""The two bodies of an exchange."""

from __future__ import annotations

from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseDone, ResponseFailed
from twisted.web.http import PotentialDataLoss
from twisted.web.iweb import IBodyProducer
from zope.interface.verify import verifyObject

from webhookrx.observers.http_exchange import KEPT, READ, AnswerBody, WholeBody


class WholeBodyTests(SynchronousTestCase):
    """What goes out."""

    def test_at_once(self) -> None:
        """It is written whole, and is finished by then, whatever the transport says of its pace."""
        transport = StringTransport()
        body = WholeBody(b"x" * 100_000)

        self.assertTrue(verifyObject(IBodyProducer, body))
        done = body.startProducing(transport)
        body.pauseProducing()
        body.resumeProducing()
        body.stopProducing()

        self.successResultOf(done)
        self.assertEqual((100_000, 100_000), (body.length, len(transport.value())))


class AnswerBodyTests(SynchronousTestCase):
    """What comes back."""

    def setUp(self) -> None:
        """Make one on a transport."""
        self.transport = StringTransport()
        self.body = AnswerBody()
        self.body.makeConnection(self.transport)

    def test_beginning(self) -> None:
        """The beginning is kept; the rest is read, so that the connection can be used again."""
        for _ in range(5):
            self.body.dataReceived(b"abcd" * 256)
        self.body.connectionLost(Failure(ResponseDone()))

        self.assertIsNone(self.successResultOf(self.body.done))
        self.assertEqual(b"abcd" * (KEPT // 4), bytes(self.body.kept))
        self.assertFalse(self.transport.disconnecting)

    def test_too_long(self) -> None:
        """One that goes on and on is cut off, and counts as whole."""
        self.body.dataReceived(b"a" * READ)
        self.assertFalse(self.transport.disconnecting)
        self.assertNoResult(self.body.done)

        self.body.dataReceived(b"a")
        self.body.dataReceived(b"a")

        self.assertTrue(self.transport.disconnecting)
        self.assertIsNone(self.successResultOf(self.body.done))
        self.body.connectionLost(Failure(ResponseFailed([Failure(ConnectionAborted())])))

    def test_until_the_end(self) -> None:
        """One without a length is whole when its connection ends."""
        self.body.connectionLost(Failure(PotentialDataLoss()))

        self.assertIsNone(self.successResultOf(self.body.done))

    def test_broken(self) -> None:
        """One that breaks off, in whatever way, is not."""
        for reason in (ResponseFailed([Failure(ConnectionLost())]), ConnectionLost(), ConnectionDone(), ValueError()):
            with self.subTest(reason):
                self.setUp()
                self.body.dataReceived(b"abc")
                self.body.connectionLost(Failure(reason))

                self.failureResultOf(self.body.done, type(reason))

    def test_cancelled(self) -> None:
        """When nobody waits any more its connection is closed, and its end is no surprise."""
        done = self.body.done
        done.cancel()
        self.failureResultOf(done)

        self.assertTrue(self.transport.disconnecting)
        self.body.connectionLost(Failure(ResponseFailed([Failure(ConnectionAborted())])))
