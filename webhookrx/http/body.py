"""
Bodies from the wire: sized, chunked or discarded; and counted against their limit and the room in the queue.

Each has C{feed(data)}, which returns what follows the body once it is complete, else None. All but the discarded have
C{size}, the bytes of data so far, and C{take()}, the data. While C{fresh} is a list, new data is put there, too.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import httptools

from webhookrx.errors import BAD_REQUEST, BODY_TOO_LARGE, NO_ROOM, RequestRefused
from webhookrx.interfaces import IMessageConsumer

_HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
_END = b"\r\n\r\n"
#: Bytes of a refused body that is read to its end, so that the connection can stay.
DISCARDED_BODY = 64 * 1024
#: Bytes of a body for which some room is kept that larger ones don't get.
SMALL_BODY = 64 * 1024
#: Bytes of chunk sizes, extensions and trailers, over what the data itself needs at one byte a chunk.
_OVERHEAD = 64 * 1024


class SizedBody:
    """
    A body of C{Content-Length}.

    @param length: bytes of it, at least one.
    """

    __slots__ = ("_data", "_left", "_whole", "fresh", "size")

    def __init__(self, length: int) -> None:
        self.size = 0
        self.fresh: list[bytes] | None = None
        self._left = length
        self._whole: bytes | None = None
        # Not one object for each read, however small: memory is to be what was counted.
        self._data: BytesIO | None = None

    def feed(self, data: bytes) -> bytes | None:
        """Take bytes of the wire; return what follows the body once it is complete, else None."""
        left = self._left
        taken = data[:left]
        self._left = left - len(taken)
        self.size += len(taken)
        if self.fresh is not None:
            self.fresh.append(taken)
        if self._data is not None:
            self._data.write(taken)
        elif self._left:
            self._data = BytesIO()
            self._data.write(taken)
        else:
            self._whole = taken
        return None if self._left else data[left:]

    def take(self) -> bytes:
        """Return the data."""
        if self._whole is not None:
            return self._whole
        return b"" if self._data is None else self._data.getvalue()


class DiscardedBody:
    """
    The body of a refused request, read so that the next request can follow.

    @param length: bytes of it, at least one.
    """

    __slots__ = ("_left",)

    def __init__(self, length: int) -> None:
        self._left = length

    def feed(self, data: bytes) -> bytes | None:
        """Take bytes of the wire; return what follows the body once it is complete, else None."""
        rest = data[self._left :] if len(data) >= self._left else None
        self._left -= len(data)
        return rest

    def forget(self) -> None:
        """Do nothing: it was never counted."""


class ChunkedBody:
    """
    A chunked body (RFC 9112 §7.1), read by llhttp.

    llhttp can't say where in its input a message ended, so it is fed up to the next place where one could end: every
    chunked message ends with an empty line.
    """

    __slots__ = ("_data", "_ended", "_parser", "_tail", "_wire", "fresh", "size")

    def __init__(self) -> None:
        self._data = BytesIO()
        self.fresh: list[bytes] | None = None
        self.size = 0
        self._ended = False
        self._tail = b""
        self._wire = 0
        self._parser = httptools.HttpRequestParser(self)
        self._parser.feed_data(_HEAD)

    def on_body(self, data: bytes) -> None:
        """Called by llhttp."""
        self.size += self._data.write(data)
        if self.fresh is not None:
            self.fresh.append(data)

    def on_message_complete(self) -> None:
        """Called by llhttp."""
        self._ended = True

    def take(self) -> bytes:
        """Return the data."""
        return self._data.getvalue()

    def feed(self, data: bytes) -> bytes | None:
        """
        Take bytes of the wire.

        @return: what follows the body once it is complete, else None.
        @raise RequestRefused: it is not well-formed, or mostly overhead.
        """
        self._wire += len(data)
        start = 0
        try:
            while start < len(data):
                stop = self._next_stop(data, start)
                self._parser.feed_data(memoryview(data)[start:stop])
                start = stop
                if self._ended:
                    return data[start:]
        except httptools.HttpParserError as error:
            raise RequestRefused(BAD_REQUEST, f"This is not a well-formed chunked body: {error}.") from None
        self._tail = data[-3:] if len(data) >= 3 else (self._tail + data)[-3:]
        if self._wire > 8 * self.size + _OVERHEAD:
            raise RequestRefused(BAD_REQUEST, "The chunked body is mostly overhead.")
        return None

    def _next_stop(self, data: bytes, start: int) -> int:
        """Return the end of the next empty line, which may have begun in an earlier read, or of the data."""
        if start == 0 and self._tail:
            straddling = (self._tail + data[:3]).find(_END)
            if straddling >= 0:
                return straddling + len(_END) - len(self._tail)
        found = data.find(_END, start)
        # Overlapping ends, as in CR LF CR LF CR LF, matter only inside data, where a stop is harmless.
        return len(data) if found < 0 else found + len(_END)


class CountedBody:
    """
    A body that did not come in one read with its head.

    Only bytes that have arrived are counted: a sender that announces much and sends little takes no room from others.

    @param length: bytes of it, at least one; None when it is chunked.
    @param limit: bytes that it may have.
    @param consumer: where it is counted.
    @param watch: see L{webhookrx.http.interfaces.IReceiver}.
    """

    __slots__ = ("_body", "_consumer", "_counted", "_length", "_limit", "_watch")

    def __init__(
        self,
        length: int | None,
        limit: int,
        consumer: IMessageConsumer,
        watch: Callable[[bytes], None] | None = None,
    ) -> None:
        self._body = ChunkedBody() if length is None else SizedBody(length)
        self._watch = watch
        if watch is not None:
            self._body.fresh = []
        self._length = length
        self._limit = limit
        self._consumer = consumer
        self._counted = 0

    def feed(self, data: bytes) -> bytes | None:
        """
        Take bytes of the wire.

        @return: what follows the body once it is complete, else None.
        @raise RequestRefused: it is not well-formed, too large, there is no room for it, or somebody who watches it
            refuses it.
        """
        rest = self._body.feed(data)
        size = self._body.size
        if size > self._limit:
            raise RequestRefused(BODY_TOO_LARGE)
        fresh = self._body.fresh
        if fresh:
            # At once, however many chunks it came in.
            assert self._watch is not None
            self._watch(fresh[0] if len(fresh) == 1 else b"".join(fresh))
            fresh.clear()
        if rest is None and size > self._counted:
            small = (size if self._length is None else self._length) <= SMALL_BODY
            if not self._consumer.reserve(size - self._counted, small=small):
                raise RequestRefused(NO_ROOM)
            self._counted = size
        return rest

    def take(self) -> bytes:
        """Return the data, and stop counting it."""
        self.forget()
        return self._body.take()

    def forget(self) -> None:
        """Give back the room that was taken."""
        if self._counted:
            self._consumer.release(self._counted)
            self._counted = 0
