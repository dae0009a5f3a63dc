"""
HTTP/1.1 on a connection: bytes to requests, one at a time and in order, and answers back.

Requests are judged at the end of their head. A refused one is answered before its body; the body is then read and
thrown away for a moment, so that the sender sees the answer and not a reset.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from twisted.internet.error import TimeoutError
from twisted.internet.interfaces import (
    IConsumer,
    IHalfCloseableProtocol,
    IHandshakeListener,
    IPushProducer,
    ITCPTransport,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

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
    NotStored,
    Reason,
    RequestRefused,
)
from webhookrx.http.answers import (
    CONTINUE,
    FAILED,
    KEEP,
    OVER_TLS,
    RECEIVED,
    AnswerWriter,
    FixedAnswer,
    refusal,
    refusal_now,
    refusal_to,
)
from webhookrx.http.body import DISCARDED_BODY, SMALL_BODY, CountedBody, DiscardedBody
from webhookrx.http.grammar import check_beginning
from webhookrx.http.head import RequestHead, parse_head
from webhookrx.http.interfaces import IExchange, IReceiver, ISite
from webhookrx.http.states import (
    ANSWER,
    BLOCKED,
    BODY,
    CLOSED,
    CLOSING,
    DISCARD,
    DONE,
    HALF_CLOSED,
    HANDSHAKE,
    HEAD,
    HELD,
    IDLE,
    LINGERING,
    NEW,
    OPEN,
    READING,
    TURN,
    FlowControl,
    Lifetime,
    RequestCycle,
)
from webhookrx.http.transport_queries import client_of, descriptor_of, peer_of, unread_bytes, untaken_bytes
from webhookrx.intake.head import Peer
from webhookrx.intake.judge import Admission
from webhookrx.interfaces import IMessageConsumer
from webhookrx.wire_interfaces import IOverload, ITraffic

if TYPE_CHECKING:
    from twisted.web.server import Request

#: Requests that one sender has pipelined and that are answered before others have their turn, and seconds that this
#: may take.
REQUESTS_A_TURN = 32
SECONDS_A_TURN = 0.005

#: Seconds without a byte, and in all, for which a connection lingers after its last answer (as in nginx).
LINGER_IDLE = 2.0
LINGER_IN_ALL = 30.0

_BLANK_LINES = re.compile(rb"\A(?:\r\n)+")
_UNKNOWN = Peer("", None, False)


@implementer(IHalfCloseableProtocol, IHandshakeListener, IPushProducer, IExchange)
class HTTPProtocol(Protocol):
    """
    The server's side of HTTP/1.1 and 1.0.

    Its state is that of three machines, see L{webhookrx.http.states}. One request is under way at a time, and a further
    one follows only after its answer: so the protocol itself is the exchange of each, and the acknowledgement of its
    message.

    It is registered with its transport as a producer, so that a sender that does not take its answers is no longer read
    from. Its deadline is on the monotonic clock; L{webhookrx.http.site.Site.sweep} checks it.

    @param clock: seconds on the monotonic clock.
    @param peer_known: False behind the PROXY protocol, where the peer is known with the first data.
    @param later: see L{webhookrx.http.site.Site}.
    @ivar deadline: when to call L{expired}.
    @ivar peer: the other end.
    @ivar head: that of the request under way.
    @ivar admission: that of the request under way; None if it is not for a receiver of ours.
    @ivar connection_header: what its answer says of the connection, see L{webhookrx.http.answers.CONNECTION_LINES}.
    """

    transport: ITCPTransport
    admission: Admission

    def __init__(
        self,
        site: ISite,
        consumer: IMessageConsumer,
        traffic: ITraffic,
        answers: AnswerWriter,
        clock: Callable[[], float],
        overload: IOverload,
        later: Callable[[Callable[[], None]], object] | None,
        *,
        peer_known: bool,
    ) -> None:
        self.site = site
        self._consumer = consumer
        self._traffic = traffic
        self._answers = answers
        self._clock = clock
        self._overload = overload
        self._later = later
        self._peer_known = peer_known
        self.peer = _UNKNOWN
        self.deadline = float("inf")
        self._cycle: RequestCycle = IDLE
        self._flow: FlowControl = READING
        self._lifetime: Lifetime = NEW
        self._pending = b""
        self._scanned = 0
        self._parsing = False  # then an answer leaves the rest of the data to the loop that parses it
        self.head: RequestHead = None  # type: ignore[assignment]
        self.admission = None  # type: ignore[assignment]
        self._receiver: IReceiver | None = None
        self._request: Request | None = None
        self._body: CountedBody | DiscardedBody | None = None
        self.connection_header = KEEP
        self._complete_at = 0.0  # when the request was there in full
        self._answered_at = float("-inf")  # when the last request was answered
        self._linger_end = 0.0

    # -- beginning -----------------------------------------------------------------------------------------------

    def connectionMade(self) -> None:
        """See L{twisted.internet.interfaces.IProtocol.connectionMade}."""
        transport = self.transport
        self.peer = peer = peer_of(transport)
        self.connection_header = KEEP + OVER_TLS if peer.secure else KEEP
        self._lifetime = self._lifetime.to(HANDSHAKE if peer.secure else OPEN)
        self._allow(self.site.policy.limits.header_time)
        if peer.port is not None and ITCPTransport.providedBy(transport):
            transport.setTcpNoDelay(True)
        cast(IConsumer, transport).registerProducer(self, True)
        if self.site.opened(self):
            self._update_flow()
        elif peer.secure:
            self._report(TOO_MANY_CONNECTIONS, TOO_MANY_CONNECTIONS.detail)
            self.abort()  # an answer would cost the handshake that we want to be spared
        else:
            self._reject_connection()

    def handshakeCompleted(self) -> None:
        """See L{IHandshakeListener.handshakeCompleted}."""
        if self._lifetime is HANDSHAKE:
            self._lifetime = self._lifetime.to(OPEN)
            client = client_of(self.transport)
            if client is not None:
                self.peer = peer_of(self.transport, client)

    def _admits_peer(self) -> bool:
        """Look up the peer, known with its first byte; False, and the connection rejected, if it has too many."""
        self._peer_known = True
        self.peer = peer_of(self.transport, self.peer.client)
        if self.site.admits_peer(self):
            return True
        self._reject_connection()
        return False

    def _reject_connection(self) -> None:
        """Say that there are too many connections, and close without lingering."""
        detail = TOO_MANY_CONNECTIONS.detail
        self._report(TOO_MANY_CONNECTIONS, detail)
        self.close_after_this()
        self._send(refusal(TOO_MANY_CONNECTIONS, detail))
        self._close()

    # -- bytes in ------------------------------------------------------------------------------------------------

    def dataReceived(self, data: bytes) -> None:
        """
        Take as many requests as are there and may be taken now.

        See L{twisted.internet.interfaces.IProtocol.dataReceived}.
        """
        if self._pending:
            data = self._pending + data
            self._pending = b""
        self._parsing = True
        rest: bytes | None = data
        taken = 0
        turn_ends = 0.0
        try:
            while rest:
                cycle = self._cycle
                if self._flow is BLOCKED:
                    self._pending = rest
                    break
                if cycle is IDLE or cycle is HEAD:
                    if taken == 1:  # one request is never more than a fair share
                        turn_ends = self._clock() + SECONDS_A_TURN
                    elif taken and (taken == REQUESTS_A_TURN or self._clock() > turn_ends) and self._later is not None:
                        self._cycle = cycle.to(TURN)
                        self._later(self._next_turn)
                        continue
                    taken += 1
                    rest = self._take_head(rest)
                elif cycle <= DISCARD:
                    rest = self._take_body(rest)
                else:
                    if cycle is not DONE:
                        self._pending = rest
                        self._update_flow()
                    elif self._lifetime is LINGERING:
                        self.deadline = min(self._linger_end, self._clock() + LINGER_IDLE)
                    break
        except Exception:
            self.failed("A request could not be read.", Failure())
            if self._cycle <= BODY:
                self._refuse(None, INTERNAL_ERROR, INTERNAL_ERROR.detail)
            else:
                self.abort()
        finally:
            self._parsing = False

    def _next_turn(self) -> None:
        """Go on, now that others had their turn."""
        if self._cycle is TURN:  # else the connection has ended
            self._cycle = self._cycle.to(IDLE)
            self._resume()

    def _take_head(self, data: bytes) -> bytes | None:
        """Return what follows the head; None if it is not complete or the connection is done."""
        if not self._peer_known and not self._admits_peer():
            return None
        scanned = self._scanned
        if scanned == 0 and data.startswith(b"\r\n"):  # RFC 9112 §2.2
            data = _BLANK_LINES.sub(b"", data, count=1)
        head = None
        try:
            if scanned == 0 or data.find(b"\r\n\r\n", scanned) >= 0:
                policy = self.site.policy
                head = parse_head(data, self.peer, policy.limits, policy.names)
            if head is None:
                self._wait_for_head(data)
                return None
        except RequestRefused as refused:
            return self._refuse(None, refused.reason, refused.detail)
        self._scanned = 0
        return self._dispatch(head, data)

    def _wait_for_head(self, data: bytes) -> None:
        """Keep the beginning of a head, unless it can't become a request."""
        limits = self.site.policy.limits
        self._pending = data
        if data in (b"", b"\r"):  # blank lines begin no request
            return
        if self._cycle is IDLE:
            self._cycle = self._cycle.to(HEAD)
            if not self._is_first:  # the time of the first request began with the connection
                self._allow(limits.header_time)
        check_beginning(data, limits.target, limits.header_block, self._scanned)
        self._scanned = max(0, len(data) - 3)

    def _dispatch(self, head: RequestHead, data: bytes) -> bytes | None:
        """Judge the head that C{data} begins with; return what follows it, None if the connection is done."""
        policy = self.site.policy
        self.head = head
        self.connection_header = head.connection & OVER_TLS if policy.closing else head.connection
        start, length = head.size, head.content_length
        if self._overload.refusing:
            return self._refuse(head, OVERLOADED, OVERLOADED.detail, data[start:])
        verdict = policy.dispatch(head)
        if isinstance(verdict, tuple):
            self._receiver, self.admission = verdict
        elif isinstance(verdict, FixedAnswer):
            return self._answer_early(head, verdict, data[start:])
        elif verdict is not None:
            self._report(verdict.reason, verdict.detail, verdict.source)
            return self._answer_early(head, refusal_to(verdict, self._consumer), data[start:])
        if head.expects_other:
            return self._refuse(head, BAD_EXPECTATION, BAD_EXPECTATION.detail, data[start:])
        if length is not None and length > policy.limits.body:
            return self._refuse(head, BODY_TOO_LARGE, BODY_TOO_LARGE.detail, data[start:])
        if policy.draining:
            return self._refuse(head, DRAINING, DRAINING.detail, data[start:])
        is_complete = length is not None and start + length <= len(data)
        expected = 0 if is_complete else head.bytes_expected
        # Asked before a message is made of it, too: under overload a refusal must cost next to nothing.
        if (expected or verdict is not None) and not self._consumer.has_room(expected, small=expected <= SMALL_BODY):
            return self._refuse(head, NO_ROOM, NO_ROOM.detail, data[start:])
        if is_complete:
            end = start + length  # type: ignore[operator]
            self._complete(data[start:end])
            return data[end:]
        return self._await_body(head, data[start:])

    def _await_body(self, head: RequestHead, rest: bytes) -> bytes:
        """Read a body from now on, beginning with C{rest}."""
        limits = self.site.policy.limits
        watch = None if self._receiver is None else self._receiver.watch
        self._body = CountedBody(head.content_length, limits.body, self._consumer, watch)
        self._cycle = self._cycle.to(BODY)
        self._allow(limits.body_time)
        if head.expects_continue and not rest:
            self.transport.write(CONTINUE)
        return rest

    def _take_body(self, data: bytes) -> bytes | None:
        """Return what follows the body; None if it is not complete or the connection is done."""
        body = self._body
        assert body is not None
        try:
            rest = body.feed(data)
        except RequestRefused as refused:
            return self._refuse(self.head, refused.reason, refused.detail, retry_after=refused.retry_after)
        if rest is not None:
            self._body = None
            if isinstance(body, DiscardedBody):
                self._request_done()
            else:
                self._complete(body.take())  # from here on the message is counted instead
        return rest

    def _forget_body(self) -> None:
        body, self._body = self._body, None
        if body is not None:
            body.forget()

    def _complete(self, body: bytes) -> None:
        """Hand the request over, which is all there."""
        site = self.site
        self._complete_at = now = self._clock()
        self._cycle = self._cycle.to(ANSWER)
        self.deadline = now + site.policy.limits.answer_time
        receiver = self._receiver
        try:
            if receiver is not None:
                receiver.receive(self, body)
            else:
                head = self.head
                self._request = request = site.make_request(self, head, body)
                request.requestReceived(head.method, head.target, b"HTTP/1.0" if head.http_1_0 else b"HTTP/1.1")
        except Exception:
            self.failed("A request could not be judged.", Failure())
            if receiver is None:
                self.abort()
            elif self.is_open():
                self._report(INTERNAL_ERROR, INTERNAL_ERROR.detail)
                # Its message may be under way: an acknowledgement must not meet another request.
                self.answer(FAILED, close=True)

    # -- answers out ---------------------------------------------------------------------------------------------

    def acknowledged(self, error: NotStored | None, answer: FixedAnswer = RECEIVED) -> None:
        """See L{IExchange.acknowledged}."""
        if self._cycle is not ANSWER or self._receiver is None:
            return  # the deadline has answered, or the sender is gone
        if error is not None:
            self._report(NOT_STORED, NOT_STORED.detail)
            self.answer(self._receiver.refusal(self.head, NOT_STORED, NOT_STORED.detail))
            return
        now = self._clock()
        self._traffic.answered(self.admission.rules.name, now - self._complete_at)
        self.transport.write(self._answers.bytes_of(answer, self.connection_header))
        self._request_done(now)

    def is_open(self) -> bool:
        """See L{IExchange.is_open}."""
        return self._cycle is ANSWER and self._receiver is not None

    def answer(self, answer: FixedAnswer, *, close: bool = False) -> bool:
        """See L{IExchange.answer}."""
        if not self.is_open():
            return False
        if close:
            self.close_after_this()
        self._send(answer)
        self._request_done()
        return True

    def close_after_this(self) -> None:
        """Make the request that is under way the last one here."""
        self.connection_header &= OVER_TLS

    def _send(self, answer: FixedAnswer) -> None:
        written = self._answers.bytes_of(answer, self.connection_header)
        if self.head is not None and self.head.method == b"HEAD":
            written = written[: len(written) - len(answer.body)]
        self.transport.write(written)

    def _request_done(self, now: float | None = None) -> None:
        """Turn to the next request, or close."""
        self._receiver = None
        self._request = None
        if self.connection_header < KEEP:
            self._close()
            return
        site = self.site
        self._cycle = self._cycle.to(IDLE)
        self.head = self.admission = None  # type: ignore[assignment]
        self._answered_at = now = self._clock() if now is None else now
        site.became_idle(self)
        if self._flow is not BLOCKED:  # the answer is to be taken first
            limits = site.policy.limits
            self.deadline = now + (limits.answer_time if limits.answer_time < limits.idle_time else limits.idle_time)
        if not self._parsing and (self._pending or self._flow is not READING or self._lifetime is HALF_CLOSED):
            self._resume()

    def _resume(self) -> None:
        """Take up what was left while an answer, or the sender's taking it, was waited for."""
        if self._pending:
            self.dataReceived(b"")
        if self._lifetime is HALF_CLOSED and self._flow is not BLOCKED:
            self._sender_ended()
        self._update_flow()

    def _report(self, reason: Reason, detail: str, source: str = "") -> None:
        """Report that the request under way is refused."""
        head, admission = self.head, self.admission
        method, path = (b"", b"") if head is None else (head.method, head.path)
        if admission is not None:
            source = admission.rules.name
        self._traffic.refused(reason, detail, str(self.peer), method, path, source)

    def failed(self, what: str, failure: Failure) -> None:
        """Report that something of ours raised."""
        self._traffic.failed(what, failure)

    def _refuse(
        self, head: RequestHead | None, reason: Reason, detail: str, rest: bytes = b"", retry_after: int = 0
    ) -> bytes | None:
        """
        Refuse the request that is under way.

        @param head: its head; None if the end of the request is unknown, so that the connection can't stay.
        @param retry_after: see L{RequestRefused}.
        @return: see L{_take_head}.
        """
        self._report(reason, detail)
        receiver, self._receiver = self._receiver, None
        self._forget_body()
        if receiver is None:
            answer = refusal_now(reason, detail, self._consumer)
        else:
            answer = receiver.refusal(self.head, reason, detail, retry_after)
        return self._answer_early(head, answer, rest)

    def _answer_early(self, head: RequestHead | None, answer: FixedAnswer, rest: bytes) -> bytes | None:
        """Answer the request that is under way, whose body is not wanted; see L{_refuse}."""
        self.head = head  # type: ignore[assignment]
        self.admission = None  # type: ignore[assignment]
        keeps = (
            head is not None
            and self._cycle <= HEAD
            and head.content_length is not None
            and head.content_length <= DISCARDED_BODY
            and not (head.expects_continue or head.expects_other)
        )
        if not keeps:
            self.close_after_this()
        self._send(answer)
        if head is None or self.connection_header < KEEP:
            body_to_come = head is None or self._cycle is BODY or head.has_body
            self._close(linger=body_to_come or bool(rest))
            return None
        if head.content_length:
            self._cycle = self._cycle.to(DISCARD)
            self._body = DiscardedBody(head.content_length)
            self._allow(self.site.policy.limits.body_time)
        else:
            self._request_done()
        return rest

    # -- requests of C{twisted.web} ------------------------------------------------------------------------------

    def request_done(self, request: Request) -> None:
        """Note that a C{twisted.web} request has been answered in full."""
        if request is self._request and self._cycle is ANSWER:
            self._request_done()

    def replace_answer(self, answer: FixedAnswer) -> None:
        """Answer in place of the C{twisted.web} request that is under way, as the last request here."""
        self.close_after_this()
        self._send(answer)
        self._request_done()

    def answer_goes_on(self) -> None:
        """Restart the deadline of an answer: C{twisted.web} writes while the sender takes it."""
        self._allow(self.site.policy.limits.answer_time)

    def producer_replaced(self) -> None:
        """Leave flow control to a resource, which is the transport's producer now."""
        self._unblock()
        self._update_flow()

    # -- flow control --------------------------------------------------------------------------------------------

    def pauseProducing(self) -> None:
        """Our answers fill the transport's buffer: take no further request until the sender has taken them."""
        if self._flow is BLOCKED:
            return
        self._allow(self.site.policy.limits.answer_time)
        was, self._flow = self._flow, self._flow.to(BLOCKED)
        if was is READING and self._lifetime < CLOSING:
            cast(IPushProducer, self.transport).pauseProducing()

    def resumeProducing(self) -> None:
        """Go on: the sender has taken its answers."""
        self._unblock()
        limits = self.site.policy.limits
        if self._cycle is IDLE:
            self._allow(limits.idle_time)
        elif self._cycle is HEAD:
            self._allow(limits.header_time)
        else:
            self._allow(limits.answer_time)
        self._resume()

    def stopProducing(self) -> None:
        """The transport is gone; C{connectionLost} follows."""

    def paused_for(self, seconds: float) -> None:
        """Extend the deadline: reading was off for all connections for so long."""
        if self._cycle <= DISCARD:
            self.deadline += seconds
        self._update_flow()

    def _unblock(self) -> None:
        if self._flow is BLOCKED:
            self._flow = self._flow.to(HELD)

    def _update_flow(self) -> None:
        """Have the transport read, or not."""
        if self._flow is BLOCKED or self._lifetime >= CLOSING:
            return
        waits = bool(self._pending) and (self._cycle is ANSWER or self._cycle is TURN)
        holds = waits or self.site.paused or self._lifetime is HALF_CLOSED
        producer = cast(IPushProducer, self.transport)
        if holds and self._flow is READING:
            self._flow = self._flow.to(HELD)
            producer.pauseProducing()
        elif not holds and self._flow is HELD:
            self._flow = self._flow.to(READING)
            producer.resumeProducing()

    # -- deadlines -----------------------------------------------------------------------------------------------

    def _allow(self, seconds: float) -> None:
        """Begin a new deadline, unless the one for taking answers runs."""
        if self._flow is not BLOCKED:
            self.deadline = self._clock() + seconds

    def expired(self) -> None:
        """End what the deadline was for: it has passed."""
        if self._lifetime >= CLOSING or self._flow is BLOCKED:
            self.abort()
        elif self._cycle <= DISCARD and self._is_unread():
            self._allow(self.site.policy.limits.header_time)  # the sender is not late, we are
        elif self._lifetime is HANDSHAKE:
            self._handshake_failed(Failure(TimeoutError()))
            self.abort()
        elif self._lifetime is LINGERING or self._cycle is DISCARD:
            self._close()
        elif self._cycle is IDLE:
            self._idle_expired()
        elif self._cycle <= BODY:
            self._refuse(self.head, TIMEOUT, TIMEOUT.detail)
        elif self._receiver is None:
            self.abort()
        else:
            detail = "The message could not be made safe in time; it may still be."
            self._report(NOT_STORED, detail)
            self.answer(self._receiver.refusal(self.head, NOT_STORED, detail), close=True)

    def _idle_expired(self) -> None:
        """Go on with the second deadline between two requests: first the answer is to be taken, then a request sent."""
        end = self._answered_at + self.site.policy.limits.idle_time
        if untaken_bytes(self.transport):
            self.abort()
        elif self._clock() < end:
            self.deadline = end
        else:
            self._close()

    def _is_unread(self) -> bool:
        """Return whether we are behind with reading what has come."""
        descriptor = descriptor_of(self.transport)
        if descriptor is None:
            return False
        overload = self._overload
        if overload.has_unread(descriptor):
            return True
        return overload.behind and self._flow is READING and unread_bytes(self.transport) > 0

    # -- the end -------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a request is under way, or its answer not yet taken."""
        return self._cycle is not IDLE

    @property
    def in_first_head(self) -> bool:
        """Whether its first head, or the handshake before it, is not complete."""
        return self._cycle <= HEAD and self._is_first

    @property
    def _is_first(self) -> bool:
        return self._answered_at < 0

    def finish(self) -> None:
        """Make the request that is under way the last one here, unless it has its answer already."""
        if self._cycle is not DISCARD:
            self.close_after_this()

    def drain(self) -> None:
        """Close now if idle; see L{finish}."""
        if self._cycle is IDLE:
            self._close()

    def give_way(self) -> None:
        """End without an answer: another connection takes its place."""
        self.site.give_way(self)

    def readConnectionLost(self) -> None:
        """
        The sender sends no more, and may still wait for its answer (RFC 9112 §9.6).

        See L{IHalfCloseableProtocol.readConnectionLost}.
        """
        if self._lifetime is LINGERING:
            self._close()
        elif self._lifetime < HALF_CLOSED:
            self._lifetime = self._lifetime.to(HALF_CLOSED)
            if self._flow is not BLOCKED:
                self._sender_ended()

    def writeConnectionLost(self) -> None:
        """We send no more, as we wanted."""

    def _sender_ended(self) -> None:
        """End after the sender has: a complete request is answered first, an incomplete one never will be."""
        cycle = self._cycle
        if cycle is IDLE or cycle is DISCARD:
            self._close()
        elif cycle <= BODY:
            self._refuse(self.head, BAD_REQUEST, "The sender ended the connection within a request.")
        elif self._request is not None:
            self.abort()  # a stock resource learns of it as under C{twisted.web}'s own channel

    def abort(self) -> None:
        """Close without another word."""
        if self._lifetime < CLOSING:
            self._end(CLOSING)
        self.deadline = float("inf")
        self.transport.abortConnection()

    def _close(self, *, linger: bool = False) -> None:
        """
        Close once what was written is taken.

        @param linger: the sender still talks. To close now would reset the connection, and it might never see its
            answer; so what it sends is thrown away for a moment first.
        """
        now = self._clock()
        was_lingering = self._lifetime is LINGERING
        if not was_lingering:
            cast(IConsumer, self.transport).unregisterProducer()
        if self._lifetime < HALF_CLOSED and (linger or self._pending):
            self._end(LINGERING)
            self._linger_end = now + LINGER_IN_ALL
            self.deadline = now + LINGER_IDLE
            self._unblock()
            self._update_flow()
            if not self.peer.secure:
                self.transport.loseWriteConnection()
        else:
            self._end(CLOSING)
            self.deadline = now + self.site.policy.limits.answer_time
            self.transport.loseConnection()

    def _end(self, lifetime: Lifetime) -> None:
        """Read no further request."""
        self._lifetime = self._lifetime.to(lifetime)
        if self._cycle is not DONE:
            self._cycle = self._cycle.to(DONE)
        self._pending = b""

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """See L{twisted.internet.interfaces.IProtocol.connectionLost}."""
        was_in_handshake = self._lifetime is HANDSHAKE
        self._end(CLOSED)
        request, self._request = self._request, None
        self._receiver = None
        self._forget_body()
        self.site.closed(self)
        if was_in_handshake:
            self._handshake_failed(reason)
        if request is not None:
            request.connectionLost(reason)

    def _handshake_failed(self, reason: Failure) -> None:
        self.peer = peer_of(self.transport)  # a PROXY header may have come since the connection was made
        self._traffic.handshake_failed(str(self.peer), reason)
