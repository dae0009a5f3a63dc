"""
A body that is counted as it comes: against its own limit, and against what may wait in all.
"""

from __future__ import annotations

from webhookrx.errors import BODY_TOO_LARGE, NO_ROOM, RequestRefused
from webhookrx.http.body import ChunkedBody, SizedBody
from webhookrx.interfaces import IMessageConsumer

#: A body of up to so many bytes finds room where larger ones find none any more.
SMALL_BODY = 64 * 1024


class CountedBody:
    """
    A body that did not come in one read with its head.

    Only what has come is counted: who announces much and sends little takes no room from others.

    @param length: bytes of it, at least one; None when it is chunked.
    @param limit: bytes that it may have.
    @param consumer: where it is counted.
    """

    __slots__ = ("_body", "_consumer", "_counted", "_length", "_limit")

    def __init__(self, length: int | None, limit: int, consumer: IMessageConsumer) -> None:
        self._body = ChunkedBody() if length is None else SizedBody(length)
        self._length = length
        self._limit = limit
        self._consumer = consumer
        self._counted = 0

    def feed(self, data: bytes) -> bytes | None:
        """
        Take bytes of the wire.

        @return: what follows the body once it is complete, else None.
        @raise RequestRefused: it is not well-formed, too large, or there is no room for it.
        """
        rest = self._body.feed(data)
        size = self._body.size
        if size > self._limit:
            raise RequestRefused(BODY_TOO_LARGE)
        if rest is None and size > self._counted:
            small = (size if self._length is None else self._length) <= SMALL_BODY
            if not self._consumer.reserve(size - self._counted, small=small):
                raise RequestRefused(NO_ROOM)
            self._counted = size
        return rest

    def take(self) -> bytes:
        """Return the data. From here on it is counted no more."""
        self.forget()
        return self._body.take()

    def forget(self) -> None:
        """Give back the room that was taken."""
        if self._counted:
            self._consumer.release(self._counted)
            self._counted = 0
