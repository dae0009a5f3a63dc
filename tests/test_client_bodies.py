"""Bodies as clients have them."""

from __future__ import annotations

from twisted.internet.defer import CancelledError
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseDone
from twisted.web.http import PotentialDataLoss
from twisted.web.iweb import IBodyProducer
from zope.interface.verify import verifyObject

from webhookrx.client_bodies import BoundedBody, WholeBody


class WholeBodyTests(SynchronousTestCase):
    """The body of a request."""

    def test_at_once(self) -> None:
        """It is written whole, at once, whatever the transport says of its pace."""
        transport = StringTransport()
        body = WholeBody(b"x" * 100_000)

        self.assertTrue(verifyObject(IBodyProducer, body))
        done = body.startProducing(transport)
        body.pauseProducing()
        body.resumeProducing()
        body.stopProducing()

        self.successResultOf(done)
        self.assertEqual((100_000, 100_000), (body.length, len(transport.value())))


class BoundedBodyTests(SynchronousTestCase):
    """The body of an answer."""

    def setUp(self) -> None:
        """An answer of ten bytes at most."""
        self.transport = StringTransport()
        self.body = BoundedBody(10, ValueError("large"), LookupError("cut"))
        self.body.makeConnection(self.transport)

    def test_whole(self) -> None:
        """All parts are there at its end, and the bound is allowed."""
        self.body.dataReceived(b"01234")
        self.body.dataReceived(b"56789")
        self.assertNoResult(self.body.whole)
        self.body.connectionLost(Failure(ResponseDone()))
        self.assertEqual(b"0123456789", self.successResultOf(self.body.whole))

    def test_too_large(self) -> None:
        """One byte more is told at once and closes the connection, once."""
        self.body.dataReceived(b"0123456789")
        self.body.dataReceived(b"x")
        self.assertTrue(self.transport.disconnecting)
        self.failureResultOf(self.body.whole, ValueError)
        self.body.dataReceived(b"x")
        self.body.connectionLost(Failure(ResponseDone()))

    def test_too_large_in_a_pool(self) -> None:
        """Whose connection is in a pool is told once it has ended, whatever the rest of the body says."""
        body = BoundedBody(10, ValueError("large"), LookupError("cut"), at_once=False)
        body.makeConnection(self.transport)
        body.dataReceived(b"0123456789x")
        body.dataReceived(b"x")
        self.assertTrue(self.transport.disconnecting)
        self.assertNoResult(body.whole)
        body.connectionLost(Failure(ResponseDone()))
        self.failureResultOf(body.whole, ValueError)

    def test_incomplete(self) -> None:
        """An answer whose end nobody knows, or that was cut, is none."""
        self.body.dataReceived(b"0")
        self.body.connectionLost(Failure(PotentialDataLoss()))
        self.failureResultOf(self.body.whole, LookupError)

    def test_cancelled(self) -> None:
        """Who does not want it any more closes the connection."""
        self.body.whole.cancel()
        self.failureResultOf(self.body.whole, CancelledError)
        self.assertTrue(self.transport.disconnecting)
        self.body.connectionLost()
