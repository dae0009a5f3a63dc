"""
Tests for L{webhookrx.http.counted_body}.
"""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import BAD_REQUEST, BODY_TOO_LARGE, NO_ROOM, Reason, RequestRefused
from webhookrx.http.counted_body import SMALL_BODY, CountedBody
from webhookrx.testing import RecordingConsumer


class CountedBodyTests(SynchronousTestCase):
    """What a body takes of the room that is there."""

    def setUp(self) -> None:
        """Have room."""
        self.consumer = RecordingConsumer(Clock(), max_bytes=4 * SMALL_BODY)

    def body(self, length: int | None, limit: int = 10 * SMALL_BODY) -> CountedBody:
        """Return a body to come."""
        return CountedBody(length, limit, self.consumer)

    def assert_refused(self, reason: Reason, body: CountedBody, data: bytes) -> None:
        """That data is refused for that reason; what was counted before is still counted."""
        before = self.consumer.budget.bytes
        with self.assertRaises(RequestRefused) as caught:
            body.feed(data)
        self.assertEqual((reason, before), (caught.exception.reason, self.consumer.budget.bytes))

    def test_sized(self) -> None:
        """What has come is counted until the body is taken; what completes it is not counted any more."""
        body = self.body(6)
        for data, rest, counted in ((b"ab", None, 2), (b"cd", None, 4), (b"efPOST", b"POST", 4)):
            self.assertEqual((rest, counted), (body.feed(data), self.consumer.budget.bytes))
        self.assertEqual((b"abcdef", 0), (body.take(), self.consumer.budget.bytes))

    def test_chunked(self) -> None:
        """Of a chunked body the data is counted, not what is around it."""
        body = self.body(None)
        for data, rest, counted in ((b"3;x", None, 0), (b"=y\r\nab", None, 2), (b"c\r\n0\r\n\r\nPOST", b"POST", 2)):
            self.assertEqual((rest, counted), (body.feed(data), self.consumer.budget.bytes))
        self.assertEqual((b"abc", 0), (body.take(), self.consumer.budget.bytes))

    def test_forgotten(self) -> None:
        """A body that is given up takes no room, however often it is."""
        body = self.body(6)
        body.feed(b"ab")
        body.forget()
        body.forget()
        self.assertEqual(0, self.consumer.budget.bytes)

    def test_limit(self) -> None:
        """At its limit a body passes, and is refused one byte beyond."""
        body = self.body(None, limit=3)
        self.assertEqual(b"", body.feed(b"3\r\nabc\r\n0\r\n\r\n"))
        self.assert_refused(BODY_TOO_LARGE, self.body(None, limit=3), b"4\r\nabcd\r\n")

    def test_malformed(self) -> None:
        """What is no chunk is refused."""
        self.assert_refused(BAD_REQUEST, self.body(None), b"zz\r\n")

    def test_room(self) -> None:
        """
        Without room a body is refused as it grows; one that is small, or as long as it is, finds some where a large
        one finds none.
        """
        large = self.body(3 * SMALL_BODY)
        large.feed(b"x" * (2 * SMALL_BODY))
        self.assert_refused(NO_ROOM, large, b"x" * (SMALL_BODY - 1))
        for length in (SMALL_BODY, None):
            small = self.body(length)
            self.assertIsNone(small.feed(b"400\r\n" + b"x" * 1000))
            small.forget()
