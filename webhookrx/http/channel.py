"""
HTTP/1.1 on a connection: bytes to requests, one at a time and in order, and answers back.

Requests are judged at the end of their head. What is refused there is answered before its body; the body is then read
and thrown away for a moment, so that the sender sees the answer and not a reset.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure

from webhookrx.errors import (
    BAD_EXPECTATION,
    BAD_REQUEST,
    BODY_TOO_LARGE,
    DRAINING,
    INTERNAL_ERROR,
    NO_ROOM,
    NOT_STORED,
    TIMEOUT,
    TOO_MANY_CONNECTIONS,
    Reason,
    RequestRefused,
)
from webhookrx.http.answers import CLOSE, CONTINUE, FAILED, KEEP, KEEP_1_0, OVER_TLS, Answer, refusal, refusal_now
from webhookrx.http.body import Body, ChunkedBody, DiscardedBody, SizedBody
from webhookrx.http.connection import Connection, State
from webhookrx.http.exchange import Exchange
from webhookrx.http.head import RequestHead, check_beginning, parse_head
from webhookrx.http.request import Request
from webhookrx.intake import Refused
from webhookrx.request.received import Head

if TYPE_CHECKING:
    from webhookrx.http.interfaces import IReceiver
    from webhookrx.http.site import Site

#: A refused body of up to so many bytes is read to its end, so that the connection can stay.
DISCARDED_BODY = 64 * 1024

#: A body of up to so many bytes finds room where larger ones find none any more.
SMALL_BODY = 64 * 1024

_BLANK_LINES = re.compile(rb"\A(?:\r\n)+")


class HTTPChannel(Connection):
    """
    The server's side of HTTP/1.1 and 1.0.
    """

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._advancing = False
        self._first = True
        self._scanned = 0
        self._head: RequestHead | None = None
        self._body: Body | None = None
        self._reserved = 0
        self._asked: Head | None = None
        self._current: Exchange | Request | None = None
        self._receiver: IReceiver | None = None

    # -- bytes in ------------------------------------------------------------------------------------------------

    def dataReceived(self, data: bytes) -> None:
        """See L{twisted.internet.interfaces.IProtocol.dataReceived}."""
        state = self._state
        if state is State.HEAD or state is State.BODY:
            if self._pending:
                data = self._pending + data
                self._pending = b""
            self._advance(data)
        elif state is State.ANSWER:
            self._pending += data
            self._update_reading()
        elif state is State.LINGER:
            self._heard_after_the_end()

    def _advance(self, data: bytes) -> None:
        """Take as many requests from C{data} as are there and may be taken."""
        self._advancing = True
        rest: bytes | None = data
        try:
            while rest:
                if self._blocked:
                    self._pending = rest  # the sender is to take its answers first
                    break
                if self._state is State.HEAD:
                    rest = self._take_head(rest)
                elif self._state is State.BODY:
                    rest = self._take_body(rest)
                else:
                    if self._state is State.ANSWER:
                        self._pending = rest
                        self._update_reading()
                    break
        except Exception:
            self.site.traffic.failed("A request could not be read.", Failure())
            if self._state is State.HEAD or self._state is State.BODY:
                self._refuse(None, INTERNAL_ERROR, INTERNAL_ERROR.detail)
            else:
                self.abort()
        finally:
            self._advancing = False

    def _take_head(self, data: bytes) -> bytes | None:
        """Return what follows the head; None when it is not complete or the connection is done."""
        if not self._begun and not self._begin():
            return None
        limits = self.site.limits
        if self._scanned == 0 and data.startswith(b"\r\n"):  # RFC 9112 §2.2
            data = _BLANK_LINES.sub(b"", data, count=1)
        end = data.find(b"\r\n\r\n", self._scanned)
        try:
            if end < 0:
                if data and data != b"\r":
                    check_beginning(data, limits.target, limits.header_block)
                    self._scanned = max(0, len(data) - 3)
                self._pending = data
                return None
            self._scanned = 0
            head = parse_head(
                data[: end + 4],
                secure=self.secure,
                target_limit=limits.target,
                block_limit=limits.header_block,
                count_limit=limits.headers,
            )
        except RequestRefused as refused:
            return self._refuse(None, refused.reason, refused.detail)
        return self._dispatch(head, data[end + 4 :])

    def _begin(self) -> bool:
        """The first byte of a request is here; False when the connection is done."""
        self._begun = True
        if not self._first:  # the first request's time began with the connection
            self._allow(self.site.limits.header_time)
        elif not self.site.knows_peers_at_once:
            self._learn_peer()
            if not self.site.admits_peer(self):
                self.one_too_many()
                return False
        return True

    def _dispatch(self, parsed: RequestHead, rest: bytes) -> bytes | None:
        """Judge the head; return what follows it, None when the connection is done."""
        self._head = parsed
        path, _, query = parsed.target.partition(b"?")
        head = Head(parsed.method, path, query, parsed.headers, self.peer_ip, self.peer_port, self.secure)
        self._asked = head
        verdict = self.site.dispatch(head)
        if isinstance(verdict, Refused):
            return self._refuse(parsed, verdict.reason, verdict.detail, rest, verdict.source)
        if verdict is not None:
            self._receiver, admission = verdict
            self._current = Exchange(self, head, admission)
        if parsed.expects_other:
            return self._refuse(parsed, BAD_EXPECTATION, BAD_EXPECTATION.detail, rest)
        length = parsed.content_length
        if length is not None and length > self.site.limits.body:
            return self._refuse(parsed, BODY_TOO_LARGE, BODY_TOO_LARGE.detail, rest)
        if self.site.draining:
            return self._refuse(parsed, DRAINING, DRAINING.detail, rest)
        size = parsed.size_to_come(len(rest))
        # Asked before a message is made of it, too: with too much to do, a refusal must cost next to nothing.
        if (size or verdict is not None) and not self.site.consumer.has_room(size, small=size <= SMALL_BODY):
            return self._refuse(parsed, NO_ROOM, NO_ROOM.detail, rest)
        if length is not None and len(rest) >= length:
            self._complete(rest[:length])
            return rest[length:]
        self._body = ChunkedBody() if length is None else SizedBody(length)
        self._state = State.BODY
        self._allow(self.site.limits.body_time)
        if parsed.expects_continue and not rest:
            self.transport.write(CONTINUE)
        return rest

    def _take_body(self, data: bytes) -> bytes | None:
        """Return what follows the body; None when it is not complete or the connection is done."""
        body = self._body
        assert body is not None
        try:
            rest = body.feed(data)
        except RequestRefused as refused:
            return self._refuse(self._head, refused.reason, refused.detail)
        if body.size > self.site.limits.body:
            return self._refuse(self._head, BODY_TOO_LARGE, BODY_TOO_LARGE.detail)
        if rest is None:
            # Only what has come is counted: who announces much and sends little takes no room from others.
            if body.size > self._reserved and not self._reserve(body.size):
                return self._refuse(self._head, NO_ROOM, NO_ROOM.detail)
        elif isinstance(body, DiscardedBody):
            self._request_done(True)
        else:
            self._complete(body.take())
        return rest

    def _reserve(self, size: int) -> bool:
        """Have so many bytes of the body counted in all."""
        parsed = self._head
        small = (size if parsed is None or parsed.content_length is None else parsed.content_length) <= SMALL_BODY
        if not self.site.consumer.reserve(size - self._reserved, small=small):
            return False
        self._reserved = size
        return True

    def _forget_body(self) -> None:
        self._body = None
        if self._reserved:
            self.site.consumer.release(self._reserved)
            self._reserved = 0

    # -- answers out ---------------------------------------------------------------------------------------------

    def _complete(self, body: bytes) -> None:
        """The request is all there: hand it over."""
        self._state = State.ANSWER
        self._allow(self.site.limits.answer_time)
        self._forget_body()  # from here on the message is counted instead
        exchange = self._current
        try:
            if isinstance(exchange, Exchange):
                assert self._receiver is not None
                self._receiver.receive(exchange, body)
            else:
                assert self._head is not None
                self._current = Request.from_parts(self, self._head, body)
                self._current.serve(self._head)
        except Exception:
            self.site.traffic.failed("A request could not be judged.", Failure())
            if not isinstance(exchange, Exchange):
                self.abort()
            elif self.answer(exchange, FAILED):
                self._tell_refusal(INTERNAL_ERROR, INTERNAL_ERROR.detail, exchange.head, exchange.source)

    def answer(self, exchange: Exchange, answer: Answer) -> bool:
        """Answer the request that is under way; an answer to another one comes too late, is dropped, and is False."""
        if exchange is not self._current:
            return False
        keep = self.keeps_alive
        self._send(answer, keep)
        self._request_done(keep)
        return True

    def request_done(self, request: Request | None) -> None:
        """A stock request has been answered in full; None: it was answered in its place."""
        if request is None or request is self._current:
            self._request_done(self.keeps_alive)

    def answer_goes_on(self) -> None:
        """A stock request writes: its answer may take its time while the sender takes it."""
        self._allow(self.site.limits.answer_time)

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection stays after the request that is under way."""
        site = self.site
        return self._head is not None and self._head.keep_alive and not (site.draining or site.finishing)

    def close_after_this(self) -> None:
        """The request that is under way is the last one here."""
        if self._head is not None:
            self._head.keep_alive = False

    def connection_word(self, keep: bool) -> int:
        """What the answer to the request that is under way says of the connection, if it is kept or not."""
        http_1_0 = self._head is not None and self._head.http_1_0
        word = CLOSE if not keep else KEEP_1_0 if http_1_0 else KEEP
        return word + OVER_TLS if self.secure else word

    def _send(self, answer: Answer, keep: bool) -> None:
        answers, word = self.site.answers, self.connection_word(keep)
        if self._head is not None and self._head.method == b"HEAD":
            self.transport.write(answers.head_of(answer, word))
        else:
            self.transport.write(answers.bytes_of(answer, word))

    def _request_done(self, keep: bool) -> None:
        """Turn to the next request, or away."""
        self._current = None
        self._receiver = None
        self._asked = None
        self._body = None
        if not keep:
            self._close()
            return
        self._state = State.HEAD
        self._begun = False
        self._first = False
        self._head = None
        self._allow_idling()
        if not self._advancing:
            self.go_on()

    def go_on(self) -> None:
        """See L{Connection.go_on}."""
        pending, self._pending = self._pending, b""
        if pending:
            self._advance(pending)
        if self._ended and not self._blocked:
            self.sender_ended()
        self._update_reading()

    def _tell_refusal(self, reason: Reason, detail: str, asked: Head | None = None, source: str = "") -> None:
        method, path = (asked.method, asked.path) if asked is not None else (b"", b"")
        self.site.traffic.refused(reason, detail, self.peer_text, method, path, source)

    def _refuse(
        self, parsed: RequestHead | None, reason: Reason, detail: str, rest: bytes = b"", source: str = ""
    ) -> bytes | None:
        """
        Refuse the request that is under way.

        @param parsed: its head; None when it can't be told where the request ends, so that the connection can't stay.
        @param source: who refuses it, when that is not who has admitted it.
        @return: see L{_take_head}.
        """
        current = self._current
        self._tell_refusal(reason, detail, self._asked, current.source if isinstance(current, Exchange) else source)
        self._head = parsed
        body_to_come = parsed is None or self._state is State.BODY or parsed.has_body
        keep = (
            parsed is not None
            and self._state is State.HEAD
            and self.keeps_alive
            and parsed.content_length is not None
            and parsed.content_length <= DISCARDED_BODY
            and not (parsed.expects_continue or parsed.expects_other)
        )
        self._current = None
        self._forget_body()
        self._send(refusal_now(reason, detail, self.site.consumer), keep)
        if not keep:
            self._close(linger=body_to_come or bool(rest))
            return None
        if parsed is not None and parsed.content_length:
            self._state = State.BODY
            self._body = DiscardedBody(parsed.content_length)
            self._allow(self.site.limits.body_time)
        else:
            self._request_done(True)
        return rest

    # -- the connection ------------------------------------------------------------------------------------------

    def one_too_many(self) -> None:
        """See L{Connection.one_too_many}: it is told so, and not waited for."""
        detail = TOO_MANY_CONNECTIONS.detail
        self._tell_refusal(TOO_MANY_CONNECTIONS, detail)
        self._send(refusal(TOO_MANY_CONNECTIONS, detail), False)
        self._close()

    def sender_ended(self) -> None:
        """See L{Connection.sender_ended}: what is complete is answered, what is not never will be."""
        if self._blocked:
            pass  # what is complete is answered once the answers before it have been taken
        elif self._state is State.ANSWER:
            if isinstance(self._current, Request):
                self.abort()  # a stock resource hears of it as under C{twisted.web}'s own channel
        elif isinstance(self._body, DiscardedBody) or not (self._state is State.BODY or self._begun):
            self._close()
        elif self._state is not State.CLOSING:
            self._refuse(self._head, BAD_REQUEST, "The sender ended the connection within a request.")

    def too_slow(self) -> None:
        """See L{Connection.too_slow}."""
        if self._state is State.ANSWER:
            self._answer_is_late()
        elif isinstance(self._body, DiscardedBody):
            self._close()
        elif self._state is State.BODY or self._begun:
            self._refuse(self._head, TIMEOUT, TIMEOUT.detail)
        else:
            self._idled()

    def _answer_is_late(self) -> None:
        exchange = self._current
        if not isinstance(exchange, Exchange):
            self.abort()
            return
        self.close_after_this()
        detail = "The message could not be made safe in time; it may still be."
        self._tell_refusal(NOT_STORED, detail, exchange.head, exchange.source)
        self.answer(exchange, refusal(NOT_STORED, detail))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """See L{twisted.internet.interfaces.IProtocol.connectionLost}."""
        current, self._current = self._current, None
        self._forget_body()
        super().connectionLost(reason)
        if isinstance(current, Request):
            current.lost(reason)
