"""
Tests for L{webhookrx.http.answers}.
"""

from __future__ import annotations

import json

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.http.wire import NOON
from webhookrx.errors import BAD_REQUEST, INTERNAL_ERROR, METHOD_NOT_ALLOWED, NO_ROOM, NOT_STORED
from webhookrx.http.answers import (
    CLOSE,
    KEEP,
    KEEP_1_0,
    OVER_TLS,
    RECEIVED,
    RETRY_AFTER,
    AnswerWriter,
    refusal,
    refusal_now,
)
from webhookrx.testing import RecordingConsumer


class RefusalTests(SynchronousTestCase):
    """What is said to a sender that is refused."""

    def test_detail(self) -> None:
        """The body has the word of the reason, and its sentence unless there is a better one."""
        for detail, said in ((None, BAD_REQUEST.detail), ("Not so.", "Not so.")):
            answer = refusal(BAD_REQUEST, detail)
            self.assertEqual((400, b""), (answer.status, answer.extra))
            self.assertEqual(
                {"status": "refused", "reason": "bad_request", "detail": said}, json.loads(answer.body), detail
            )

    def test_no_room(self) -> None:
        """No room is said in the words that senders know, with the seconds after which to come back."""
        answer = refusal(NO_ROOM, retry_after=7)
        self.assertEqual(
            (503, b'{"status":"flow-controlled"}', b"Retry-After: 7\r\n"), (answer.status, answer.body, answer.extra)
        )

    def test_headers(self) -> None:
        """What passes with time says so, and a method that is not allowed says which one is."""
        for reason, extra in (
            (NOT_STORED, b"Retry-After: %d\r\n" % RETRY_AFTER),
            (METHOD_NOT_ALLOWED, b"Allow: POST\r\n"),
            (INTERNAL_ERROR, b""),
        ):
            self.assertEqual(extra, refusal(reason).extra, reason.word)

    def test_same(self) -> None:
        """The same refusal is the same answer, so that a writer puts it together once."""
        self.assertIs(refusal(BAD_REQUEST, "Not so."), refusal(BAD_REQUEST, "Not so."))

    def test_now(self) -> None:
        """Only when there is no room the consumer is asked how long that may last."""
        consumer = RecordingConsumer(Clock())
        consumer.seconds_to_room = 9
        self.assertEqual(b"Retry-After: 9\r\n", refusal_now(NO_ROOM, NO_ROOM.detail, consumer).extra)
        self.assertEqual(b"Retry-After: %d\r\n" % RETRY_AFTER, refusal_now(NOT_STORED, "x", consumer).extra)


class AnswerWriterTests(SynchronousTestCase):
    """Answers as bytes."""

    def setUp(self) -> None:
        """It is noon."""
        self.writer = AnswerWriter()
        self.writer.at(NOON)

    def test_whole(self) -> None:
        """An answer is a head with its date and length, and the body."""
        self.assertEqual(
            b"HTTP/1.1 200 OK\r\n"
            b"Server: webhookrx\r\n"
            b"Date: Thu, 01 Jan 2026 12:00:00 GMT\r\n"
            b"Content-Type: application/json\r\n"
            b"X-Content-Type-Options: nosniff\r\n"
            b"Content-Length: 21\r\n"
            b"\r\n"
            b'{"status":"received"}',
            self.writer.bytes_of(RECEIVED, KEEP),
        )
        self.assertIn(b"\r\nAllow: POST\r\n\r\n{", self.writer.bytes_of(refusal(METHOD_NOT_ALLOWED), KEEP))

    def test_connection(self) -> None:
        """It says what becomes of the connection, and by TLS that HTTPS is to be kept to."""
        strict = b"Strict-Transport-Security: max-age=31536000\r\n"
        for word, line in ((KEEP, b""), (KEEP_1_0, b"Connection: keep-alive\r\n"), (CLOSE, b"Connection: close\r\n")):
            for tls, secure in ((0, b""), (OVER_TLS, strict)):
                self.assertIn(b"\r\nContent-Length: 21\r\n" + secure + line + b"\r\n{", self.said(word + tls))

    def said(self, connection: int = KEEP) -> bytes:
        """Return an answer as bytes."""
        return self.writer.bytes_of(RECEIVED, connection)

    def test_once_a_second(self) -> None:
        """Within a second an answer is the same bytes; in the next one, also an earlier one, it has another date."""
        first = self.said()
        self.writer.at(NOON + 0.9)
        self.assertIs(first, self.said())
        self.writer.at(NOON + 1.0)
        self.assertEqual(first.replace(b"12:00:00", b"12:00:01"), self.said())
        self.writer.at(NOON)
        self.assertEqual(first, self.said())

    def test_any_second(self) -> None:
        """There is a date whatever the clock says, as one that was never set."""
        for seconds, date in ((0.0, b"00:00:00"), (1.0, b"00:00:01")):
            writer = AnswerWriter()
            writer.at(seconds)
            self.assertEqual(b"Thu, 01 Jan 1970 %b GMT" % date, writer.date)
