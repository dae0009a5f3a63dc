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
    OVERLOADED,
    TIMEOUT,
    TOO_MANY_CONNECTIONS,
    Reason,
    RequestRefused,
)
from webhookrx.http.answers import CLOSE, CONTINUE, FAILED, KEEP, KEEP_1_0, OVER_TLS, Answer, refusal, refusal_now
from webhookrx.http.body import DISCARDED_BODY, DiscardedBody
from webhookrx.http.connection import ANSWER, BODY, CLOSING, HEAD, LINGER, Connection
from webhookrx.http.counted_body import SMALL_BODY, CountedBody
from webhookrx.http.exchange import Exchange
from webhookrx.http.grammar import check_beginning
from webhookrx.http.head import RequestHead, parse_head
from webhookrx.http.twisted_request import Request
from webhookrx.intake.head import Head

if TYPE_CHECKING:
    from webhookrx.http.site import Site

#: So many requests that one sender has pipelined are answered before it is the turn of the others, and for no longer
#: than so many seconds.
REQUESTS_A_TURN = 32
SECONDS_A_TURN = 0.005

_BLANK_LINES = re.compile(rb"\A(?:\r\n)+")


class HTTPProtocol(Connection):
    """
    The server's side of HTTP/1.1 and 1.0.
    """

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._advancing = False
        self._scanned = 0
        self._parsed: RequestHead | None = None
        self._keep = False  # whether the connection may stay after the request that is under way
        self._kept_word = KEEP
        self._body: CountedBody | DiscardedBody | None = None
        self._exchange: Exchange | None = None
        self._request: Request | None = None

    # -- bytes in ------------------------------------------------------------------------------------------------

    def dataReceived(self, data: bytes) -> None:
        """See L{twisted.internet.interfaces.IProtocol.dataReceived}."""
        state = self._state
        if state is HEAD or state is BODY:
            if self._pending:
                data = self._pending + data
                self._pending = b""
            self._advance(data)
        elif state is ANSWER:
            self._pending += data
            self._update_reading()
        elif state is LINGER:
            self._heard_after_the_end()

    def _advance(self, data: bytes) -> None:
        """Take as many requests from C{data} as are there and may be taken now."""
        self._advancing = True
        rest: bytes | None = data
        taken = 0
        turn_ends = 0.0
        try:
            while rest:
                state = self._state
                if self._blocked:
                    self._pending = rest  # the sender is to take its answers first
                    break
                if state is HEAD:
                    if taken == 1:  # the first request alone is nobody's unfair share
                        turn_ends = self.site.clock() + SECONDS_A_TURN
                    if (
                        taken > 1
                        and (taken == REQUESTS_A_TURN or self.site.clock() > turn_ends)
                        and self.site.later is not None
                    ):
                        self._state = ANSWER
                        self.site.later(self.next_turn)
                        continue
                    taken += 1
                    rest = self._take_head(rest)
                elif state is BODY:
                    rest = self._take_body(rest)
                else:
                    if state is ANSWER:
                        self._pending = rest
                        self._update_reading()
                    break
        except Exception:
            self.site.traffic.failed("A request could not be read.", Failure())
            if self._state is HEAD or self._state is BODY:
                self._refuse(None, INTERNAL_ERROR, INTERNAL_ERROR.detail)
            else:
                self.abort()
        finally:
            self._advancing = False

    def _take_head(self, data: bytes) -> bytes | None:
        """Return what follows the head; None when it is not complete or the connection is done."""
        site = self.site
        limits = site.limits
        if not self._peer_known and not self.meet_peer():
            return None
        scanned = self._scanned
        if scanned == 0 and data.startswith(b"\r\n"):  # RFC 9112 §2.2
            data = _BLANK_LINES.sub(b"", data, count=1)
        head = None
        try:
            if scanned == 0 or data.find(b"\r\n\r\n", scanned) >= 0:
                head = parse_head(data, self.peer, limits)
            if head is None:
                self._wait_for_head(data)
                return None
        except RequestRefused as refused:
            return self._refuse(None, refused.reason, refused.detail)
        self._scanned = 0
        return self._dispatch(head, data)

    def _wait_for_head(self, data: bytes) -> None:
        """Keep the beginning of a head, unless nothing can become of it."""
        limits = self.site.limits
        self._pending = data
        if data in (b"", b"\r"):  # blank lines begin no request
            return
        if not self._begun:
            self._begun = True
            if not self._first:  # the first request's time began with the connection
                self._allow(limits.header_time)
        check_beginning(data, limits.target, limits.header_block, self._scanned)
        self._scanned = max(0, len(data) - 3)

    def _dispatch(self, parsed: RequestHead, data: bytes) -> bytes | None:
        """Judge the head that C{data} begins with; return what follows it, None when the connection is done."""
        site = self.site
        self._parsed = parsed
        self._keep = parsed.keep_alive
        self._kept_word = KEEP_1_0 if parsed.http_1_0 else KEEP
        start, length = parsed.size, parsed.content_length
        if site.overload.refusing:
            return self._refuse(parsed, OVERLOADED, OVERLOADED.detail, data[start:])
        verdict = site.dispatch(parsed)
        if isinstance(verdict, tuple):
            receiver, admission = verdict
            self._exchange = Exchange(self, parsed, receiver, admission)
        elif isinstance(verdict, Answer):
            return self._answer_early(parsed, verdict, data[start:])
        elif verdict is not None:
            return self._refuse(parsed, verdict.reason, verdict.detail, data[start:], verdict.source)
        if parsed.expects_other:
            return self._refuse(parsed, BAD_EXPECTATION, BAD_EXPECTATION.detail, data[start:])
        if length is not None and length > site.limits.body:
            return self._refuse(parsed, BODY_TOO_LARGE, BODY_TOO_LARGE.detail, data[start:])
        if site.draining:
            return self._refuse(parsed, DRAINING, DRAINING.detail, data[start:])
        size = parsed.bytes_expected(len(data) - start)
        # Asked before a message is made of it, too: with too much to do, a refusal must cost next to nothing.
        if (size or verdict is not None) and not site.consumer.has_room(size, small=size <= SMALL_BODY):
            return self._refuse(parsed, NO_ROOM, NO_ROOM.detail, data[start:])
        if length is not None and not size:
            end = start + length
            self._complete(data[start:end])
            return data[end:]
        return self._await_body(parsed, data[start:])

    def _await_body(self, parsed: RequestHead, rest: bytes) -> bytes:
        """Read a body from now on, beginning with C{rest}."""
        self._body = CountedBody(parsed.content_length, self.site.limits.body, self.site.consumer)
        self._state = BODY
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
            return self._refuse(self._parsed, refused.reason, refused.detail)
        if rest is not None:
            self._body = None
            if isinstance(body, DiscardedBody):
                self._request_done(True)
            else:
                self._complete(body.take())  # from here on the message is counted instead
        return rest

    def _forget_body(self) -> None:
        body, self._body = self._body, None
        if body is not None:
            body.forget()

    # -- answers out ---------------------------------------------------------------------------------------------

    def _complete(self, body: bytes) -> None:
        """The request is all there: hand it over."""
        site = self.site
        now = site.clock()
        self._state = ANSWER
        if not self._blocked:
            self.deadline = now + site.limits.answer_time
        exchange = self._exchange
        try:
            if exchange is not None:
                exchange.began = now
                exchange.receiver.receive(exchange, body)
            else:
                assert self._parsed is not None
                self._request = Request.from_parts(self, self._parsed, body)
                self._request.serve(self._parsed)
        except Exception:
            site.traffic.failed("A request could not be judged.", Failure())
            if exchange is None:
                self.abort()
            elif self.answer(exchange, FAILED):
                self._report(INTERNAL_ERROR, INTERNAL_ERROR.detail, exchange.head, exchange.source)

    def serves(self, exchange: Exchange) -> bool:
        """Tell whether this request is still to be answered."""
        return exchange is self._exchange

    def answer(self, exchange: Exchange, answer: Answer, close: bool = False) -> bool:
        """Answer the request that is under way; an answer to another one comes too late, is dropped, and is False."""
        if exchange is not self._exchange:
            return False
        keep = self.keeps_alive and not close
        self._send(answer, keep)
        self._request_done(keep)
        return True

    def request_done(self, request: Request | None) -> None:
        """A stock request has been answered in full; None: it was answered in its place."""
        if request is None or request is self._request:
            self._request_done(self.keeps_alive)

    def answer_goes_on(self) -> None:
        """A stock request writes: its answer may take its time while the sender takes it."""
        self._allow(self.site.limits.answer_time)

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection stays after the request that is under way."""
        site = self.site
        return self._keep and not (site.draining or site.finishing)

    def close_after_this(self) -> None:
        """The request that is under way is the last one here."""
        self._keep = False

    def connection_header(self, keep: bool) -> int:
        """What the answer to the request that is under way says of the connection, if it is kept or not."""
        word = self._kept_word if keep else CLOSE
        return word + OVER_TLS if self.peer.secure else word

    def _send(self, answer: Answer, keep: bool) -> None:
        head = self._parsed
        written = self.site.answers.bytes_of(answer, self.connection_header(keep))
        if head is not None and head.method == b"HEAD":
            written = written[: len(written) - len(answer.body)]
        self.transport.write(written)

    def _request_done(self, keep: bool) -> None:
        """Turn to the next request, or away."""
        self._exchange = None
        self._request = None
        if not keep:
            self._close()
            return
        site = self.site
        self._state = HEAD
        self._begun = False
        self._first = False
        self._parsed = None
        self._idle_since = now = site.clock()
        site.idles(self)
        if not self._blocked:  # the answer is to be taken first
            limits = site.limits
            self.deadline = now + (limits.answer_time if limits.answer_time < limits.idle_time else limits.idle_time)
        if not self._advancing and (self._pending or self._ended or not self._reading):
            self.resume()

    def resume(self) -> None:
        """See L{Connection.resume}."""
        pending, self._pending = self._pending, b""
        if pending:
            self._advance(pending)
        if self._ended and not self._blocked:
            self.sender_ended()
        self._update_reading()

    def _report(self, reason: Reason, detail: str, asked: Head | None = None, source: str = "") -> None:
        method, path = (asked.method, asked.path) if asked is not None else (b"", b"")
        self.site.traffic.refused(reason, detail, str(self.peer), method, path, source)

    def _refuse(
        self, parsed: RequestHead | None, reason: Reason, detail: str, rest: bytes = b"", source: str = ""
    ) -> bytes | None:
        """
        Refuse the request that is under way.

        @param parsed: its head; None when it can't be told where the request ends, so that the connection can't stay.
        @param source: who refuses it, when that is not who has admitted it.
        @return: see L{_take_head}.
        """
        exchange, self._exchange = self._exchange, None
        self._report(reason, detail, self._parsed, source if exchange is None else exchange.source)
        self._forget_body()
        return self._answer_early(parsed, refusal_now(reason, detail, self.site.consumer), rest)

    def _answer_early(self, parsed: RequestHead | None, answer: Answer, rest: bytes) -> bytes | None:
        """Answer the request that is under way, whose body nobody wants; see L{_refuse}."""
        self._parsed = parsed
        body_to_come = parsed is None or self._state is BODY or parsed.has_body
        keep = (
            parsed is not None
            and self._state is HEAD
            and self.keeps_alive
            and parsed.content_length is not None
            and parsed.content_length <= DISCARDED_BODY
            and not (parsed.expects_continue or parsed.expects_other)
        )
        self._send(answer, keep)
        if not keep:
            self._close(linger=body_to_come or bool(rest))
            return None
        if parsed is not None and parsed.content_length:
            self._state = BODY
            self._body = DiscardedBody(parsed.content_length)
            self._allow(self.site.limits.body_time)
        else:
            self._request_done(True)
        return rest

    # -- the connection ------------------------------------------------------------------------------------------

    def reject_connection(self) -> None:
        """See L{Connection.reject_connection}: it is told so, and not waited for."""
        detail = TOO_MANY_CONNECTIONS.detail
        self._report(TOO_MANY_CONNECTIONS, detail)
        self._send(refusal(TOO_MANY_CONNECTIONS, detail), False)
        self._close()

    def sender_ended(self) -> None:
        """See L{Connection.sender_ended}: what is complete is answered, what is not never will be."""
        if self._blocked or self._state is CLOSING:
            pass  # it has ended already, or goes on once the answers so far have been taken
        elif self._state is ANSWER:
            if self._request is not None:
                self.abort()  # a stock resource hears of it as under C{twisted.web}'s own channel
        elif isinstance(self._body, DiscardedBody) or not (self._state is BODY or self._begun):
            self._close()
        else:
            self._refuse(self._parsed, BAD_REQUEST, "The sender ended the connection within a request.")

    def too_slow(self) -> None:
        """See L{Connection.too_slow}."""
        if self._state is ANSWER:
            self._answer_is_late()
        elif isinstance(self._body, DiscardedBody):
            self._close()
        elif self._state is BODY or self._begun:
            self._refuse(self._parsed, TIMEOUT, TIMEOUT.detail)
        else:
            self._idled()

    def _answer_is_late(self) -> None:
        exchange = self._exchange
        if exchange is None:
            self.abort()
            return
        self.close_after_this()
        detail = "The message could not be made safe in time; it may still be."
        self._report(NOT_STORED, detail, exchange.head, exchange.source)
        self.answer(exchange, refusal(NOT_STORED, detail))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """See L{twisted.internet.interfaces.IProtocol.connectionLost}."""
        request, self._request = self._request, None
        self._exchange = None
        self._forget_body()
        super().connectionLost(reason)
        if request is not None:
            request.lost(reason)
