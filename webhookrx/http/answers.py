"""
Answers, made once a second rather than once a request.
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
    from webhookrx.interfaces import IMessageConsumer

KEEP = 0
"""The connection stays, and the sender knows."""
KEEP_1_0 = 1
"""The connection stays, and an HTTP/1.0 sender is told so."""
CLOSE = 2
"""The connection is closed after this answer."""

OVER_TLS = 3
"""Added to one of these when the connection speaks TLS: who came by HTTPS is to come by it again (RFC 6797)."""

_PLAIN_LINES = (b"", b"Connection: keep-alive\r\n", b"Connection: close\r\n")
#: What each of these says, as header lines.
CONNECTION_LINES = (
    *_PLAIN_LINES,
    *(b"Strict-Transport-Security: max-age=31536000\r\n" + line for line in _PLAIN_LINES),
)

#: Seconds of C{Retry-After} where no queue says better: messages are safe again within as many of a fault's end.
RETRY_AFTER = 5

SERVER = b"webhookrx"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Answer(msgspec.Struct, frozen=True, eq=False):
    """
    What is said to a sender, without what depends on the connection.

    @ivar extra: header lines of this answer alone, each with its line end.
    """

    status: int
    body: bytes
    extra: bytes = b""


RECEIVED = Answer(200, b'{"status":"received"}')

READY = Answer(200, b'{"status":"ready"}')
NOT_READY = Answer(503, b'{"status":"not_ready"}', b"Retry-After: %d\r\n" % RETRY_AFTER)
"""To who asks at a health path. Why it is so is for operators, at the endpoint that is theirs."""


@lru_cache(maxsize=256)
def refusal(reason: Reason, detail: str | None = None, *, retry_after: int = RETRY_AFTER) -> Answer:
    """
    Return the answer to a request that is refused.

    @param detail: a sentence in place of the reason's own.
    @param retry_after: seconds, for the reasons that pass with time (RFC 9110 §10.2.3).
    """
    if reason is NO_ROOM:
        body = b'{"status":"flow-controlled"}'
    else:
        body = msgspec.json.encode({"status": "refused", "reason": reason.word, "detail": detail or reason.detail})
    extra = b""
    if reason is METHOD_NOT_ALLOWED:
        extra = b"Allow: POST\r\n"
    elif reason.status == 503:
        extra = b"Retry-After: %d\r\n" % retry_after
    return Answer(reason.status, body, extra)


FAILED = refusal(INTERNAL_ERROR)


def refusal_now(reason: Reason, detail: str, consumer: IMessageConsumer) -> Answer:
    """Return the answer to a request that is refused at this moment: the consumer knows when there will be room."""
    if reason is NO_ROOM:
        return refusal(reason, detail, retry_after=consumer.retry_after())
    return refusal(reason, detail)


class AnswerWriter:
    """
    Answers as bytes. C{Date} is the same for all of one second, so each answer is put together once in that second.
    """

    def __init__(self) -> None:
        self._ready: list[dict[Answer, bytes]] = [{} for _ in CONNECTION_LINES]
        self._second: int | None = None
        self.date = b""

    def at(self, wall_clock: float) -> None:
        """Take the time that C{Date} is to say: seconds since the epoch."""
        if int(wall_clock) != self._second:
            self._second = int(wall_clock)
            self.date = formatdate(wall_clock, usegmt=True).encode("ascii")
            for ready in self._ready:
                ready.clear()

    def bytes_of(self, answer: Answer, connection: int) -> bytes:
        """Return the whole answer; C{connection} is L{KEEP}, L{KEEP_1_0} or L{CLOSE}, by TLS and L{OVER_TLS} more."""
        ready = self._ready[connection]
        try:
            return ready[answer]
        except KeyError:
            written = ready[answer] = self._write(answer, CONNECTION_LINES[connection])
            return written

    def _write(self, answer: Answer, connection: bytes) -> bytes:
        parts: Sequence[bytes] = (
            b"HTTP/1.1 %d %s\r\n" % (answer.status, HTTPStatus(answer.status).phrase.encode("ascii")),
            b"Server: %s\r\nDate: %s\r\n" % (SERVER, self.date),
            b"Content-Type: application/json\r\nX-Content-Type-Options: nosniff\r\n",
            b"Content-Length: %d\r\n" % len(answer.body),
            answer.extra,
            connection,
            b"\r\n",
            answer.body,
        )
        return b"".join(parts)
