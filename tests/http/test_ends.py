"""
Tests for L{webhookrx.http.protocol}: deadlines while the chain pauses, and how a connection ends.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.http.wire import Wire, post
from webhookrx.settings import Limits


class PauseTests(SynchronousTestCase):
    """Senders don't pay for a pause."""

    def test_in_the_body(self) -> None:
        """A body has as much more time as nobody could send it."""
        for begun, rest in (
            (post(b"xy")[:-1], b"y"),
            (b"POST /in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nx", b"y\r\n0\r\n\r\n"),
        ):
            wire = Wire(limits=Limits(body_time=10))
            sender = wire.connect()
            sender.send(begun)
            wire.advance(9)
            wire.site.pauseProducing()
            wire.advance(1.5)
            wire.site.resumeProducing()
            wire.advance(0.5)
            self.assertEqual([], sender.statuses())
            sender.send(rest)
            wire.settle()

            self.assertEqual([200], sender.statuses())
            self.assertEqual(["xy"], [values["MESSAGE"] for values in wire.messages])

    def test_no_more(self) -> None:
        """It has no more than that."""
        wire = Wire(limits=Limits(body_time=10))
        sender = wire.connect()
        sender.send(post(b"xy")[:-1])
        wire.advance(9)
        wire.site.pauseProducing()
        wire.advance(1.5)
        wire.site.resumeProducing()
        wire.advance(0.5)
        self.assertEqual([], sender.statuses())
        wire.advance(1)
        self.assertEqual([408], sender.statuses())


class EndTests(SynchronousTestCase):
    """The end of a connection whose sender has ended already."""

    def test_nothing_to_wait_for(self) -> None:
        """Nothing more comes from it, so there is nothing to listen to after the last answer."""
        for request, status in (
            (post(b"abc")[:-1], 400),
            (b"POST /in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n", 400),
            (post()[:-5], 400),
        ):
            for secure in (False, True):
                wire = Wire()
                sender = wire.connect(secure=secure)
                sender.send(request)
                sender.end()

                self.assertEqual(([status], "closed"), (sender.statuses(), sender.transport.end))

    def test_more_was_pipelined(self) -> None:
        """So it is when what it has sent behind its last request is not wanted any more."""
        wire = Wire()
        wire.consumer.hold()
        sender = wire.connect()
        sender.send(post(b"1", headers=b"Connection: close\r\n") + post(b"2"))
        sender.end()
        wire.consumer.acknowledge_all()

        self.assertEqual(([200], "closed"), (sender.statuses(), sender.transport.end))
        self.assertEqual(["1"], [values["MESSAGE"] for values in wire.messages])

    def test_ends_after_the_answer(self) -> None:
        """One that ends while it is listened to has had its answer, and the connection is over."""
        wire = Wire(limits=Limits(body=10))
        sender = wire.connect()
        request = post(b"x" * 70_000)
        sender.send(request[:5])
        sender.send(request[5:200])
        self.assertEqual(([413], "half"), (sender.statuses(), sender.transport.end))

        sender.end()

        self.assertEqual(([], "closed"), (sender.statuses(), sender.transport.end))
        self.assertEqual(["body_too_large"], wire.traffic.reasons)
