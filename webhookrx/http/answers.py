"""
The answers of the receiver, and their bytes: those of fixed ones are made once a second rather than once a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec

from webhookrx.errors import INTERNAL_ERROR, METHOD_NOT_ALLOWED, NO_ROOM, Reason

if TYPE_CHECKING:
    from webhookrx.intake.judge import Refused
    from webhookrx.intake.reply import Reply
    from webhookrx.interfaces import IMessageConsumer

# What an answer says of its connection: an index of L{CONNECTION_LINES}. From KEEP on the connection stays.
CLOSE = 0
KEEP = 2
"""The connection stays, as HTTP/1.1 takes for granted."""
KEEP_1_0 = 4
"""The connection stays, and an HTTP/1.0 sender has to be told."""
OVER_TLS = 1
"""Added to one of these over TLS: the sender is to use HTTPS again (RFC 6797)."""

_HSTS = b"Strict-Transport-Security: max-age=31536000\r\n"
CONNECTION_LINES = tuple(
    security + line
    for line in (b"Connection: close\r\n", b"", b"Connection: keep-alive\r\n")
    for security in (b"", _HSTS)
)

#: Seconds of C{Retry-After} unless the queue gives an estimate: messages are safe again so soon after a fault ends.
RETRY_AFTER = 5

SERVER = b"webhookrx"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class FixedAnswer(msgspec.Struct, frozen=True, eq=False):
    """
    An answer to a sender, apart from what depends on the connection.

    @ivar extra: additional header lines, each with its line end.
    @ivar content_type: empty for a body without one.
    @ivar once: it is for one request, so its bytes are never kept.
    """

    status: int
    body: bytes
    extra: bytes = b""
    content_type: bytes = b"application/json"
    once: bool = False


RECEIVED = FixedAnswer(200, b'{"status":"received"}')

READY = FixedAnswer(200, b'{"status":"ready"}')
NOT_READY = FixedAnswer(503, b'{"status":"not_ready"}', b"Retry-After: %d\r\n" % RETRY_AFTER)
"""The answer at a health path. The reasons are for operators, at the endpoint for them."""


@lru_cache(maxsize=256)
def refusal(
    reason: Reason, detail: str | None = None, *, retry_after: int = RETRY_AFTER, allow: str = "POST"
) -> FixedAnswer:
    """
    Return the answer to a refused request.

    @param detail: a sentence in place of the reason's own.
    @param retry_after: seconds, for temporary reasons (RFC 9110 §10.2.3).
    @param allow: the methods that the path takes.
    """
    if reason is NO_ROOM:
        body = b'{"status":"flow-controlled"}'
    else:
        body = msgspec.json.encode({"status": "refused", "reason": reason.word, "detail": detail or reason.detail})
    return FixedAnswer(reason.status, body, _refusal_lines(reason, retry_after, allow))


def _refusal_lines(reason: Reason, retry_after: int, allow: str) -> bytes:
    """Return the header lines that a refusal has beside its body."""
    if reason is METHOD_NOT_ALLOWED:
        return b"Allow: %s\r\n" % allow.encode("ascii")
    if reason.status == 401:
        return b"WWW-Authenticate: Signature\r\n"  # RFC 9110 §15.5.2 wants one; there is no registered scheme for it
    if reason.status in (429, 503):
        return b"Retry-After: %d\r\n" % retry_after
    return b""


FAILED = refusal(INTERNAL_ERROR)


def refusal_now(reason: Reason, detail: str, consumer: IMessageConsumer | None) -> FixedAnswer:
    """Return the answer to a request refused now: the consumer estimates when there will be room, if it is known."""
    if reason is NO_ROOM and consumer is not None:
        return refusal(reason, detail, retry_after=consumer.retry_after())
    return refusal(reason, detail)


def refusal_to(refused: Refused, consumer: IMessageConsumer | None = None) -> FixedAnswer:
    """Return the answer to a refused request: in words of our own, or as a sender needs it."""
    reason, reply = refused.reason, refused.reply
    if reply is not None:
        own = _refusal_lines(reason, refused.retry_after or RETRY_AFTER, refused.allow or "POST")
        return _once(reason.status, reply, own)
    if refused.allow:
        return refusal(reason, refused.detail, allow=refused.allow)
    if refused.retry_after:
        return refusal(reason, refused.detail, retry_after=refused.retry_after)
    return refusal_now(reason, refused.detail, consumer)


def answer_of(reply: Reply) -> FixedAnswer:
    """Return the answer to one request."""
    return _once(reply.status, reply, b"")


def answer_to_question(reply: Reply) -> FixedAnswer:
    """
    Return the answer to one question of a sender. It may depend on a header that no cache on the way knows of: what
    somebody else has asked must not be the answer to the sender.
    """
    return _once(reply.status, reply, b"Cache-Control: no-store\r\n")


def _once(status: int, reply: Reply, own: bytes) -> FixedAnswer:
    lines = b"".join(b"%s: %s\r\n" % (name.encode(), value.encode()) for name, value in reply.headers)
    return FixedAnswer(status, reply.body, own + lines, reply.content_type.encode(), once=True)


class AnswerWriter:
    """
    Answers as bytes. C{Date} is the same for a whole second, so each answer is put together once a second.
    """

    def __init__(self) -> None:
        self._ready: list[dict[FixedAnswer, bytes]] = [{} for _ in CONNECTION_LINES]
        self._second: int | None = None
        self.date = b""

    def at(self, wall_clock: float) -> None:
        """Set the time of C{Date}: seconds since the epoch."""
        if int(wall_clock) != self._second:
            self._second = int(wall_clock)
            self.date = formatdate(wall_clock, usegmt=True).encode("ascii")
            for ready in self._ready:
                ready.clear()

    def bytes_of(self, answer: FixedAnswer, connection: int) -> bytes:
        """Return the whole answer; C{connection} is an index of L{CONNECTION_LINES}."""
        ready = self._ready[connection]
        try:
            return ready[answer]
        except KeyError:
            written = self._write(answer, CONNECTION_LINES[connection])
            if not answer.once:
                ready[answer] = written
            return written

    def _write(self, answer: FixedAnswer, connection: bytes) -> bytes:
        kind = answer.content_type
        parts: Sequence[bytes] = (
            b"HTTP/1.1 %d %s\r\n" % (answer.status, HTTPStatus(answer.status).phrase.encode("ascii")),
            b"Server: %s\r\nDate: %s\r\n" % (SERVER, self.date),
            b"Content-Type: %s\r\n" % kind if kind else b"",
            b"X-Content-Type-Options: nosniff\r\n",
            # A 204 has no body to tell the length of (RFC 9110 §8.6).
            b"" if answer.status == 204 else b"Content-Length: %d\r\n" % len(answer.body),
            answer.extra,
            connection,
            b"\r\n",
            answer.body,
        )
        return b"".join(parts)
