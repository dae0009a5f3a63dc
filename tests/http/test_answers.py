"""
Tests for L{webhookrx.http.answers}.
"""

from __future__ import annotations

import json
import re

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.http.wire import NOON
from webhookrx.errors import (
    BAD_REQUEST,
    BAD_SIGNATURE,
    INTERNAL_ERROR,
    METHOD_NOT_ALLOWED,
    NO_ROOM,
    NOT_STORED,
    OVER_QUOTA,
)
from webhookrx.http.answers import (
    CLOSE,
    KEEP,
    KEEP_1_0,
    OVER_TLS,
    RECEIVED,
    RETRY_AFTER,
    AnswerWriter,
    answer_of,
    refusal,
    refusal_now,
    refusal_to,
)
from webhookrx.intake.judge import Refused
from webhookrx.intake.reply import TEXT, Reply
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


class RefusalToTests(SynchronousTestCase):
    """What is said to a sender of which more is known than the reason."""

    def test_ordinary(self) -> None:
        """Without anything else, a refusal says what it always says."""
        self.assertIs(refusal_to(Refused(BAD_REQUEST, BAD_REQUEST.detail)), refusal(BAD_REQUEST, BAD_REQUEST.detail))
        consumer = RecordingConsumer(Clock())
        self.assertEqual(
            refusal_to(Refused(NO_ROOM, NO_ROOM.detail), consumer).extra,
            b"Retry-After: %d\r\n" % consumer.retry_after(),
        )

    def test_allow(self) -> None:
        """A path that takes questions by other methods names them."""
        refused = Refused(METHOD_NOT_ALLOWED, METHOD_NOT_ALLOWED.detail, "hooks", "GET, POST")
        self.assertEqual(refusal_to(refused).extra, b"Allow: GET, POST\r\n")

    def test_unauthorized(self) -> None:
        """A refusal by signature says what was wanted (RFC 9110 section 15.5.2)."""
        answer = refusal_to(Refused(BAD_SIGNATURE, BAD_SIGNATURE.detail, "hooks"))
        self.assertEqual((answer.status, answer.extra), (401, b"WWW-Authenticate: Signature\r\n"))

    def test_over_quota(self) -> None:
        """A refusal by quota says when there is room again."""
        answer = refusal_to(Refused(OVER_QUOTA, OVER_QUOTA.detail, "hooks", retry_after=7))
        self.assertEqual((answer.status, answer.extra), (429, b"Retry-After: 7\r\n"))

    def test_reply(self) -> None:
        """A sender that wants a refusal in its own words gets them, with the status and headers of the reason."""
        reply = Reply(200, b'{"requestId":"1"}', headers=(("X-A", "b"),))
        answer = refusal_to(Refused(OVER_QUOTA, OVER_QUOTA.detail, "hooks", retry_after=7, reply=reply))
        self.assertEqual(
            (answer.status, answer.body, answer.extra, answer.once),
            (429, b'{"requestId":"1"}', b"Retry-After: 7\r\nX-A: b\r\n", True),
        )


class ReplyTests(SynchronousTestCase):
    """Answers to one request."""

    def written(self, reply: Reply) -> bytes:
        """Return the bytes of an answer, but for the lines that all have."""
        writer = AnswerWriter()
        writer.at(NOON)
        written = writer.bytes_of(answer_of(reply), KEEP)
        self.assertIn(b"X-Content-Type-Options: nosniff\r\n", written)
        return re.sub(rb"(?:Server|Date|X-Content-Type-Options): [^\r]+\r\n", b"", written)

    def test_bytes(self) -> None:
        """An answer has its own media type, length and headers; a 204 has neither of the first two."""
        for reply, written in (
            (
                Reply(200, b"abc", TEXT, (("X-A", "b"), ("X-C", ""))),
                (
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n"
                    b"X-A: b\r\nX-C: \r\n\r\nabc"
                ),
            ),
            (Reply(200, b"{}"), b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"),
            (Reply(200, b"", ""), b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            (
                Reply(200, b"", "application/x-protobuf"),
                b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n",
            ),
            (Reply(204, b"", ""), b"HTTP/1.1 204 No Content\r\n\r\n"),
        ):
            self.assertEqual(self.written(reply), written)

    def test_never_kept(self) -> None:
        """What is for one request is not kept for the next, however many there are; a fixed answer is."""
        writer = AnswerWriter()
        writer.at(NOON)
        for number in range(100):
            writer.bytes_of(answer_of(Reply(200, b"%d" % number)), KEEP)
        writer.bytes_of(RECEIVED, KEEP)
        self.assertEqual([list(ready) for ready in writer._ready if ready], [[RECEIVED]])
